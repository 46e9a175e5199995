package response_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/stream/response"
	"signalbox/stream/sse"
)

// read returns the texts of a stream, by choice and kind, and how it ends.
func read(t *testing.T, stream []byte) map[string]string {
	t.Helper()
	var r response.Reader
	out := map[string]string{}
	for _, data := range events(t, stream) {
		e := r.Read(data)
		if e.Shape == response.Opaque {
			t.Fatalf("%s: %s", e.Why, data)
		}
		for i := range e.Deltas {
			if d := &e.Deltas[i]; !d.Whole {
				out[fmt.Sprint(d.Choice, " ", d.Part, " ", d.Kind)] += string(d.Text)
			}
		}
		for _, f := range e.Finishes {
			out[fmt.Sprint("end of ", f.Choice)] += string(f.Reason)
		}
	}
	return out
}

// holder holds back the second half of every visible text until the next event, like a guard with
// an unfinished claim.
type holder struct {
	r     response.Reader
	out   []byte
	state sse.State
	held  map[int][]byte // by choice
	like  map[int]response.Delta
	buf   []byte
}

func (h *holder) pass(e sse.Event) {
	h.state = h.state.After(e.Name, e.Data)
	h.out = append(h.out, e.Raw...)
}

func (h *holder) release(choice int) {
	if len(h.held[choice]) == 0 {
		return
	}
	h.buf = h.r.AppendDelta(h.buf[:0], h.like[choice], h.held[choice])
	e, _ := sse.NewEvent(nil, h.r.DeltaName(), h.buf)
	h.pass(e)
	delete(h.held, choice)
}

func (h *holder) event(e sse.Event) {
	if e.Kind != sse.Message || sse.IsDone(e.Data) {
		h.pass(e)
		return
	}
	a := h.r.Read(e.Data)
	for _, f := range a.Finishes {
		h.release(f.Choice)
	}
	var changes []response.Change
	for i := range a.Deltas {
		d := a.Deltas[i]
		if d.Whole || d.Kind != response.Text {
			continue
		}
		h.release(d.Choice)
		if len(a.Finishes) > 0 {
			continue
		}
		half := len([]rune(string(d.Text))) / 2
		at := len(string([]rune(string(d.Text))[:half]))
		h.like[d.Choice], h.held[d.Choice] = d, bytes.Clone(d.Text[at:])
		changes = append(changes, response.Change{Delta: i, From: at, To: len(d.Text)})
	}
	switch {
	case len(changes) == 0:
		h.pass(e)
	default:
		e, _ = e.With(nil, a.Append(nil, response.Rewrite{Changes: changes}))
		h.pass(e)
	}
}

func TestTextThatIsHeldBackComesOutWhole(t *testing.T) {
	for _, name := range []string{"openai_chat.sse", "openai_tools.sse", "vllm_chat.sse", "vllm_completion.sse", "sglang_chat.sse", "llamacpp_chat.sse", "ollama_chat.sse", "openai_responses.sse"} {
		t.Run(name, func(t *testing.T) {
			stream := fixture(t, name)
			h := holder{held: map[int][]byte{}, like: map[int]response.Delta{}}
			p := sse.NewParser(0)
			p.Feed(stream)
			for e := p.Next(); e != nil; e = p.Next() {
				if string(e.Name) == "response.output_text.done" {
					h.release(1)
				}
				h.event(*e)
			}
			out := h.out
			if diff := cmp.Diff(read(t, stream), read(t, out)); diff != "" {
				t.Errorf("texts (-want +got):\n%s", diff)
			}
			if bytes.Equal(stream, out) && !bytes.Contains(stream, []byte(`"tool_calls"`)) {
				t.Error("nothing was held back")
			}
			if h.state != sse.Done {
				t.Errorf("state %v", h.state)
			}
		})
	}
}
