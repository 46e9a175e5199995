package choose

import (
	"math"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"signalbox/internal/testkit"
)

func expects(t *testing.T, s *Speeds, model string, tokens, want float64) {
	t.Helper()
	if got, ok := s.Expect(model, tokens); !ok || math.Abs(got-want) > 1e-6 {
		t.Errorf("%v tokens of %s are expected in %v s (%v), want %v s", tokens, model, got, ok, want)
	}
}

func TestAnswersTeachHowLongAnswersTake(t *testing.T) {
	t.Parallel()
	c := testkit.NewClock()
	s := NewSpeeds(c.Now)
	if _, ok := s.Expect("a", 100); ok {
		t.Error("a model that never answered has a latency")
	}
	s.Observe("a", Taken{First: time.Second, Total: 3 * time.Second, Tokens: 101})
	expects(t, s, "a", 100, 3)
	expects(t, s, "a", 200, 5)
	s.Observe("a", Taken{Total: 5 * time.Second, Tokens: 200}) // no stream: what is known of the first token is taken off
	expects(t, s, "a", 100, 3)
	c.Pass(speedHalfLife)
	s.Observe("a", Taken{First: 4 * time.Second, Total: 4 * time.Second, Tokens: 1})
	expects(t, s, "a", 0, (0.5*1+1*4)/1.5)
	s.Observe("b", Taken{Total: 10 * time.Second, Tokens: 100})
	expects(t, s, "b", 100, 10)
	s.Observe("c", Taken{Total: 4 * time.Second}) // without usage
	expects(t, s, "c", assumedCompletion, 4)
	s.Observe("odd", Taken{First: 2 * time.Second, Total: time.Second, Tokens: 1})
	expects(t, s, "odd", 100, 2)
}

func TestWaitingInVainOnlyRaisesWhatIsExpected(t *testing.T) {
	t.Parallel()
	c := testkit.NewClock()
	s := NewSpeeds(c.Now)
	s.Observe("a", Taken{Total: 10 * time.Second, Tokens: assumedCompletion})
	s.InVain("a", 2*time.Second)
	expects(t, s, "a", assumedCompletion, 10)
	s.InVain("a", 80*time.Second)
	s.InVain("a", 30*time.Second)
	expects(t, s, "a", assumedCompletion, 80)
	c.Pass(speedHalfLife)
	s.InVain("a", 20*time.Second)
	expects(t, s, "a", assumedCompletion, 40)
}

func TestAnswersMakeAWaitInVainForgotten(t *testing.T) {
	t.Parallel()
	c := testkit.NewClock()
	s := NewSpeeds(c.Now)
	answer := Taken{First: time.Second, Total: 2 * time.Second, Tokens: 101}
	s.Observe("a", answer)
	s.InVain("a", time.Minute)
	s.Observe("a", answer)
	expects(t, s, "a", 100, 30)
	c.Pass(speedHalfLife)
	s.Observe("a", answer)
	expects(t, s, "a", 100, 7.5)
	c.Pass(time.Hour)
	s.Observe("a", answer)
	expects(t, s, "a", 100, 2)
}

func TestWaitingInVainIsNoFirstObservation(t *testing.T) {
	t.Parallel()
	c := testkit.NewClock()
	s := NewSpeeds(c.Now)
	s.Explore("new")
	s.InVain("new", time.Millisecond)
	if got, ok := s.Expect("new", 100); ok {
		t.Errorf("a model that never answered is expected to take %v s", got)
	}
	c.Pass(exploreEvery)
	for i := range exploreShare {
		if got := s.Explore("new"); got != (i == exploreShare-1) {
			t.Errorf("request %d after one in vain explores: %v", i+1, got)
		}
	}
}

func TestWholeAnswersOfSeveralLengthsTellTheFixedTimeFromThatOfATokenApart(t *testing.T) {
	t.Parallel()
	c := testkit.NewClock()
	s := NewSpeeds(c.Now)
	took := func(tokens int64) Taken {
		return Taken{Total: 2*time.Second + time.Duration(tokens)*10*time.Millisecond, Tokens: tokens}
	}
	for range 50 {
		s.Observe("a", took(10))
		s.Observe("a", took(1000))
		c.Pass(time.Second)
	}
	for _, tokens := range []int64{0, 10, 256, 2000} {
		if got, ok := s.Expect("a", float64(tokens)); !ok || math.Abs(got-took(tokens).Total.Seconds()) > 0.01 {
			t.Errorf("%d tokens are expected in %v s (%v), they take %v", tokens, got, ok, took(tokens).Total)
		}
	}
}

func TestAShortWholeAnswerDoesNotMakeAModelSlow(t *testing.T) {
	t.Parallel()
	s := NewSpeeds(testkit.NewClock().Now)
	for range 10 {
		s.Observe("short", Taken{Total: time.Second, Tokens: 2})
		s.Observe("long", Taken{Total: 10 * time.Second, Tokens: 256})
	}
	short, _ := s.Expect("short", 256)
	long, _ := s.Expect("long", 256)
	if short >= long || short <= 1 {
		t.Errorf("256 tokens are expected in %v s of the one that gave short answers, in %v s of the other", short, long)
	}
}

func TestWhatIsExpectedIsNeverNegativeAndGrowsWithTheLength(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := testkit.NewClock()
		s := NewSpeeds(c.Now)
		for range rapid.IntRange(1, 8).Draw(t, "answers") {
			c.Pass(secondsOf(rapid.Float64Range(0, 1e5).Draw(t, "pause")))
			first := rapid.SampledFrom([]float64{0, 0, 0.1, 3}).Draw(t, "first")
			s.Observe("a", Taken{
				First: secondsOf(first), Total: secondsOf(rapid.Float64Range(0, 100).Draw(t, "total")),
				Tokens: rapid.Int64Range(0, 1e5).Draw(t, "tokens"),
			})
			if rapid.Bool().Draw(t, "given up") {
				s.InVain("a", secondsOf(rapid.Float64Range(0, 100).Draw(t, "wait")))
			}
			few, _ := s.Expect("a", 10)
			many, ok := s.Expect("a", 1000)
			if !ok || !(few >= 0) || !(many >= few) || math.IsInf(many, 0) {
				t.Fatalf("10 tokens in %v s, 1000 in %v s (%v)", few, many, ok)
			}
		}
	})
}

func TestAnAnswerOfYesterdayIsForgotten(t *testing.T) {
	t.Parallel()
	c := testkit.NewClock()
	s := NewSpeeds(c.Now)
	s.Observe("a", Taken{Total: time.Second})
	c.Pass(17 * time.Hour) // what is left of the first answer is 2^-1020
	s.Observe("a", Taken{First: 100 * time.Millisecond, Total: 2 * time.Second, Tokens: 1})
	if got, ok := s.Expect("a", 1000); !ok || got > 100 {
		t.Errorf("1000 tokens in %v s (%v)", got, ok)
	}
}

func TestExploringIsRare(t *testing.T) {
	t.Parallel()
	c := testkit.NewClock()
	s := NewSpeeds(c.Now)
	if !s.Explore("a") || s.Explore("a") {
		t.Error("of the first requests to a new model, one explores")
	}
	c.Pass(exploreEvery)
	if !s.Explore("a") {
		t.Error("a model that still has not answered gets another try")
	}
	s.Observe("a", Taken{Total: time.Second, Tokens: 10})
	c.Pass(10 * exploreEvery)
	n := 0
	for range 10 * exploreShare {
		if s.Explore("a") {
			n++
		}
	}
	if n != 1 {
		t.Errorf("in one moment, %d of %d requests explore", n, 10*exploreShare)
	}
	n = 0
	for range 10 * exploreShare {
		c.Pass(exploreEvery)
		if s.Explore("a") {
			n++
		}
	}
	if n != 10 {
		t.Errorf("of %d slow requests %d explore", 10*exploreShare, n)
	}
}

func TestSpeedsAreSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	s := NewSpeeds(time.Now)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 200 {
				name := string(rune('a' + i%5))
				s.Observe(name, Taken{First: time.Second, Total: 2 * time.Second, Tokens: 11})
				s.Expect(name, 100)
				s.Explore(name)
				s.InVain(name, time.Second)
			}
		})
	}
	wg.Wait()
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		if got, ok := s.Expect(name, 10); !ok || math.Abs(got-2) > 1e-6 {
			t.Errorf("%s: %v s, %v", name, got, ok)
		}
	}
}

func TestObservingAllocatesNothing(t *testing.T) {
	s := NewSpeeds(time.Now)
	s.Observe("a", Taken{Total: time.Second, Tokens: 10})
	if n := testing.AllocsPerRun(100, func() {
		s.Observe("a", Taken{First: time.Second, Total: 2 * time.Second, Tokens: 10})
		s.Expect("a", 100)
		s.Explore("a")
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func secondsOf(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
