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

// The bounds of what is kept for operators to look at. More decisions a second than perSecond are
// more than a person can read: the others are counted.
const (
	maxKept   = 512
	maxSize   = 8 << 20 // bytes that they keep in memory, about
	perSecond = 64      // a second
)

// Decisions keeps the last decisions for operators who look at them, and sums what requests cost.
// It is safe for concurrent use. A request pays for the sums, some 100 ns; beyond perSecond a
// second nothing else is done.
type Decisions struct {
	prompts atomic.Bool // whether the text of requests may be kept and shown

	mu       sync.Mutex  // guards what follows; a leaf
	current  any         // configuration that requests are served from; nil until there was another before
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
	refused  map[string]int64
	spent    map[string]*Spent
}

// Spent is what the responses of a model cost, those that were thrown away for another's included.
// Money is in USD.
type Spent struct {
	Model      string  `json:"model"`
	Requests   int64   `json:"requests"` // that it was asked
	Untold     int64   `json:"untold"`   // of them, answers that told no tokens: in none of the sums
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
	Refused       map[string]int64 `json:"refused"`       // requests beside those, by the limit that they were over
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
	Routes  []Route                  `json:"routes,omitempty"`
}

// Route is how a route was evaluated.
type Route struct {
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
	taken *Kept
	times times
	shown *Seen
}

type times struct {
	took, first time.Duration
	cost, base  *float64
}

// New keeps nothing yet.
func New() *Decisions {
	return &Decisions{
		talks: make(map[string]int64), routes: make(map[string]int64), refused: make(map[string]int64), spent: make(map[string]*Spent),
		followed: followed{at: make(map[conversation.Key]*followedTalk)},
	}
}

// Quotes reports whether the text of requests may be kept.
func (r *Decisions) Quotes() bool { return r.prompts.Load() }

// Prompts says whether the text of requests may be kept and shown. It is not unless this says so,
// and what was kept is not shown any more once it may not.
func (r *Decisions) Prompts(allowed bool) { r.prompts.Store(allowed) }

type alwaysShown struct{}

// Shown marks the context of a request whose decision is to be kept however many there are.
func Shown(ctx context.Context) context.Context {
	return context.WithValue(ctx, alwaysShown{}, true)
}

// Line is a decision as it was taken down, which is shown only when somebody looks.
type Line interface {
	// Entry is what the decision log tells, without the text of the request.
	Entry() *decisionlog.Entry
	// Quote adds the text to an entry, where it was kept.
	Quote(e *decisionlog.Entry)
	// Reasons are the signals that the rules mention and how each route was evaluated.
	Reasons() (map[string]signals.Trace, []Route)
}

// Kept is a decision that is kept.
type Kept struct {
	ID         string // x-request-id
	Of         any    // the configuration that it was made by, which Line may hold on to
	Line       Line
	Size       int64         // about the bytes that it keeps in memory
	Classified time.Duration // waiting for signals
	Message    string        // what a block or a fixed answer says
}

// Request is a request that was decided and has ended.
type Request struct {
	ID, Tenant, Route string
	Fate              string         // of its conversation; empty for none
	Turn              *decide.Turn   // nil for a first turn, and where no model was asked
	Model             *backend.Model // that answered; nil for none
	Tells             bool           // a model answered it, and should have told what that took
	Used              response.Usage // none where the answer told none
	Thrown            []Paid         // responses that nobody gets
	Dearest           choose.Price   // of the configuration
	Took, First       time.Duration  // to the end, and until the response began; 0 without one
	At                time.Time      // when it ended

	times times
}

// Paid is what a response took of a model.
type Paid struct {
	Model *backend.Model
	Usage response.Usage
}

// Count sums a request up and reports whether it is to be kept: with Add.
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

// Refuse counts a request that a limit has refused before it was decided.
func (r *Decisions) Refuse(limit string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refused[limit]++
}

// spend sums up what a model was asked and took. The caller holds mu.
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

// Longest is how much one decision should keep in memory at most, in bytes.
const Longest = maxSize / 4

// Add keeps the decision of a request that was counted.
func (r *Decisions) Add(x *Request, k *Kept) {
	r.add(&sighting{size: k.Size, taken: k, times: x.times})
}

// spentOn is the sums of a model. The caller holds mu.
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

// Adopt makes what is shown of decisions of all configurations but one, so that none of those is
// held on to.
func (r *Decisions) Adopt(of any) {
	r.mu.Lock()
	r.current = of
	lines := slices.Clone(r.lines)
	r.mu.Unlock()
	made := make(map[*sighting]*sighting) // while requests go on
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

// settled is a decision without its state.
func (r *Decisions) settled(s *sighting) *sighting {
	return &sighting{seq: s.seq, size: s.size, shown: s.show(r.prompts.Load(), true)}
}

// After returns the decisions behind one, without their signals and routes, oldest first and not
// more than n, the newest of them; how many were never kept; and a channel that is closed when
// there is another one than those.
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

// Find returns the decision of a request, by its x-request-id, with signals and routes; nil when it
// is not kept, or not yet.
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

// Talks lists the conversations whose last turns were answered lately by this process, the newest
// first.
func (r *Decisions) Talks() []Followed {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Followed, 0, len(r.followed.list))
	for _, x := range slices.Backward(r.followed.list) {
		out = append(out, x.Followed)
	}
	return out
}
