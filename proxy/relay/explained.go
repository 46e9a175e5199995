package relay

import (
	"signalbox/proxy/exchange"
	"signalbox/proxy/explain"
	"signalbox/stream/guard"
	"signalbox/stream/response"
)

// explained adds the explanation of the decision to the end of a stream on its way to next: to the
// chunk in which a choice ends, like the guard's summary, and in the Responses API to the event
// that ends the response.
type explained struct {
	stage *Stage
	o     *exchange.Exchange
	next  guard.Sink
	told  *explain.Explanation // nil before the first end
}

var _ guard.Sink = (*explained)(nil)

// Put implements response.Sink.
func (x *explained) Put(c *response.Chunk) {
	if c.IsMessage() && len(c.Content().Finishes) > 0 {
		if x.told == nil {
			x.told = x.stage.decision(x.o)
		}
		c.SetData(x.told.AddTo(c.Data, x.o.Guarding))
	}
	x.next.Put(c)
}

// Flush implements guard.Sink.
func (x *explained) Flush() error { return x.next.Flush() }

// addDecision adds the explanation of the decision to a response.
func (s *Stage) addDecision(body []byte, o *exchange.Exchange) []byte {
	if _, ok := response.ExtensionOf(body); !ok {
		return body
	}
	return s.decision(o).AddTo(body, o.Guarding)
}

// decision explains the decision for an answered request.
func (s *Stage) decision(o *exchange.Exchange) *explain.Explanation {
	e, rw := s.Explainer.Explain(o.Decision, o.Tools), o.Rewriter(s.Explainer.Edits, o.Req)
	e.Answered(&rw, o.Model, o.Params, o.Escalation)
	return e
}
