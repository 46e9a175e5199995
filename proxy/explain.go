package proxy

import (
	"context"
	"net/http"

	"signalbox/internal/openai"
	"signalbox/internal/signal"
	"signalbox/rules"
)

// Explanation is a decision with its reasons. It is what the explain endpoint, the CLI and
// x_signalbox.decision show.
type Explanation struct {
	Route     string                 `json:"route"`
	Blocked   bool                   `json:"blocked"`
	Models    []string               `json:"models"`     // candidates in the order they would be tried
	Model     string                 `json:"model"`      // the first of them; empty when nothing would be forwarded
	Reasoning string                 `json:"reasoning"`  // as the route says: none, low, medium, high, auto or empty
	MaxTokens any                    `json:"max_tokens"` // a number, "auto" or null
	Prompt    string                 `json:"prompt"`     // name of the system prompt; empty without one
	Guard     string                 `json:"guard"`
	Cache     string                 `json:"cache"`
	Signals   map[string]SignalTrace `json:"signals"` // every signal that the rules mention
	Routes    []rules.RouteTrace     `json:"routes"`
}

// SignalTrace is what became of one signal.
type SignalTrace struct {
	State    string    `json:"state"`              // evaluated, skipped or unknown
	Value    string    `json:"value,omitempty"`    // the label
	Labels   []string  `json:"labels,omitempty"`   // of keyword the sets that matched, of pii the types found
	Score    *float64  `json:"score,omitempty"`    // probability of the label, in [0,1]
	Entities *[]Entity `json:"entities,omitempty"` // of pii
	Coverage string    `json:"coverage,omitempty"` // windowed or compressed; absent when all was read in one piece
	Windows  int       `json:"windows,omitempty"`  // with windowed: how many cover the text
	Read     int       `json:"read,omitempty"`     // with windowed: how many of them were read
	Reason   string    `json:"reason,omitempty"`   // why it is unknown
	Ms       float64   `json:"ms"`                 // time spent, in milliseconds; signals of one pass share it
}

// Explain decides a chat completion request as if who had sent it, and forwards nothing. Errors of
// the body and an unknown model are *openai.Error or say so in their text.
func (p *Proxy) Explain(ctx context.Context, body []byte, who Principal) (*Explanation, error) {
	st := p.acquire()
	defer st.release()
	return st.explain(ctx, body, who, http.Header{})
}

func (st *State) explain(ctx context.Context, body []byte, who Principal, h http.Header) (*Explanation, error) {
	req, err := openai.ParseChat(body, openai.Limits{})
	if err != nil {
		return nil, err
	}
	d, err := st.start(who, req, h)
	if err != nil {
		return nil, err
	}
	if err := st.settle(ctx, d, req); err != nil {
		return nil, err
	}
	return d.explain(), nil
}

// explain builds the explanation. It runs the trace, which costs more than the decision did.
func (d *decision) explain() *Explanation {
	e := &Explanation{
		Route: d.Route, Models: []string{}, Guard: "off", Cache: "off",
		Signals: map[string]SignalTrace{}, Routes: d.program.Trace(d.set),
	}
	for _, k := range d.program.Kinds().Kinds() {
		e.Signals[k.String()] = traceSignal(k, &d.set.Values[k], &d.text)
	}
	if d.Outcome == rules.Unavailable {
		return e
	}
	a := d.Action
	e.Blocked = a.Verb == rules.Block
	e.Reasoning, e.Prompt = a.Reasoning, a.Prompt.Name
	e.Guard, e.Cache = or(a.Guard, e.Guard), or(a.Cache, e.Cache)
	if a.MaxTokens.Auto {
		e.MaxTokens = "auto"
	} else if a.MaxTokens.Limit > 0 {
		e.MaxTokens = a.MaxTokens.Limit
	}
	if a.Verb == rules.Use {
		e.Models = d.candidates(func(int) int { return 0 })
		e.Model = e.Models[0]
	}
	return e
}

func traceSignal(k signal.Kind, v *signal.Value, text *signal.Text) SignalTrace {
	t := SignalTrace{Ms: float64(v.Elapsed.Microseconds()) / 1000}
	switch v.State {
	case signal.NotExtracted:
		t.State = "skipped"
	case signal.Unknown:
		t.State, t.Reason = "unknown", string(v.Reason)
	case signal.Known:
		t.State, t.Value = "evaluated", v.Label
		t.Coverage, t.Windows, t.Read = coverageOf(v)
		if k == signal.Keyword || k == signal.PII {
			t.Labels = v.Labels
		}
		if k == signal.PII {
			found := entitiesOf(v, text)
			t.Entities = &found
		}
		if k != signal.Keyword {
			t.Score = &v.Score
		}
	}
	return t
}

// appendDecision adds x_signalbox.decision behind the last member of an object that lacks its brace.
func appendDecision(object []byte, o *outcome) []byte {
	b, err := encode(o.explain())
	if err != nil {
		return object // numbers of a trace are finite; an explanation is not worth the answer
	}
	if last := object[len(object)-1]; last != '{' {
		object = append(object, ',')
	}
	object = append(append(object, `"x_signalbox":{"decision":`...), b...)
	return append(object, '}')
}

// explainRequest serves POST /signalbox/v1/explain.
func (*Proxy) explainRequest(st *State, w *reply, r *http.Request) error {
	who, body, err := st.admit(w, r)
	if err != nil {
		return err
	}
	if !st.auth.mayExplain(who) {
		return errForbidden
	}
	e, err := st.explain(r.Context(), body, who, r.Header)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, e)
}
