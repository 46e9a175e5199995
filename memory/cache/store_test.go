package cache_test

import (
	"context"
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
	"signalbox/memory/ledger"
	"signalbox/memory/redis"
)

// local returns a store of a megabyte.
func local(tb testing.TB, now func() time.Time) *cache.Local {
	tb.Helper()
	s := cache.NewLocal(1<<20, now)
	tb.Cleanup(s.Close)
	return s
}

// linked returns a connection to a server, which a busy machine may take its time with.
func linked(tb testing.TB, server *testkit.Redis) *redis.Store {
	tb.Helper()
	const long = testkit.Patience
	link, err := redis.Open(tb.Context(), redis.Options{URL: server.URL(), MetaBudget: long, BlobBudget: long, WriteBudget: long})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(link.Close)
	return link
}

// slow are the options of a store on a busy machine.
func slow() cache.RedisOptions {
	return cache.RedisOptions{Budget: 10 * time.Second, Write: 10 * time.Second}
}

// shared returns a store in a server of the test's own.
func shared(tb testing.TB) *cache.Redis {
	tb.Helper()
	return cache.NewRedis(linked(tb, testkit.NewRedis(tb)), slow())
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
			if err := s.Put(t.Context(), keyOf(1), want, nil, time.Hour); err != nil {
				t.Fatal(err)
			}
			got, err := s.Get(t.Context(), keyOf(1))
			if d := cmp.Diff(want, got); err != nil || d != "" {
				t.Errorf("%v (-want +got):\n%s", err, d)
			}
			huge := &cache.Answer{Data: make([]byte, 1<<20)}
			if err := s.Put(t.Context(), keyOf(2), huge, nil, time.Hour); !errors.Is(err, cache.ErrTooLarge) {
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
	if err := s.Put(t.Context(), keyOf(1), a, nil, time.Minute); err != nil {
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
		if err := s.Put(t.Context(), keyOf(n), big, nil, time.Hour); err != nil {
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
	link, o := linked(t, server), slow()
	o.Prefix = "p"
	s := cache.NewRedis(link, o)
	name := "p:{answers}:a:" + keyOf(1).String()
	if err := link.Do(t.Context(), o.Write, func(ctx context.Context, c rueidis.Client) error {
		return c.Do(ctx, c.B().Set().Key(name).Value("\x09what").Build()).Error()
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), keyOf(1)); !errors.Is(err, cache.ErrMiss) {
		t.Errorf("error %v, want ErrMiss", err)
	}
	if err := s.Put(t.Context(), keyOf(1), mustRecord(t, false, testkit.Completion), nil, time.Hour); err != nil {
		t.Fatal(err)
	}
	left := int64(0)
	err := link.Do(t.Context(), o.Write, func(ctx context.Context, c rueidis.Client) (err error) {
		left, err = c.Do(ctx, c.B().Pttl().Key(name).Build()).AsInt64()
		return err
	})
	if err != nil || left <= 0 || left > time.Hour.Milliseconds() {
		t.Errorf("time to live %d ms, %v; want up to an hour", left, err)
	}
	server.Stop()
	if _, err := s.Get(t.Context(), keyOf(1)); err == nil || errors.Is(err, cache.ErrMiss) {
		t.Errorf("error %v of a server that is gone, want one that is no miss", err)
	}
}

func TestAnswersInRedisAreBoundedAndWhatEndsFirstGoes(t *testing.T) {
	t.Parallel()
	o := slow()
	o.MaxBytes = 10_000
	s := cache.NewRedis(linked(t, testkit.NewRedis(t)), o)
	has := func(n int) bool {
		_, err := s.Get(t.Context(), keyOf(n))
		if err != nil && !errors.Is(err, cache.ErrMiss) {
			t.Fatal(err)
		}
		return err == nil
	}
	a := &cache.Answer{Data: make([]byte, 3000)}
	for n, life := range []time.Duration{2 * time.Hour, time.Hour, 3 * time.Hour, 4 * time.Hour, 5 * time.Hour} {
		if err := s.Put(t.Context(), keyOf(n), a, nil, life); err != nil {
			t.Fatal(err)
		}
	}
	for n, want := range []bool{false, false, true, true, true} {
		if has(n) != want {
			t.Errorf("answer %d is kept: %v, want %v", n, !want, want)
		}
	}
	if err := s.Put(t.Context(), keyOf(4), a, nil, time.Hour); err != nil { // in place of itself
		t.Fatal(err)
	}
	if !has(2) || !has(3) || !has(4) {
		t.Error("an answer that took its own place drove another out")
	}
	if err := s.Put(t.Context(), keyOf(9), &cache.Answer{Data: make([]byte, 11_000)}, nil, time.Hour); !errors.Is(err, cache.ErrTooLarge) {
		t.Errorf("error %v for more than all may take, want ErrTooLarge", err)
	}
}

// followed runs Follow and returns what it tells.
func followed(t *testing.T, link *redis.Store, most int) <-chan string {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	told, done := make(chan string, 100), make(chan error, 2)
	go func() {
		done <- link.Watch(ctx, func(ledger.News) {}, func() {})
	}()
	go func() {
		done <- cache.NewRedis(link, slow()).Follow(ctx, most, func(_ cache.Key, q cache.Question, ttl time.Duration) {
			told <- fmt.Sprint(q.Text, " ", q.Vector, " ", ttl > 50*time.Minute && ttl <= time.Hour)
		})
	}()
	t.Cleanup(func() {
		stop()
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
	return told
}

func TestQuestionsAreToldToOthers(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	s := cache.NewRedis(linked(t, server), slow())
	put := func(n int, text string) {
		t.Helper()
		q := &cache.Question{Part: keyOf(99), Text: text, Vector: []float32{1, 0}}
		if err := s.Put(t.Context(), keyOf(n), mustRecord(t, false, testkit.Completion), q, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	put(1, "old")
	put(2, "before")
	if err := s.Put(t.Context(), keyOf(3), mustRecord(t, false, testkit.Completion), nil, 2*time.Hour); err != nil {
		t.Fatal(err)
	}
	told := followed(t, linked(t, server), 2) // of the last two answers one has a question
	if got := <-told; got != "before [1 0] true" {
		t.Errorf("at first: %q", got)
	}
	put(4, "meanwhile")
	if got := <-told; got != "meanwhile [1 0] true" {
		t.Errorf("meanwhile: %q", got)
	}
	server.Stop()
	server.Start()
	if got := <-told; got != "meanwhile [1 0] true" { // the last two again, of which one has a question
		t.Errorf("after an interruption: %q", got)
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
	if err := cache.DefaultOptions().Validate(); err != nil {
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
