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

// Candidate is a model that a request could go to, with the figures for the choice.
type Candidate struct {
	Name    string  // as configured
	Quality float64 // expected share of correct responses, in [0,1]; negative if unknown
	Cost    float64 // expected price of prompt and completion in USD; negative if unknown
	Latency float64 // expected seconds to the end of the completion; negative if unknown
	Left    string  // why it is ranked lower or left out; empty otherwise
	Out     bool    // not tried at all
	// Expected is the prediction behind Quality; nil when Quality comes from the configuration.
	Expected *Expected
	// Chance is the probability with which it was drawn as the first candidate; see
	// Accounts.Explore.
	Chance float64

	guess  *Expected // like Expected, but also set without outcomes of this model
	model  *Model    // nil when the model is not configured
	weight int
	class  class
	fit    fit
}

// unknown stands for an unknown quality, cost or latency.
const unknown = -1

// class sorts candidates before their figures do.
type class uint8

const (
	eligible  class = iota // good enough, and the deciding figure is known
	unmetered              // good enough, but the deciding figure is unknown
	worse                  // not good enough, or of unknown quality
	outside                // not tried
)

// The values of Candidate.Left.
const (
	leftWindow  = "its context window is too small for the prompt"
	leftDoubt   = "its context window may be too small for the prompt"
	leftAbsent  = "it is not configured"
	leftSkills  = "its quality is not known"
	leftQuality = "its quality is below the margin"
	leftPrice   = "its price is not known"
	leftSpeed   = "no response of it has been measured yet"
)

// assumedCompletion is the response length, in tokens, of a model without any response yet. It is
// an assumption; since it is the same for all models, comparisons depend little on it.
const assumedCompletion = 256

// closeEnough absorbs rounding in comparisons of quality, whose figures have few digits.
const closeEnough = 1e-9

// Slack is the factor by which the estimated prompt length may exceed a context window before the
// prompt is considered unlikely to fit. The estimate is made without the model's tokenizer.
const Slack = 1.3

// Model is what the choice knows about a configured model. It is immutable.
type Model struct {
	Name   string
	Window int // context window in tokens; 0 if unknown
	Price  Price
	Skills Skills
}

// Chooser holds the models of one configuration and what was observed of them. Once in use it is
// immutable, except for what it learns, and safe for concurrent use.
type Chooser struct {
	Models  map[string]*Model // by name
	Speeds  *Speeds
	Lengths *lengths.Sketches
	Spent   *Accounts
	Intn    func(n int) int // returns a number in [0,n); safe for concurrent use
}

// Request is a request as the choice sees it.
type Request struct {
	Action *rules.Action // action of its route
	Set    *signal.Set   // facts and signals
	Named  string        // the model to use when the action names none
	Limit  int64         // the client's limit on response tokens; 0 if it set none
	Prompt Prompt
	// Expected holds the predictions for the candidates, in any order; empty if there are none.
	Expected []Expected
}

// Expected is what the outcomes of earlier requests predict for a model.
type Expected struct {
	Model      string
	Prior      float64 // quality according to the configuration, in [0,1]; 0.5 if it has none
	Everywhere float64 // predicted quality over all requests; not limited to [0,1]
	Quality    float64 // predicted quality of a response to this request, in [0,1]
	// Quality without what is uncertain for this request; compared when choosing by quality
	Sure      float64
	Deviation float64 // standard deviation of Quality
	Overall   float64 // standard deviation of Everywhere
	Tokens    float64 // expected response length; 0 if unknown
	Longest   float64 // length that 99 of 100 responses stay below; 0 if unknown
	Outcomes  float64 // weight of the model's outcomes used
	Near      float64 // weight of the outcomes of similar requests, times similarity
	// AtEfforts holds the predictions by effort, lowest first; Effort is the one that the other
	// fields refer to. Both are empty when outcomes do not choose the effort.
	AtEfforts  []AtEffort
	Effort     string
	ByOutcomes bool // Effort was chosen by outcomes; false if there are too few
	Drawn      bool // Effort was drawn, to explore
}

// Reason makes the fields refer to the effort at index i.
func (e *Expected) Reason(i int) {
	x := &e.AtEfforts[i]
	e.Effort, e.Quality, e.Sure, e.Deviation = x.Effort, x.Quality, x.Sure, x.Deviation
	if x.Tokens > 0 {
		e.Tokens, e.Longest = x.Tokens, x.Longest
	}
}

// expected returns the prediction for a model; nil when neither outcomes nor skills say anything
// about it.
func (r *Request) expected(m *Model) *Expected {
	if e := r.guess(m); e != nil && (e.Outcomes > 0 || m.Skills.known) {
		return e
	}
	return nil
}

// guess returns the prediction for a model if the tenant has outcomes of any model.
func (r *Request) guess(m *Model) *Expected {
	for i := range r.Expected {
		if e := &r.Expected[i]; e.Model == m.Name {
			return e
		}
	}
	return nil
}

// Prompt is what is known about the length of a request's prompt, or of its longest prompt, in
// tokens.
type Prompt struct {
	Estimate int            // made without a tokenizer; 0 means the tokens in the facts
	Least    int            // lower bound for any tokenizer
	Counted  map[string]int // by model, counted with the model's tokenizer
}

// Doubted reports whether the prompt probably does not fit into a window of that many tokens. This
// is not certain: repetitive text or white space may take far fewer tokens than estimated.
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

// fits determines whether the prompt fits into a model's window, using the model's own count if
// there is one.
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

// Rank lists the candidates of a request with all figures, in the order to try them. Repeated calls
// return the same order unless something was observed in between. Two things are left to Choose:
// weighted candidates are not drawn but stay in the order of the file, and no model is tried merely
// to measure its latency.
func (c *Chooser) Rank(r Request) []Candidate {
	cs := c.candidates(r)
	for i := range cs {
		c.weigh(&cs[i], r)
	}
	arrange(cs, r.Action)
	byRoom(cs)
	return cs
}

// Choose is Rank for a request that will be sent. Figures that do not matter for the order are
// zero. It allocates only its result.
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

// candidates lists the models of an action, in the order of the file. Models with too small a
// context window are left out. Those whose window is probably too small are left out if another
// candidate remains.
func (c *Chooser) candidates(r Request) []Candidate {
	n := max(1, len(r.Action.Models))
	cs := make([]Candidate, n)
	left := 0 // candidates that fit
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

// byRoom sorts candidates whose window is probably too small by window, largest first. They are
// only tried when no other candidate is.
func byRoom(cs []Candidate) {
	n := 0 // number of candidates to try, which come first
	for n < len(cs) && !cs[n].Out && cs[n].fit == doubtful {
		n++
	}
	slices.SortStableFunc(cs[:n], func(x, y Candidate) int {
		return cmp.Compare(y.model.Window, x.model.Window)
	})
}

// weigh sets the figures of a candidate.
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

// completion returns the expected response length of a model in tokens: the mean over requests in
// the same domain, capped by the limit that applies, which is the client's, or the route's when the
// client sets none or the route overrides it.
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

// arrange sorts candidates by the criterion of the action and records why each one is ranked lower.
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

// judge sets the class of a candidate that can be tried; best is the highest quality of all.
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

// These orders are strict: of two equal candidates neither is better, and the order of the file
// decides.

func asListed(x, y *Candidate) bool { return x.class < y.class }

// betterQuality prefers higher quality (see Expected.Sure), then a known cost, then the lower cost.
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

// sure returns Expected.Sure if there is a prediction, otherwise Quality.
func (c *Candidate) sure() float64 {
	if c.Expected != nil {
		return c.Expected.Sure
	}
	return c.Quality
}

// cheaper prefers the lower cost, then higher quality.
func cheaper(x, y *Candidate) bool { return less(x, y, x.Cost, y.Cost) }

// faster prefers the lower latency, then higher quality.
func faster(x, y *Candidate) bool { return less(x, y, x.Latency, y.Latency) }

// less prefers the lower figure, then higher quality; only quality when the figure cannot decide.
func less(x, y *Candidate, ofX, ofY float64) bool {
	switch {
	case x.class != y.class:
		return x.class < y.class
	case x.class == eligible && ofX != ofY:
		return ofX < ofY
	}
	return x.class != outside && x.Quality > y.Quality
}

// explore moves a good enough candidate whose latency is too little known to the front when its
// turn has come. The others keep their order.
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

// shuffle draws without replacement, with chances proportional to the weights.
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
