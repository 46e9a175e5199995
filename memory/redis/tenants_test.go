package redis

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"signalbox/internal/testkit"
	"signalbox/memory/ledger"
)

// hand is a clock that is set by hand.
type hand struct{ now time.Time }

func (c *hand) read() time.Time { return c.now }

func entries(t *testing.T, s *Store) []ledger.Tenant {
	t.Helper()
	list, _, err := s.page(t.Context(), *s.client.Load(), 0)
	if err != nil {
		t.Fatal(err)
	}
	var out []ledger.Tenant
	for _, e := range list {
		out = append(out, e.tenant)
	}
	slices.Sort(out)
	return out
}

func due(t *testing.T, s *Store, now time.Time) []ledger.Name {
	t.Helper()
	names, err := s.Due(t.Context(), now, 10)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// Whoever has nothing any more leaves nothing, and whoever has something is never forgotten.
func TestTenantsLeaveWithTheirLastRecord(t *testing.T) {
	t.Parallel()
	server, clock := testkit.NewRedis(t), &hand{start}
	o := patient(server.URL())
	o.Now = clock.read
	s, other := open(t, o), open(t, o)
	gone, _ := create(t, s, "gone", "a", "x", 1000)
	create(t, s, "stays", "a", "x", 1000)
	if _, _, err := s.Commit(t.Context(), ledger.Change{Tenant: "gone", ID: "a", Old: gone.New, Rev: 1}); err != nil {
		t.Fatal(err)
	}
	clock.now = start.Add(forgottenAfter)
	due(t, other, start)
	if got := entries(t, s); len(got) != 2 {
		t.Errorf("too early: %v", got)
	}
	clock.now = start.Add(forgottenAfter + 2*time.Second)
	due(t, other, start)
	if got := entries(t, s); !slices.Equal(got, []ledger.Tenant{"stays"}) {
		t.Errorf("left are %v", got)
	}
	if left := keysOf(t, s, "gone"); len(left) > 0 {
		t.Errorf("left of it are %v", left)
	}
	create(t, s, "gone", "b", "x", 1000) // this replica entered it long ago
	if got := entries(t, other); len(got) != 2 {
		t.Errorf("one that came again is not among %v", got)
	}
	if got := due(t, other, start.Add(time.Hour)); len(got) != 2 {
		t.Errorf("due are %v", got)
	}
}

// A tenant that enters while another replica is about to take it out stays.
func TestATenantThatComesAgainIsNotTakenOut(t *testing.T) {
	t.Parallel()
	clock := &hand{start}
	o := patient(testkit.NewRedis(t).URL())
	o.Now = clock.read
	s := open(t, o)
	c, _ := create(t, s, "t", "a", "x", 1000)
	if _, _, err := s.Commit(t.Context(), ledger.Change{Tenant: "t", ID: "a", Old: c.New, Rev: 1}); err != nil {
		t.Fatal(err)
	}
	client := *s.client.Load()
	seen, _, err := s.page(t.Context(), client, 0)
	if err != nil || len(seen) != 1 {
		t.Fatal(seen, err)
	}
	clock.now = start.Add(2 * forgottenAfter)
	if err := s.note(t.Context(), client, &ledger.Change{Tenant: "t"}); err != nil {
		t.Fatal(err)
	}
	if err := s.prune(t.Context(), client, seen); err != nil {
		t.Fatal(err)
	}
	if got := entries(t, s); len(got) != 1 {
		t.Errorf("left are %v", got)
	}
}

// A key that is not ours keeps nobody else's records from their end.
func TestAKeyOfAnotherKindStopsNoSweep(t *testing.T) {
	t.Parallel()
	s := open(t, patient(testkit.NewRedis(t).URL()))
	create(t, s, "bad", "a", "x", 100)
	create(t, s, "good", "a", "x", 100)
	client := *s.client.Load()
	key := s.key("bad", "exp")
	for _, c := range []rueidis.Completed{client.B().Del().Key(key).Build(), client.B().Set().Key(key).Value("x").Build()} {
		if err := client.Do(t.Context(), c).Error(); err != nil {
			t.Fatal(err)
		}
	}
	if got := due(t, s, start.Add(time.Hour)); len(got) != 1 || got[0].Tenant != "good" {
		t.Errorf("due are %v", got)
	}
}

// More tenants than one call looks at are all looked at, one call after the other.
func TestAllOfManyTenantsAreSwept(t *testing.T) {
	t.Parallel()
	s := open(t, patient(testkit.NewRedis(t).URL()))
	const many = 3 * pagesAtOnce * tenantsAtOnce / 2
	client := *s.client.Load()
	for i := range many { // as Commit does, less the record
		tenant := ledger.Tenant(strconv.Itoa(i))
		if err := s.note(t.Context(), client, &ledger.Change{Tenant: tenant}); err != nil {
			t.Fatal(err)
		}
		if i%1000 == 0 {
			create(t, s, tenant, "a", "x", 100)
		}
	}
	found := map[string]bool{}
	calls := 0
	for ; calls == 0 || s.sweep.Load() != 0; calls++ {
		// n is above all that is due: names beyond n on the last page wait for the next sweep.
		names, err := s.Due(t.Context(), start.Add(time.Hour), many)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			found[fmt.Sprint(name)] = true
		}
	}
	if want := (many + 999) / 1000; len(found) != want || calls < 2 {
		t.Errorf("%d of %d found, in %d calls", len(found), want, calls)
	}
	if n, _, err := s.Totals(t.Context()); n != (many+999)/1000 || err != nil {
		t.Errorf("%d contexts, %v", n, err)
	}
}
