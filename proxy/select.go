package proxy

import (
	"signalbox/internal/signal"
	"signalbox/rules"
)

// candidate is a model that a request could go to, with what the choice among them looks at.
type candidate struct {
	Name    string
	Quality float64 // expected share of right answers, in [0,1]; negative when not known
	Cost    float64 // expected price of prompt and completion in USD; negative when not known
	Latency float64 // expected time to the end of the completion in seconds; negative when not known
	Left    string  // why it stands behind others or is left out; empty otherwise
	Out     bool    // it is not tried at all

	model  *model // nil when no such model is configured
	weight int
	class  class
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

// The words of candidate.Left.
const (
	leftWindow  = "its context window is too small for the prompt"
	leftAbsent  = "it is not configured"
	leftSkills  = "its quality is not known"
	leftQuality = "its quality is below the margin"
	leftPrice   = "its price is not known"
	leftSpeed   = "no answer of it was observed yet"
)

// assumedCompletion is the length of an answer, in tokens, of a model that has not given any yet. It
// is an assumption; what models are compared by changes little with it, since it is the same for all.
const assumedCompletion = 256

// closeEnough keeps rounding out of comparisons of quality, whose figures have few digits.
const closeEnough = 1e-9

// rank lists the candidates of a decision with all their figures, in the order to try them. The same
// request meets the same order as long as nothing was observed in between, but for two things that
// belong to requests that are sent: weighted candidates, which are drawn for each of them, come in
// the order of the file, and no model is tried just to learn its latency.
func (st *State) rank(d *decision) []candidate {
	cs := st.candidates(d)
	for i := range cs {
		st.weigh(&cs[i], d)
	}
	arrange(cs, d.Action)
	return cs
}

// choose is rank for a request that is sent. Figures that do not decide are left at zero.
func (st *State) choose(d *decision) []candidate {
	cs := st.candidates(d)
	switch d.Action.By {
	case "weight":
		shuffle(cs, st.intn)
	case "quality", "cost", "latency":
		for i := range cs {
			st.weigh(&cs[i], d)
		}
	}
	arrange(cs, d.Action)
	if d.Action.By == "latency" {
		st.explore(cs)
	}
	return cs
}

// candidates lists what a decision names, in the order of the file. Models whose context window is
// certainly too small are marked.
func (st *State) candidates(d *decision) []candidate {
	n := max(1, len(d.Action.Models))
	cs := make([]candidate, n)
	for i := range cs {
		c := &cs[i]
		if c.Name, c.weight = d.model, 1; len(d.Action.Models) > 0 {
			c.Name, c.weight = d.Action.Models[i].Name, d.Action.Models[i].Weight
		}
		c.model = st.byName[c.Name]
		switch m := c.model; {
		case m == nil:
			c.Left, c.Out = leftAbsent, true
		case m.window > 0 && float64(d.set.Facts.Tokens) > slack*float64(m.window):
			c.Left, c.Out = leftWindow, true
		}
	}
	return cs
}

// weigh fills in the figures of a candidate.
func (st *State) weigh(c *candidate, d *decision) {
	c.Quality, c.Cost, c.Latency = unknown, unknown, unknown
	if c.model == nil {
		return
	}
	domain := &d.set.Values[signal.Domain]
	c.Quality = c.model.skills.quality(domain)
	completion := st.completion(c.model, d)
	if p := c.model.price; p.known() {
		c.Cost = (float64(d.set.Facts.Tokens)*p.Input + completion*p.Output) / 1e6
	}
	if seconds, ok := st.speeds.expect(c.Name, completion); ok {
		c.Latency = seconds
	}
}

// completion is the expected length of a model's answer in tokens: the mean of those it gave to
// requests of the same domain, as far as the route's own limit lets them grow.
func (st *State) completion(m *model, d *decision) float64 {
	n := float64(assumedCompletion)
	if mean, ok := st.lengths.mean(m.name, d.set.Values[signal.Domain].Label); ok {
		n = mean
	}
	if limit := d.Action.MaxTokens.Limit; limit > 0 {
		n = min(n, float64(limit))
	}
	return n
}

// arrange orders candidates by what the action asks for, and says of each why it is not the first.
func arrange(cs []candidate, a *rules.Action) {
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
	var better func(x, y *candidate) bool
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
func (c *candidate) judge(a *rules.Action, best float64) {
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

func asListed(x, y *candidate) bool { return x.class < y.class }

// betterQuality prefers quality, then the lower known cost.
func betterQuality(x, y *candidate) bool {
	switch {
	case x.class != y.class:
		return x.class < y.class
	case x.Quality != y.Quality:
		return x.Quality > y.Quality
	}
	return x.Cost >= 0 && y.Cost >= 0 && x.Cost < y.Cost
}

// cheaper prefers the lower cost, then quality; quality alone among those that costs cannot order.
func cheaper(x, y *candidate) bool {
	switch {
	case x.class != y.class:
		return x.class < y.class
	case x.class == eligible && x.Cost != y.Cost:
		return x.Cost < y.Cost
	}
	return x.class != outside && x.Quality > y.Quality
}

// faster prefers the shorter time, then quality; quality alone among those that times cannot order.
func faster(x, y *candidate) bool {
	switch {
	case x.class != y.class:
		return x.class < y.class
	case x.class == eligible && x.Latency != y.Latency:
		return x.Latency < y.Latency
	}
	return x.class != outside && x.Quality > y.Quality
}

// explore puts a candidate first that is good enough and of whose latency too little is known, when
// its turn has come. The others follow as they were.
func (st *State) explore(cs []candidate) {
	for i := range cs {
		if cs[i].class > unmetered || i == 0 && cs[i].class == eligible {
			continue // the fastest is observed anyway
		}
		if st.speeds.explore(cs[i].Name) {
			chosen := cs[i]
			copy(cs[1:i+1], cs[:i])
			cs[0] = chosen
			return
		}
	}
}

// shuffle draws without replacement, with the chances of each draw proportional to the weights.
func shuffle(cs []candidate, intn func(n int) int) {
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
