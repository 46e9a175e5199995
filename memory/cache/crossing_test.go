package cache_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"signalbox/internal/testkit"
	"signalbox/memory/cache"
	"signalbox/memory/redis"
)

// S12, S13: an answer in Redis, and its question, tell what they are kept under. In the place of
// another they are none.
func TestS12AnswersInThePlaceOfOthersAreMisses(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	link := linked(t, server)
	s := cache.NewRedis(link, slow())
	for n := range 2 {
		q := &cache.Question{Part: keyOf(99 + n), Text: "What is Go?", Vector: []float32{1, 0}}
		if err := s.Put(t.Context(), keyOf(n), mustRecord(t, false, testkit.Completion), q, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	swap(t, link, "cx:{answers}:a:"+keyOf(0).String(), "cx:{answers}:a:"+keyOf(1).String())
	swap(t, link, "cx:{answers}:q:"+keyOf(0).String(), "cx:{answers}:q:"+keyOf(1).String())
	for n := range 2 {
		if a, err := s.Get(t.Context(), keyOf(n)); !errors.Is(err, cache.ErrMiss) {
			t.Errorf("the answer of key %d is %.20q, %v", n, a.Data, err)
		}
	}
	q := &cache.Question{Part: keyOf(99), Text: "Who made Go?", Vector: []float32{1, 0}}
	if err := s.Put(t.Context(), keyOf(3), mustRecord(t, false, testkit.Completion), q, 2*time.Hour); err != nil { // ends last, and so is told last
		t.Fatal(err)
	}
	if got := <-followed(t, linked(t, server), 3); got != "Who made Go? [1 0] false" {
		t.Errorf("told first: %q, want the one that stands in its own place", got)
	}
}

// swap gives two keys each other's value.
func swap(t *testing.T, link *redis.Store, a, b string) {
	t.Helper()
	err := link.Do(t.Context(), time.Minute, func(ctx context.Context, c rueidis.Client) error {
		for _, step := range [][2]string{{a, "swapped"}, {b, a}, {"swapped", b}} {
			if err := c.Do(ctx, c.B().Rename().Key(step[0]).Newkey(step[1]).Build()).Error(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
