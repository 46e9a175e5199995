package memory

import (
	"strings"
	"testing"
	"time"

	"signalbox/internal/testkit"
	"signalbox/memory/page"
)

func TestATextThatIsKeptHasOneID(t *testing.T) {
	t.Parallel()
	clock, count := testkit.NewClock(), new(wordCount)
	o := testOptions(clock)
	o.Derive, o.TTL = count.derive, time.Hour
	s := newStore(t, o, nil)
	text := strings.Repeat("a result of a tool ", 100)
	keep := func(owner Owner, scope Scope) string {
		t.Helper()
		id, err := s.Keep(t.Context(), owner, "result", text, scope)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	id := keep(alice, PrivateScope)
	if !isID(id) || keep(alice, PrivateScope) != id {
		t.Errorf("id %q, and another the second time", id)
	}
	if count.calls != 0 {
		t.Errorf("%d texts were read for what goes with them before anybody used them", count.calls)
	}
	bob := Owner{Tenant: alice.Tenant, Subject: "bob"}
	if keep(bob, PrivateScope) == id || keep(alice, TenantScope) == id || keep(Owner{Tenant: "other", Subject: "alice"}, PrivateScope) == id {
		t.Error("others have the same id")
	}
	if _, err := s.Get(t.Context(), bob, Ref{ID: id}); err == nil {
		t.Error("a private text is there for another key")
	}
	snap, err := s.Resolve(t.Context(), alice, Ref{ID: id})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := snap.Text(); err != nil || got != text || count.calls != 1 || snap.Derived.Tokens["m"] != 500 {
		t.Errorf("resolved to %d bytes, %v, derived %d times: %+v", len(got), err, count.calls, snap.Derived)
	}
	snap.Release()
	for range 5 { // a use makes it live longer
		clock.Pass(45 * time.Minute)
		if keep(alice, PrivateScope) != id {
			t.Fatal("it was forgotten though it was kept again")
		}
	}
	for i := range 6 { // whether the store has noticed that its life is over, or not
		clock.Pass(2 * time.Hour)
		if i%2 == 0 {
			s.Sweep(t.Context())
		}
		if keep(alice, PrivateScope) != id {
			t.Fatal("it has another id after its life was over")
		}
		wantText(t, s, alice, Ref{ID: id}, text, page.Hot)
	}
	if err := s.Delete(t.Context(), alice, Ref{ID: id}); err != nil {
		t.Fatal(err)
	}
	again := keep(alice, PrivateScope)
	if _, err := s.Get(t.Context(), alice, Ref{ID: again}); err != nil {
		t.Errorf("after it was deleted: %q, %v", again, err)
	}
}
