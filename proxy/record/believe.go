package record

import (
	"context"
	"log/slog"
	"maps"
	"math"
	"sync"
	"time"

	"signalbox/internal/openai"
	"signalbox/proxy/exchange"
	"signalbox/stream/response"
)

// Limits of the usage that a server is believed to have. They are far above real values, because a
// limit that is too low would count too little.
const (
	// addedTokens is what a server may add to a prompt: its template and its own system prompt.
	// Otherwise a prompt has at most one token per byte of the body, in any vocabulary.
	addedTokens = 1 << 16
	// longestWindow is the maximum length of a prompt or response when the model's window is
	// unknown or configured as less: the longest that models are commonly served with.
	longestWindow = 1 << 20
	// readAgain is how often a server may read everything again: server-side tools are steps of one
	// request, and some rankers read the question once per text.
	readAgain = 16

	doubtedEvery = time.Minute // between warnings for one endpoint
)

// Believe replaces impossible usage in the response to the last attempt by an estimate, and reports
// whether it did. A single wrong number could exhaust the budgets and limits of the caller.
func (r *Recorder) Believe(ctx context.Context, o *exchange.Exchange, told *response.Tally) (estimated bool) {
	if o.Decision == nil || o.Model == nil || o.Req == nil {
		return false
	}
	u, was := &told.Usage, told.Usage
	if most := mostPrompt(o); outside(u.Input, most) || outside(u.Cached, most) {
		u.Input, u.Cached = o.PromptTokens(), 0
	}
	if outside(u.Output, mostOutput(o)) {
		u.Output, u.Reasoning = int(told.Length()), 0
		if u.Output == 0 { // a whole body, whose text was not parsed
			u.Output = o.MaxOutputTokens(o.Model.Window)
		}
	}
	if *u == was {
		return false
	}
	if r.doubts.due(o.Endpoint.Name, time.Now()) {
		r.Tel.Log.LogAttrs(ctx, slog.LevelWarn, "server reported implausible usage; an estimate is used",
			slog.String("model", o.Model.Name), slog.String("endpoint", o.Endpoint.Name),
			slog.Int("prompt_tokens", was.Input), slog.Int("cached_tokens", was.Cached),
			slog.Int("completion_tokens", was.Output))
	}
	return true
}

// outside reports whether a number of tokens is negative or too large.
func outside(n, most int) bool { return n < 0 || n > most }

// mostPrompt returns the maximum number of tokens that the prompt of the last attempt may have had.
// The body does not bound it when it contains images or refers to data on the server.
func mostPrompt(o *exchange.Exchange) int {
	most, window := int(o.BodySize)+addedTokens, max(o.Model.Window, longestWindow)
	req := o.Req
	switch {
	case req.API == openai.Other, req.API == openai.Response && req.HasTools, req.Field("web_search_options") != nil:
		most = max(most, readAgain*window)
	case req.HasMedia, req.Continues(), req.API == openai.Response && req.Field("prompt") != nil:
		most = max(most, window)
	}
	return most
}

// mostOutput returns the maximum number of tokens that the responses to the last attempt may have
// had, at most 2^31-1.
func mostOutput(o *exchange.Exchange) int {
	limit, _ := o.Req.AnswerLimit()
	each := max(int(min(limit, math.MaxInt32)), o.Limit.Tokens, o.Model.Window, longestWindow)
	return int(min(float64(each)*float64(o.Answers()), math.MaxInt32))
}

// doubts are the endpoints that reported impossible usage in the last minute. The zero value is
// ready. It is safe for concurrent use.
type doubts struct {
	mu     sync.Mutex
	warned map[string]time.Time
}

// due reports whether a warning for an endpoint is due.
func (d *doubts) due(endpoint string, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.warned, func(_ string, at time.Time) bool { return now.Sub(at) >= doubtedEvery })
	if _, ok := d.warned[endpoint]; ok {
		return false
	}
	if d.warned == nil {
		d.warned = make(map[string]time.Time)
	}
	d.warned[endpoint] = now
	return true
}
