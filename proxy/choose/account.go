package choose

import (
	"math"
	"sync"
)

// Accounts track how much expected quality was given up, per tenant or per tenant and model. Their
// number is limited; a forgotten account starts anew. An Accounts is safe for concurrent use; its
// lock is a leaf.
type Accounts struct {
	mu    sync.Mutex // guards the fields below
	byKey map[string]*account
	clock uint64
}

// NewAccounts returns an empty set of accounts.
func NewAccounts() *Accounts { return &Accounts{byKey: map[string]*account{}} }

// Limits of accounts.
const (
	maxAccounts = 4096
	// window is roughly how many requests an account looks back.
	window = 500
	// credited is the share of the allowed exploration cost that each request adds. The rest is a
	// reserve for wrong expectations: the actual loss must stay within the limit, not just the
	// expected one.
	credited = 0.5
	// kept is the maximum balance of an account, as a number of requests' cost.
	kept = 100
	// lent is the maximum that is lent in addition when skills prove wrong, as a number of
	// requests' cost. Each request is lent lends times its cost, times the quality by which the
	// model with the best skills falls short of them by more than shortBy standard deviations.
	lent    = 200
	lends   = 20
	shortBy = 1
)

// thresholds is the resolution of the loss of a request: values from -1 to 1, denser near 0.
const thresholds = 129

func thresholdAt(i int) float64 {
	x := 2*float64(i)/(thresholds-1) - 1
	return x * math.Abs(x)
}

// account is what was given up for one key.
type account struct {
	left  float64             // balance for exploration, in quality times requests
	lent  float64             // part of left that was lent because skills proved wrong
	spent [thresholds]float64 // by threshold: loss so far if it had been used
	seen  float64             // requests in spent; both decay
	used  uint64
}

// of returns the account of a key, creating it if needed. The caller holds mu.
func (a *Accounts) of(key string) *account {
	x := a.byKey[key]
	if x == nil {
		if len(a.byKey) >= maxAccounts {
			a.forget()
		}
		x = &account{}
		a.byKey[key] = x
	}
	a.clock++
	x.used = a.clock
	return x
}

// forget removes the least recently used account.
func (a *Accounts) forget() {
	oldest, used := "", uint64(math.MaxUint64)
	for k, x := range a.byKey {
		if x.used < used {
			oldest, used = k, x.used
		}
	}
	delete(a.byKey, oldest)
}

// AtEffort is what outcomes predict for a model at one effort.
type AtEffort struct {
	Effort    string
	Quality   float64 // in [0,1]
	Sure      float64 // see Expected
	Deviation float64 // standard deviation of Quality
	Tokens    float64 // expected length of the response; 0 if unknown
	Longest   float64 // length that 99 of 100 responses stay below; 0 if unknown
	Judged    float64 // weight of the outcomes at this effort
	Near      float64 // weight of the outcomes of similar requests, times similarity
	// Calibrated means that the difference between Quality and that of other calibrated efforts was
	// measured. Its standard error is at most the sum of both Doubts.
	Calibrated bool
	Doubt      float64
}

// doubts limits the margin added to the expected loss of less reasoning, divided by doubtedNear
// plus the number of similar outcomes: 0.03 with 5 of them, 0.008 with 40. It was chosen on five
// pairs of MMLU-Pro models that stood for efforts: for subjects with outcomes, without it they lost
// up to 0.8 points where 0.5 were allowed, with it 0.1.
const (
	doubts      = 0.4
	doubtedNear = 8
)

// choice holds the efforts of a request that have enough outcomes.
type choice struct {
	es     []AtEffort
	enough float64 // similar outcomes that an effort needs
	top    int     // index of the highest usable effort
	risks  [maxEfforts]float64
}

// maxEfforts is the maximum number of efforts; see package reasoning.
const maxEfforts = 8

// choiceOf reports whether at least two efforts are usable.
func choiceOf(es []AtEffort, enough float64) (choice, bool) {
	es = es[:min(len(es), maxEfforts)]
	c, usable := choice{es: es, enough: enough, top: -1}, 0
	for i := range es {
		if es[i].Near >= enough {
			c.top = i
			usable++
		}
	}
	for i := range es {
		if usable > 1 && es[i].Near >= enough {
			c.risks[i] = c.risk(i)
		}
	}
	return c, usable > 1
}

// risk returns the expected loss of effort e against the best other effort, plus a margin for
// doubt. It is negative when e is expected to be better by more than the margin. The highest effort
// has no risk, since it is the default.
func (c *choice) risk(e int) float64 {
	if e == c.top {
		return 0
	}
	best := c.top
	for i := range c.es {
		if i != e && c.es[i].Near >= c.enough && c.es[i].Quality > c.es[best].Quality {
			best = i
		}
	}
	x, y := &c.es[e], &c.es[best]
	margin := doubts / (doubtedNear + min(x.Near, y.Near))
	if x.Calibrated && y.Calibrated {
		margin = min(margin, x.Doubt+y.Doubt)
	}
	return y.Quality - x.Quality + margin
}

// least returns the lowest effort with a risk of at most t, or the highest one if there is none.
func (c *choice) least(t float64) int {
	for i := range c.es {
		if c.es[i].Near >= c.enough && c.risks[i] <= t {
			return i
		}
	}
	return c.top
}

// Least returns the index of the lowest effort with enough outcomes whose loss is acceptable: over
// the requests of the account and this one, the mean expected loss, with a margin for doubt, is at
// most loss. es is sorted by effort, lowest first; efforts with less than enough similar outcomes
// are ignored. The result is -1 when fewer than two remain.
//
// A single threshold decides for all requests which of them lose something: the highest one at
// which the earlier requests would have lost little enough.
func (a *Accounts) Least(key string, es []AtEffort, enough, loss float64) int {
	c, ok := choiceOf(es, enough)
	if !ok {
		return -1
	}
	allowed := loss // a request that loses no more needs no account
	a.mu.Lock()
	if x := a.byKey[key]; x != nil {
		for i := range x.spent {
			if t := thresholdAt(i); t > allowed && x.spent[i]+t <= loss*(x.seen+1) {
				allowed = t
			}
		}
	}
	a.mu.Unlock()
	return c.least(allowed)
}

// Count adds a request to an account, for Least.
func (a *Accounts) Count(key string, es []AtEffort, enough float64) {
	c, ok := choiceOf(es, enough)
	if !ok {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	x := a.of(key)
	const fade = 1 - 1./window
	x.seen = x.seen*fade + 1
	for i := range x.spent {
		x.spent[i] = x.spent[i]*fade + c.risks[c.least(thresholdAt(i))]
	}
}
