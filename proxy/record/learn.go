package record

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"signalbox/memory/outcomes"
	"signalbox/proxy/choose"
	"signalbox/proxy/decide"
	"signalbox/proxy/exchange"
	"signalbox/proxy/fault"
	"signalbox/proxy/feedback"
	"signalbox/proxy/lengths"
	"signalbox/proxy/placement"
	"signalbox/stream/response"
)

// learnLength records how long a response was and how it ended, and reports whether that widened an
// automatic limit. Responses that broke off, were ended by a filter, or have several choices are
// not used.
func (b *Book) learnLength(o *exchange.Exchange) (widened bool) {
	if o.Decision == nil || o.Model == nil || o.Guarded.Cut ||
		o.Tally.Finish == "" || o.Tally.Finish == response.FinishOther || o.Tally.Finish == response.FinishFilter {
		return false
	}
	if n := o.Req.Field("n"); n != nil && string(n) != "1" && string(n) != "null" {
		return false
	}
	length := int64(o.Tally.Usage.Output)
	if length == 0 {
		length = o.Tally.Length()
	}
	how := lengths.Ended
	_, bounded := o.Req.AnswerLimit()
	switch {
	case o.Limit.Auto && o.Tally.Finish == response.FinishLength:
		how, length = lengths.Cut, max(length, int64(o.Limit.Tokens))
	case o.Limit.Auto:
	case o.Limit.Tokens > 0 || o.Limit.Given || bounded:
		how = lengths.Bounded
	}
	b.Chooser.Lengths.Observe(o.Params.Kind, length, how)
	return how == lengths.Cut
}

// MarkFirstByte records when the response to the last attempt of a request began, or that none
// began before the proxy or the client gave up.
func (b *Book) MarkFirstByte(o *exchange.Exchange, err error) {
	o.First = b.Chooser.Speeds.Now()
	if errors.Is(err, fault.ErrNoProgress) || errors.Is(err, fault.ErrClientGone) {
		b.Chooser.Speeds.InVain(o.Model.Name, o.First.Sub(o.Sent))
	}
}

// observeSpeed records the speed of a served response. Responses that were cut, errors and refusals
// are not used.
func (b *Book) observeSpeed(o *exchange.Exchange, status int, err error) {
	if err != nil || status != http.StatusOK || o.Model == nil || o.Guarded.Cut || o.Tally.Failed {
		return
	}
	t := choose.Taken{Total: b.Chooser.Speeds.Now().Sub(o.Sent), Tokens: int64(o.Tally.Usage.Output)}
	if o.Req.Stream {
		t.First = max(o.First.Sub(o.Sent), 1)
		if t.Tokens == 0 {
			t.Tokens = o.Tally.Length()
		}
	} else {
		t.Total = o.First.Sub(o.Sent) // what follows waits for the client
	}
	b.Chooser.Speeds.Observe(o.Model.Name, t)
}

// Discard learns from a discarded response.
func (b *Book) Discard(o *exchange.Exchange, told response.Tally, status int) {
	was := *o
	was.Tally = told
	b.observeSpeed(&was, status, nil)
	b.learnLength(&was)
	recordPlacement(&was, status, nil)
}

// recordPlacement reports to placement how a request ended, once.
func recordPlacement(o *exchange.Exchange, status int, err error) {
	used := o.Tally.Usage
	u := placement.UsageOf(&used)
	u.Failed = err != nil || status != http.StatusOK || o.Tally.Failed
	u.Whole = o.Req != nil && !o.Req.Stream && used.Output != 1
	if how, ok := o.Where.End(time.Now(), u, used.Input); ok {
		o.Placed = how
	}
}

// watchSigns derives outcomes from what an answered request implies about the previous response,
// and from its own response.
func (r *Recorder) watchSigns(ctx context.Context, b *Book, o *exchange.Exchange, id string, status int, err error) {
	if b.Outcomes == nil || b.Learning.Learn != decide.LearnAll || o.Decision == nil || o.Req == nil ||
		err != nil || status != http.StatusOK {
		return
	}
	weights := b.Learning.Signs.Weights()
	for _, j := range feedback.BySigns(b.Seen, &feedback.Answered{
		Tenant: o.Who.Tenant, Session: o.Set.Facts.Session, ID: id, Request: o.Req,
		Failed: o.Guarded.Failed > 0,
		Cut:    o.Tally.Finish == response.FinishLength && !o.Limit.ClientsOwn(o.Req),
	}) {
		w := weights[j.Sign]
		if j.Of == "" || w == 0 {
			continue
		}
		_, err := b.Outcomes.Judge(o.Who.Tenant, j.Of, j.Score, w, "", string(j.Sign))
		if err != nil && !errors.Is(err, outcomes.ErrUnknown) {
			r.Tel.Log.LogAttrs(ctx, slog.LevelWarn, "outcome not stored", slog.String("cause", err.Error()))
		}
	}
}
