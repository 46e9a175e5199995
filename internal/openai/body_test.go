package openai

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/signal"
)

func TestParseBodyReadsTheTextsOfOtherEndpoints(t *testing.T) {
	tests := []struct {
		name, body string
		want       signal.Text
		opaque     bool
	}{
		{"an input", `{"model":"m","input":"P"}`, signal.Text{LastUser: "P", Segments: []signal.Segment{seg("user", "P")}}, false},
		{"several inputs", `{"model":"m","input":["P","Q"]}`, signal.Text{LastUser: "Q", Segments: []signal.Segment{seg("user", "P"), seg("user", "Q")}}, false},
		{"token ids", `{"model":"m","prompt":[1,2]}`, signal.Text{Segments: []signal.Segment{}}, true},
		{"lists of token ids", `{"model":"m","input":[[1],[2]]}`, signal.Text{Segments: []signal.Segment{}}, true},
		{
			"no text at all", `{"model":"m","input":null,"voice":"alloy"}`,
			signal.Text{Segments: []signal.Segment{}},
			false,
		},
		{
			"texts to rank", `{"model":"m","query":"q","documents":["a",{"text":"b","id":"1"}]}`,
			signal.Text{LastUser: "q", Segments: []signal.Segment{
				seg("user", "q"), seg("tool", "a"), seg("tool", "b"),
				short(signal.OriginData, "tool", "1"),
			}},
			false,
		},
		{
			"a text to speak", `{"model":"m","input":"s","instructions":"calmly"}`,
			signal.Text{LastUser: "s", Segments: []signal.Segment{seg("user", "s"), seg("system", "calmly")}},
			false,
		},
		{
			"messages to tokenize", `{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"u"}]}`,
			signal.Text{LastUser: "u", Segments: []signal.Segment{seg("system", "s"), seg("user", "u")}},
			false,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := ParseBody([]byte(tt.body), Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, r.Text()); d != "" || r.OpaquePrompt != tt.opaque {
				t.Errorf("opaque %t, text (-want +got):\n%s", r.OpaquePrompt, d)
			}
		})
	}
}

func TestParseBodyRefusesWhatParseChatRefuses(t *testing.T) {
	tests := []struct{ name, body, param string }{
		{"no model", `{"prompt":"x"}`, "model"},
		{"case variant", `{"model":"m","Prompt":"x"}`, "Prompt"},
		{"case variant in an item", `{"model":"m","input":[{"Content":"x"}]}`, "input[0].Content"},
		{"duplicate", `{"model":"m","prompt":"x","prompt":"y"}`, "prompt"},
		{"prompt is an object", `{"model":"m","prompt":{}}`, "prompt"},
		{"content is a number", `{"model":"m","input":[{"content":1}]}`, "input[0].content"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ParseBody([]byte(tt.body), Limits{})
			if e, ok := err.(*Error); !ok || e.Param != tt.param || e.Status != 400 { //nolint:errorlint // the type itself is promised
				t.Errorf("got %#v, want param %q", err, tt.param)
			}
		})
	}
}

func TestPatchOfABodyWithoutMessagesEditsFields(t *testing.T) {
	r, err := ParseBody([]byte(`{"signalbox":{}, "model":"auto","max_tokens":7,"input":[1]}`), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	p := NewPatch(r)
	p.SetModel("m")
	if d := cmp.Diff(`{"model":"m","max_tokens":7,"input":[1]}`, string(p.Bytes())); d != "" || *r.MaxTokens != 7 {
		t.Errorf("(-want +got):\n%s", d)
	}
	defer func() {
		if recover() == nil {
			t.Error("a message was inserted into a request that has none")
		}
	}()
	p.InsertMessage(0, "system", "x")
}
