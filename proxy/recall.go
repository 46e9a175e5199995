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
	"signalbox/proxy/fault"
	"signalbox/proxy/resolve"
	"signalbox/rules"
	"signalbox/stream/guard"
	"signalbox/stream/response"
)

// remember derives what a request is known by. It costs a pass over the body, so it is not done
// where nothing is kept.
func (st *State) remember(who Principal, req *openai.Request, h http.Header, r *resolve.Contexts) *memo {
	c := st.caching
	if c == nil {
		return nil
	}
	m := &memo{taught: c.answers.taught.Load()}
	m.fresh, m.forgetful = cacheControl(h)
	f := st.facts(who, req, h, r)
	scope := cache.Scope{Tenant: who.Tenant, Role: who.Role, Path: req.API.String(), Generation: c.generation(m.taught)}
	if who.Models != nil { // an answer of a model that the caller may not use is not for the caller
		scope.Headers = append(scope.Headers, cache.Header{Name: "\x00models", Value: strings.Join(who.Models, "\n")})
	}
	if st.forwards { // the endpoint may know the caller, and answers nobody else the same
		shown := st.salts.credential(h.Get("Authorization"))
		scope.Headers = append(scope.Headers, cache.Header{Name: "\x00credential", Value: shown})
	}
	if st.program.ReadsSession() {
		scope.Session = f.Session
	}
	for _, name := range st.readHeaders {
		for _, value := range f.Header(name) {
			scope.Headers = append(scope.Headers, cache.Header{Name: name, Value: value})
		}
	}
	r.AddTo(&scope)
	if r.Incomplete() || req.Extras.SaveContext != nil {
		m.id = cache.Identity{Exact: cache.State, Similar: cache.State}
		return m
	}
	m.id = c.identifier.Identify(req, &scope)
	return m
}

// recall answers a request that was answered before. That there is an answer means that the same
// rules decided the same request, and let its answer be kept; so nothing is decided again. done is
// false when the request goes on.
func (p *Proxy) recall(ctx context.Context, st *State, w *reply, who Principal, h http.Header, o *exchange) (done bool, err error) {
	m := st.remember(who, o.req, h, o.held)
	if o.memo = m; m == nil || m.id.Exact != cache.Eligible || m.fresh {
		return false, nil
	}
	begun := time.Now()
	a, err := st.caching.cache.Exact(ctx, &m.id)
	m.waited = time.Since(begun)
	if err != nil {
		m.failed = !errors.Is(err, cache.ErrMiss)
		return false, nil
	}
	d, err := st.start(who, o.req, h, o.held)
	if err != nil {
		return false, err
	}
	if !d.restoreDecision(a) {
		return false, nil
	}
	return p.serveCached(ctx, w, o, d, a, recallExact)
}

// restoreDecision takes the decision that led to an answer. It reports false when there is no such decision
// any more.
func (d *decision) restoreDecision(a *cache.Answer) bool {
	taken, ok := d.program.Taken(a.Route)
	if d.model != "" && a.Route == rules.RouteNamed { // as settle has it
		taken, ok = rules.Decision{Route: rules.RouteNamed, Index: -1, Outcome: rules.Defaulted, Action: &rules.Action{}}, true
	}
	d.Decision, d.decided = taken, time.Now()
	return ok && d.caches() != cacheOff && d.state.byName[a.Model] != nil
}

// recallSimilar answers a request whose last question asks what another one asked, or prepares that
// its own answer is kept. done is false when the request goes on.
func (p *Proxy) recallSimilar(ctx context.Context, w *reply, o *exchange) (done bool, err error) {
	m := o.memo
	if m == nil {
		return false, nil
	}
	mode := o.caches()
	switch {
	case mode == cacheOff:
		m.result = recallOff
		return false, nil
	case m.id.Exact != cache.Eligible:
		m.result = recallIneligible
		return false, nil
	case m.forgetful:
		m.result = recallBypass
		return false, nil
	}
	m.result = recallMiss
	if mode == cacheSemantic && m.id.Similar == cache.Eligible {
		o.embed(ctx)
		hit, ok, err := o.similar(ctx)
		if ok && !m.fresh {
			m.similarity = hit.Similarity
			if done, err = p.serveCached(ctx, w, o, o.decision, hit.Answer, recallSemantic); done || err != nil {
				return done, err
			}
		}
		if ctx.Err() != nil {
			return false, fault.ErrClientGone
		}
		m.failed = m.failed || err != nil && !errors.Is(err, cache.ErrMiss)
	}
	switch {
	case m.fresh:
		m.result = recallBypass
	case m.failed:
		m.result = recallError
	}
	w.Header()["X-Signalbox-Cache"] = []string{recallMiss}
	if len(o.Failed.Kinds()) == 0 {
		m.recording = &tape{Recorder: cache.NewRecorder(longestKept, time.Now, o.req.Streams())}
	}
	return false, nil
}

// serveCached answers with what is kept. done is false, and nothing was written, when it has not the shape
// that the client wants.
func (*Proxy) serveCached(ctx context.Context, w *reply, o *exchange, d *decision, a *cache.Answer, result string) (done bool, err error) {
	data, gone, err := response.As(a.Data, a.Streamed(), o.req.Streams(), o.req.IncludeUsage)
	if err != nil {
		return false, nil //nolint:nilerr // another shape is a miss
	}
	shaped := a.As(data, o.req.Streams(), gone)
	h := w.Header()
	if o.decision != d {
		o.decision = d
		d.describe(h)
		if err := o.armGuard(ctx, h); err != nil {
			return true, err
		}
	}
	o.memo.result, o.memo.answer = result, a
	h["X-Signalbox-Cache"] = []string{result}
	delete(h, "X-Signalbox-Arm") // no model was asked
	h["X-Signalbox-Model"] = []string{a.Model}
	for i := range a.Headers {
		if name := a.Headers[i].Name; h[name] == nil {
			h[name] = []string{a.Headers[i].Value}
		}
	}
	if len(d.lacking) > 0 {
		h["X-Signalbox-Degraded"] = []string{strings.Join(append(d.degraded(), d.lacking...), ",")}
	}
	h["Age"] = []string{strconv.FormatInt(max(int64(time.Since(a.Made)/time.Second), 0), 10)}
	h["Content-Type"] = []string{shaped.ContentType}
	h["Server-Timing"] = []string{d.timing(0, 0)}
	return true, o.replay(ctx, w, shaped)
}

// replay writes a kept answer, through the guard where the request has one: what it would cut of an
// upstream's answer it cuts of this one.
func (o *exchange) replay(ctx context.Context, w *reply, a *cache.Answer) error {
	h := w.Header()
	if !a.Streamed() {
		body, err := o.check(ctx, a.Data, h)
		if err != nil {
			return err
		}
		if body, err = w.spell(body); err != nil {
			return err
		}
		h["Content-Length"] = []string{strconv.Itoa(len(body))}
		w.WriteHeader(http.StatusOK)
		return send(w, body)
	}
	h["Cache-Control"] = []string{"no-cache"}
	h["X-Accel-Buffering"] = []string{"no"}
	w.WriteHeader(http.StatusOK)
	player := a.Player(o.state.caching.opts.Pace.pace())
	switch {
	case o.guarding != nil:
		return o.replayChecked(ctx, w, player)
	case w.translates():
		return o.replayTranslated(ctx, w, player)
	}
	for {
		b, err := player.Next(ctx.Done())
		switch {
		case errors.Is(err, cache.ErrStopped):
			return fault.ErrClientGone
		case err != nil:
			return nil //nolint:nilerr // the end
		}
		if err := w.send(b, time.Now()); err != nil {
			return clientError(err)
		}
	}
}

// replayChecked writes a kept stream through the guard.
func (o *exchange) replayChecked(ctx context.Context, w *reply, player *cache.Player) error {
	if err := w.rc.Flush(); err != nil { // the first text may have to wait for its verdict
		return clientError(err)
	}
	src := newReplayed(player, response.StreamOptions{API: o.req.API})
	defer src.stream.Release()
	client := takeSink(w)
	defer client.release()
	var err error
	o.guarded, err = o.guarding.Copy(ctx, src, client)
	if err != nil && ctx.Err() != nil {
		return fault.ErrClientGone
	}
	return err
}

// replayed is a kept stream on its way to the guard.
type replayed struct {
	player *cache.Player
	stop   chan struct{}
	stream *response.Stream
	piece  []byte
	err    error
}

var _ guard.Source = (*replayed)(nil)

// newReplayed reads a stored stream. The caller releases its stream.
func newReplayed(player *cache.Player, o response.StreamOptions) *replayed {
	return &replayed{player: player, stop: make(chan struct{}), stream: response.TakeStream(o)}
}

// Read implements guard.Source.
func (r *replayed) Read() { r.piece, r.err = r.player.Next(r.stop) }

// Deliver implements guard.Source.
func (r *replayed) Deliver(to response.Sink) error {
	r.stream.Feed(r.piece)
	if r.err != nil {
		r.stream.End(r.err)
	}
	for c := r.stream.Next(); c != nil; c = r.stream.Next() {
		to.Put(c)
	}
	if _, err := r.stream.Ended(); err != nil {
		return err
	}
	return r.err
}

// Cancel implements guard.Source.
func (r *replayed) Cancel() { close(r.stop) }

// Recall is what the cache has to do with a request.
type Recall struct {
	Exact      string   `json:"exact"`                // hit, miss, bypass, or why answers to such requests are not repeated
	Semantic   string   `json:"semantic,omitempty"`   // the same for other words; with differs the nearest question is another
	Difference string   `json:"difference,omitempty"` // of the nearest question
	Similarity *float64 `json:"similarity,omitempty"` // of a hit
}

// explainRecall tells what the request allows; nil where the cache is off.
func (d *decision) explainRecall() *Recall {
	m, mode := d.memo, d.caches()
	if m == nil || mode == cacheOff {
		return nil
	}
	r := &Recall{Exact: allowed(m, m.id.Exact)}
	if mode == cacheSemantic {
		r.Semantic = allowed(m, m.id.Similar)
	}
	return r
}

// allowed is miss where the cache may answer, else why it does not.
func allowed(m *memo, why cache.Reason) string {
	switch {
	case why != cache.Eligible:
		return why.String()
	case m.fresh:
		return recallBypass
	}
	return recallMiss
}

// tryRecall looks up what the cache would give.
func (d *decision) tryRecall(ctx context.Context, r *Recall) {
	if r == nil {
		return
	}
	m, c := d.memo, d.state.caching
	if r.Exact == recallMiss {
		if _, err := c.cache.Exact(ctx, &m.id); err == nil {
			r.Exact = "hit"
		}
	}
	if r.Semantic != recallMiss {
		return
	}
	d.embed(ctx)
	hit, ok, err := d.similar(ctx)
	var other *cache.MissError
	switch {
	case ok:
		r.Semantic, r.Similarity = "hit", &hit.Similarity
	case errors.As(err, &other):
		r.Semantic, r.Difference = "differs", other.Difference.String()
	}
}

// replayTranslated writes a stored stream as a message.
func (*exchange) replayTranslated(ctx context.Context, w *reply, player *cache.Player) error {
	src := newReplayed(player, response.StreamOptions{})
	defer src.stream.Release()
	client := takeSink(w)
	defer client.release()
	defer context.AfterFunc(ctx, src.Cancel)()
	for {
		src.Read()
		err := src.Deliver(client)
		if failed := client.Flush(); failed != nil {
			return failed
		}
		switch {
		case errors.Is(err, cache.ErrStopped):
			return fault.ErrClientGone
		case err != nil:
			return nil // the end
		}
	}
}

// LearnQuestion takes in a question that another replica has the answer to.
func (p *Proxy) LearnQuestion(key cache.Key, q cache.Question, ttl time.Duration) {
	st := p.acquire()
	defer st.release()
	st.answers.learn(key, q, ttl)
}
