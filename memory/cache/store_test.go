package cache_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/rueidis"

	"signalbox/internal/testkit"
	"signalbox/memory/cache"
	"signalbox/memory/cache/question"
)

// local returns a store of a megabyte.
func local(tb testing.TB, now func() time.Time) *cache.Local {
	tb.Helper()
	s, err := cache.NewLocal(1<<20, now)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Close)
	return s
}

// shared returns a store in a server of the test's own.
func shared(tb testing.TB) *cache.Redis {
	tb.Helper()
	server := testkit.NewRedis(tb)
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr()}, DisableCache: true})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(client.Close)
	o := cache.DefaultRedisOptions()
	o.Timeout = 10 * time.Second // a busy machine is no fault
	return cache.NewRedis(client, o)
}

func TestStoresGiveWhatTheyGot(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]cache.Store{"local": local(t, time.Now), "redis": shared(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := s.Get(t.Context(), keyOf(1)); !errors.Is(err, cache.ErrMiss) {
				t.Errorf("error %v of an empty store, want ErrMiss", err)
			}
			want := mustRecord(t, true, testkit.Event("a"), testkit.Finish+done)
			want.Made = time.UnixMilli(want.Made.UnixMilli())
			if err := s.Put(t.Context(), keyOf(1), want, time.Hour); err != nil {
				t.Fatal(err)
			}
			got, err := s.Get(t.Context(), keyOf(1))
			if d := cmp.Diff(want, got); err != nil || d != "" {
				t.Errorf("%v (-want +got):\n%s", err, d)
			}
			huge := &cache.Answer{Data: make([]byte, 1<<20)}
			if err := s.Put(t.Context(), keyOf(2), huge, time.Hour); !errors.Is(err, cache.ErrTooLarge) {
				t.Errorf("error %v for a huge answer, want ErrTooLarge", err)
			}
		})
	}
}

func TestALocalStoreIsBoundedInTimeAndSize(t *testing.T) {
	t.Parallel()
	c := testkit.NewClock()
	s := local(t, c.Now)
	a := mustRecord(t, false, testkit.Completion)
	if err := s.Put(t.Context(), keyOf(1), a, time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), keyOf(1)); err != nil {
		t.Errorf("error %v before it expired", err)
	}
	c.Pass(time.Minute + time.Second)
	if _, err := s.Get(t.Context(), keyOf(1)); !errors.Is(err, cache.ErrMiss) {
		t.Errorf("error %v after a minute, want ErrMiss", err)
	}
	big := &cache.Answer{Data: make([]byte, 100<<10)}
	for n := range 40 {
		if err := s.Put(t.Context(), keyOf(n), big, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	kept := 0
	for n := range 40 {
		if _, err := s.Get(t.Context(), keyOf(n)); err == nil {
			kept++
		}
	}
	if kept == 0 || kept > 12 {
		t.Errorf("%d of 40 answers of 100 KiB in a store of 1 MiB, want some and no more than it holds", kept)
	}
}

func TestAnAnswerInRedisThatCannotBeReadIsAMiss(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr()}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	o := cache.RedisOptions{Prefix: "p:", MaxAnswer: 1000, Timeout: 10 * time.Second}
	s := cache.NewRedis(client, o)
	name := "p:" + keyOf(1).String()
	if err := client.Do(t.Context(), client.B().Set().Key(name).Value("\x09what").Build()).Error(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), keyOf(1)); !errors.Is(err, cache.ErrMiss) {
		t.Errorf("error %v, want ErrMiss", err)
	}
	if err := s.Put(t.Context(), keyOf(1), mustRecord(t, false, testkit.Completion), time.Hour); err != nil {
		t.Fatal(err)
	}
	left, err := client.Do(t.Context(), client.B().Pttl().Key(name).Build()).AsInt64()
	if err != nil || left <= 0 || left > time.Hour.Milliseconds() {
		t.Errorf("time to live %d ms, %v; want up to an hour", left, err)
	}
	server.Stop()
	if _, err := s.Get(t.Context(), keyOf(1)); err == nil || errors.Is(err, cache.ErrMiss) {
		t.Errorf("error %v of a server that is gone, want one that is no miss", err)
	}
}

// ask is the body of a question.
func ask(text string) string {
	return strings.Replace(plain, "What is Go?", text, 1)
}

func TestAnAnswerIsGivenToTheSameAndToSimilarRequests(t *testing.T) {
	t.Parallel()
	c, err := cache.New(local(t, time.Now), cache.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	mine := cache.Scope{Tenant: "a"}
	id := identify(t, ask("What is the capital of Peru?"), mine)
	answer := mustRecord(t, false, testkit.Completion)
	if _, err := c.Exact(t.Context(), &id); !errors.Is(err, cache.ErrMiss) {
		t.Errorf("error %v of an empty cache, want ErrMiss", err)
	}
	if err := c.Keep(t.Context(), &id, "qwen", direction(0), answer); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Exact(t.Context(), &id); err != nil || got != answer {
		t.Errorf("%v, %v; want the answer", got, err)
	}
	tests := map[string]struct {
		text, tenant, model string
		degrees             float64
		hit                 bool
		refused             question.Difference
	}{
		"other words":    {"Which city is the capital of Peru?", "a", "qwen", 5, true, 0},
		"another place":  {"What is the capital of Chile?", "a", "qwen", 5, false, question.Word},
		"another tenant": {"Which city is the capital of Peru?", "b", "qwen", 5, false, 0},
		"another model":  {"Which city is the capital of Peru?", "a", "llama", 5, false, 0},
		"too far":        {"Which city is the capital of Peru?", "a", "qwen", 80, false, 0},
	}
	for name, tt := range tests {
		other := identify(t, ask(tt.text), cache.Scope{Tenant: tt.tenant})
		if _, err := c.Exact(t.Context(), &other); !errors.Is(err, cache.ErrMiss) {
			t.Errorf("%s: error %v, want no exact hit", name, err)
		}
		hit, err := c.Similar(t.Context(), &other, tt.model, direction(tt.degrees))
		if tt.hit {
			if err != nil || hit.Answer != answer || hit.Question != "What is the capital of Peru?" || hit.Similarity < 0.99 {
				t.Errorf("%s: %+v, %v; want the answer", name, hit, err)
			}
			continue
		}
		var miss *cache.MissError
		if !errors.Is(err, cache.ErrMiss) || errors.As(err, &miss) != (tt.refused != 0) || miss != nil && miss.Difference != tt.refused {
			t.Errorf("%s: error %v, want a miss, refused for %v", name, err, tt.refused)
		}
	}
}

func TestWhatIsNotEligibleIsNeitherKeptNorGiven(t *testing.T) {
	t.Parallel()
	c, err := cache.New(local(t, time.Now), cache.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	hot := identify(t, strings.Replace(plain, `{"model"`, `{"temperature":1,"model"`, 1), cache.Scope{})
	if err := c.Keep(t.Context(), &hot, "m", direction(0), mustRecord(t, false, testkit.Completion)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Exact(t.Context(), &hot); !errors.Is(err, cache.ErrMiss) || c.Len() != 0 {
		t.Errorf("error %v with %d questions, want nothing kept", err, c.Len())
	}
	if _, err := c.Similar(t.Context(), &hot, "m", direction(0)); !errors.Is(err, cache.ErrMiss) {
		t.Errorf("error %v, want ErrMiss", err)
	}
}

func TestAQuestionWhoseAnswerIsGoneIsForgotten(t *testing.T) {
	t.Parallel()
	c := testkit.NewClock()
	o := cache.DefaultOptions()
	x, err := cache.New(local(t, c.Now), o) // answers expire by another clock than questions
	if err != nil {
		t.Fatal(err)
	}
	id := identify(t, ask("What is the capital of Peru?"), cache.Scope{})
	if err := x.Keep(t.Context(), &id, "m", direction(0), mustRecord(t, false, testkit.Completion)); err != nil {
		t.Fatal(err)
	}
	c.Pass(2 * time.Hour)
	if _, err := x.Similar(t.Context(), &id, "m", direction(0)); !errors.Is(err, cache.ErrMiss) || x.Len() != 0 {
		t.Errorf("error %v with %d questions left, want a miss and none", err, x.Len())
	}
}

func TestOptionsTellEveryProblem(t *testing.T) {
	t.Parallel()
	_, err := cache.New(nil, cache.Options{MinSimilarity: 2})
	for _, want := range []string{"ttl", "min_similarity", "max_entries"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not name %s", err, want)
		}
	}
	if err := (cache.Pace{Speed: -1, MaxGap: -1, MaxTotal: -1}).Validate(); err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("error %v, want three problems", err)
	}
	if err := errors.Join(cache.DefaultOptions().Validate(), cache.DefaultPace().Validate(), cache.DefaultIdentifier().Validate()); err != nil {
		t.Error(err)
	}
}

func TestACacheIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	c, err := cache.New(local(t, time.Now), cache.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	a := mustRecord(t, false, testkit.Completion)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for n := range 50 {
				id := identify(t, ask(fmt.Sprintf("What is the price of article %d?", (n+w)%20)), cache.Scope{})
				if _, err := c.Exact(t.Context(), &id); err == nil {
					continue
				}
				if err := c.Keep(t.Context(), &id, "m", direction(float64(n)), a); err != nil {
					t.Error(err)
				}
				if hit, err := c.Similar(t.Context(), &id, "m", direction(float64(n))); err == nil && hit.Question != id.Question {
					t.Errorf("%q got the answer to %q", id.Question, hit.Question)
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkExactMiss(b *testing.B) {
	c, err := cache.New(local(b, time.Now), cache.DefaultOptions())
	if err != nil {
		b.Fatal(err)
	}
	id := identify(b, plain, cache.Scope{})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Exact(b.Context(), &id); err == nil {
			b.Fatal("hit")
		}
	}
}
