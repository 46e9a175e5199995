package ledger

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"signalbox/memory/blob"
)

func start() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

func object(name string, size int64) Object { return Object{Sum: blob.Of([]byte(name)), Size: size} }

func record(id string, objects ...Object) *Record {
	return &Record{ID: id, TTL: time.Hour, Versions: []Version{{Bytes: 10, Segments: objects}}}
}

// put replaces the record of an id and returns what Commit says.
func put(t *testing.T, l *Local, id string, r *Record, limits Limits) ([]Object, error) {
	t.Helper()
	c := Change{Tenant: "t", ID: id, New: r, Expires: start().Add(time.Hour), Limits: limits}
	if e, err := l.Load(t.Context(), "t", id); err == nil {
		c.Old, c.Rev = e.Record, e.Rev
	}
	rev, freed, err := l.Commit(t.Context(), c)
	if err == nil && rev != c.Rev+1 {
		t.Errorf("revision %d became %d", c.Rev, rev)
	}
	return freed, err
}

func TestObjectsAreFreedWithTheirLastReference(t *testing.T) {
	t.Parallel()
	l := NewLocal(10)
	x, y := object("x", 100), object("y", 10)
	for i, step := range []struct {
		id    string
		r     *Record
		freed int
		bytes int64
	}{
		{"a", record("a", x, x), 0, 100},
		{"b", record("b", x, y), 0, 110},
		{"a", record("a", y), 0, 110},
		{"b", record("b", y), 1, 10},
		{"a", nil, 0, 10},
		{"b", nil, 1, 0},
	} {
		freed, err := put(t, l, step.id, step.r, Limits{})
		_, bytes, _ := l.Usage(t.Context(), "t")
		if err != nil || len(freed) != step.freed || bytes != step.bytes {
			t.Errorf("step %d: freed %v and left %d bytes, %v", i, freed, bytes, err)
		}
	}
	if l.Refers("t", x.Sum) || l.Refers("other", x.Sum) {
		t.Error("something refers to what was freed")
	}
}

func TestChangesThatMustNotBeMade(t *testing.T) {
	t.Parallel()
	l := NewLocal(3)
	limits := Limits{Contexts: 2, Bytes: 100, Pinned: 15}
	if _, err := put(t, l, "a", record("a", object("x", 60)), limits); err != nil {
		t.Fatal(err)
	}
	pinned := record("a", object("x", 60))
	pinned.Pinned = true
	if _, err := put(t, l, "a", pinned, limits); err != nil {
		t.Fatal(err)
	}
	more := record("b", object("x", 60))
	more.Pinned = true
	for what, r := range map[string]*Record{"bytes": record("b", object("y", 60)), "pinned bytes": more} {
		var limit *LimitError
		if _, err := put(t, l, "b", r, limits); !errors.As(err, &limit) || limit.What != what {
			t.Errorf("over %s: %v", what, err)
		}
	}
	if _, err := put(t, l, "b", record("b", object("y", 40)), limits); err != nil {
		t.Errorf("up to the limit: %v", err)
	}
	var limit *LimitError
	if _, err := put(t, l, "c", record("c", object("x", 60)), limits); !errors.As(err, &limit) || limit.What != "contexts" {
		t.Errorf("over contexts: %v", err)
	}
	if _, _, err := l.Commit(t.Context(), Change{Tenant: "t", ID: "a", Rev: 1, New: pinned}); !errors.Is(err, ErrConflict) {
		t.Errorf("an old revision: %v", err)
	}
	for i := range 2 {
		_, _, err := l.Commit(t.Context(), Change{Tenant: Tenant(fmt.Sprint(i)), ID: "a", New: record("a")})
		if full := errors.Is(err, ErrFull); full != (i == 1) {
			t.Errorf("record %d of 3: %v", i+3, err)
		}
	}
}

func TestDueRecordsComeOldestFirst(t *testing.T) {
	t.Parallel()
	l := NewLocal(100)
	for i, minutes := range []int{30, 10, 50, 20} {
		c := Change{Tenant: "t", ID: fmt.Sprint(i), New: record(fmt.Sprint(i)), Expires: start().Add(time.Duration(minutes) * time.Minute)}
		if _, _, err := l.Commit(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	touch := []Touch{
		{Name{"t", "1"}, time.Hour, start().Add(35 * time.Minute)},
		{Name{"t", "2"}, time.Hour, start()},
		{Name{"t", "3"}, time.Minute, start().Add(35 * time.Minute)},
		{Name{"t", "none"}, time.Hour, start()},
	}
	if err := l.Touch(t.Context(), touch); err != nil {
		t.Fatal(err)
	}
	for minutes, want := range map[int]string{15: "[]", 25: "[{t 3}]", 40: "[{t 3} {t 0} {t 1}]"} {
		due, err := l.Due(t.Context(), start().Add(time.Duration(minutes)*time.Minute), 10)
		if fmt.Sprint(due) != want || err != nil {
			t.Errorf("after %d minutes %v, want %s, %v", minutes, due, want, err)
		}
	}
	if due, _ := l.Due(t.Context(), start().Add(time.Hour), 2); len(due) != 2 {
		t.Errorf("asked for two: %v", due)
	}
}

func TestTenantsHaveNamesOfTheirOwn(t *testing.T) {
	t.Parallel()
	seen := map[Tenant]string{}
	for _, name := range []string{"", "a", "A", "a ", "{a}", "a:b"} {
		got := TenantOf(name)
		if other, ok := seen[got]; ok || len(got) != 32 {
			t.Errorf("%q and %q are both %q", name, other, got)
		}
		seen[got] = name
	}
}
