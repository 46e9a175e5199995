package affinity_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"signalbox/internal/testkit"
	"signalbox/proxy/affinity"
)

// stage is a placer with a clock and four endpoints.
type stage struct {
	*affinity.Placer
	*testkit.Clock
	t     *testing.T
	class affinity.Class
}

func newStage(t *testing.T, change func(o *affinity.Options, es []affinity.Endpoint)) *stage {
	t.Helper()
	o := affinity.DefaultOptions()
	o.Prefill = 100 * time.Microsecond
	es := make([]affinity.Endpoint, 4)
	for i := range es {
		es[i] = affinity.Endpoint{Name: fmt.Sprint("e", i), Weight: 1, Tokens: 100_000}
	}
	if change != nil {
		change(&o, es)
	}
	clock := testkit.NewClock()
	p, err := affinity.New(es, o, clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	return &stage{p, clock, t, (&affinity.Traits{Model: "m"}).Class()}
}

// request returns a prompt of 16 KiB, 4,096 tokens, made of the word and with the word as its key.
func (s *stage) request(word string) *affinity.Request {
	c := chainOf(text(word, 16<<10))
	h := affinity.Hints{Session: word}
	key, source := h.Key(s.class, nil, 0)
	return &affinity.Request{Class: s.class, Key: key, Source: source, Blocks: c.Blocks(), Bytes: c.Bytes(), Tokens: 4096}
}

func (s *stage) place(r *affinity.Request) *affinity.Ticket {
	s.t.Helper()
	k, ok := s.Place(s.Now(), r)
	if !ok {
		s.t.Fatal("no endpoint")
	}
	return &k
}

// serve runs a request to its end, with the given number of cached tokens reported.
func (s *stage) serve(r *affinity.Request, cached int) (k *affinity.Ticket, mispredicted bool) {
	s.t.Helper()
	k = s.place(r)
	s.Pass(100 * time.Millisecond)
	k.First(s.Now())
	s.Pass(100 * time.Millisecond)
	return k, k.End(s.Now(), affinity.Usage{Prompt: 4096, Cached: cached})
}

func TestWhatWasServedIsPredictedThere(t *testing.T) {
	s := newStage(t, nil)
	first, _ := s.serve(s.request("a"), 0)
	if first.Predicted != 0 || !first.Home {
		t.Errorf("first request: %d tokens predicted, home %t", first.Predicted, first.Home)
	}
	again := s.place(s.request("a"))
	if again.Endpoint != first.Endpoint || again.Predicted < 4000 || again.Basis != affinity.Confirmed {
		t.Errorf("second request: endpoint %d, %d tokens, %v; want %d, about 4096, confirmed", again.Endpoint, again.Predicted, again.Basis, first.Endpoint)
	}
}

func TestEveryPlacerFindsTheSameHome(t *testing.T) {
	a, b := newStage(t, nil), newStage(t, nil)
	homes := map[int]bool{}
	for i := range 50 {
		word := fmt.Sprint("w", i)
		x, y := a.place(a.request(word)), b.place(b.request(word))
		x.End(a.Now(), affinity.Usage{Failed: true})
		y.End(b.Now(), affinity.Usage{Failed: true})
		if x.Endpoint != y.Endpoint {
			t.Fatalf("%s: homes %d and %d", word, x.Endpoint, y.Endpoint)
		}
		homes[x.Endpoint] = true
	}
	if len(homes) != 4 {
		t.Errorf("50 keys have %d homes, want all 4 endpoints", len(homes))
	}
}

func TestBasesExpire(t *testing.T) {
	for _, c := range []struct {
		name  string
		serve func(s *stage, k *affinity.Ticket)
		hold  time.Duration
		basis affinity.Basis
	}{
		{"no answer yet", func(*stage, *affinity.Ticket) {}, 2 * time.Second, affinity.Speculative},
		{"answer begun", func(s *stage, k *affinity.Ticket) { k.First(s.Now()) }, 10 * time.Minute, affinity.Predicted},
		{"answer without usage", func(s *stage, k *affinity.Ticket) {
			k.First(s.Now())
			k.End(s.Now(), affinity.Usage{Cached: -1})
		}, 10 * time.Minute, affinity.Predicted},
		{"answer with usage", func(s *stage, k *affinity.Ticket) {
			k.First(s.Now())
			k.End(s.Now(), affinity.Usage{Prompt: 4096})
		}, 30 * time.Minute, affinity.Confirmed},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t, nil)
			c.serve(s, s.place(s.request("a")))
			probe := func() affinity.Ticket {
				k := *s.place(s.request("a"))
				k.End(s.Now(), affinity.Usage{Failed: true})
				return k
			}
			s.Pass(c.hold - 200*time.Millisecond)
			if k := probe(); k.Predicted == 0 || k.Basis != c.basis {
				t.Errorf("before %v: %d tokens, %v; want %v", c.hold, k.Predicted, k.Basis, c.basis)
			}
			s.Pass(4*time.Second + c.hold) // the probe was speculative as well
			if k := probe(); k.Predicted != 0 {
				t.Errorf("after %v: %d tokens predicted, %v", c.hold, k.Predicted, k.Basis)
			}
		})
	}
}

func TestARequestThatFailedLeavesNothing(t *testing.T) {
	failed := affinity.Usage{Failed: true}
	for name, tt := range map[string]struct {
		fail  func(s *stage, k *affinity.Ticket)
		basis affinity.Basis
	}{
		"refused": {func(s *stage, k *affinity.Ticket) { k.End(s.Now(), failed) }, affinity.Unknown},
		"refused beside one that is under way": {func(s *stage, _ *affinity.Ticket) {
			s.place(s.request("a")).End(s.Now(), failed)
		}, affinity.Speculative},
		"refused behind an answer": {func(s *stage, k *affinity.Ticket) {
			k.First(s.Now())
			k.End(s.Now(), affinity.Usage{Cached: -1})
			s.place(s.request("a")).End(s.Now(), failed)
		}, affinity.Predicted},
		"cut in the middle of the answer": {func(s *stage, k *affinity.Ticket) {
			k.First(s.Now())
			k.End(s.Now(), failed)
		}, affinity.Predicted},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, nil)
			tt.fail(s, s.place(s.request("a")))
			k := s.place(s.request("a"))
			if k.Basis != tt.basis || (k.Predicted > 0) != (tt.basis > affinity.Unknown) {
				t.Errorf("%d tokens are predicted, %v, want %v", k.Predicted, k.Basis, tt.basis)
			}
		})
	}
}

// Servers use another tokenizer than the estimate: the token counts in a response apply to every
// prompt with the same beginning.
func TestLengthsAreThoseThatAnswersTell(t *testing.T) {
	s := newStage(t, nil)
	for i := range 4 {
		s.BlockSize(i, 128)
	}
	r := s.request("a") // estimated at 4,096 tokens
	k := s.place(r)
	k.First(s.Now())
	k.End(s.Now(), affinity.Usage{Prompt: 6000, Cached: 0})
	if k = s.place(r); k.Predicted != 5888 {
		t.Errorf("the same again: %d tokens predicted, want 5888 of 6000", k.Predicted)
	}
	k.End(s.Now(), affinity.Usage{Failed: true})

	c := chainOf(text("a", 16<<10), text("b", 8<<10))
	longer := &affinity.Request{
		Class: s.class, Key: r.Key, Blocks: c.Blocks(), Bytes: c.Bytes(), Tokens: 6144,
	}
	if k = s.place(longer); k.Predicted != 5888 {
		t.Errorf("the next turn: %d tokens predicted, want 5888", k.Predicted)
	}
	k.First(s.Now())
	k.End(s.Now(), affinity.Usage{Prompt: 7000, Cached: 5888})
	if k = s.place(longer); k.Predicted != 6912 {
		t.Errorf("the next turn again: %d tokens predicted, want 6912 of 7000", k.Predicted)
	}
	if most := s.Most(k.Endpoint, r); most != 5888 {
		t.Errorf("of the first prompt %d tokens can be known, want 5888", most)
	}
}

func TestPredictionsAreWholeBlocks(t *testing.T) {
	s := newStage(t, nil)
	r := s.request("a")
	for i := range 4 {
		s.BlockSize(i, 128)
	}
	for name, tokens := range map[string]int{"short of a block": 130, "some blocks": 2305, "just whole ones": 2304} {
		r.Tokens = tokens
		k := s.place(r)
		k.First(s.Now())
		k.End(s.Now(), affinity.Usage{Prompt: tokens, Cached: -1})
		k = s.place(r)
		want := (tokens - 8) / 128 * 128
		if k.Predicted != want || s.Most(k.Endpoint, r) != want {
			t.Errorf("%s: %d of %d tokens predicted, %d at most, want %d", name, k.Predicted,
				tokens, s.Most(k.Endpoint, r), want)
		}
		if at := s.Held(s.Now(), r); want > 0 && (len(at) != 1 || at[0].Tokens != want) {
			t.Errorf("%s: held are %+v, want %d", name, at, want)
		}
		k.End(s.Now(), affinity.Usage{Failed: true})
	}
}

func TestConcurrentFirstsGoTogether(t *testing.T) {
	s := newStage(t, nil)
	first := s.place(s.request("a"))
	for i := range 5 {
		if k := s.place(s.request("a")); k.Endpoint != first.Endpoint || k.Basis != affinity.Speculative {
			t.Errorf("request %d of the same prompt went to %d, the first to %d", i, k.Endpoint, first.Endpoint)
		}
	}
	if q := s.Stats(first.Endpoint).Queued; q > 4096+6*512 {
		t.Errorf("%d tokens queued: the prompt is computed once", q)
	}
}

func TestAQueueAtHomeSendsRequestsToTheSecondHome(t *testing.T) {
	a, b := newStage(t, nil), newStage(t, nil)
	spill := func(s *stage) (home, second int) {
		home = s.place(s.request("a")).Endpoint
		for i := range 200 { // others of the same home fill it up
			if k := s.place(s.request(fmt.Sprint("other", i))); k.Endpoint != home {
				k.End(s.Now(), affinity.Usage{Failed: true})
			}
		}
		s.Pass(time.Hour) // so that nothing is held, but the queue stays
		k := s.place(s.request("a"))
		if k.Home || k.Endpoint == home {
			s.t.Errorf("%d tokens queued at home, and the request went there", s.Stats(home).Queued)
		}
		return home, k.Endpoint
	}
	h1, s1 := spill(a)
	h2, s2 := spill(b)
	if h1 != h2 || s1 != s2 {
		t.Errorf("homes %d and %d, second homes %d and %d", h1, h2, s1, s2)
	}
}

func TestSmallSavingsDoNotLeadAway(t *testing.T) {
	for _, c := range []struct {
		penalty float64 // seconds, at home
		home    bool
	}{{0, true}, {0.049, true}, {0.2, false}} {
		s := newStage(t, func(o *affinity.Options, _ []affinity.Endpoint) { o.Prior = 0 })
		home := s.place(s.request("a"))
		home.End(s.Now(), affinity.Usage{Failed: true})
		s.Pass(time.Minute)
		r := s.request("a")
		r.Penalty = make([]float64, 4)
		r.Penalty[home.Endpoint] = c.penalty
		if k := s.place(r); k.Home != c.home {
			t.Errorf("%v seconds against the home: stays %t, want %t", c.penalty, k.Home, c.home)
		}
	}
}

func TestAHomeIsBelievedToHaveNothingThatIsKnownToBeElsewhere(t *testing.T) {
	against := func(i int, seconds float64) []float64 {
		penalty := make([]float64, 4)
		penalty[i] = seconds
		return penalty
	}
	s := newStage(t, nil)
	home := s.place(s.request("a"))
	home.End(s.Now(), affinity.Usage{Failed: true})
	s.Pass(time.Minute)
	away := s.request("a")
	away.Penalty = against(home.Endpoint, 10)
	holder, _ := s.serve(away, 0)
	if holder.Home {
		t.Fatal("10 s against the home, and the request went there")
	}
	// Computing the prompt takes 0.4 s, which counts twice. With a quarter of it assumed to be
	// cached, home would be as good.
	r := s.request("a")
	r.Penalty = against(holder.Endpoint, 0.6)
	if k := s.place(r); k.Endpoint != holder.Endpoint {
		t.Errorf("endpoint %d has the prompt, and %d was picked (home: %t)", holder.Endpoint, k.Endpoint, k.Home)
	}
	r = s.request("b")
	first := s.place(r)
	first.End(s.Now(), affinity.Usage{Failed: true})
	s.Pass(time.Minute)
	r.Penalty = against(first.Endpoint, 0.1)
	if k := s.place(r); !k.Home {
		t.Error("what nobody is known to have is not looked for at home")
	}
}

// Sessions that share most of their prompts each get an endpoint of their own: the first endpoint
// with the shared part must not get all of them while others are idle.
func TestSessionsWithACommonPromptSpread(t *testing.T) {
	for _, sizes := range []struct{ common, own, running int }{{2048, 952, 10}, {2048, 952, 20}, {8192, 1808, 40}} {
		s := newStage(t, func(o *affinity.Options, _ []affinity.Endpoint) { o.Prefill = affinity.DefaultOptions().Prefill })
		common := text("system", sizes.common)
		var running []*affinity.Ticket
		var count [4]int
		for i := range 600 {
			name := fmt.Sprint("session", i)
			c := chainOf(common, text(name, sizes.own))
			h := affinity.Hints{Session: name}
			key, _ := h.Key(s.class, nil, 0)
			k := s.place(&affinity.Request{Class: s.class, Key: key, Blocks: c.Blocks(), Bytes: c.Bytes()})
			count[k.Endpoint]++
			running = append(running, k)
			if len(running) > sizes.running {
				running[0].End(s.Now(), affinity.Usage{})
				running = running[1:]
			}
			s.Pass(100 * time.Millisecond)
			k.First(s.Now())
		}
		if slices.Max(count[:]) > 400 {
			t.Errorf("%d common bytes, %d running at once: %v requests by endpoint", sizes.common, sizes.running, count)
		}
	}
}

// A prompt that went elsewhere while its home was busy must not be computed again at home without a
// gain.
func TestAPromptStaysWhereItIsOnceItLeftHome(t *testing.T) {
	for _, c := range []struct {
		penalty float64 // seconds, at the holder; computing at home takes 0.4 s, which counts twice
		stays   bool
	}{{0, true}, {0.78, true}, {0.86, true}, {1.1, false}} {
		s := newStage(t, nil)
		home := s.place(s.request("a"))
		home.End(s.Now(), affinity.Usage{Failed: true})
		s.Pass(time.Minute)
		away := s.request("a")
		away.Penalty = make([]float64, 4)
		away.Penalty[home.Endpoint] = 10
		holder, _ := s.serve(away, 0)
		if holder.Home {
			t.Fatal("10 s against the home, and the request went there")
		}
		r := s.request("a")
		r.Penalty = make([]float64, 4)
		r.Penalty[holder.Endpoint] = c.penalty
		if k := s.place(r); (k.Endpoint == holder.Endpoint) != c.stays || !c.stays && !k.Home {
			t.Errorf("%v s against the holder: endpoint %d (home: %t), the holder is %d", c.penalty, k.Endpoint, k.Home, holder.Endpoint)
		}
	}
}

func TestEndpointsThatAreRuledOutGetNothing(t *testing.T) {
	s := newStage(t, nil)
	r := s.request("a")
	r.Penalty = make([]float64, 4)
	for left := 4; left > 0; left-- {
		k := s.place(r)
		if math.IsInf(r.Penalty[k.Endpoint], 1) {
			t.Fatalf("endpoint %d is ruled out", k.Endpoint)
		}
		r.Penalty[k.Endpoint] = math.Inf(1)
	}
	if _, ok := s.Place(s.Now(), r); ok {
		t.Error("placed although all are ruled out")
	}
}

func TestTooFewCachedTokensShortenTheChain(t *testing.T) {
	for _, c := range []struct {
		cached       int
		mispredicted bool
		least, most  int // predicted afterwards
	}{
		{4080, false, 4000, 4096},
		{2100, false, 4000, 4096},
		{2000, true, 1700, 2000},
		{0, true, 0, 0},
	} {
		s := newStage(t, nil)
		s.serve(s.request("a"), 0)
		k, wrong := s.serve(s.request("a"), c.cached)
		if wrong != c.mispredicted {
			t.Errorf("%d of %d cached: mispredicted %t", c.cached, k.Predicted, wrong)
		}
		if next := s.place(s.request("a")); next.Predicted < c.least || next.Predicted > c.most {
			t.Errorf("after %d cached tokens %d are predicted, want %d to %d", c.cached, next.Predicted, c.least, c.most)
		}
	}
}

func TestARestartIsForgottenAtOnce(t *testing.T) {
	for _, c := range []struct {
		name string
		then affinity.Status
		want bool
	}{
		{"the same process", affinity.Status{Started: 1000.4, Queries: 60}, false},
		{"another process", affinity.Status{Started: 1050, Queries: 60}, true},
		{"a count that went back", affinity.Status{Started: 1000, Queries: 10}, true},
		{"a count that went back, without a time", affinity.Status{Queries: 10}, true},
	} {
		s := newStage(t, nil)
		k, _ := s.serve(s.request("a"), 0)
		if s.Observe(s.Now(), k.Endpoint, affinity.Status{Started: 1000, Queries: 50}) {
			t.Errorf("%s: the first look is a restart", c.name)
		}
		if got := s.Observe(s.Now(), k.Endpoint, c.then); got != c.want {
			t.Errorf("%s: restart %t", c.name, got)
		}
		if next := s.place(s.request("a")); (next.Predicted == 0) != c.want {
			t.Errorf("%s: %d tokens predicted afterwards", c.name, next.Predicted)
		}
	}
}

func TestTenantsShareNothing(t *testing.T) {
	s := newStage(t, nil)
	chain := chainOf(text("the same", 16<<10))
	var classes []affinity.Class
	for _, tenant := range []string{"a", "b", "c"} {
		classes = append(classes, (&affinity.Traits{Model: "m", Salt: affinity.Salt([]byte("k"), tenant, "")}).Class())
	}
	for i, one := range classes {
		r := &affinity.Request{Class: one, Key: 1, Blocks: chain.Blocks(), Bytes: chain.Bytes(), Tokens: 4096}
		if k, _ := s.serve(r, 0); k.Predicted != 0 {
			t.Errorf("tenant %d finds %d tokens of those before it", i, k.Predicted)
		}
		if k, _ := s.serve(r, 4096); k.Predicted == 0 {
			t.Errorf("tenant %d does not find its own", i)
		}
	}
}

// wire is a board that notifies one placer.
type wire struct {
	to  *affinity.Placer
	now func() time.Time
}

func (w *wire) Publish(r affinity.Residence) { w.to.Learn(w.now(), r) }

func TestOtherProxiesLearnWhoHasAPrompt(t *testing.T) {
	b := newStage(t, nil)
	a := newStage(t, func(o *affinity.Options, _ []affinity.Endpoint) { o.Board = &wire{b.Placer, b.Now} })
	r := a.request("a")
	home := a.place(r)
	home.End(a.Now(), affinity.Usage{Failed: true})
	a.Pass(time.Minute)
	away := *r
	away.Penalty = make([]float64, 4)
	away.Penalty[home.Endpoint] = 10
	k, _ := a.serve(&away, 0)
	if k.Home {
		t.Fatal("the request stayed at home")
	}
	if got := b.place(r); got.Endpoint != k.Endpoint || got.Predicted == 0 {
		t.Errorf("the other proxy went to %d with %d tokens predicted, want %d", got.Endpoint, got.Predicted, k.Endpoint)
	}
	if _, wrong := a.serve(&away, 0); !wrong {
		t.Fatal("no misprediction")
	}
	b.Pass(time.Minute) // what it did itself was speculative and has expired
	if got := b.place(r); got.Predicted != 0 {
		t.Errorf("%d tokens are still predicted after it was withdrawn", got.Predicted)
	}
}

func TestAHotKeyGetsMoreHomes(t *testing.T) {
	for _, c := range []struct{ homes, least, most int }{{1, 1, 1}, {2, 2, 2}, {4, 2, 4}} {
		s := newStage(t, func(o *affinity.Options, es []affinity.Endpoint) {
			// leaving pays only for another home
			o.Homes, o.LeaveBy, o.Prefill = c.homes, time.Hour, 20*time.Microsecond
			for i := range es {
				es[i].Seats = 2
			}
		})
		used := map[int]int{}
		var open []*affinity.Ticket
		for range 600 {
			k := s.place(s.request("hot"))
			used[k.Endpoint]++
			s.Pass(20 * time.Millisecond)
			k.First(s.Now())
			if open = append(open, k); len(open) > 6 { // an answer takes 140 ms: seven seats
				open[0].End(s.Now(), affinity.Usage{Prompt: 4096, Cached: 4080})
				open = open[1:]
			}
		}
		if len(used) < c.least || len(used) > c.most {
			t.Errorf("with %d homes at most, requests went to %v", c.homes, used)
		}
	}
}

func TestRequestsWithoutAKeyAreSpread(t *testing.T) {
	s := newStage(t, nil)
	used := map[int]int{}
	for range 400 {
		k := s.place(&affinity.Request{Class: s.class, Tokens: 20})
		used[k.Endpoint]++
		k.End(s.Now(), affinity.Usage{Cached: -1})
	}
	for i := range 4 {
		if used[i] < 60 {
			t.Errorf("400 short prompts went to %v", used)
		}
	}
}

func TestLoadGoesBackToNothing(t *testing.T) {
	s := newStage(t, nil)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 100 {
				k, _ := s.Place(s.Now(), s.request(fmt.Sprint(i%7)))
				if i%3 > 0 {
					k.First(s.Now())
					k.First(s.Now())
				}
				k.End(s.Now(), affinity.Usage{Prompt: 4096, Cached: (g + i) % 4096, Failed: i%5 == 0})
				k.End(s.Now(), affinity.Usage{})
			}
		})
	}
	wg.Wait()
	placed := int64(0)
	for i := range 4 {
		st := s.Stats(i)
		placed += st.Placed
		if st.Queued != 0 || st.Running != 0 {
			t.Errorf("%s: %d tokens queued, %d requests running after all have ended", st.Name, st.Queued, st.Running)
		}
	}
	if placed != 800 {
		t.Errorf("%d requests placed, want 800", placed)
	}
}

func TestZeroTicketsDoNothing(*testing.T) {
	var k affinity.Ticket
	k.First(time.Now())
	k.End(time.Now(), affinity.Usage{})
}

func TestOptionsAreChecked(t *testing.T) {
	for _, c := range []struct {
		change func(o *affinity.Options, es []affinity.Endpoint) []affinity.Endpoint
		want   string
	}{
		{func(o *affinity.Options, es []affinity.Endpoint) []affinity.Endpoint { o.Prefill = 0; return es }, "prefill"},
		{func(o *affinity.Options, es []affinity.Endpoint) []affinity.Endpoint { o.Leave = math.NaN(); return es }, "leave"},
		{func(o *affinity.Options, es []affinity.Endpoint) []affinity.Endpoint { o.Prior = 2; return es }, "prior"},
		{func(o *affinity.Options, es []affinity.Endpoint) []affinity.Endpoint {
			o.Homes, o.Hot = 0, 0
			return es
		}, "homes"},
		{func(_ *affinity.Options, es []affinity.Endpoint) []affinity.Endpoint { return append(es, es[0]) }, "taken"},
		{func(_ *affinity.Options, es []affinity.Endpoint) []affinity.Endpoint { es[0].Weight = 0; return es }, "weight"},
		{func(*affinity.Options, []affinity.Endpoint) []affinity.Endpoint { return nil }, "0 endpoints"},
		{func(*affinity.Options, []affinity.Endpoint) []affinity.Endpoint { return make([]affinity.Endpoint, 65) }, "65 endpoints"},
	} {
		o, es := affinity.DefaultOptions(), []affinity.Endpoint{{Name: "a", Weight: 1}, {Name: "b", Weight: 1}}
		es = c.change(&o, es)
		if _, err := affinity.New(es, o, time.Now()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one about %s", err, c.want)
		}
	}
}

func TestPlacingDoesNotAllocate(t *testing.T) {
	s := newStage(t, nil)
	r := s.request("a")
	s.serve(r, 0)
	if n := testing.AllocsPerRun(200, func() {
		k, _ := s.Place(s.Now(), r)
		k.First(s.Now())
		k.End(s.Now(), affinity.Usage{Prompt: 4096, Cached: 4000})
	}); n > 0 {
		t.Errorf("%v allocations a request", n)
	}
}

// BenchmarkRequest measures everything that a request costs, from its text to its end, with eight
// endpoints.
func BenchmarkRequest(b *testing.B) {
	es := make([]affinity.Endpoint, 8)
	for i := range es {
		es[i] = affinity.Endpoint{Name: fmt.Sprint(i), Weight: 1}
	}
	now := time.Unix(1000, 0)
	class := (&affinity.Traits{Model: "m"}).Class()
	body := text("contract", 600<<10)
	stored := chainOf(body)
	for _, c := range []struct {
		name  string
		write func(c *affinity.Chain)
	}{
		{"body=600KiB", func(c *affinity.Chain) { c.Reset(); c.Message("system", body); c.Message("user", "and now?") }},
		{"pointer=600KiB", func(c *affinity.Chain) { c.Resume(stored); c.Message("user", "and now?") }},
	} {
		b.Run(c.name, func(b *testing.B) {
			p, err := affinity.New(es, affinity.DefaultOptions(), now)
			if err != nil {
				b.Fatal(err)
			}
			var chain affinity.Chain
			r := affinity.Request{Class: class, Key: 1}
			b.ReportAllocs()
			for b.Loop() {
				c.write(&chain)
				r.Blocks, r.Bytes, r.Tokens = chain.Blocks(), chain.Bytes(), chain.Bytes()/4
				k, _ := p.Place(now, &r)
				k.First(now)
				k.End(now, affinity.Usage{Prompt: r.Tokens, Cached: r.Tokens})
			}
		})
		b.Run(c.name+"/place", func(b *testing.B) {
			p, _ := affinity.New(es, affinity.DefaultOptions(), now)
			var chain affinity.Chain
			c.write(&chain)
			r := affinity.Request{Class: class, Key: 1, Blocks: chain.Blocks(), Bytes: chain.Bytes()}
			b.ReportAllocs()
			for b.Loop() {
				k, _ := p.Place(now, &r)
				k.End(now, affinity.Usage{Failed: true})
			}
		})
	}
}
