package redis

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"signalbox/internal/testkit"
	"signalbox/memory/ledger"
)

// spoiled is a store over a Redis of its own, and what puts a list in the place of a key.
func spoiled(t *testing.T) (s *Store, spoil func(key string), log *testkit.Log) {
	t.Helper()
	log = &testkit.Log{}
	o := patient(testkit.NewRedis(t).URL())
	o.Log, o.Rest = slog.New(slog.NewJSONHandler(log, nil)), time.Hour
	s = open(t, o)
	return s, func(key string) {
		t.Helper()
		c := *s.client.Load()
		if err := c.Do(t.Context(), c.B().Del().Key(key).Build()).Error(); err != nil {
			t.Fatal(err)
		}
		if err := c.Do(t.Context(),
			c.B().Rpush().Key(key).Element("x").Build()).Error(); err != nil {
			t.Fatal(err)
		}
	}, log
}

// place is a context, with the one object that it is made of.
type place struct {
	of ledger.Tenant
	o  ledger.Object
}

// S12, S13: a key that holds something else than it should is a miss for who asks for it, and
// nobody else notices.
func TestAKeyOfAnotherTypeIsAMissAndNoOutage(t *testing.T) {
	t.Parallel()
	s, spoil, log := spoiled(t)
	_, _ = create(t, s, "other", "b", "two", 1000)
	ctx, later := t.Context(), start.Add(9*time.Hour)
	none, gone := ledger.ErrNotFound, ledger.ErrMissing
	object := func(at place) string { return s.key(at.of, "o:"+at.o.Sum.String()) }
	load := func(at place) error { return second(s.Load(ctx, at.of, "a")) }
	list := func(at place) error { return second(s.List(ctx, at.of, "", 5)) }
	usage := func(at place) error { return third(s.Usage(ctx, at.of)) }
	totals := func(place) error { return third(s.Totals(ctx)) }
	get := func(at place) error { return second(s.Get(ctx, at.of, at.o)) }
	due := func(place) error { return second(s.Due(ctx, start, 5)) }
	touch := func(at place) error {
		later = later.Add(time.Hour)
		return s.Touch(ctx, []ledger.Touch{{Name: ledger.Name{Tenant: at.of, ID: "a"}, TTL: time.Hour, Expires: later}})
	}
	for i, x := range []struct {
		name string
		key  func(place) string
		call func(place) error
		want error
	}{
		{"a record", func(at place) string { return s.key(at.of, "c:a") }, load, none},
		{"the ids", func(at place) string { return s.key(at.of, "ids") }, list, nil},
		{"the totals", func(at place) string { return s.key(at.of, "q") }, usage, nil},
		{"the totals of all", func(at place) string { return s.key(at.of, "q") }, totals, nil},
		{"an object", object, get, gone},
		{"a chunk", func(at place) string { return s.chunkKey(at.of, at.o, 0) }, get, gone},
		{"the ends of lives", func(at place) string { return s.key(at.of, "exp") }, due, nil},
		{"the end of a life", func(at place) string { return s.key(at.of, "exp") }, touch, nil},
		{"the tenants", func(place) string { return s.tenantsKey() }, due, nil},
		{"the tenants of all", func(place) string { return s.tenantsKey() }, totals, nil},
	} {
		at := place{of: ledger.Tenant(fmt.Sprintf("t%d", i))}
		made, _ := create(t, s, at.of, "a", "one", 1000)
		at.o = made.New.Versions[0].Segments[0]
		key := x.key(at)
		spoil(key)
		for range DefaultOptions().Failures + 1 {
			if err := x.call(at); !errors.Is(err, x.want) || err != nil && x.want == nil {
				t.Errorf("%s: %v, want %v", x.name, err, x.want)
			}
		}
		if !s.Healthy() {
			t.Fatalf("%s: Redis is taken for one that is away", x.name)
		}
		if e, err := s.Load(ctx, "other", "b"); err != nil || e.Record.ID != "b" {
			t.Errorf("%s: another context: %v", x.name, err)
		}
		if !strings.Contains(log.String(), key) {
			t.Errorf("%s: the log does not name %s", x.name, key)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func third[T, U any](_ T, _ U, err error) error { return err }

func TestWhatIsWrittenTakesThePlaceOfAKeyOfAnotherType(t *testing.T) {
	t.Parallel()
	s, spoil, log := spoiled(t)
	o, _, packed := object("x", 2*chunkSize)
	for i, key := range []string{
		s.key("t", "c:n0"), s.key("t", "ids"), s.key("t", "exp"), s.key("t", "q"), s.tenantsKey(),
		s.key("t", "o:"+o.Sum.String()), "a chunk",
	} {
		if key == "a chunk" { // of an object that no record refers to yet
			o, _, packed = object("y", 2*chunkSize)
			key = s.chunkKey("t", o, 1)
		}
		spoil(key)
		s.known.forget() // so that the tenant is entered again
		id := "n" + string(rune('0'+i))
		c := ledger.Change{Tenant: "t", ID: id, New: record(id, o), Expires: start.Add(time.Hour)}
		var err error
		for range 2 { // as memory does when a piece is not there
			if err = s.Put(t.Context(), "t", o, packed); err != nil {
				t.Fatal(err)
			}
			if _, _, err = s.Commit(t.Context(), c); !errors.Is(err, ledger.ErrMissing) {
				break
			}
		}
		if err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		if _, err := s.Get(t.Context(), "t", o); err != nil {
			t.Errorf("%s: the bytes: %v", key, err)
		}
		if e, err := s.Load(t.Context(), "t", id); err != nil || e.Rev != 1 {
			t.Errorf("%s: the record: %+v, %v", key, e, err)
		}
		if !strings.Contains(log.String(), key) {
			t.Errorf("the log does not name %s", key)
		}
	}
	if n, b, err := s.Usage(t.Context(), "t"); n < 0 || b < 0 || err != nil {
		t.Errorf("totals %d and %d, %v", n, b, err)
	}
}

// What counts requests lives in the same Redis: it must not cost the contexts.
func TestCountersOfAnotherTypeBeginAnew(t *testing.T) {
	t.Parallel()
	s, spoil, _ := spoiled(t)
	charge := func() ([]float64, bool, error) {
		return s.Rate(t.Context(), "t", []Charge{{Bucket: "b", Room: 10, N: 3}})
	}
	enter := func() ([]int, bool, error) {
		return s.Enter(t.Context(), "t", []Flight{{Scope: "s", Room: 5, ID: "1"}}, time.Minute,
			false)
	}
	if _, ok, err := charge(); !ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
	if _, ok, err := enter(); !ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
	for _, key := range keysOf(t, s, "t") {
		spoil(key)
	}
	if full, ok, err := charge(); !ok || err != nil || full[0] > 3 {
		t.Errorf("anew: %v, %v, %v", full, ok, err)
	}
	if used, ok, err := enter(); !ok || err != nil || used[0] != 1 {
		t.Errorf("anew: %v, %v, %v", used, ok, err)
	}
	if !s.Healthy() {
		t.Error("Redis is taken for one that is away")
	}
}
