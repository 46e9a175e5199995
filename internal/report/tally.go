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

// Report sums a log up. Money is in USD.
type Report struct {
	Files     int       `json:"files"`
	Decisions int64     `json:"decisions"`     // lines that were counted
	Left      int64     `json:"left_out"`      // decisions of other tenants and times
	Broken    int64     `json:"broken"`        // lines that cannot be read
	BadLines  []string  `json:"broken_lines"`  // FILE:LINE: why; the first of them
	From      time.Time `json:"from,omitzero"` // of the first decision
	To        time.Time `json:"to,omitzero"`   // of the last
	Tenant    string    `json:"tenant,omitempty"`
	Note      string    `json:"note"` // what the savings are
	Total     Group     `json:"total"`
	By        []Section `json:"by"`
}

// Unread reports that there were lines and none of them could be read.
func (r *Report) Unread() bool {
	return r.Broken > 0 && r.Decisions == 0 && r.Left == 0 && r.Total.Refused == 0
}

// SavingsNote says what the savings are.
const SavingsNote = "saved is arithmetic on prices: what the same tokens would have cost at the price of the " +
	"dearest model of the configuration, less what was spent. That model might have used more or fewer tokens"

// Section is the requests by one dimension.
type Section struct {
	By     string  `json:"by"`
	Names  int     `json:"names"`  // that were seen; at least so many where there are more than are told apart
	Groups []Group `json:"groups"` // by requests, the most first; days in their order; Other last
	// of arms: both of a route side by side
	Comparisons []Comparison `json:"comparisons,omitempty"`
}

// Group sums requests up.
type Group struct {
	Name     string `json:"name"`
	Requests int64  `json:"requests"`
	// Each request is one of these.
	Answered int64 `json:"answered"` // by a model, with a status below 400
	Cached   int64 `json:"cached"`   // from the cache
	Fixed    int64 `json:"fixed"`    // by a text of the configuration
	Blocked  int64 `json:"blocked"`  // by a rule
	Declined int64 `json:"declined"` // because a signal that a rule needs could not be computed
	Gone     int64 `json:"gone"`     // the client left before the end
	Failed   int64 `json:"errors"`   // anything else

	// Refused are requests that a limit has refused before they were decided. They are in no other
	// number.
	Refused int64 `json:"refused"`

	Errors []Count `json:"errors_by"` // those of errors, declined included, by code; the most frequent first

	Tokens   Tokens  `json:"tokens"`       // of all answers, those that were thrown away included
	Untold   int64   `json:"untold"`       // requests that a model answered without telling its tokens
	Cost     float64 `json:"cost_usd"`     // of all answers, those that were thrown away included
	Baseline float64 `json:"baseline_usd"` // had the dearest model answered
	Saved    float64 `json:"saved_usd"`
	Thrown   Thrown  `json:"thrown"`

	Conversations Conversations `json:"conversations"`
	Escalations   Escalations   `json:"escalations"`
	Mirrored      Mirrored      `json:"mirrored"`
	Guard         Guard         `json:"guard"`
	Finish        []Count       `json:"finish"` // why answers ended, the most frequent first
	Rated         Rated         `json:"rated"`

	TTFT Percentiles `json:"ttft_ms"` // of streams
	Took Percentiles `json:"took_ms"` // of answers of models, to their end
}

// SavedShare is the part of the baseline that was saved, in percent; 0 without one.
func (g *Group) SavedShare() float64 {
	if g.Baseline <= 0 {
		return 0
	}
	return 100 * g.Saved / g.Baseline
}

// Count is how often something was seen.
type Count struct {
	Name string `json:"name"`
	N    int64  `json:"n"`
}

// Tokens are sums of tokens.
type Tokens struct {
	Prompt     int64 `json:"prompt"`
	Cached     int64 `json:"cached"` // of Prompt
	Completion int64 `json:"completion"`
	Reasoning  int64 `json:"reasoning"` // of Completion, where servers tell it
}

func (t *Tokens) add(x *decisionlog.Tokens) {
	t.Prompt, t.Cached = t.Prompt+x.Prompt, t.Cached+x.Cached
	t.Completion, t.Reasoning = t.Completion+x.Completion, t.Reasoning+x.Reasoning
}

// Thrown are the answers that were thrown away for those of another model.
type Thrown struct {
	Answers int64   `json:"answers"`
	Tokens  int64   `json:"tokens"`
	Cost    float64 `json:"cost_usd"`
}

// Conversations are the requests that belong to one.
type Conversations struct {
	New   int64 `json:"new"`
	Kept  int64 `json:"kept"` // with the model of the turn before
	Moved int64 `json:"moved"`
}

// Escalations are the requests whose answers were judged, by what became of them.
type Escalations struct {
	Kept      int64 `json:"kept"`
	Escalated int64 `json:"escalated"`
	Failed    int64 `json:"failed"`
	Late      int64 `json:"late"`
	Unread    int64 `json:"unread"`
}

// Mirrored are copies of requests. What they took is in no other sum.
type Mirrored struct {
	Copies   int64   `json:"copies"`
	Answered int64   `json:"answered"`
	Cost     float64 `json:"cost_usd"`
}

// Guard is what the check of answers found.
type Guard struct {
	Supported   int64 `json:"supported"` // answers
	Unsupported int64 `json:"unsupported"`
	Unchecked   int64 `json:"unchecked"`
	Cut         int64 `json:"cut"` // of them, ended before their end
	Claims      int64 `json:"claims"`
	Failed      int64 `json:"claims_failed"`
}

// Rated is how good answers were, as far as somebody has said.
type Rated struct {
	Answers int64   `json:"answers"`
	Mean    float64 `json:"mean"` // in [0,1]; 0 of none
}

// Percentiles are times in milliseconds, off by quantileError at most; all 0 where nothing was
// measured.
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
	other *sums // of names that were let go
	gone  int   // how many those were
	over  bool  // some were let go before the end, so that one may have been counted twice
}

// sums are what a group is made of.
type sums struct {
	Group
	errors, finish map[string]int64
	ttft, took     *ddsketch.DDSketch // nil without a time

	// of arms alone
	canary                                    string
	strayed                                   int64 // requests that another model answered than was to
	prompt, completion, cost, firstMs, tookMs moments

	ratings moments
}

func newTally(o *Options) *tally {
	buckets, err := mapping.NewLogarithmicMapping(quantileError)
	if err != nil {
		panic(err) // the error is constant
	}
	t := &tally{o: o, total: &sums{}, buckets: buckets}
	t.out = Report{BadLines: []string{}, Tenant: o.Tenant, Note: SavingsNote}
	for _, by := range o.By {
		t.by = append(t.by, &names{by: by, all: make(map[string]*sums)})
	}
	return t
}

// count takes in a line.
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

// throwByModel counts the answers of a line that were thrown away for the models that gave them.
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

// nameOf is the group that a line belongs to; empty for none.
func nameOf(by string, e *entry) string {
	if e.Refused > 0 && (by == ByRoute || by == ByModel) {
		return "" // it came to none
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

// group finds the group of a name, or makes it. Where there are too many, those with the fewest
// requests are summed up.
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

// shrink leaves the names with the most requests.
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

// ranked lists groups, those with the most requests first, refused ones included.
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

// The ways in which a request ends.
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

// ends is how a request ended.
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

// whole reports whether the time of a request is that of a model's answer.
func (e *entry) whole() bool { return e.TookMs > 0 && e.Model != "" && e.ends() == endAnswered }

// embeddings is the only operation besides completions whose answers tell their usage.
const embeddings = "embeddings"

// end counts how a request ended.
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

// failure is what went wrong: the code of the error, or the status of a server's own.
func (e *entry) failure() string {
	if e.Error != "" {
		return name(e.Error)
	}
	return "status " + strconv.Itoa(e.Status)
}

// maxWords bounds the codes and reasons that are told apart in one group.
const maxWords = 64

// bump counts a word of a small set.
func bump(m *map[string]int64, word string) {
	if *m == nil {
		*m = make(map[string]int64)
	}
	if _, ok := (*m)[word]; !ok && len(*m) >= maxWords {
		word = Other
	}
	(*m)[word]++
}

// throw counts the answers of a line that were thrown away, those of one model or, with an empty
// name, all.
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

// The range of times that are told apart, in milliseconds; what lies beyond counts as its end. With
// quantileError it takes some 1,300 buckets.
const (
	leastMs = 0.001
	longMs  = 1e8
)

// time adds a time to a sketch, which is made with the first one: a DDSketch (Masson, Rim and Lee,
// VLDB 2019), whose buckets are allocated as they are needed.
func (t *tally) time(into **ddsketch.DDSketch, ms float64) {
	if *into == nil {
		*into = ddsketch.NewDDSketch(t.buckets, store.NewBufferedPaginatedStore(), store.NewCollapsingLowestDenseStore(1))
	}
	if err := (*into).Add(min(max(ms, leastMs), longMs)); err != nil {
		panic(err) // the range is that of the mapping
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

// addNumbers adds the numbers of one group to those of another, and no word. What is told of them, such as
// percentiles, is not there yet.
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
		panic(err) // all have one mapping
	}
	return a
}

// report is what was counted.
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

// group is what the sums come to.
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
		panic(err) // a sketch is made with its first time
	}
	for i := range v {
		v[i] = math.Round(v[i]*1000) / 1000 // a line tells no more
	}
	return Percentiles{Count: int64(s.GetCount()), P50: v[0], P90: v[1], P95: v[2], P99: v[3]}
}
