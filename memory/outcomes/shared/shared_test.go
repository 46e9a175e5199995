package shared_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"signalbox/internal/testkit"
	"signalbox/memory/outcomes"
	"signalbox/memory/outcomes/shared"
	"signalbox/memory/redis"
)

func vector(r *rand.Rand) []float32 {
	v := make([]float32, 32)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}

// replica is a store that shares over Redis.
func replica(t *testing.T, url string) *outcomes.Store {
	t.Helper()
	link, err := redis.Open(t.Context(), redis.Options{URL: url, Prefix: "sb", Rest: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(link.Close)
	s := shared.New(link, shared.Options{
		Prefix: "sb", Limit: 100, Tenants: 10, Every: 5 * time.Millisecond, Log: slog.New(slog.DiscardHandler),
	})
	store, _, err := outcomes.Open(outcomes.Options{Limit: 100, Tenants: 10, Waiting: 100, Tell: s.Tell})
	if err != nil {
		t.Fatal(err)
	}
	s.Start(store)
	t.Cleanup(s.Close)
	return store
}

func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(testkit.Patience); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s did not happen", what)
		}
	}
}

func add(t *testing.T, s *outcomes.Store, r *rand.Rand, tenant, id string) {
	t.Helper()
	if err := s.Add(outcomes.Outcome{
		Tenant: tenant, ID: id, Model: "m", Prior: 0.5, Score: 1, Weight: 1, Source: "test",
	}, vector(r)); err != nil {
		t.Fatal(err)
	}
}

func TestReplicasLearnOfEachOther(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	server := testkit.NewRedis(t)
	a, b := replica(t, server.URL()), replica(t, server.URL())
	add(t, a, r, "x", "1")
	add(t, b, r, "x", "2")
	add(t, b, r, "y", "3")
	until(t, "learning", func() bool { return a.Len("x") == 2 && b.Len("x") == 2 && a.Len("y") == 1 })

	// What one has decided the other can judge.
	v := vector(r)
	a.Decided(outcomes.Outcome{Tenant: "x", ID: "asked", Model: "m", Prior: 0.5}, v)
	a.Answered("x", "asked", 70)
	until(t, "judging", func() bool {
		o, err := b.Judge("x", "asked", 0.5, 1, "", "feedback")
		return err == nil && o.Tokens == 70
	})
	until(t, "the judgement", func() bool { return a.Len("x") == 3 })

	// One that comes later reads what was told before.
	c := replica(t, server.URL())
	until(t, "catching up", func() bool { return c.Len("x") == 3 && c.Len("y") == 1 })

	if err := a.Forget("x"); err != nil {
		t.Fatal(err)
	}
	until(t, "forgetting", func() bool { return b.Len("x") == 0 && c.Len("x") == 0 && b.Len("y") == 1 })
}

func TestWithoutRedisEachLearnsByItself(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	server := testkit.NewRedis(t)
	a, b := replica(t, server.URL()), replica(t, server.URL())
	add(t, a, r, "x", "before")
	until(t, "learning", func() bool { return b.Len("x") == 1 })
	server.Stop()
	for i := range 20 {
		add(t, a, r, "x", fmt.Sprint(i)) // nothing waits for Redis
	}
	if a.Len("x") != 21 || b.Len("x") != 1 {
		t.Errorf("%d and %d outcomes without Redis", a.Len("x"), b.Len("x"))
	}
	server.Start()
	until(t, "what waited", func() bool { return b.Len("x") == 21 })
}

// Tenants of which nothing is left take the place of none that is read.
func TestTenantsWhoseStreamHasEndedAreLeftOut(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	server := testkit.NewRedis(t)
	link, err := redis.Open(t.Context(), redis.Options{URL: server.URL(), Prefix: "sb"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(link.Close)
	members := func(call func(context.Context, rueidis.Client) error) {
		if err := link.Do(t.Context(), testkit.Patience, call); err != nil {
			t.Fatal(err)
		}
	}
	members(func(ctx context.Context, c rueidis.Client) error {
		add := c.B().Sadd().Key("sb:out").Member("gone")
		for i := range 30 { // more than are read at once
			add = add.Member(fmt.Sprint("gone", i))
		}
		return c.Do(ctx, add.Build()).Error()
	})
	a, b := replica(t, server.URL()), replica(t, server.URL())
	for i := range 3 {
		add(t, a, r, fmt.Sprint("x", i), "1")
	}
	until(t, "learning", func() bool { return b.Len("x0") == 1 && b.Len("x1") == 1 && b.Len("x2") == 1 })
	until(t, "leaving the set", func() bool {
		left := int64(0)
		members(func(ctx context.Context, c rueidis.Client) (err error) {
			left, err = c.Do(ctx, c.B().Scard().Key("sb:out").Build()).AsInt64()
			return err
		})
		return left == 3
	})
}
