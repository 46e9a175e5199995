package memory

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"signalbox/internal/testkit"
	"signalbox/memory/ledger"
	"signalbox/memory/page"
)

// S14: what is deleted is gone everywhere at once: the text of every version, what was worked out
// of it, its facts and those of its session, in Redis to the last key and in RAM to the last copy;
// what others have of the same tenant stays. No embedding of a context is stored.
func TestS14WhatIsDeletedLeavesNothing(t *testing.T) {
	t.Parallel()
	server, clock := testkit.NewRedis(t), testkit.NewClock()
	o := testOptions(clock)
	o.Derive = func(_ context.Context, x Text) (Derived, error) {
		return Derived{Verdicts: json.RawMessage(`{"pii":{"PERSON":0.9}}`), Skeleton: x.Text[:min(20, len(x.Text))]}, nil
	}
	link := connect(t, server, clock.Now)
	s := newStore(t, o, link)
	bystander := create(t, s, Owner{Tenant: "other"}, draft("stays"))
	before := keysOf(t, s)
	c := create(t, s, alice, Draft{Content: Content{Text: "The patient is " + prose("p", 1<<20)}, Facts: []Fact{{Text: "a fact"}}})
	if _, err := s.Append(t.Context(), alice, Ref{ID: c.ID}, Content{Text: "more of it"}); err != nil {
		t.Fatal(err)
	}
	child := create(t, s, alice, Draft{Content: Content{Text: "a child"}, Parent: Ref{ID: c.ID}})
	if err := s.SetSessionFacts(t.Context(), alice, []Fact{{Text: "a session's fact"}}, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := s.PageOut(t.Context(), alice, Ref{ID: c.ID}, page.L3); err != nil {
		t.Fatal(err)
	}
	s.Sweep(t.Context()) // packed anew, in another form
	wantText(t, s, alice, Ref{ID: c.ID, Version: 1}, "The patient is "+prose("p", 1<<20), page.Gone)
	if len(keysOf(t, s)) < len(before)+10 {
		t.Fatal("nothing was stored")
	}
	for _, id := range []string{c.ID, child.ID} {
		if err := s.Delete(t.Context(), alice, Ref{ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.SetSessionFacts(t.Context(), alice, nil, 0); err != nil {
		t.Fatal(err)
	}
	if left := slices.DeleteFunc(keysOf(t, s), func(k string) bool { return slices.Contains(before, k) }); len(left) != 0 {
		t.Errorf("Redis still has %q", left)
	}
	if n, bytes, err := link.Usage(t.Context(), ledger.TenantOf(alice.Tenant)); err != nil || n != 0 || bytes != 0 {
		t.Errorf("%d contexts of %d bytes are counted, %v", n, bytes, err)
	}
	s.views.mu.Lock()
	for k := range s.views.items {
		if k.tenant == ledger.TenantOf(alice.Tenant) {
			t.Error("what was worked out of it is in RAM")
		}
	}
	s.views.mu.Unlock()
	wantText(t, s, Owner{Tenant: "other"}, Ref{ID: bystander.ID}, "stays", page.Gone)
	if stats := s.Stats(); stats.Hot+stats.L2 > 2 { // the text of the bystander and what was worked out of it
		t.Errorf("RAM still has %+v", stats)
	}
	wantError(t, s, alice, Ref{ID: c.ID}, ErrNotFound)
}

// keysOf are all keys in the Redis of a store, sorted.
func keysOf(t *testing.T, s *Store) (keys []string) {
	t.Helper()
	r, ok := s.remote.(interface {
		Do(ctx context.Context, budget time.Duration, call func(context.Context, rueidis.Client) error) error
	})
	if !ok {
		t.Fatal("no Redis")
	}
	if err := r.Do(t.Context(), time.Minute, func(ctx context.Context, c rueidis.Client) (err error) {
		keys, err = c.Do(ctx, c.B().Keys().Pattern("*").Build()).AsStrSlice()
		return err
	}); err != nil {
		t.Fatal(err)
	}
	keys = slices.DeleteFunc(keys, func(k string) bool { return strings.HasSuffix(k, ":hello") })
	slices.Sort(keys)
	return keys
}
