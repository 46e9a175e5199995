package proxy

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"signalbox/internal/openai"
	"signalbox/internal/signal"
	"signalbox/memory/cache"
	"signalbox/proxy/fault"
	"signalbox/proxy/resolve"
	"signalbox/rules"
	"signalbox/stream/guard"
	"signalbox/stream/response"
)

// What became of a request in the cache, as header, metric and log call it.
const (
	recallExact      = "exact"
	recallSemantic   = "semantic"
	recallMiss       = "miss"
	recallOff        = "off"        // by its route
	recallIneligible = "ineligible" // answers to such requests are not repeated
	recallBypass     = "bypass"     // the client asked for a fresh answer
	recallError      = "error"      // a miss, since the store could not be asked
)

// memo is what the cache knows of one request. It belongs to the request's goroutine. nil stands
// for a cache that is off everywhere.
type memo struct {
	id        cache.Identity
	taught    uint64        // at the time of id
	fresh     bool          // the client wants no stored answer
	forgetful bool          // the client wants its answer not stored
	result    string        // empty until a route was found that forwards
	failed    bool          // the store could not be asked
	waited    time.Duration // for answers that other processes keep

	answer     *cache.Answer // that was given; nil for none
	similarity float64       // of its question, with semantic
	tape       *tape
}

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

// cacheControl reads what the client says of stored answers (RFC 9111, section 5.2.1).
func cacheControl(h http.Header) (fresh, forgetful bool) {
	for _, line := range h["Cache-Control"] {
		for word := range strings.SplitSeq(line, ",") {
			switch strings.ToLower(strings.TrimSpace(word)) {
			case "no-cache", "max-age=0":
				fresh = true
			case "no-store":
				fresh, forgetful = true, true
			}
		}
	}
	return fresh, forgetful
}

// sources is what a classifier extracts where rules need m: the embedding for what the cache tells,
// and beside neural signals where a question may be looked up after the decision, so that it costs
// no run of its own.
func (m *memo) sources(need signal.Mask, set *signal.Set) signal.Mask {
	looks := m != nil && m.id.Similar == cache.Eligible && !m.forgetful
	if looks && need.Tier(signal.TierNeural) != 0 {
		need |= signal.MaskOf(signal.Embedding) &^ set.Have()
	}
	return need &^ signal.MaskOf(signal.Cache)
}

// taping reports that the answer is to be taken down.
func (m *memo) taping() bool { return m != nil && m.tape != nil }

// given is the answer that the cache gave, nil without one.
func (m *memo) given() *cache.Answer {
	if m == nil {
		return nil
	}
	return m.answer
}

// found is what became of the request in the cache; empty when it did not come to that.
func (m *memo) found() string {
	if m == nil {
		return ""
	}
	return m.result
}

// caches is the mode of the cache for a decided request: as its route says, or the section where it
// says nothing. What was hidden from the model differs from request to request, so an answer to
// that is never kept.
func (d *decision) caches() string {
	c := d.state.caching
	if c == nil || d.Action == nil || d.Action.Verb != rules.Use || d.Action.Redact {
		return cacheOff
	}
	if d.Action.Cache != "" {
		return d.Action.Cache
	}
	return c.opts.Mode
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
	if !d.retake(a) {
		return false, nil
	}
	return p.give(ctx, w, o, d, a, recallExact)
}

// retake takes the decision that led to an answer. It reports false when there is no such decision
// any more.
func (d *decision) retake(a *cache.Answer) bool {
	taken, ok := d.program.Taken(a.Route)
	if d.model != "" && a.Route == rules.RouteNamed { // as settle has it
		taken, ok = rules.Decision{Route: rules.RouteNamed, Index: -1, Outcome: rules.Defaulted, Action: &rules.Action{}}, true
	}
	d.Decision, d.decided = taken, time.Now()
	return ok && d.caches() != cacheOff && d.state.byName[a.Model] != nil
}

// recallAgain answers a request whose last question asks what another one asked, or prepares that
// its own answer is kept. done is false when the request goes on.
func (p *Proxy) recallAgain(ctx context.Context, w *reply, o *exchange) (done bool, err error) {
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
			if done, err = p.give(ctx, w, o, o.decision, hit.Answer, recallSemantic); done || err != nil {
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
		m.tape = &tape{Recorder: cache.NewRecorder(longestKept, time.Now, o.req.Streams())}
	}
	return false, nil
}

// embed extracts the embedding of the last question, unless it came with the signals of the
// decision.
func (d *decision) embed(ctx context.Context) {
	need := signal.MaskOf(signal.Embedding)
	if d.set.Have()&need != 0 || d.state.classifier.Signals()&need == 0 {
		return
	}
	if d.text.Segments == nil {
		d.text = d.request.Text()
	}
	asked := time.Now()
	d.state.classifier.Extract(ctx, &d.text, need, d.set)
	d.set.Fail(need, signal.ReasonInternal)
	d.classified += time.Since(asked)
	d.elapsed += time.Since(asked)
}

// vector is the embedding of the last question, nil without one.
func (d *decision) vector() []float32 { return d.set.Values[signal.Embedding].Vector }

// similar finds the answer to a question that asks the same, of the models that the request may go
// to now. Without one err is that of the last look-up.
func (d *decision) similar(ctx context.Context) (hit cache.Hit, ok bool, err error) {
	v, c := d.vector(), d.state.caching
	if v == nil {
		return hit, false, errNoVector
	}
	ctx, done := d.memo.within(ctx, c)
	defer done()
	for _, model := range d.eligible() {
		hit, err = c.cache.Similar(ctx, &d.memo.id, c.partition(model, d.Action), v)
		if err == nil && d.state.byName[hit.Model] != nil {
			return hit, true, nil
		}
	}
	return hit, false, err
}

// within bounds further looks for answers of one request. Those that only other processes have may
// take what the first look left of the time that one may take: an outage costs a request that much
// and not a multiple.
func (m *memo) within(ctx context.Context, c *caching) (_ context.Context, done func()) {
	shared := c.answers.shared
	if shared == nil {
		return ctx, func() {}
	}
	begun := time.Now()
	ctx, cancel := context.WithTimeout(ctx, shared.Budget()-m.waited)
	return ctx, func() {
		cancel()
		m.waited += time.Since(begun)
	}
}

// errNoVector: the last question has no embedding to be compared by.
var errNoVector = errors.New("no embedding of the question")

// eligible lists the models whose answers a request may get: the one that it would go to, or, where
// weights draw one, all of them.
func (d *decision) eligible() []string {
	if d.inArm == armCanary {
		return nil // its answers are not kept, and others are not its
	}
	ranked := d.state.chooser.Rank(d.wants())
	d.state.prefer(d, ranked)
	out := make([]string, 0, len(ranked))
	for i := range ranked {
		if ranked[i].Out {
			continue
		}
		if out = append(out, ranked[i].Name); d.Action.By != "weight" && d.Action.Escalate == nil {
			break
		}
	}
	return out
}

// give answers with what is kept. done is false, and nothing was written, when it has not the shape
// that the client wants.
func (*Proxy) give(ctx context.Context, w *reply, o *exchange, d *decision, a *cache.Answer, result string) (done bool, err error) {
	data, gone, err := response.As(a.Data, a.Streamed(), o.req.Streams(), o.req.IncludeUsage)
	if err != nil {
		return false, nil //nolint:nilerr // another shape is a miss
	}
	shaped := a.As(data, o.req.Streams(), gone)
	h := w.Header()
	if o.decision != d {
		o.decision = d
		d.describe(h)
		if err := o.arm(ctx, h); err != nil {
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

// lookUp computes the signal cache: the similarity of the nearest question that asks the same and
// has an answer, of any model that answers under one of the rules, and 0 without one.
func (d *decision) lookUp(ctx context.Context) {
	v := &d.set.Values[signal.Cache]
	*v = signal.Value{State: signal.Known, Source: recallSemantic}
	m, c := d.memo, d.state.caching
	if m == nil || m.fresh || m.id.Similar != cache.Eligible {
		return
	}
	e := &d.set.Values[signal.Embedding]
	if e.State != signal.Known {
		*v = signal.Value{State: signal.Unknown, Reason: e.Reason, Elapsed: e.Elapsed}
		return
	}
	begun := time.Now()
	ctx, done := m.within(ctx, c)
	defer done()
	for _, model := range d.state.models {
		for action := range c.treatments {
			hit, err := c.cache.Similar(ctx, &m.id, c.partition(model.Name, action), e.Vector)
			if err == nil && hit.Similarity > v.Score {
				v.Label, v.Score = model.Name, min(hit.Similarity, 1)
			}
		}
	}
	v.Elapsed = e.Elapsed + time.Since(begun)
}

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
