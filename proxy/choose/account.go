package choose

import (
	"math"
	"sync"
)

// Accounts keep what was given up of the expected quality, by whom it is given up for: a tenant, or
// a tenant and a model. They are bounded, and what is forgotten begins anew. An Accounts is safe for
// concurrent use; its lock is a leaf.
type Accounts struct {
	mu    sync.Mutex // guards what follows
	byKey map[string]*account
	clock uint64
}

// NewAccounts makes empty ones.
func NewAccounts() *Accounts { return &Accounts{byKey: map[string]*account{}} }

// The bounds of accounts.
const (
	maxAccounts = 4096
	// window is about how many requests an account looks back.
	window = 500
	// credited is the part of what exploring may cost that each request is credited with. The rest
	// is for expectations that are wrong: what is lost, and not what is expected to be, shall stay
	// within the bound.
	credited = 0.5
	// kept is how many requests' cost an account holds at most.
	kept = 100
	// lent is how many requests' cost is lent besides, where skills prove to be wrong: lends times
	// the cost of one for each request, and the quality by which the model that skills praise falls
	// short of them beyond shortBy standard deviations.
	lent    = 200
	lends   = 20
	shortBy = 1
)

// thresholds are how fine the loss is told that a request may have: from -1 to 1, finer near 0.
const thresholds = 129

func thresholdAt(i int) float64 {
	x := 2*float64(i)/(thresholds-1) - 1
	return x * math.Abs(x)
}

// account is what one key gave up.
type account struct {
	left  float64             // of what exploring may cost, in quality times requests
	lent  float64             // of left, as skills proved to be wrong
	spent [thresholds]float64 // by threshold: what less reasoning would have cost so far
	seen  float64             // requests in spent; both fade
	used  uint64
}

// of finds or makes an account. mu is held.
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

// forget drops the account that was not used for the longest time.
func (a *Accounts) forget() {
	oldest, used := "", uint64(math.MaxUint64)
	for k, x := range a.byKey {
		if x.used < used {
			oldest, used = k, x.used
		}
	}
	delete(a.byKey, oldest)
}

// AtEffort is what outcomes let one expect of a model at one effort of reasoning.
type AtEffort struct {
	Effort    string
	Quality   float64 // in [0,1]
	Sure      float64 // see Expected
	Deviation float64 // standard deviation of Quality
	Tokens    float64 // expected length of the answer; 0 when not known
	Longest   float64 // that 99 of 100 answers stay below; 0 when not known
	Judged    float64 // outcomes at the effort that it was made of, by their weights
	Near      float64 // those of near requests, by weight and nearness
	// Calibrated: by how much Quality differs from that of other calibrated efforts was measured. The
	// standard error of that is at most the Doubt of both together.
	Calibrated bool
	Doubt      float64
}

// doubts is what is added at most to the loss that less reasoning is expected to bring, over
// doubtedNear and the near outcomes that are known: 0.03 with 5 of them, 0.008 with 40.
// Chosen on five pairs of models of MMLU-Pro that stood for efforts: without it they lost up to 0.8
// points where 0.5 were allowed, with it 0.1, of subjects with outcomes.
const (
	doubts      = 0.4
	doubtedNear = 8
)

// choice are the efforts of a request that outcomes say enough of.
type choice struct {
	es     []AtEffort
	enough float64 // near outcomes that an effort needs
	top    int     // the greatest of them
	risks  [maxEfforts]float64
}

// maxEfforts is how many efforts there are at most; see package reasoning.
const maxEfforts = 8

// choiceOf reports whether there are two at least.
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

// risk is what effort e is expected to lose against the best of the others, with a margin for doubt;
// below 0 where it is expected to be the better one by more than that. The greatest effort has none:
// it is what would be asked for.
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

// least is the least effort with a risk of at most t; the greatest where none has.
func (c *choice) least(t float64) int {
	for i := range c.es {
		if c.es[i].Near >= c.enough && c.risks[i] <= t {
			return i
		}
	}
	return c.top
}

// Least is the least effort, of those that outcomes say enough of, that loses no more than is
// allowed: of the requests of an account, together with this one, the mean of what is expected to
// be lost, with a margin for doubt, is at most loss. es are in the order of the efforts, the least
// first, and those with less than enough near outcomes say nothing. The result is -1 where fewer
// than two say something.
//
// Which requests lose something is chosen by a threshold that is the same for all of them: the
// greatest at which the requests before would have lost little enough.
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

// Count makes a request one of those of an account, for Least.
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
