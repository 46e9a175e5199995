package report

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/DataDog/sketches-go/ddsketch/mapping"
	"github.com/DataDog/sketches-go/ddsketch/store"

	"signalbox/proxy/decisionlog"
)

// Report is the summary of a log. Money is in USD.
type Report struct {
	Files     int       `json:"files"`
	Decisions int64     `json:"decisions"`     // lines that were counted
	Left      int64     `json:"left_out"`      // decisions of other tenants and times
	Broken    int64     `json:"broken"`        // lines that cannot be read
	BadLines  []string  `json:"broken_lines"`  // FILE:LINE: reason; only the first ones
	From      time.Time `json:"from,omitzero"` // of the first decision
	To        time.Time `json:"to,omitzero"`   // of the last
	Tenant    string    `json:"tenant,omitempty"`
	Note      string    `json:"note"` // explains the savings
	Total     Group     `json:"total"`
	By        []Section `json:"by"`
}

// Unread reports that there were lines but none of them could be read.
func (r *Report) Unread() bool {
	return r.Broken > 0 && r.Decisions == 0 && r.Left == 0 && r.Total.Refused == 0
}

// SavingsNote explains the savings.
const SavingsNote = "saved is arithmetic on prices: what the same tokens would have cost at the price of the " +
	"dearest model of the configuration, less what was spent. That model might have used more or fewer tokens"

// Section holds the requests grouped by one dimension.
type Section struct {
	By     string  `json:"by"`
	Names  int     `json:"names"`  // number of names; a lower bound if there are too many to distinguish
	Groups []Group `json:"groups"` // sorted by requests, descending; days in chronological order; Other last
	// for arms: the comparison of both arms of each route
	Comparisons []Comparison `json:"comparisons,omitempty"`
}

// Group is the summary of a group of requests.
type Group struct {
	Name     string `json:"name"`
	Requests int64  `json:"requests"`
	// Each request counts in exactly one of these.
	Answered int64 `json:"answered"` // by a model, with a status below 400
	Cached   int64 `json:"cached"`   // from the cache
	Fixed    int64 `json:"fixed"`    // by a fixed text of the configuration
	Blocked  int64 `json:"blocked"`  // by a rule
	Declined int64 `json:"declined"` // because a signal that a rule needs was unknown
	Gone     int64 `json:"gone"`     // the client disconnected before the end
	Failed   int64 `json:"errors"`   // all others

	// Refused are requests that a limit rejected before they were decided. No other number includes
	// them.
	Refused int64 `json:"refused"`

	Errors []Count `json:"errors_by"` // by error code, including declined, the most frequent first

	Tokens   Tokens  `json:"tokens"`       // of all responses, including discarded ones
	Untold   int64   `json:"untold"`       // requests for which the model reported no token counts
	Cost     float64 `json:"cost_usd"`     // of all responses, including discarded ones
	Baseline float64 `json:"baseline_usd"` // the cost with the most expensive model
	Saved    float64 `json:"saved_usd"`
	Thrown   Thrown  `json:"thrown"`

	Conversations Conversations `json:"conversations"`
	Escalations   Escalations   `json:"escalations"`
	Mirrored      Mirrored      `json:"mirrored"`
	Guard         Guard         `json:"guard"`
	Finish        []Count       `json:"finish"` // finish reasons, the most frequent first
	Rated         Rated         `json:"rated"`

	TTFT Percentiles `json:"ttft_ms"` // of streams
	Took Percentiles `json:"took_ms"` // of complete model responses
}

// SavedShare returns the saved part of the baseline, in percent; 0 without a baseline.
func (g *Group) SavedShare() float64 {
	if g.Baseline <= 0 {
		return 0
	}
	return 100 * g.Saved / g.Baseline
}

// Count counts occurrences of a name.
type Count struct {
	Name string `json:"name"`
	N    int64  `json:"n"`
}

// Tokens are sums of tokens.
type Tokens struct {
	Prompt     int64 `json:"prompt"`
	Cached     int64 `json:"cached"` // of Prompt
	Completion int64 `json:"completion"`
	Reasoning  int64 `json:"reasoning"` // of Completion, if servers report it
}

func (t *Tokens) add(x *decisionlog.Tokens) {
	t.Prompt, t.Cached = t.Prompt+x.Prompt, t.Cached+x.Cached
	t.Completion, t.Reasoning = t.Completion+x.Completion, t.Reasoning+x.Reasoning
}

// Thrown are responses that were discarded in favour of another model's.
type Thrown struct {
	Answers int64   `json:"answers"`
	Tokens  int64   `json:"tokens"`
	Cost    float64 `json:"cost_usd"`
}

// Conversations counts requests that belong to a conversation.
type Conversations struct {
	New   int64 `json:"new"`
	Kept  int64 `json:"kept"` // with the model of the previous turn
	Moved int64 `json:"moved"`
}

// Escalations counts requests whose responses were judged, by result.
type Escalations struct {
	Kept      int64 `json:"kept"`
	Escalated int64 `json:"escalated"`
	Failed    int64 `json:"failed"`
	Late      int64 `json:"late"`
	Unread    int64 `json:"unread"`
}

// Mirrored counts copies of requests. No other sum includes them.
type Mirrored struct {
	Copies   int64   `json:"copies"`
	Answered int64   `json:"answered"`
	Cost     float64 `json:"cost_usd"`
}

// Guard counts the results of the guard.
type Guard struct {
	Supported   int64 `json:"supported"` // responses
	Unsupported int64 `json:"unsupported"`
	Unchecked   int64 `json:"unchecked"`
	Cut         int64 `json:"cut"` // of these, terminated early
	Claims      int64 `json:"claims"`
	Failed      int64 `json:"claims_failed"`
}

// Rated summarises the scores of rated responses.
type Rated struct {
	Answers int64   `json:"answers"`
	Mean    float64 `json:"mean"` // in [0,1]; 0 without ratings
}

// Percentiles are times in milliseconds, with a relative error of at most quantileError; all 0
// without measurements.
type Percentiles struct {
	Count int64   `json:"count"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P95   float64 `json:"p95"`
	P99   float64 `json:"p99"`
}

// tally counts lines.
type tally struct {
	o       *Options
	out     Report
	total   *sums
	by      []*names
	buckets mapping.IndexMapping
}

// names are the groups of a dimension.
type names struct {
	by    string
	all   map[string]*sums
	other *sums // of evicted names
	gone  int   // number of evicted names
	over  bool  // names were evicted before the end, so a name may be counted twice
}

// sums are the sums of a group.
type sums struct {
	Group
	errors, finish map[string]int64
	ttft, took     *ddsketch.DDSketch // nil without measurements

	// for arms only
	canary                                    string
	strayed                                   int64 // requests that another model than the assigned one answered
	prompt, completion, cost, firstMs, tookMs moments

	ratings moments
}

func newTally(o *Options) *tally {
	buckets, err := mapping.NewLogarithmicMapping(quantileError)
	if err != nil {
		panic(err) // cannot happen: the error is constant
	}
	t := &tally{o: o, total: &sums{}, buckets: buckets}
	t.out = Report{BadLines: []string{}, Tenant: o.Tenant, Note: SavingsNote}
	for _, by := range o.By {
		t.by = append(t.by, &names{by: by, all: make(map[string]*sums)})
	}
	return t
}

// count counts a line.
func (t *tally) count(e *entry) {
	if e.Refused == 0 {
		t.out.Decisions++
	}
	if t.out.From.IsZero() || e.Time.Before(t.out.From) {
		t.out.From = e.Time
	}
	if e.Time.After(t.out.To) {
		t.out.To = e.Time
	}
	t.add(t.total, e)
	t.throw(t.total, e, "")
	for _, n := range t.by {
		of := nameOf(n.by, e)
		if of == "" {
			continue
		}
		g := n.group(of)
		t.add(g, e)
		if n.by == ByArm {
			g.measure(e)
		}
		if n.by != ByModel {
			t.throw(g, e, "")
			continue
		}
		t.throwByModel(n, e)
	}
}

// throwByModel counts the discarded responses of a line for their models.
func (t *tally) throwByModel(n *names, e *entry) {
	if e.Escalation == nil {
		return
	}
	from := e.Escalation.From
	for i := range from {
		model := name(from[i].Model)
		if !slices.ContainsFunc(from[:i], func(x decisionlog.Thrown) bool { return name(x.Model) == model }) {
			t.throw(n.group(model), e, model)
		}
	}
}

// nameOf returns the group of a line; empty for none.
func nameOf(by string, e *entry) string {
	if e.Refused > 0 && (by == ByRoute || by == ByModel) {
		return "" // no model responded
	}
	switch by {
	case ByRoute:
		return name(e.Route)
	case ByModel:
		return name(e.Model)
	case ByTenant:
		return name(e.Request.Tenant)
	case ByKey:
		return name(e.Key)
	case ByArm:
		return armOf(e)
	}
	return e.Time.UTC().Format(time.DateOnly)
}

// group finds or creates the group of a name. If there are too many, those with the fewest requests
// are merged.
func (n *names) group(of string) *sums {
	if g := n.all[of]; g != nil {
		return g
	}
	most := maxTracked
	if n.by == ByDay {
		most = maxDays
	}
	if len(n.all) >= 2*most {
		n.shrink(most)
		n.over = true
	}
	g := &sums{Group: Group{Name: of}}
	n.all[of] = g
	return g
}

// shrink keeps the names with the most requests.
func (n *names) shrink(to int) {
	for _, g := range ranked(n.all)[to:] {
		if n.other == nil {
			n.other = &sums{Group: Group{Name: Other}}
		}
		n.other.merge(g)
		n.gone++
		delete(n.all, g.Name)
	}
}

// ranked lists groups by number of requests, descending, including refused ones.
func ranked(all map[string]*sums) []*sums {
	out := make([]*sums, 0, len(all))
	for _, g := range all {
		out = append(out, g)
	}
	slices.SortFunc(out, func(a, b *sums) int {
		return cmp.Or(cmp.Compare(b.Requests+b.Refused, a.Requests+a.Refused), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// add counts a line to a group.
func (t *tally) add(g *sums, e *entry) {
	if e.Refused > 0 {
		g.Refused += e.Refused
		return
	}
	g.Requests++
	g.end(e)
	if e.Tokens != nil {
		g.Tokens.add(e.Tokens)
	}
	g.Cost, g.Baseline = g.Cost+e.Cost, g.Baseline+e.Baseline
	if c := e.Conversation; c != nil {
		g.Conversations.note(c.State)
	}
	if x := e.Escalation; x != nil {
		g.Escalations.note(x.Result)
	}
	if m := e.Mirror; m != nil {
		g.Mirrored.Copies++
		if m.Result == "answered" {
			g.Mirrored.Answered++
		}
		g.Mirrored.Cost += m.Cost
	}
	if v := e.Guard; v != nil {
		g.Guard.note(v.Verdict)
		g.Guard.Claims, g.Guard.Failed = g.Guard.Claims+int64(v.Claims), g.Guard.Failed+int64(v.Failed)
		if v.Cut {
			g.Guard.Cut++
		}
	}
	if e.isRated {
		g.ratings.add(e.rating)
	}
	if e.Finish != "" {
		bump(&g.finish, name(e.Finish))
	}
	if e.TTFTMs > 0 {
		t.time(&g.ttft, e.TTFTMs)
	}
	if e.whole() {
		t.time(&g.took, e.TookMs)
	}
}

func (c *Conversations) note(state string) {
	switch state {
	case "new":
		c.New++
	case "kept":
		c.Kept++
	case "moved":
		c.Moved++
	}
}

func (x *Escalations) note(result string) {
	switch result {
	case "kept":
		x.Kept++
	case "escalated":
		x.Escalated++
	case "failed":
		x.Failed++
	case "late":
		x.Late++
	case "unread":
		x.Unread++
	}
}

func (v *Guard) note(verdict string) {
	switch verdict {
	case "supported":
		v.Supported++
	case "unsupported":
		v.Unsupported++
	case "unchecked":
		v.Unchecked++
	}
}

// The results of a request.
type end uint8

const (
	endAnswered end = iota
	endCached
	endFixed
	endBlocked
	endDeclined
	endGone
	endFailed
)

// ends returns the result of a request.
func (e *entry) ends() end {
	const clientGone = 499
	switch {
	case e.Status == clientGone:
		return endGone
	case e.Outcome == "fail_closed" && e.Action.Verb == "block", e.Outcome == "unavailable":
		return endDeclined
	case e.Action.Verb == "block":
		return endBlocked
	case e.Status >= http.StatusBadRequest, e.Error != "":
		return endFailed
	case e.Action.Verb == "answer":
		return endFixed
	case e.Cache == "exact" || e.Cache == "semantic":
		return endCached
	}
	return endAnswered
}

// whole reports whether the time of a request is that of a complete model response.
func (e *entry) whole() bool { return e.TookMs > 0 && e.Model != "" && e.ends() == endAnswered }

// embeddings is the only operation besides completions whose responses report their usage.
const embeddings = "embeddings"

// end counts the result of a request.
func (g *sums) end(e *entry) {
	switch e.ends() {
	case endGone:
		g.Gone++
	case endDeclined:
		g.Declined++
		bump(&g.errors, e.failure())
	case endBlocked:
		g.Blocked++
	case endFailed:
		g.Failed++
		bump(&g.errors, e.failure())
	case endFixed:
		g.Fixed++
	case endCached:
		g.Cached++
	case endAnswered:
		g.Answered++
		if e.Tokens == nil && (e.Operation == "" || e.Operation == embeddings) {
			g.Untold++
		}
	}
}

// failure returns the reason of a failure: the error code, or the status of a server's response.
func (e *entry) failure() string {
	if e.Error != "" {
		return name(e.Error)
	}
	return "status " + strconv.Itoa(e.Status)
}

// maxWords limits the codes and reasons that are distinguished in one group.
const maxWords = 64

// bump increments the count of a word in a small set.
func bump(m *map[string]int64, word string) {
	if *m == nil {
		*m = make(map[string]int64)
	}
	if _, ok := (*m)[word]; !ok && len(*m) >= maxWords {
		word = Other
	}
	(*m)[word]++
}

// throw counts the discarded responses of a line: those of one model, or all if the name is empty.
func (*tally) throw(g *sums, e *entry, model string) {
	if e.Escalation == nil {
		return
	}
	for i := range e.Escalation.From {
		x := &e.Escalation.From[i]
		if model != "" && name(x.Model) != model {
			continue
		}
		g.Thrown.Answers++
		g.Thrown.Tokens += x.Tokens.Prompt + x.Tokens.Completion
		g.Thrown.Cost += x.Cost
		g.Tokens.add(&x.Tokens)
		g.Cost += x.Cost
	}
}

// The range of times that are distinguished, in milliseconds; times outside count as its limits.
// With quantileError it needs about 1,300 buckets.
const (
	leastMs = 0.001
	longMs  = 1e8
)

// time adds a time to a sketch, which is created with the first one: a DDSketch (Masson, Rim and
// Lee, VLDB 2019), whose buckets are allocated on demand.
func (t *tally) time(into **ddsketch.DDSketch, ms float64) {
	if *into == nil {
		*into = ddsketch.NewDDSketch(t.buckets, store.NewBufferedPaginatedStore(), store.NewCollapsingLowestDenseStore(1))
	}
	if err := (*into).Add(min(max(ms, leastMs), longMs)); err != nil {
		panic(err) // cannot happen: the range is that of the mapping
	}
}

// merge adds another group.
func (g *sums) merge(x *sums) {
	addNumbers(reflect.ValueOf(&g.Group).Elem(), reflect.ValueOf(&x.Group).Elem())
	for word, n := range x.errors {
		add(&g.errors, word, n)
	}
	for word, n := range x.finish {
		add(&g.finish, word, n)
	}
	g.ttft, g.took = joined(g.ttft, x.ttft), joined(g.took, x.took)
	g.strayed += x.strayed
	for _, f := range means() {
		f.of(g).merge(f.of(x))
	}
}

// addNumbers adds the numeric fields of one group to those of another. Derived values, such as
// percentiles, are not computed yet.
func addNumbers(to, from reflect.Value) {
	switch to.Kind() { //nolint:exhaustive // groups have numbers of two kinds
	case reflect.Struct:
		for i := range to.NumField() {
			addNumbers(to.Field(i), from.Field(i))
		}
	case reflect.Int64:
		to.SetInt(to.Int() + from.Int())
	case reflect.Float64:
		to.SetFloat(to.Float() + from.Float())
	}
}

func add(m *map[string]int64, word string, n int64) {
	bump(m, word)
	if _, ok := (*m)[word]; !ok {
		word = Other
	}
	(*m)[word] += n - 1
}

func joined(a, b *ddsketch.DDSketch) *ddsketch.DDSketch {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	if err := a.MergeWith(b); err != nil {
		panic(err) // cannot happen: all use the same mapping
	}
	return a
}

// report creates the report.
func (t *tally) report() *Report {
	out := t.out
	t.total.Name = "all"
	out.Total = t.total.group()
	out.By = make([]Section, 0, len(t.by))
	for _, n := range t.by {
		out.By = append(out.By, n.section(t.o.Top))
	}
	return &out
}

// section lists the groups of a dimension.
func (n *names) section(top int) Section {
	s := Section{By: n.by, Names: len(n.all) + n.gone}
	if n.over {
		s.Names = 2*maxTracked + 1
	}
	if n.by == ByDay {
		top = maxDays
	}
	if n.by == ByArm {
		s.Comparisons = n.compare()
	}
	if len(n.all) > top {
		n.shrink(top)
	}
	all := ranked(n.all)
	if n.by == ByDay {
		slices.SortFunc(all, func(a, b *sums) int { return cmp.Compare(a.Name, b.Name) })
	}
	s.Groups = make([]Group, 0, len(all)+1)
	for _, g := range all {
		s.Groups = append(s.Groups, g.group())
	}
	if n.other != nil {
		n.other.Name = fmt.Sprintf("%s (%d names)", Other, n.gone)
		if n.over {
			n.other.Name = fmt.Sprintf("%s (over %d names)", Other, s.Names-1-len(all))
		}
		s.Groups = append(s.Groups, n.other.group())
	}
	return s
}

// group converts the sums into a summary.
func (g *sums) group() Group {
	out := g.Group
	out.Rated = Rated{g.ratings.n, g.ratings.mean}
	out.Errors, out.Finish = counts(g.errors), counts(g.finish)
	out.TTFT, out.Took = percentiles(g.ttft), percentiles(g.took)
	if out.Baseline > 0 {
		out.Saved = out.Baseline - out.Cost
	}
	return out
}

func counts(m map[string]int64) []Count {
	out := make([]Count, 0, len(m))
	for word, n := range m {
		out = append(out, Count{word, n})
	}
	slices.SortFunc(out, func(a, b Count) int { return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Name, b.Name)) })
	return out
}

func percentiles(s *ddsketch.DDSketch) Percentiles {
	if s == nil {
		return Percentiles{}
	}
	v, err := s.GetValuesAtQuantiles([]float64{.5, .9, .95, .99})
	if err != nil {
		panic(err) // cannot happen: a sketch has at least one time
	}
	for i := range v {
		v[i] = math.Round(v[i]*1000) / 1000 // lines have no higher precision
	}
	return Percentiles{Count: int64(s.GetCount()), P50: v[0], P90: v[1], P95: v[2], P99: v[3]}
}
