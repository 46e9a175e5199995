package response_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/stream/response"
)

func TestATextThatStandsTwiceIsOne(t *testing.T) {
	for name, c := range map[string]struct{ data, want string }{
		"a chat chunk with its text beside": {
			`{"choices":[{"index":0,"delta":{"token_id":7,"content":"Ab é"},"text":"Ab \u00e9","token_ids":[7],"finish_reason":null}]}`,
			`{"choices":[{"index":0,"delta":{"token_id":null,"content":"A!é"},"text":"A!\u00e9","token_ids":null,"finish_reason":null}]}`,
		},
		"the text first": {
			`{"choices":[{"text":"Ab c","delta":{"content":"Ab c"},"index":0}]}`,
			`{"choices":[{"text":"A!c","delta":{"content":"A!c"},"index":0}]}`,
		},
		"a body": {
			`{"choices":[{"index":0,"message":{"role":"assistant","content":"Ab c"},"text":"Ab c","finish_reason":"stop"}]}`,
			`{"choices":[{"index":0,"message":{"role":"assistant","content":"A!c"},"text":"A!c","finish_reason":"stop"}]}`,
		},
		"the sum of a response": {
			`{"object":"response","output_text":"Ab c","output":[{"type":"message","content":[{"type":"output_text","text":"Ab c"}]}]}`,
			`{"object":"response","output_text":"A!c","output":[{"type":"message","content":[{"type":"output_text","text":"A!c"}]}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var r response.Reader
			e := r.Read([]byte(c.data))
			if len(e.Deltas) != 1 || e.Unread {
				t.Fatalf("%v, %s, unread %v: %+v", e.Shape, e.Why, e.Unread, e.Deltas)
			}
			got := string(e.Append(nil, response.Rewrite{Changes: []response.Change{{From: 1, To: 3, Text: []byte("!")}}}))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("event (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBuiltEventsBringATextTwiceWhereTheServerDoes(t *testing.T) {
	var r response.Reader
	r.Read([]byte(`{"id":"x","choices":[{"index":0,"delta":{"content":"a"},"text":"a"}]}`))
	got := string(r.AppendDelta(nil, response.Delta{}, []byte("b")))
	const want = `{"id":"x","choices":[{"index":0,"delta":{"content":"b"},"text":"b","logprobs":null,"finish_reason":null}]}`
	if got != want {
		t.Errorf("event %s", got)
	}
}

func TestWhatIsSaidButNotReadIsTold(t *testing.T) {
	for data, want := range map[string]bool{
		`{"choices":[{"index":0,"delta":{"audio":{"id":"a","transcript":"Hello"}}}]}`:                                   true,
		`{"choices":[{"index":0,"message":{"content":null,"audio":{"transcript":"Hello"}}}]}`:                           true,
		`{"choices":[{"index":0,"message":{"content":"Hello","audio":null}}]}`:                                          false,
		`{"object":"response","output_text":"b","output":[{"type":"message","content":[{"type":"text","text":"a"}]}]}`:  true,
		`{"object":"response","output_text":"b","output":[]}`:                                                           true,
		`{"object":"response","output_text":"","output":[]}`:                                                            false,
		`{"object":"response","output_text":null,"output":[{"type":"message","content":[{"type":"text","text":"a"}]}]}`: false,
	} {
		var r response.Reader
		e := r.Read([]byte(data))
		if e.Shape == response.Opaque || e.Unread != want {
			t.Errorf("%s: %v, unread %v", data, e.Shape, e.Unread)
		}
	}
}

func TestLogprobsAreTakenOutOfEveryText(t *testing.T) {
	const data = `{"choices":[{"index":0,"delta":{"content":""},"logprobs":{"content":[1]},"token_ids":[2]},{"index":1,"delta":{},"logprobs":null}]}`
	var r response.Reader
	e := r.Read([]byte(data))
	got := string(e.Append(nil, response.Rewrite{Unspelled: true}))
	want := `{"choices":[{"index":0,"delta":{"content":""},"logprobs":null,"token_ids":null},{"index":1,"delta":{},"logprobs":null}]}`
	if diff := cmp.Diff(want, got); diff != "" || !e.Spelled() {
		t.Errorf("spelled %v, event (-want +got):\n%s", e.Spelled(), diff)
	}
	if e := r.Read([]byte(want)); e.Spelled() {
		t.Error("what was taken out is still there")
	}
}
