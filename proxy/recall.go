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

// remember derives what a request is known by. It costs a pass over the body, so it is not done
// where nothing is kept.
func (st *State) remember(who Principal, req *openai.Request, h http.Header, r *resolve.Contexts) *recall.Lookup {
	c := st.Caching
	if c == nil {
		return nil
	}
	m := &recall.Lookup{Taught: c.Answers.Taught.Load()}
	m.Fresh, m.Forgetful = recall.CacheControl(h)
	f := st.Facts(who, req, h, r)
	scope := cache.Scope{Tenant: who.Tenant, Role: who.Role, Path: req.API.String(), Generation: c.Generation(m.Taught)}
	if who.Models != nil { // a response of a model that the caller may not use is not for the caller
		scope.Headers = append(scope.Headers, cache.Header{Name: "\x00models", Value: strings.Join(who.Models, "\n")})
	}
	if st.forwards { // the endpoint may know the caller, and answers nobody else the same
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

// recall answers a request that was answered before. That there is a response means that the same
// rules decided the same request, and let its response be kept; so nothing is decided again. done
// is false when the request goes on.
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

// recallSimilar answers a request whose last question asks what another one asked, or prepares that
// its own response is kept. done is false when the request goes on.
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

// serveCached answers with what is kept. done is false, and nothing was written, when it has not
// the shape that the client wants.
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

// LearnQuestion takes in a question that another replica has the response to.
func (p *Proxy) LearnQuestion(key cache.Key, q cache.Question, ttl time.Duration) {
	st := p.acquire()
	defer st.release()
	st.answers.Learn(key, q, ttl)
}
