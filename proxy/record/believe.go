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

// The bounds of the usage that a server is believed. They are far above what is real, since a bound
// that is too low would count too little.
const (
	// addedTokens is what a server may add to a prompt: its template and a system prompt of its own.
	// The rest is at most a token for a byte of the body, with every vocabulary.
	addedTokens = 1 << 16
	// longestWindow is the length that a prompt or an answer may have where the window of the model
	// is not known, or said to be less: the longest that models are commonly served with.
	longestWindow = 1 << 20
	// readAgain is how often a server may read all of it again: tools that it runs itself are steps
	// of one request, and some rankers read the question once for each text.
	readAgain = 16

	doubtedEvery = time.Minute // a warning for an endpoint
)

// Believe replaces usage that cannot be, of the response to the last attempt, by an estimate, and
// reports whether it did: one wrong number would use up budgets and limits of whoever asked.
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
		if u.Output == 0 { // a body, of which no text was read
			u.Output = o.MaxOutputTokens(o.Model.Window)
		}
	}
	if *u == was {
		return false
	}
	if r.doubts.due(o.Endpoint.Name, time.Now()) {
		r.Tel.Log.LogAttrs(ctx, slog.LevelWarn, "usage that a server told cannot be, and is estimated",
			slog.String("model", o.Model.Name), slog.String("endpoint", o.Endpoint.Name),
			slog.Int("prompt_tokens", was.Input), slog.Int("cached_tokens", was.Cached),
			slog.Int("completion_tokens", was.Output))
	}
	return true
}

// outside reports whether a number of tokens is none, or too large.
func outside(n, most int) bool { return n < 0 || n > most }

// mostPrompt is the most tokens that the prompt of the last attempt may have had. The body does not
// say it where it holds pictures or names what the server has.
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

// mostOutput is the most tokens that the answers to the last attempt may have had, up to 2^31-1.
func mostOutput(o *exchange.Exchange) int {
	limit, _ := o.Req.AnswerLimit()
	each := max(int(min(limit, math.MaxInt32)), o.Limit.Tokens, o.Model.Window, longestWindow)
	return int(min(float64(each)*float64(o.Answers()), math.MaxInt32))
}

// doubts are the endpoints that told usage which was not believed, in the last minute. The zero
// value is ready. It is safe for concurrent use.
type doubts struct {
	mu     sync.Mutex
	warned map[string]time.Time
}

// due reports whether a warning for an endpoint is to be written now.
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
