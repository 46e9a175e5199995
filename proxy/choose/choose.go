// Package choose puts the models that a route lists in the order in which they are tried: as
// listed, by weight, by quality, by cost or by latency.
//
// It picks no endpoint and knows nothing of endpoint health; see package pool. The rules determine
// which models are candidates.
//
// Invariants: an unknown value is never treated as good or bad. A candidate with an unknown value
// is placed behind those with known values, with a word that says so; equal candidates keep the
// order of the file. Nothing here starts a goroutine. The locks of Speeds are leaves.
package choose

import (
	"cmp"
	"slices"

	"signalbox/internal/signal"
	"signalbox/proxy/lengths"
	"signalbox/rules"
)

// Candidate is a model that a request could go to, with what the choice among them looks at.
type Candidate struct {
	Name    string  // as the configuration has it
	Quality float64 // expected share of right answers, in [0,1]; negative when not known
	Cost    float64 // expected price of prompt and completion in USD; negative when not known
	Latency float64 // expected time to the end of the completion in seconds; negative when not known
	Left    string  // why it stands behind others or is left out; empty otherwise
	Out     bool    // it is not tried at all
	// Expected is what Quality was made of; nil where that is the configuration's word.
	Expected *Expected
	// Chance is the probability with which it came first, where that was drawn; see
	// Accounts.Explore.
	Chance float64

	guess  *Expected // Expected, also where no outcome of the model is known
	model  *Model    // nil when no such model is configured
	weight int
	class  class
	fit    fit
}

// unknown stands for a quality, cost or latency that is not known.
const unknown = -1

// class orders candidates before their figures do.
type class uint8

const (
	eligible  class = iota // good enough, and the figure that decides is known
	unmetered              // good enough, but the figure that decides is not known
	worse                  // not good enough, or its quality is not known
	outside                // not tried
)

// The words of Candidate.Left.
const (
	leftWindow  = "its context window is too small for the prompt"
	leftDoubt   = "its context window may be too small for the prompt"
	leftAbsent  = "it is not configured"
	leftSkills  = "its quality is not known"
	leftQuality = "its quality is below the margin"
	leftPrice   = "its price is not known"
	leftSpeed   = "no answer of it was observed yet"
)

// assumedCompletion is the length of an answer, in tokens, of a model that has not given any yet.
// It is an assumption; what models are compared by changes little with it, since it is the same for
// all.
const assumedCompletion = 256

// closeEnough keeps rounding out of comparisons of quality, whose figures have few digits.
const closeEnough = 1e-9

// Slack is by how much the estimate of a prompt's length may exceed a context window before it is
// doubted that the prompt fits: the estimate is made without the model's tokenizer.
const Slack = 1.3

// Model is what the choice knows of a configured model. It is immutable.
type Model struct {
	Name   string
	Window int // context window in tokens; 0 when not known
	Price  Price
	Skills Skills
}

// Chooser knows the models of one configuration and what was observed of them. It is immutable once
// it is used, but for what it has learnt, and safe for concurrent use.
type Chooser struct {
	Models  map[string]*Model // by name
	Speeds  *Speeds
	Lengths *lengths.Sketches
	Spent   *Accounts
	Intn    func(n int) int // draws from [0,n); safe for concurrent use
}

// Request is a request as far as the choice looks at it.
type Request struct {
	Action *rules.Action // of its route
	Set    *signal.Set   // its facts and signals
	Named  string        // the model to go to where the action names none
	Limit  int64         // the client's own limit on the answer, in tokens; 0 when it set none
	Prompt Prompt
	// Expected is what outcomes let one expect of the candidates, in any order; empty without any.
	Expected []Expected
}

// Expected is what the outcomes of earlier requests let one expect of a model.
type Expected struct {
	Model      string
	Prior      float64 // quality that the configuration expects, in [0,1]; one half where it says nothing
	Everywhere float64 // quality whatever is asked; not bounded
	Quality    float64 // that of an answer to this request, in [0,1]
	Sure       float64 // Quality without what is in doubt of this request; what the best one is chosen by
	Deviation  float64 // standard deviation of Quality
	Overall    float64 // the same of Everywhere
	Tokens     float64 // length of the answer; 0 when not known
	Longest    float64 // that 99 of 100 answers stay below; 0 when not known
	Outcomes   float64 // of the model that it was made of, by their weights
	Near       float64 // those of near requests, by weight and nearness
	// AtEfforts is the same by effort, from the least, and Effort the one that the rest is of; none
	// where the effort is not chosen by outcomes.
	AtEfforts  []AtEffort
	Effort     string
	ByOutcomes bool // Effort is; else there are too few
	Drawn      bool // Effort was drawn, to learn
}

// Reason makes the effort at place i the one that the rest is of.
func (e *Expected) Reason(i int) {
	x := &e.AtEfforts[i]
	e.Effort, e.Quality, e.Sure, e.Deviation = x.Effort, x.Quality, x.Sure, x.Deviation
	if x.Tokens > 0 {
		e.Tokens, e.Longest = x.Tokens, x.Longest
	}
}

// expected is what is expected of a model; nil without outcomes that say anything of it.
func (r *Request) expected(m *Model) *Expected {
	if e := r.guess(m); e != nil && (e.Outcomes > 0 || m.Skills.known) {
		return e
	}
	return nil
}

// guess is what is expected of a model where the tenant has outcomes of any.
func (r *Request) guess(m *Model) *Expected {
	for i := range r.Expected {
		if e := &r.Expected[i]; e.Model == m.Name {
			return e
		}
	}
	return nil
}

// Prompt is what is known of the length of a request's prompt, or of the longest of several, in
// tokens.
type Prompt struct {
	Estimate int            // without a tokenizer; 0 stands for the tokens of the facts
	Least    int            // no tokenizer could make it shorter
	Counted  map[string]int // by the tokenizers of models, by their names
}

// Doubted reports whether the prompt would probably not fit into a window of so many tokens. It is
// no proof: text that repeats itself, or is mostly space, may be much shorter than the estimate.
func (r *Request) Doubted(window int) bool {
	tokens := cmp.Or(r.Prompt.Estimate, r.Set.Facts.Tokens)
	return window > 0 && float64(tokens) > Slack*float64(window)
}

// fit is whether a prompt fits into a model's window.
type fit uint8

const (
	fits fit = iota // as far as is known
	doubtful
	never
)

// fits judges the prompt for a model: by the model's own count where there is one.
func (r *Request) fits(m *Model) fit {
	n, counted := r.Prompt.Counted[m.Name]
	switch {
	case m.Window <= 0:
		return fits
	case counted && n > m.Window, r.Prompt.Least > m.Window:
		return never
	case !counted && r.Doubted(m.Window):
		return doubtful
	}
	return fits
}

// Rank lists the candidates of a request with all their figures, in the order to try them. The same
// request meets the same order as long as nothing was observed in between, but for two things that
// belong to requests that are sent: weighted candidates, which are drawn for each of them, come in
// the order of the file, and no model is tried just to learn its latency.
func (c *Chooser) Rank(r Request) []Candidate {
	cs := c.candidates(r)
	for i := range cs {
		c.weigh(&cs[i], r)
	}
	arrange(cs, r.Action)
	byRoom(cs)
	return cs
}

// Choose is Rank for a request that is sent. Figures that do not decide are left at zero. It
// allocates its result and nothing else.
func (c *Chooser) Choose(r Request) []Candidate {
	cs := c.candidates(r)
	switch r.Action.By {
	case "weight":
		shuffle(cs, c.Intn)
	case "quality", "cost", "latency":
		for i := range cs {
			c.weigh(&cs[i], r)
		}
	}
	arrange(cs, r.Action)
	if r.Action.By == "latency" {
		c.explore(cs)
	}
	byRoom(cs)
	return cs
}

// candidates lists what an action names, in the order of the file. Models whose context window is
// too small are marked, and those where that is in doubt as long as another one is left.
func (c *Chooser) candidates(r Request) []Candidate {
	n := max(1, len(r.Action.Models))
	cs := make([]Candidate, n)
	left := 0 // those that are sure to fit
	for i := range cs {
		x := &cs[i]
		if x.Name, x.weight = r.Named, 1; len(r.Action.Models) > 0 {
			x.Name, x.weight = r.Action.Models[i].Name, r.Action.Models[i].Weight
		}
		x.model = c.Models[x.Name]
		if x.model == nil {
			x.Left, x.Out = leftAbsent, true
			continue
		}
		switch x.fit = r.fits(x.model); x.fit {
		case never, doubtful:
			x.Left, x.Out = leftWindow, true
		case fits:
			left++
		}
	}
	for i := range cs {
		if x := &cs[i]; left == 0 && x.fit == doubtful {
			x.Left, x.Out = leftDoubt, false // the server knows better
		}
	}
	return cs
}

// byRoom puts candidates of which it is doubted that the prompt fits, which are there only where no
// other is, in the order of their windows, the largest first.
func byRoom(cs []Candidate) {
	n := 0 // those that are tried, which stand in front
	for n < len(cs) && !cs[n].Out && cs[n].fit == doubtful {
		n++
	}
	slices.SortStableFunc(cs[:n], func(x, y Candidate) int {
		return cmp.Compare(y.model.Window, x.model.Window)
	})
}

// weigh fills in the figures of a candidate.
func (c *Chooser) weigh(x *Candidate, r Request) {
	x.Quality, x.Cost, x.Latency = unknown, unknown, unknown
	if x.model == nil {
		return
	}
	x.Quality = x.model.Skills.Quality(r.Set.Value(signal.Domain))
	x.guess = r.guess(x.model)
	if x.Expected = r.expected(x.model); x.Expected != nil {
		x.Quality = x.Expected.Quality
	}
	completion := c.completion(x.model, r)
	if p := x.model.Price; p.Known() {
		x.Cost = p.Of(float64(r.Set.Facts.Tokens), completion)
	}
	if seconds, ok := c.Speeds.Expect(x.Name, completion); ok {
		x.Latency = seconds
	}
}

// completion is the expected length of a model's answer in tokens: the mean of those it gave to
// requests of the same domain, as far as the limit that holds lets them grow: the client's own, or
// the route's when there is none or the route overrides it.
func (c *Chooser) completion(m *Model, r Request) float64 {
	n := float64(assumedCompletion)
	if mean, ok := c.Lengths.Mean(m.Name, r.Set.Value(signal.Domain).Label); ok {
		n = mean
	}
	if e := r.expected(m); e != nil && e.Tokens > 0 {
		n = e.Tokens
	}
	limit := r.Limit
	if own := int64(r.Action.MaxTokens.Limit); own > 0 && r.Action.Limits(limit) {
		limit = own
	}
	if limit > 0 {
		n = min(n, float64(limit))
	}
	return n
}

// arrange orders candidates by what the action asks for, and says of each why it is not the first.
func arrange(cs []Candidate, a *rules.Action) {
	best := float64(unknown)
	for i := range cs {
		if !cs[i].Out {
			best = max(best, cs[i].Quality)
		}
	}
	for i := range cs {
		if c := &cs[i]; c.Out {
			c.class = outside
		} else {
			c.judge(a, best)
		}
	}
	var better func(x, y *Candidate) bool
	switch a.By {
	case "quality":
		better = betterQuality
	case "cost":
		better = cheaper
	case "latency":
		better = faster
	default:
		better = asListed
	}
	// Insertion sort: lists are short, the order of equals is kept, and nothing is allocated.
	for i := 1; i < len(cs); i++ {
		for j := i; j > 0 && better(&cs[j], &cs[j-1]); j-- {
			cs[j], cs[j-1] = cs[j-1], cs[j]
		}
	}
}

// judge finds the class of a candidate that can be tried; best is the highest quality of all.
func (c *Candidate) judge(a *rules.Action, best float64) {
	switch a.By {
	case "quality":
		if c.Quality < 0 {
			c.class, c.Left = worse, leftSkills
		}
		return
	case "cost", "latency":
	default:
		return
	}
	switch matters := best >= 0 && a.Margin < 1; {
	case matters && c.Quality < 0:
		c.class, c.Left = worse, leftSkills
	case matters && c.Quality < best-a.Margin-closeEnough:
		c.class, c.Left = worse, leftQuality
	case a.By == "cost" && c.Cost < 0:
		c.class, c.Left = unmetered, leftPrice
	case a.By == "latency" && c.Latency < 0:
		c.class, c.Left = unmetered, leftSpeed
	}
}

// The orders below are strict: of two equal candidates, neither is better, and the file decides.

func asListed(x, y *Candidate) bool { return x.class < y.class }

// betterQuality prefers quality, as far as it is sure, then a cost that is known, then the lower one.
func betterQuality(x, y *Candidate) bool {
	switch {
	case x.class != y.class:
		return x.class < y.class
	case x.sure() != y.sure():
		return x.sure() > y.sure()
	case x.Cost < 0 || y.Cost < 0:
		return x.Cost >= 0 && y.Cost < 0
	}
	return x.Cost < y.Cost
}

// sure is the quality of a candidate as far as it is sure.
func (c *Candidate) sure() float64 {
	if c.Expected != nil {
		return c.Expected.Sure
	}
	return c.Quality
}

// cheaper prefers the lower cost, then quality.
func cheaper(x, y *Candidate) bool { return less(x, y, x.Cost, y.Cost) }

// faster prefers the shorter time, then quality.
func faster(x, y *Candidate) bool { return less(x, y, x.Latency, y.Latency) }

// less prefers what there is less of, then quality; quality alone among those that it cannot order.
func less(x, y *Candidate, ofX, ofY float64) bool {
	switch {
	case x.class != y.class:
		return x.class < y.class
	case x.class == eligible && ofX != ofY:
		return ofX < ofY
	}
	return x.class != outside && x.Quality > y.Quality
}

// explore puts a candidate first that is good enough and of whose latency too little is known, when
// its turn has come. The others follow as they were.
func (c *Chooser) explore(cs []Candidate) {
	for i := range cs {
		if cs[i].class > unmetered || i == 0 && cs[i].class == eligible {
			continue // the fastest is observed anyway
		}
		if c.Speeds.Explore(cs[i].Name) {
			chosen := cs[i]
			copy(cs[1:i+1], cs[:i])
			cs[0] = chosen
			return
		}
	}
}

// shuffle draws without replacement, with the chances of each draw proportional to the weights.
func shuffle(cs []Candidate, intn func(n int) int) {
	for i := range cs {
		total := 0
		for j := i; j < len(cs); j++ {
			total += max(cs[j].weight, 1)
		}
		at := intn(total)
		for j := i; j < len(cs); j++ {
			if at -= max(cs[j].weight, 1); at < 0 {
				cs[i], cs[j] = cs[j], cs[i]
				break
			}
		}
	}
}
