package proxy

import (
	"errors"
	"net/http"

	"signalbox/internal/signal"
	"signalbox/proxy/backend"
	"signalbox/proxy/choose"
	"signalbox/proxy/fault"
	"signalbox/proxy/lengths"
	"signalbox/stream/response"
)

// tokenLimit is the limit on an answer that the proxy put into a request; zero when it put none.
type tokenLimit struct {
	n     int // in tokens; 0 with given when its value is no number of tokens
	auto  bool
	given bool // by a field that the route sets
}

// learn notes how long an answer was and how it ended, and reports whether that widened an
// automatic limit. Answers that were broken off, that a filter ended or that hold several choices
// say nothing.
func (st *State) learn(o *exchange) (widened bool) {
	if o.decision == nil || o.model == nil || o.guarded.Cut || o.told.Finish == "" || o.told.Finish == response.FinishOther {
		return false
	}
	if n := o.req.Field("n"); n != nil && string(n) != "1" && string(n) != "null" {
		return false
	}
	length := int64(o.told.Usage.Output)
	if length == 0 {
		length = o.told.Length()
	}
	how := lengths.Ended
	switch {
	case o.limit.auto && o.told.Finish == response.FinishLength:
		how, length = lengths.Cut, max(length, int64(o.limit.n))
	case o.limit.auto:
	case o.limit.n > 0 || o.limit.given || o.req.MaxTokens != nil || o.req.MaxCompletionTokens != nil:
		how = lengths.Bounded
	}
	st.chooser.Lengths.Observe(o.asked.kind, length, how)
	return how == lengths.Cut
}

// kind names the answers that one of model m to this request is like. effort is that of the
// dialect.
func (d *decision) kind(m *backend.Model, effort string) lengths.Kind {
	k := lengths.Kind{Model: m.Name, Effort: effort}
	if v := &d.set.Values[signal.Domain]; v.State == signal.Known {
		k.Domain = v.Label
	}
	if v := &d.set.Values[signal.Complexity]; v.State == signal.Known {
		k.Complexity = v.Label
	}
	return k
}

// answered notes when the answer to the last attempt of a request began, or that there was none
// before the proxy or the client lost patience.
func (st *State) answered(o *exchange, err error) {
	o.first = st.chooser.Speeds.Now()
	if errors.Is(err, fault.ErrNoProgress) || errors.Is(err, fault.ErrClientGone) {
		st.chooser.Speeds.InVain(o.model.Name, o.first.Sub(o.sent))
	}
}

// ended observes the answer of a request that was served. Answers that were cut, and refusals, say
// nothing about how long an answer takes.
func (st *State) ended(o *exchange, status int, err error) {
	if err != nil || status != http.StatusOK || o.model == nil || o.guarded.Cut {
		return
	}
	t := choose.Taken{Total: st.chooser.Speeds.Now().Sub(o.sent), Tokens: int64(o.told.Usage.Output)}
	if o.req.Stream {
		t.First = max(o.first.Sub(o.sent), 1)
		if t.Tokens == 0 {
			t.Tokens = o.told.Length()
		}
	} else {
		t.Total = o.first.Sub(o.sent) // what follows waits for the client
	}
	st.chooser.Speeds.Observe(o.model.Name, t)
}
