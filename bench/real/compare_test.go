package main

import (
	"net/http"
	"strings"
	"testing"
)

func stream(body string) *answer {
	return &answer{
		status: http.StatusOK, header: http.Header{"Content-Type": {"text/event-stream"}},
		body: []byte(body),
	}
}

func TestLastTokensMayComeWithTheEnd(t *testing.T) {
	t.Parallel()
	const apart = `data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}` + "\n\n" +
		`data: {"choices":[{"index":0,"delta":{"content":"b"},"finish_reason":"stop"}]}` + "\n\n"
	const together = `data: {"choices":[{"index":0,"delta":{"content":"ab"},"finish_reason":"stop"}]}` + "\n\n"
	if got, pieces, err := compare(stream(apart), stream(together)); err != nil || len(got) > 0 || !pieces {
		t.Errorf("got %v, %v, %v", got, pieces, err)
	}
	// The event with the end tells more than those before it.
	more := func(s string) string {
		return strings.Replace(s, `"stop"}]}`, `"stop","stop_reason":null}],"system_fingerprint":"v"}`, 1)
	}
	const three = `data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}` + "\n\n" +
		`data: {"choices":[{"index":0,"delta":{"content":"bc"},"finish_reason":"stop"}]}` + "\n\n"
	moved := strings.Replace(strings.Replace(three, `"a"`, `"ab"`, 1), `"bc"`, `"c"`, 1)
	if got, pieces, err := compare(stream(more(three)), stream(more(moved))); err != nil || len(got) > 0 || !pieces {
		t.Errorf("with more members: got %v, %v, %v", got, pieces, err)
	}
	if got, _, _ := compare(stream(more(three)), stream(moved)); len(got) == 0 {
		t.Error("an end without them is no difference")
	}
	// All tokens with the end: the only event before has the role, and no member for the tokens' ids.
	const role = `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}` + "\n\n"
	ids := func(s string) string {
		return strings.ReplaceAll(s, `"finish_reason"`, `"token_ids":null,"finish_reason"`)
	}
	if got, pieces, err := compare(stream(role+ids(apart)), stream(role+ids(together))); err != nil || len(got) > 0 || !pieces {
		t.Errorf("after the role: got %v, %v, %v", got, pieces, err)
	}
	if got, _, _ := compare(stream(role+ids(apart)), stream(role+together)); len(got) > 0 {
		t.Errorf("null is absent where the cut differs: got %v", got)
	}
	if got, _, _ := compare(stream(apart), stream(ids(apart))); len(got) == 0 {
		t.Error("null beside absent is no difference where the cut is the same")
	}
	other := strings.Replace(together, "stop", "length", 1)
	if got, _, _ := compare(stream(apart), stream(other)); len(got) == 0 {
		t.Error("another end is no difference")
	}
}

func TestChoicesMayComeInAnyOrder(t *testing.T) {
	t.Parallel()
	const zero, one = `data: {"choices":[{"index":0,"text":"a"}]}` + "\n\n", `data: {"choices":[{"index":1,"text":"b"}]}` + "\n\n"
	got, pieces, err := compare(stream(zero+one+zero+"data: [DONE]\n\n"), stream(one+zero+zero+"data: [DONE]\n\n"))
	if err != nil || len(got) > 0 || !pieces {
		t.Errorf("got %v, %v, %v", got, pieces, err)
	}
	if got, _, _ = compare(stream(zero+one), stream(one+one)); len(got) == 0 { //nolint:dogsled // two texts differ
		t.Error("another choice is no difference")
	}
}

func TestCompareTellsWhatDiffers(t *testing.T) {
	t.Parallel()
	const ab = `data: {"id":"x","choices":[{"delta":{"content":"a"}}]}` + "\n\n" +
		`data: {"id":"x","choices":[{"delta":{"content":"b"}}]}` + "\n\n" + `data: [DONE]` + "\n\n"
	for _, tt := range []struct {
		name, through string
		differ        int
		pieces        bool
	}{
		{"other ids and the product's own member", `data: {"id":"y","x_signalbox":{},"choices":[{"delta":{"content":"a"}}]}` +
			"\n\n" + `data: {"id":"y","choices":[{"delta":{"content":"b"}}]}` + "\n\ndata: [DONE]\n\n", 0, false},
		{"cut elsewhere", `data: {"id":"y","choices":[{"delta":{"content":"ab"}}]}` + "\n\ndata: [DONE]\n\n", 0, true},
		{"another text", `data: {"id":"y","choices":[{"delta":{"content":"ac"}}]}` + "\n\ndata: [DONE]\n\n", 1, false},
		{"no end", `data: {"id":"y","choices":[{"delta":{"content":"ab"}}]}` + "\n\n", 1, false},
		{"a member more", `data: {"id":"y","choices":[{"delta":{"content":"ab"},"k":1}]}` + "\n\ndata: [DONE]\n\n", 1, false},
		{"an event twice", ab[:len(ab)-14] + ab, 1, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, pieces, err := compare(stream(ab), stream(tt.through))
			if err != nil || len(got) != tt.differ || pieces != tt.pieces {
				t.Errorf("got %v, %v, %v", got, pieces, err)
			}
		})
	}
}
