package redis

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"signalbox/internal/testkit"
	"signalbox/memory/ledger"
)

func TestTheLogSaysOnceThatRedisIsAwayAndThatItIsBack(t *testing.T) {
	t.Parallel()
	server, clock, log := testkit.NewRedis(t), testkit.NewClock(), &testkit.Log{}
	o := patient(server.URL())
	o.Failures, o.Now, o.Log = 2, clock.Now, slog.New(slog.NewTextHandler(log, nil))
	s := open(t, o)
	create(t, s, "t", "a", "x", 100)
	server.Stop()
	for range 3 {
		if _, err := s.Load(t.Context(), "t", "a"); err == nil {
			t.Fatal("a Redis that is gone answers")
		}
		clock.Pass(2 * time.Second)
	}
	if n := strings.Count(log.String(), "level=WARN msg=\"redis does not answer"); n != 1 || s.Healthy() {
		t.Errorf("that Redis is away is said %d times", n)
	}
	server.Start()
	for end := time.Now().Add(testkit.Patience); !s.Healthy(); clock.Pass(2 * time.Second) {
		_, _ = s.Load(t.Context(), "t", "a")
		if time.Now().After(end) {
			t.Fatal("Redis is not found again")
		}
	}
	if n := strings.Count(log.String(), "level=INFO msg=\"redis answers again"); n != 1 {
		t.Errorf("that Redis is back is said %d times", n)
	}
}

func TestARedisThatNobodyCallsIsSeenToGoAndToComeBack(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]struct{ leave, come func(*testkit.Redis) }{
		"stopped": {(*testkit.Redis).Stop, (*testkit.Redis).Start},
		"hanging": {(*testkit.Redis).Pause, (*testkit.Redis).Resume},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, log := testkit.NewRedis(t), &testkit.Log{}
			o := patient(server.URL())
			o.Failures, o.Rest, o.Look = 1, 10*time.Millisecond, 10*time.Millisecond
			o.Log = slog.New(slog.NewTextHandler(log, nil))
			s := open(t, o)
			ctx, stop := context.WithCancel(t.Context())
			watched := make(chan error, 1)
			go func() { watched <- s.Watch(ctx, func(ledger.News) {}, func() {}) }()
			defer func() {
				stop()
				if err := <-watched; err != nil {
					t.Error(err)
				}
			}()
			away.leave(server)
			testkit.Eventually(t, "it is seen to go", func() bool { return !s.Healthy() })
			away.come(server)
			testkit.Eventually(t, "it is seen to come back", s.Healthy)
			if n := strings.Count(log.String(), "level=WARN msg=\"redis does not answer"); n != 1 {
				t.Errorf("that Redis is away is said %d times", n)
			}
		})
	}
}

// Replicas that were started at once would greet Redis at once if they looked with the ticks of the
// breaker.
func TestRedisIsGreetedAtTimesByChance(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &Store{o: DefaultOptions()}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		mended, before := 0, time.Now()
		var pauses []time.Duration
		s.rounds(ctx, func() { mended++ }, func() {
			pauses, before = append(pauses, time.Since(before)), time.Now()
		})
		if mended < 59 {
			t.Errorf("looks for what is to mend %d times a minute", mended)
		}
		if n := len(pauses); n < 19 || n > 30 {
			t.Errorf("%d greetings a minute", n)
		}
		slices.Sort(pauses)
		if a, b := pauses[0], pauses[len(pauses)-1]; a < 2*time.Second || b > 3*time.Second || b-a < 100*time.Millisecond {
			t.Errorf("pauses from %s to %s", a, b)
		}
	})
}

func TestARedisThatIsFullIsSaidOnce(t *testing.T) {
	t.Parallel()
	server, clock, log := testkit.NewRedis(t), testkit.NewClock(), &testkit.Log{}
	o := patient(server.URL())
	o.Now, o.Log = clock.Now, slog.New(slog.NewTextHandler(log, nil))
	s := open(t, o)
	if s.Full() {
		t.Error("a Redis that nobody wrote to is full")
	}
	client := *s.client.Load()
	if err := client.Do(t.Context(), client.B().Arbitrary("CONFIG", "SET", "maxmemory", "1").Build()).Error(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, _, err := s.Rate(t.Context(), "t", []Charge{{Bucket: "b", Room: 9, N: 1}}); err == nil {
			t.Fatal("a full Redis counts")
		}
	}
	if n := strings.Count(log.String(), "redis is full"); n != 1 || !s.Full() {
		t.Errorf("that Redis is full is said %d times; full: %v", n, s.Full())
	}
	if clock.Pass(2 * fullFor); s.Full() {
		t.Error("a Redis that was full stays so")
	}
}
