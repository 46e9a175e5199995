package proxy

import (
	"errors"
	"net/http"
	"time"

	"signalbox/proxy/choose"
	"signalbox/proxy/fault"
	"signalbox/proxy/lengths"
	"signalbox/proxy/placement"
	"signalbox/stream/response"
)

// learnLength notes how long a response was and how it ended, and reports whether that widened an
// automatic limit. Responses that were broken off, that a filter ended or that hold several choices
// say nothing.
func (st *State) learnLength(o *exchange) (widened bool) {
	if o.decision == nil || o.model == nil || o.guarded.Cut || o.tally.Finish == "" || o.tally.Finish == response.FinishOther {
		return false
	}
	if n := o.req.Field("n"); n != nil && string(n) != "1" && string(n) != "null" {
		return false
	}
	length := int64(o.tally.Usage.Output)
	if length == 0 {
		length = o.tally.Length()
	}
	how := lengths.Ended
	switch {
	case o.Limit.Auto && o.tally.Finish == response.FinishLength:
		how, length = lengths.Cut, max(length, int64(o.Limit.Tokens))
	case o.Limit.Auto:
	case o.Limit.Tokens > 0 || o.Limit.Given || o.req.MaxTokens != nil || o.req.MaxCompletionTokens != nil:
		how = lengths.Bounded
	}
	st.Chooser.Lengths.Observe(o.Params.Kind, length, how)
	return how == lengths.Cut
}

// markFirstByte notes when the response to the last attempt of a request began, or that there was none
// before the proxy or the client lost patience.
func (st *State) markFirstByte(o *exchange, err error) {
	o.first = st.Chooser.Speeds.Now()
	if errors.Is(err, fault.ErrNoProgress) || errors.Is(err, fault.ErrClientGone) {
		st.Chooser.Speeds.InVain(o.model.Name, o.first.Sub(o.sent))
	}
}

// observeSpeed observes the response of a request that was served. Responses that were cut, and refusals,
// say nothing about how long a response takes.
func (st *State) observeSpeed(o *exchange, status int, err error) {
	if err != nil || status != http.StatusOK || o.model == nil || o.guarded.Cut {
		return
	}
	t := choose.Taken{Total: st.Chooser.Speeds.Now().Sub(o.sent), Tokens: int64(o.tally.Usage.Output)}
	if o.req.Stream {
		t.First = max(o.first.Sub(o.sent), 1)
		if t.Tokens == 0 {
			t.Tokens = o.tally.Length()
		}
	} else {
		t.Total = o.first.Sub(o.sent) // what follows waits for the client
	}
	st.Chooser.Speeds.Observe(o.model.Name, t)
}

// recordPlacement tells placement how a request ended, once.
func (*Proxy) recordPlacement(o *exchange, status int, err error) {
	used := o.tally.Usage
	u := placement.UsageOf(&used)
	u.Failed = err != nil || status != http.StatusOK
	u.Whole = o.req != nil && !o.req.Stream && used.Output != 1
	if how, ok := o.where.End(time.Now(), u, used.Input); ok {
		o.placed = how
	}
}
