package proxy

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"signalbox/internal/signal"
	"signalbox/memory/conversation"
	"signalbox/proxy/decisionlog"
	"signalbox/proxy/downstream"
	"signalbox/proxy/signals"
	"signalbox/rules"
	"signalbox/stream/response"
)

// The bounds of what is kept for operators to look at. More decisions a second than recentRate are
// more than a person can read: the others are counted.
const (
	recentCount = 512
	recentSize  = 8 << 20 // bytes that they keep in memory, about
	recentRate  = 64      // a second
)

// Recent keeps the last decisions for operators who look at them, and sums what requests cost. It
// is safe for concurrent use. A request pays for the sums, some 100 ns; beyond recentRate a second
// nothing else is done.
type Recent struct {
	prompts atomic.Bool // whether the text of requests may be kept and shown

	mu       sync.Mutex  // guards what follows; a leaf
	current  *State      // that requests are served from; nil until there was another before
	lines    []*sighting // in the order of seq
	size     int64
	last     uint64 // seq of the newest
	skipped  uint64 // decisions that were not kept
	second   int64  // Unix time that taken is of
	taken    int
	waiting  chan struct{} // closed with the next one; nil while nobody waits
	decided  int64
	talks    map[string]int64
	followed followed
	routes   map[string]int64
	spent    map[string]*Spent
}

// Spent is what the responses of a model cost, those that were thrown away for another's included.
// Money is in USD.
type Spent struct {
	Model      string  `json:"model"`
	Requests   int64   `json:"requests"` // that reported their tokens
	Prompt     int64   `json:"prompt_tokens"`
	Cached     int64   `json:"cached_tokens"`
	Completion int64   `json:"completion_tokens"`
	Cost       float64 `json:"cost_usd"`
	Baseline   float64 `json:"baseline_usd"` // had the dearest model of the configuration answered
}

// Tally sums up what has been since the process started.
type Tally struct {
	Decided       int64            `json:"decided"`       // requests
	Routes        map[string]int64 `json:"routes"`        // of them, by the route taken
	Spent         []Spent          `json:"spent"`         // by the name of the model
	Conversations map[string]int64 `json:"conversations"` // requests by new, kept and moved
}

// Seen is a request that was decided, as operators see it.
type Seen struct {
	Seq        uint64             `json:"seq"` // ascending, with gaps where decisions were not kept
	Decision   *decisionlog.Entry `json:"decision"`
	TookMs     float64            `json:"took_ms"` // all of it, to the end of the answer
	ClassifyMs float64            `json:"classify_ms"`
	FirstMs    float64            `json:"first_ms,omitempty"` // until the answer began; 0 when none did
	Cost       *float64           `json:"cost_usd,omitempty"`
	Baseline   *float64           `json:"baseline_usd,omitempty"` // had the dearest model answered
	Message    string             `json:"message,omitempty"`      // what a block or a fixed answer says
	// every signal that the rules mention, and how each route was evaluated; in a single one only
	Signals map[string]signals.Trace `json:"signals,omitempty"`
	Routes  []SeenRoute              `json:"routes,omitempty"`
}

// SeenRoute is how a route was evaluated.
type SeenRoute struct {
	Name     string           `json:"name"`
	Value    string           `json:"value"` // true, false, unknown or not_reached
	Tree     *rules.TraceNode `json:"tree"`  // null for a route without a condition
	Blockers []string         `json:"blockers,omitempty"`
}

// sighting is a kept decision: as it was taken down, or, once its state is replaced, as it is
// shown.
type sighting struct {
	seq   uint64
	size  int64
	taken *decided
	times times
	shown *Seen
}

type times struct {
	took, first time.Duration
	cost, base  *float64
}

func newRecent() *Recent {
	return &Recent{
		talks: make(map[string]int64), routes: make(map[string]int64), spent: make(map[string]*Spent),
		followed: followed{at: make(map[conversation.Key]*followedTalk)},
	}
}

// Prompts says whether the text of requests may be kept and shown. It is not unless this says so,
// and what was kept is not shown any more once it may not.
func (r *Recent) Prompts(allowed bool) { r.prompts.Store(allowed) }

type alwaysShown struct{}

// Shown marks the context of a request whose decision is to be kept however many there are.
func Shown(ctx context.Context) context.Context {
	return context.WithValue(ctx, alwaysShown{}, true)
}

// note takes in a request that has ended.
func (r *Recent) note(
	ctx context.Context, st *State, w *downstream.Writer, o *exchange, status int, took time.Duration,
) {
	if o.decision == nil || o.Action == nil {
		return
	}
	t := times{took: took}
	if o.first.After(w.Start) {
		t.first = o.first.Sub(w.Start)
	}
	if !r.count(ctx, st, o, w.ID, &t, w.Start.Add(took)) {
		return
	}
	l := st.snapshotOf(o, w.ID, status, r.prompts.Load())
	if l.size > recentSize/4 {
		l = st.snapshotOf(o, w.ID, status, false)
	}
	r.add(&sighting{size: l.size, taken: l, times: t})
}

// count sums the request up and reports whether it is to be kept.
func (r *Recent) count(ctx context.Context, st *State, o *exchange, id string, t *times, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.decided++
	r.routes[o.Route]++
	if fate := o.Talk.Fate(); fate != "" {
		r.talks[fate]++
		r.followed.turn(o, id, now)
	}
	if used := &o.tally.Usage; *used != (response.Usage{}) && o.model != nil {
		s := r.spentOn(o.model.Name)
		prompt, completion := float64(used.Input), float64(used.Output)
		cost, base := o.model.Price.Of(prompt, completion), st.priciest.Of(prompt, completion)
		s.Requests, s.Prompt, s.Cached = s.Requests+1, s.Prompt+int64(used.Input), s.Cached+int64(used.Cached)
		s.Completion, s.Cost, s.Baseline = s.Completion+int64(used.Output), s.Cost+cost, s.Baseline+base
		if st.priciest.Known() {
			t.cost, t.base = &cost, &base
		}
	}
	for _, x := range o.escalation.discarded() {
		s, u := r.spentOn(x.model.Name), x.usage(o.req)
		s.Prompt, s.Cached, s.Completion = s.Prompt+int64(u.Input), s.Cached+int64(u.Cached), s.Completion+int64(u.Output)
		s.Cost += x.model.Price.Of(float64(u.Input), float64(u.Output))
	}
	if s := now.Unix(); s != r.second {
		r.second, r.taken = s, 0
	}
	if r.taken >= recentRate && ctx.Value(alwaysShown{}) == nil {
		r.skipped++
		return false
	}
	r.taken++
	return true
}

// spentOn is the sums of a model. The caller holds mu.
func (r *Recent) spentOn(model string) *Spent {
	s := r.spent[model]
	if s == nil {
		s = &Spent{Model: model}
		r.spent[model] = s
	}
	return s
}

func (r *Recent) add(s *sighting) {
	r.mu.Lock()
	stale := r.current != nil && s.taken.st != r.current
	r.mu.Unlock()
	if stale {
		s = r.settled(s)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	s.seq = r.last
	r.lines, r.size = append(r.lines, s), r.size+s.size
	drop := 0
	for ; len(r.lines)-drop > recentCount || r.size > recentSize; drop++ {
		r.size -= r.lines[drop].size
	}
	r.lines = slices.Delete(r.lines, 0, drop)
	if r.waiting != nil {
		close(r.waiting)
		r.waiting = nil
	}
}

// adopt makes what is shown of decisions of all states but st, so that none of those is held on
// to.
func (r *Recent) adopt(st *State) {
	r.mu.Lock()
	r.current = st
	lines := slices.Clone(r.lines)
	r.mu.Unlock()
	made := make(map[*sighting]*sighting) // while requests go on
	for _, s := range lines {
		if s.taken != nil && s.taken.st != st {
			made[s] = r.settled(s)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, s := range r.lines {
		r.lines[i] = cmp.Or(made[s], s)
	}
}

// settled is a decision without its state.
func (r *Recent) settled(s *sighting) *sighting {
	return &sighting{seq: s.seq, size: s.size, shown: s.show(r.prompts.Load(), true)}
}

// After returns the decisions behind one, without their signals and routes, oldest first and not
// more than n, the newest of them; how many were never kept; and a channel that is closed when
// there is another one than those.
func (r *Recent) After(seq uint64, n int) (list []*Seen, skipped uint64, more <-chan struct{}) {
	r.mu.Lock()
	if r.waiting == nil {
		r.waiting = make(chan struct{})
	}
	more, skipped = r.waiting, r.skipped
	from := len(r.lines)
	for from > 0 && r.lines[from-1].seq > seq && len(r.lines)-from < n {
		from--
	}
	lines := slices.Clone(r.lines[from:])
	r.mu.Unlock()
	list = make([]*Seen, len(lines))
	for i, s := range lines {
		list[i] = s.show(r.prompts.Load(), false)
	}
	return list, skipped, more
}

// Find returns the decision of a request, by its x-request-id, with signals and routes; nil when it
// is not kept, or not yet.
func (r *Recent) Find(id string) *Seen {
	r.mu.Lock()
	var found *sighting
	for _, s := range slices.Backward(r.lines) {
		if s.id() == id {
			found = s
			break
		}
	}
	r.mu.Unlock()
	if found == nil {
		return nil
	}
	return found.show(r.prompts.Load(), true)
}

// Tally returns the sums.
func (r *Recent) Tally() Tally {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := Tally{
		Decided:       r.decided,
		Routes:        maps.Clone(r.routes),
		Spent:         make([]Spent, 0, len(r.spent)),
		Conversations: maps.Clone(r.talks),
	}
	for _, model := range slices.Sorted(maps.Keys(r.spent)) {
		t.Spent = append(t.Spent, *r.spent[model])
	}
	return t
}

func (s *sighting) id() string {
	if s.shown != nil {
		return s.shown.Decision.ID
	}
	return s.taken.id
}

// show is what an operator sees of it; reasons are the signals and the way through the rules.
//
//nolint:revive // flag-parameter: both are settings of one view
func (s *sighting) show(prompts, reasons bool) *Seen {
	out := &Seen{Seq: s.seq}
	if s.shown != nil {
		*out = *s.shown
		out.Seq = s.seq
		if !reasons {
			out.Signals, out.Routes = nil, nil
		}
		if out.Decision.Prompt != nil && !prompts {
			e := *out.Decision
			e.Prompt = nil
			out.Decision = &e
		}
		return out
	}
	l := s.taken
	out.Decision = l.entry()
	if prompts {
		l.quote(out.Decision)
	}
	out.TookMs, out.FirstMs = decisionlog.Milliseconds(s.times.took), decisionlog.Milliseconds(s.times.first)
	out.ClassifyMs = decisionlog.Milliseconds(l.o.Classified)
	out.Cost, out.Baseline = s.times.cost, s.times.base
	if a := l.o.Action; a.Verb != rules.Use {
		out.Message = a.Text
	}
	if reasons {
		out.Signals, out.Routes = l.reasons()
	}
	return out
}

// reasons are the signals that the rules mention and how each route was evaluated.
func (l *decided) reasons() (map[string]signals.Trace, []SeenRoute) {
	d, set := *l.o.decision, *l.o.Set
	set.Facts.Header = func(name string) []string { return l.headers[http.CanonicalHeaderKey(name)] }
	told := make(map[string]signals.Trace)
	for _, k := range d.Program.Kinds().Kinds() {
		t := l.st.Signals.Trace(k, set.Value(k), &signal.Text{})
		t.Entities = nil // where they stood was let go of with the text
		if set.Value(k).State == signal.NotExtracted {
			t.Reason = d.WhySkipped(k)
		}
		told[l.st.Signals.Identity.Names.Of(k)] = t
	}
	traces := d.Program.Trace(&set)
	routes := make([]SeenRoute, len(traces))
	for i := range traces {
		t := &traces[i]
		routes[i] = SeenRoute{t.Name, t.Value, t.Tree(), t.Blockers}
	}
	return told, routes
}

// Talks lists the conversations whose last turns were answered lately by this process, the newest
// first.
func (r *Recent) Talks() []Followed {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Followed, 0, len(r.followed.list))
	for _, x := range slices.Backward(r.followed.list) {
		out = append(out, x.Followed)
	}
	return out
}
