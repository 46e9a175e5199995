package recent

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"signalbox/memory/conversation"
	"signalbox/proxy/backend"
	"signalbox/proxy/choose"
	"signalbox/proxy/decide"
	"signalbox/proxy/decisionlog"
	"signalbox/proxy/signals"
	"signalbox/rules"
	"signalbox/stream/response"
)

// Limits of what is kept for operators. Nobody can read more than perSecond decisions per second;
// the rest are only counted.
const (
	maxKept   = 512
	maxSize   = 8 << 20 // approximate bytes in memory
	perSecond = 64      // per second
)

// Decisions keeps the last decisions for operators and sums up the cost of requests. It is safe for
// concurrent use. The sums take about 100 ns per request; beyond perSecond requests per second
// nothing else is done.
type Decisions struct {
	prompts atomic.Bool // whether the text of requests may be kept and shown

	mu       sync.Mutex  // guards the fields below; a leaf lock
	current  any         // current configuration; nil until the first reload
	lines    []*sighting // sorted by seq
	size     int64
	last     uint64 // seq of the newest
	skipped  uint64 // decisions that were not kept
	second   int64  // the second, in Unix time, that taken counts
	taken    int
	waiting  chan struct{} // closed by the next decision; nil while nobody waits
	decided  int64
	talks    map[string]int64
	followed followed
	routes   map[string]int64
	refused  map[string]int64
	spent    map[string]*Spent
}

// Spent is the cost of a model's responses, including discarded ones, in USD.
type Spent struct {
	Model    string `json:"model"`
	Requests int64  `json:"requests"` // requests sent to it
	// responses among them that reported no tokens: not in the sums
	Untold     int64   `json:"untold"`
	Prompt     int64   `json:"prompt_tokens"`
	Cached     int64   `json:"cached_tokens"`
	Completion int64   `json:"completion_tokens"`
	Cost       float64 `json:"cost_usd"`
	Baseline   float64 `json:"baseline_usd"` // cost at the price of the dearest configured model
}

// Tally holds the sums since the process started.
type Tally struct {
	Decided int64            `json:"decided"` // decided requests
	Routes  map[string]int64 `json:"routes"`  // the same by route
	// other requests, by the limit that refused them
	Refused       map[string]int64 `json:"refused"`
	Spent         []Spent          `json:"spent"`         // sorted by model name
	Conversations map[string]int64 `json:"conversations"` // requests by new, kept and moved
}

// Seen is a decided request as operators see it.
type Seen struct {
	Seq        uint64             `json:"seq"` // ascending, with gaps where decisions were not kept
	Decision   *decisionlog.Entry `json:"decision"`
	TookMs     float64            `json:"took_ms"` // to the end of the response
	ClassifyMs float64            `json:"classify_ms"`
	// to the beginning of the response; 0 if there was none
	FirstMs float64  `json:"first_ms,omitempty"`
	Cost    *float64 `json:"cost_usd,omitempty"`
	// cost at the price of the dearest model
	Baseline *float64 `json:"baseline_usd,omitempty"`
	Message  string   `json:"message,omitempty"` // text of a block or a fixed reply
	// every signal that the rules mention, and how each route was evaluated; only for a single
	// decision
	Signals map[string]signals.Trace `json:"signals,omitempty"`
	Routes  []Route                  `json:"routes,omitempty"`
}

// Route is how a route was evaluated.
type Route struct {
	Name     string           `json:"name"`
	Value    string           `json:"value"` // true, false, unknown or not_reached
	Tree     *rules.TraceNode `json:"tree"`  // null for a route without a condition
	Blockers []string         `json:"blockers,omitempty"`
}

// sighting is a kept decision, raw or, once its state is replaced, rendered.
type sighting struct {
	seq   uint64
	size  int64
	taken *Kept
	times times
	shown *Seen
}

type times struct {
	took, first time.Duration
	cost, base  *float64
}

// New returns an empty Decisions.
func New() *Decisions {
	return &Decisions{
		talks: make(map[string]int64), routes: make(map[string]int64), refused: make(map[string]int64), spent: make(map[string]*Spent),
		followed: followed{at: make(map[conversation.Key]*followedTalk)},
	}
}

// Quotes reports whether the text of requests may be kept.
func (r *Decisions) Quotes() bool { return r.prompts.Load() }

// Prompts sets whether the text of requests may be kept and shown. The default is false. Text that
// was kept is not shown once it is no longer allowed.
func (r *Decisions) Prompts(allowed bool) { r.prompts.Store(allowed) }

type alwaysShown struct{}

// Shown marks the context of a request whose decision must be kept, whatever the rate.
func Shown(ctx context.Context) context.Context {
	return context.WithValue(ctx, alwaysShown{}, true)
}

// Line is a raw decision, which is rendered only when an operator looks at it.
type Line interface {
	// Entry returns the decision log entry, without the text of the request.
	Entry() *decisionlog.Entry
	// Quote adds the text to an entry, if it was kept.
	Quote(e *decisionlog.Entry)
	// Reasons returns the signals that the rules mention and how each route was evaluated.
	Reasons() (map[string]signals.Trace, []Route)
}

// Kept is a decision to keep.
type Kept struct {
	ID         string // x-request-id
	Of         any    // its configuration, which Line may refer to
	Line       Line
	Size       int64         // approximate bytes in memory
	Classified time.Duration // time spent waiting for signals
	Message    string        // text of a block or a fixed reply
}

// Request is a decided request that has ended.
type Request struct {
	ID, Tenant, Route string
	Fate              string         // what became of its conversation; empty if it has none
	Turn              *decide.Turn   // nil for a first turn, and if no model was asked
	Model             *backend.Model // the model that answered; nil if none did
	Tells             bool           // a model answered and should have reported its usage
	Used              response.Usage // zero if the response reported none
	Thrown            []Paid         // discarded responses
	Dearest           choose.Price   // highest price in the configuration
	// to the end, and to the beginning of the response; 0 if there was none
	Took, First time.Duration
	At          time.Time // when it ended

	times times
}

// Paid is the usage of one response of a model.
type Paid struct {
	Model *backend.Model
	Usage response.Usage
}

// Count adds a request to the sums and reports whether it must be kept with Add.
func (r *Decisions) Count(ctx context.Context, x *Request) bool {
	x.times.took, x.times.first = x.Took, x.First
	r.mu.Lock()
	defer r.mu.Unlock()
	r.decided++
	r.routes[x.Route]++
	if x.Fate != "" {
		r.talks[x.Fate]++
		r.followed.turn(x)
	}
	if x.Model != nil {
		r.spend(x)
	}
	for i := range x.Thrown {
		m, u := x.Thrown[i].Model, &x.Thrown[i].Usage
		s := r.spentOn(m.Name)
		s.Prompt, s.Cached, s.Completion = s.Prompt+int64(u.Input), s.Cached+int64(u.Cached), s.Completion+int64(u.Output)
		s.Cost += m.Price.Of(float64(u.Input), float64(u.Output))
	}
	if s := x.At.Unix(); s != r.second {
		r.second, r.taken = s, 0
	}
	if r.taken >= perSecond && ctx.Value(alwaysShown{}) == nil {
		r.skipped++
		return false
	}
	r.taken++
	return true
}

// Refuse counts a request that a limit refused before a decision.
func (r *Decisions) Refuse(limit string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refused[limit]++
}

// spend adds the usage of models. The caller holds mu.
func (r *Decisions) spend(x *Request) {
	s, used := r.spentOn(x.Model.Name), &x.Used
	s.Requests++
	if *used == (response.Usage{}) {
		if x.Tells {
			s.Untold++
		}
		return
	}
	prompt, completion := float64(used.Input), float64(used.Output)
	cost, base := x.Model.Price.Of(prompt, completion), x.Dearest.Of(prompt, completion)
	s.Prompt += int64(used.Input)
	s.Cached += int64(used.Cached)
	s.Completion += int64(used.Output)
	s.Cost, s.Baseline = s.Cost+cost, s.Baseline+base
	if x.Dearest.Known() {
		x.times.cost, x.times.base = &cost, &base
	}
}

// Longest is the recommended maximum memory of one decision, in bytes.
const Longest = maxSize / 4

// Add keeps the decision of a counted request.
func (r *Decisions) Add(x *Request, k *Kept) {
	r.add(&sighting{size: k.Size, taken: k, times: x.times})
}

// spentOn returns the sums of a model. The caller holds mu.
func (r *Decisions) spentOn(model string) *Spent {
	s := r.spent[model]
	if s == nil {
		s = &Spent{Model: model}
		r.spent[model] = s
	}
	return s
}

func (r *Decisions) add(s *sighting) {
	r.mu.Lock()
	stale := r.current != nil && s.taken.Of != r.current
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
	for ; len(r.lines)-drop > maxKept || r.size > maxSize; drop++ {
		r.size -= r.lines[drop].size
	}
	r.lines = slices.Delete(r.lines, 0, drop)
	if r.waiting != nil {
		close(r.waiting)
		r.waiting = nil
	}
}

// Adopt renders the decisions of all configurations except the given one, so that no other
// configuration stays in memory.
func (r *Decisions) Adopt(of any) {
	r.mu.Lock()
	r.current = of
	lines := slices.Clone(r.lines)
	r.mu.Unlock()
	made := make(map[*sighting]*sighting) // without the lock, while requests continue
	for _, s := range lines {
		if s.taken != nil && s.taken.Of != of {
			made[s] = r.settled(s)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, s := range r.lines {
		r.lines[i] = cmp.Or(made[s], s)
	}
}

// settled returns a decision that no longer refers to its state.
func (r *Decisions) settled(s *sighting) *sighting {
	return &sighting{seq: s.seq, size: s.size, shown: s.show(r.prompts.Load(), true)}
}

// After returns the newest n decisions after seq, oldest first, without their signals and routes.
// skipped is the number of decisions never kept, and more is closed when there is a newer decision.
func (r *Decisions) After(seq uint64, n int) (list []*Seen, skipped uint64, more <-chan struct{}) {
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

// Find returns the decision of a request by its x-request-id, with signals and routes; nil if it is
// not kept, or not yet.
func (r *Decisions) Find(id string) *Seen {
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
func (r *Decisions) Tally() Tally {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := Tally{
		Decided:       r.decided,
		Routes:        maps.Clone(r.routes),
		Refused:       maps.Clone(r.refused),
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
	return s.taken.ID
}

// show renders a decision for operators; reasons adds the signals and the evaluation of the routes.
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
	out.Decision = l.Line.Entry()
	if prompts {
		l.Line.Quote(out.Decision)
	}
	out.TookMs, out.FirstMs = decisionlog.Milliseconds(s.times.took), decisionlog.Milliseconds(s.times.first)
	out.ClassifyMs = decisionlog.Milliseconds(l.Classified)
	out.Cost, out.Baseline = s.times.cost, s.times.base
	out.Message = l.Message
	if reasons {
		out.Signals, out.Routes = l.Line.Reasons()
	}
	return out
}

// Talks lists the conversations whose last turns this process answered recently, newest first.
func (r *Decisions) Talks() []Followed {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Followed, 0, len(r.followed.list))
	for _, x := range slices.Backward(r.followed.list) {
		out = append(out, x.Followed)
	}
	return out
}
