package simulator

import "testing"

func TestFramingATokenAllocatesNothing(t *testing.T) {
	g := &generation{id: "chatcmpl-1", created: 1, promptTokens: 8, usage: usageEvery}
	c := choice{finish: finishLength, callID: "call-1"}
	c.add(reasoningPiece, "I think")
	c.add(contentPiece, "\"漢字\" and more")
	c.pieces = append(c.pieces, piece{callPiece, "get_weather"})
	c.add(argumentsPiece, `{"city": "Oslo"}`)
	g.choices = []choice{c}
	buf := make([]byte, 0, 4096)
	for _, f := range []struct {
		name string
		framer
	}{
		{"chat", &chatFramer{newFrame(g, "chat.completion.chunk", "m"), ReasoningContentField}},
		{"text", &textFramer{newFrame(g, "text_completion", "m")}},
	} {
		for k := range c.pieces {
			if n := testing.AllocsPerRun(100, func() { buf = f.token(buf[:0], 0, k, ends) }); n != 0 {
				t.Errorf("%s: token %d takes %v allocations", f.name, k, n)
			}
		}
	}
}

func TestADeltaOfAResponseCostsNoAllocation(t *testing.T) {
	c := choice{finish: finishStop}
	c.add(contentPiece, "one two")
	f := newResponseFramer(&generation{id: "resp_1", choices: []choice{c}}, "m", &responseRequest{})
	buf := f.token(make([]byte, 0, 4096), 0, 0, goesOn) // begins the item
	if n := testing.AllocsPerRun(100, func() { buf = f.token(buf[:0], 0, 1, goesOn) }); n > 0 {
		t.Errorf("a delta costs %v allocations", n)
	}
}
