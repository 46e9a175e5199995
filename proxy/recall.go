package proxy

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"signalbox/internal/openai"
	"signalbox/memory/cache"
	"signalbox/proxy/decide"
	"signalbox/proxy/downstream"
	"signalbox/proxy/exchange"
	"signalbox/proxy/fault"
	"signalbox/proxy/recall"
	"signalbox/proxy/relay"
	"signalbox/proxy/resolve"
	"signalbox/stream/response"
)

// remember computes the cache keys of a request. This costs a pass over the body, so it is skipped
// when nothing is cached.
func (st *State) remember(who Principal, req *openai.Request, h http.Header, r *resolve.Contexts) *recall.Lookup {
	c := st.Caching
	if c == nil {
		return nil
	}
	m := &recall.Lookup{Taught: c.Answers.Taught.Load()}
	m.Fresh, m.Forgetful = recall.CacheControl(h)
	f := st.Facts(who, req, h, r)
	scope := cache.Scope{Tenant: who.Tenant, Role: who.Role, Path: req.API.String(), Generation: c.Generation(m.Taught)}
	if who.Models != nil { // a caller must not get the response of a model that it may not use
		scope.Headers = append(scope.Headers, cache.Header{Name: "\x00models", Value: strings.Join(who.Models, "\n")})
	}
	if st.forwards {
		// an endpoint that sees the caller's credentials may answer other callers differently
		shown := st.places.Salts.Credential(h.Get("Authorization"))
		scope.Headers = append(scope.Headers, cache.Header{Name: "\x00credential", Value: shown})
	}
	if st.Program.ReadsSession() {
		scope.Session = f.Session
	}
	for _, name := range st.ReadHeaders {
		for _, value := range f.Header(name) {
			scope.Headers = append(scope.Headers, cache.Header{Name: name, Value: value})
		}
	}
	r.AddTo(&scope)
	if r.Incomplete() || req.Extras.SaveContext != nil {
		m.ID = cache.Identity{Exact: cache.State, Similar: cache.State}
		return m
	}
	m.ID = c.Identifier.Identify(req, &scope)
	return m
}

// recall serves a request from the exact cache. A cached response exists only if the same rules
// decided the same request and allowed its response to be stored, so nothing is decided again. done
// is false when the request continues to the next stage.
func (*Proxy) recall(
	ctx context.Context, st *State, w *downstream.Writer, who Principal, h http.Header, o *exchange.Exchange,
) (done bool, err error) {
	m := st.remember(who, o.Req, h, o.Resolved)
	if o.Lookup = m; m == nil || m.ID.Exact != cache.Eligible || m.Fresh {
		return false, nil
	}
	begun := time.Now()
	a, err := st.Caching.Cache.Exact(ctx, &m.ID)
	m.Waited = time.Since(begun)
	if err != nil {
		m.Failed = !errors.Is(err, cache.ErrMiss)
		return false, nil
	}
	d, err := st.Start(who, o.Req, h, o.Resolved)
	if err != nil {
		return false, err
	}
	if !d.Restore(a) {
		return false, nil
	}
	return st.serveCached(ctx, w, o, d, a, recall.Exact)
}

// recallSimilar serves a request from the semantic cache when its last question means the same as
// an earlier one; otherwise it prepares for its own response to be stored. done is false when the
// request continues to the next stage.
func (st *State) recallSimilar(ctx context.Context, w *downstream.Writer, o *exchange.Exchange) (done bool, err error) {
	m := o.Lookup
	if m == nil {
		return false, nil
	}
	mode := o.Caches()
	switch {
	case mode == recall.ModeOff:
		m.Result = recall.Off
		return false, nil
	case m.ID.Exact != cache.Eligible:
		m.Result = recall.Ineligible
		return false, nil
	case m.Forgetful:
		m.Result = recall.Bypass
		return false, nil
	}
	m.Result = recall.Miss
	if mode == recall.ModeSemantic && m.ID.Similar == cache.Eligible {
		o.Embed(ctx)
		hit, ok, err := o.Similar(ctx)
		if ok && !m.Fresh {
			m.Similarity = hit.Similarity
			if done, err = st.serveCached(ctx, w, o, o.Decision, hit.Answer, recall.Semantic); done || err != nil {
				return done, err
			}
		}
		if ctx.Err() != nil {
			return false, fault.ErrClientGone
		}
		m.Failed = m.Failed || err != nil && !errors.Is(err, cache.ErrMiss)
	}
	switch {
	case m.Fresh:
		m.Result = recall.Bypass
	case m.Failed:
		m.Result = recall.Error
	}
	w.Header()["X-Signalbox-Cache"] = []string{recall.Miss}
	if len(o.Failed.Kinds()) == 0 {
		m.Recording = &recall.Tape{Recorder: cache.NewRecorder(recall.LongestKept, time.Now, o.Req.Streams())}
	}
	return false, nil
}

// serveCached writes a cached response. When the cached response does not have the shape that the
// client asked for, it writes nothing and done is false.
func (st *State) serveCached(
	ctx context.Context, w *downstream.Writer, o *exchange.Exchange, d *decide.Decision, a *cache.Answer, result string,
) (done bool, err error) {
	data, gone, err := response.As(a.Data, a.Streamed(), o.Req.Streams(), o.Req.IncludeUsage)
	if err != nil {
		return false, nil //nolint:nilerr // another shape is a miss
	}
	shaped := a.As(data, o.Req.Streams(), gone)
	h := w.Header()
	if o.Decision != d {
		o.Decision = d
		d.Describe(h)
		if err := relay.Arm(ctx, st.guard, o, h); err != nil {
			return true, err
		}
	}
	o.Lookup.Result, o.Lookup.Answer = result, a
	h["X-Signalbox-Cache"] = []string{result}
	delete(h, "X-Signalbox-Arm") // no model was asked
	h["X-Signalbox-Model"] = []string{a.Model}
	for i := range a.Headers {
		if name := a.Headers[i].Name; h[name] == nil {
			h[name] = []string{a.Headers[i].Value}
		}
	}
	if len(d.Lacking) > 0 {
		h["X-Signalbox-Degraded"] = []string{strings.Join(append(d.Degraded(), d.Lacking...), ",")}
	}
	h["Age"] = []string{strconv.FormatInt(max(int64(time.Since(a.Made)/time.Second), 0), 10)}
	h["Content-Type"] = []string{shaped.ContentType}
	h["Server-Timing"] = []string{d.Timing(0, 0)}
	return true, relay.Replay(ctx, w, o, shaped, st.Caching.Opts.Pace.Pace())
}

// LearnQuestion adds a question whose response another replica has stored in the shared cache.
func (p *Proxy) LearnQuestion(key cache.Key, q cache.Question, ttl time.Duration) {
	st := p.acquire()
	defer st.release()
	st.answers.Learn(key, q, ttl)
}
