package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"signalbox/internal/testkit"
	"signalbox/memory/page"
)

func TestAContextIsWhatWasStored(t *testing.T) {
	t.Parallel()
	clock := testkit.NewClock()
	s := newStore(t, testOptions(clock), nil)
	text := "A \"contract\"\nof \u00e9 and e\u0301, tabs\t and \u2028."
	c := create(t, s, alice, Draft{Content: Content{Text: text}, Name: "lease", Facts: []Fact{{ID: "f1", Text: "The rent is 900."}}})
	if !isID(c.ID) || c.Version != 1 || c.Bytes != int64(len(text)) || c.Tokens["m"] != 9 || c.FactCount != 1 || c.Tier != page.Hot || c.Status != Active {
		t.Errorf("created %+v", c)
	}
	snap, err := s.Resolve(t.Context(), alice, Ref{ID: c.ID})
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Release()
	if got, err := snap.Text(); err != nil || got != text {
		t.Errorf("text %q, %v", got, err)
	}
	if want := "A \\\"contract\\\"\\nof \u00e9 and e\u0301, tabs\\t and \u2028."; string(snap.Fragments[0]) != want {
		t.Errorf("canonical bytes %q, want %q", snap.Fragments[0], want)
	}
	if snap.Grounding != "1 facts" || snap.Derived.Skeleton != text[:20] || string(snap.Derived.Verdicts) != `{"jailbreak":0.1}` || snap.Facts[0].ID != "f1" {
		t.Errorf("resolved %+v", snap)
	}
	if got, err := s.Get(t.Context(), alice, Ref{ID: c.ID, Version: 1}); err != nil || got.ETag != c.ETag || got.Tokens["m"] != 9 || got.FactCount != 1 {
		t.Errorf("described %+v, %v", got, err)
	}
}

func TestMessagesTakeOneForm(t *testing.T) {
	t.Parallel()
	s := newStore(t, testOptions(testkit.NewClock()), nil)
	a := create(t, s, alice, Draft{Content: Content{Messages: []byte(`[ {"role":"user", "content":"h\u0069"}, {"content":[{"type":"text","text":"x"}],"role":"assistant"} ]`)}})
	b := create(t, s, alice, Draft{Content: Content{Messages: []byte(`[{"content":"hi","role":"user"},{"role":"assistant","content":[{"text":"x","type":"text"}]}]`)}})
	if a.ETag != b.ETag {
		t.Error("the same messages have two sums")
	}
	snap, err := s.Resolve(t.Context(), alice, Ref{ID: a.ID})
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Release()
	want := `{"content":"hi","role":"user"},{"content":[{"text":"x","type":"text"}],"role":"assistant"}`
	if string(snap.Fragments[0]) != want || string(snap.Messages()) != "["+want+"]" {
		t.Errorf("canonical bytes %s", snap.Fragments[0])
	}
	for name, bad := range map[string]Content{
		"nothing":            {},
		"both":               {Text: "a", Messages: []byte(`[]`)},
		"no list":            {Messages: []byte(`{"role":"user","content":"x"}`)},
		"an empty list":      {Messages: []byte(`[]`)},
		"smuggled fields":    {Messages: []byte(`[{"role":"user","content":"x"}],"tools":[]`)},
		"invalid UTF-8":      {Text: "a\xff"},
		"a message too many": {Messages: []byte(`[{"role":"user","content":"x"},3]`)},
	} {
		var invalid *InvalidError
		if _, err := s.Create(t.Context(), alice, Draft{Content: bad}); !errors.As(err, &invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestVersionsGrowAndNeverChange(t *testing.T) {
	t.Parallel()
	s := newStore(t, testOptions(testkit.NewClock()), nil)
	c := create(t, s, alice, Draft{Content: Content{Text: "one"}, Facts: []Fact{{Text: "f"}}})
	second, err := s.Append(t.Context(), alice, Ref{ID: c.ID, Version: 1}, Content{Text: " two"})
	if err != nil || second.Version != 2 || second.FactCount != 1 || second.Tokens["m"] != 2 {
		t.Fatalf("%+v, %v", second, err)
	}
	var conflict *ConflictError
	if _, err := s.Append(t.Context(), alice, Ref{ID: c.ID, Version: 1}, Content{Text: "x"}); !errors.As(err, &conflict) || conflict.Have != 2 {
		t.Errorf("appended to an old version: %v", err)
	}
	for range 100 {
		if _, err := s.Append(t.Context(), alice, Ref{ID: c.ID}, Content{Text: "."}); err != nil {
			t.Fatal(err)
		}
	}
	wantText(t, s, alice, Ref{ID: c.ID, Version: 1}, "one", page.Hot)
	wantText(t, s, alice, Ref{ID: c.ID, Version: 2}, "one two", page.Hot)
	wantText(t, s, alice, Ref{ID: c.ID}, "one two"+strings.Repeat(".", 100), page.Hot)
	wantError(t, s, alice, Ref{ID: c.ID, Version: 103}, ErrNotFound)
	whole := create(t, s, alice, draft("one two"))
	if whole.ETag != second.ETag {
		t.Error("the sum depends on how the bytes came together")
	}
	fork := create(t, s, alice, Draft{Content: Content{Text: "!"}, Parent: Ref{ID: c.ID, Version: 2}})
	if err := s.Delete(t.Context(), alice, Ref{ID: c.ID}); err != nil {
		t.Fatal(err)
	}
	wantText(t, s, alice, Ref{ID: fork.ID}, "one two!", page.Hot)
	if fork.Parent != c.ID+"@2" {
		t.Errorf("parent %q", fork.Parent)
	}
	wantError(t, s, alice, Ref{ID: c.ID}, ErrNotFound)
	var invalid *InvalidError
	if _, err := s.Append(t.Context(), alice, Ref{ID: fork.ID}, Content{Messages: []byte(`[{"role":"user","content":"x"}]`)}); !errors.As(err, &invalid) {
		t.Errorf("messages behind a text: %v", err)
	}
}

func TestFactsBelongToAVersion(t *testing.T) {
	t.Parallel()
	s := newStore(t, testOptions(testkit.NewClock()), nil)
	c := create(t, s, alice, draft("text"))
	if _, err := s.SetFacts(t.Context(), alice, Ref{ID: c.ID}, []Fact{{Text: "a"}, {Text: "b"}}); err != nil {
		t.Fatal(err)
	}
	running, err := s.Resolve(t.Context(), alice, Ref{ID: c.ID})
	if err != nil {
		t.Fatal(err)
	}
	defer running.Release()
	if _, err := s.Append(t.Context(), alice, Ref{ID: c.ID}, Content{Text: "."}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.SetFacts(t.Context(), alice, Ref{ID: c.ID, Version: 1}, nil); err != nil {
		t.Fatal(err)
	}
	for version, want := range []int{2, 0, 2} {
		facts, err := s.Facts(t.Context(), alice, Ref{ID: c.ID, Version: version})
		if err != nil || len(facts) != want {
			t.Errorf("version %d has %d facts, %v; want %d", version, len(facts), err, want)
		}
	}
	if running.Grounding != "2 facts" {
		t.Errorf("a request in flight has %v", running.Grounding)
	}
	var quota *QuotaError
	if _, err := s.SetFacts(t.Context(), alice, Ref{ID: c.ID}, make([]Fact, 513)); !errors.As(err, &quota) || quota.What != "facts" {
		t.Errorf("513 facts: %v", err)
	}
	if _, err := s.SetFacts(t.Context(), alice, Ref{ID: c.ID}, []Fact{{Text: strings.Repeat("x", 64<<10+1)}}); !errors.As(err, &quota) || quota.What != "fact bytes" {
		t.Errorf("more than 64 KiB of facts: %v", err)
	}
}

func TestSessionFactsBelongToTheSession(t *testing.T) {
	t.Parallel()
	clock := testkit.NewClock()
	s := newStore(t, testOptions(clock), nil)
	if err := s.SetSessionFacts(t.Context(), alice, []Fact{{Text: "a"}}, time.Hour); err != nil {
		t.Fatal(err)
	}
	count := func(o Owner) int {
		facts, err := s.SessionFacts(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		return len(facts)
	}
	if a, b, c := count(alice), count(Owner{Tenant: "acme", Session: "s2"}), count(Owner{Tenant: "evil", Session: "s1"}); a != 1 || b != 0 || c != 0 {
		t.Errorf("the session has %d, another %d, that of another tenant %d", a, b, c)
	}
	if err := s.SetSessionFacts(t.Context(), alice, nil, 0); err != nil || count(alice) != 0 {
		t.Errorf("after deletion %d, %v", count(alice), err)
	}
	if err := s.SetSessionFacts(t.Context(), alice, []Fact{{Text: "a"}}, time.Hour); err != nil {
		t.Fatal(err)
	}
	clock.Pass(2 * time.Hour)
	s.Sweep(t.Context())
	if n := count(alice); n != 0 {
		t.Errorf("%d facts outlived their time", n)
	}
}

func TestPatches(t *testing.T) {
	t.Parallel()
	clock := testkit.NewClock()
	o := testOptions(clock)
	o.Quota = func(string) Quota { return Quota{PinnedBytes: 10} }
	s := newStore(t, o, nil)
	c := create(t, s, alice, draft("12345678"))
	big := create(t, s, alice, draft("1234567890"))
	yes, name, ttl := true, "renamed", 2*time.Hour
	got, err := s.Patch(t.Context(), alice, Ref{ID: c.ID, Version: 1}, Patch{Name: &name, TTL: &ttl, Fixed: &yes, Pinned: &yes})
	if err != nil || got.Name != name || !got.Expires.Equal(clock.Now().Add(ttl)) || !got.Fixed || !got.Pinned {
		t.Fatalf("%+v, %v", got, err)
	}
	var quota *QuotaError
	if _, err := s.Patch(t.Context(), alice, Ref{ID: big.ID}, Patch{Pinned: &yes}); !errors.As(err, &quota) || quota.What != "pinned bytes" {
		t.Errorf("pinned over the quota: %v", err)
	}
	var conflict *ConflictError
	if _, err := s.Patch(t.Context(), alice, Ref{ID: c.ID, Version: 2}, Patch{Name: &name}); !errors.As(err, &conflict) {
		t.Errorf("patched a version that is not there: %v", err)
	}
	second := time.Second
	var invalid *InvalidError
	if _, err := s.Patch(t.Context(), alice, Ref{ID: c.ID}, Patch{TTL: &second}); !errors.As(err, &invalid) {
		t.Errorf("a second to live: %v", err)
	}
	clock.Pass(time.Hour - time.Second)
	s.Sweep(t.Context())
	if got, _ := s.Get(t.Context(), alice, Ref{ID: c.ID}); got.Tier != page.Hot {
		t.Errorf("a pinned context is in %v", got.Tier)
	}
	if got, _ := s.Get(t.Context(), alice, Ref{ID: big.ID}); got.Tier != page.L2 || got.Status != PagedL2 {
		t.Errorf("another is in %v, %v", got.Tier, got.Status)
	}
}

func TestQuotasAndAFullStore(t *testing.T) {
	t.Parallel()
	o := testOptions(testkit.NewClock())
	o.Pages.Bytes = 64 << 10
	o.Quota = func(tenant string) Quota {
		if tenant == "acme" {
			return Quota{Contexts: 2, Bytes: 30_000, ContextBytes: 20_000}
		}
		return Quota{}
	}
	s := newStore(t, o, nil)
	what := func(d Draft) string {
		_, err := s.Create(t.Context(), alice, d)
		if quota, ok := errors.AsType[*QuotaError](err); ok {
			return quota.What
		}
		return fmt.Sprint(err)
	}
	if got := what(draft(prose("a", 20_001))); got != "context bytes" {
		t.Errorf("a context that is too large: %s", got)
	}
	c := create(t, s, alice, draft(prose("a", 19_000)))
	if got := what(draft(prose("b", 19_000))); got != "bytes" {
		t.Errorf("too many bytes: %s", got)
	}
	create(t, s, alice, draft(prose("a", 19_000)))
	if got := what(draft("x")); got != "contexts" {
		t.Errorf("too many contexts: %s", got)
	}
	other := Owner{Tenant: "other"}
	var texts, ids []string
	for i := 0; ; i++ {
		text := prose(fmt.Sprint(i), 9000)
		made, err := s.Create(t.Context(), other, draft(text))
		if errors.Is(err, ErrFull) {
			break
		}
		if err != nil || i > 1000 {
			t.Fatal(i, err)
		}
		texts, ids = append(texts, text), append(ids, made.ID)
	}
	for i, id := range ids {
		wantText(t, s, other, Ref{ID: id}, texts[i], page.Gone)
	}
	wantText(t, s, alice, Ref{ID: c.ID}, prose("a", 19_000), page.Gone)
	if err := s.Delete(t.Context(), other, Ref{ID: ids[0]}); err != nil {
		t.Fatal(err)
	}
	create(t, s, other, draft(prose("last", 8000)))
}

// S11: all pairs of owners, scopes and ways to reach a context; what is not the owner's is an error
// in the words of what never was.
func TestNobodySeesWhatIsNotTheirs(t *testing.T) {
	t.Parallel()
	s := newStore(t, testOptions(testkit.NewClock()), nil)
	var owners []Owner
	for _, tenant := range []string{"a", "b", "", "a\x00", "{a}"} {
		for _, session := range []string{"s1", "s2"} {
			for _, subject := range []string{"k1", "k2"} {
				owners = append(owners, Owner{tenant, session, subject})
			}
		}
	}
	no := time.Hour
	ways := map[string]func(Owner, Ref) error{
		"resolve": func(o Owner, r Ref) error { snap, err := s.Resolve(t.Context(), o, r); snap.Release(); return err },
		"get":     func(o Owner, r Ref) error { _, err := s.Get(t.Context(), o, r); return err },
		"patch":   func(o Owner, r Ref) error { _, err := s.Patch(t.Context(), o, r, Patch{TTL: &no}); return err },
		"append":  func(o Owner, r Ref) error { _, err := s.Append(t.Context(), o, r, Content{Text: "."}); return err },
		"fork": func(o Owner, r Ref) error {
			_, err := s.Create(t.Context(), o, Draft{Content: Content{Text: "."}, Parent: r})
			return err
		},
		"lease":     func(o Owner, r Ref) error { _, err := s.Lease(t.Context(), o, r, time.Minute); return err },
		"facts":     func(o Owner, r Ref) error { _, err := s.Facts(t.Context(), o, r); return err },
		"set facts": func(o Owner, r Ref) error { _, err := s.SetFacts(t.Context(), o, r, nil); return err },
		"page out":  func(o Owner, r Ref) error { _, err := s.PageOut(t.Context(), o, r, page.L2); return err },
		"wake":      func(o Owner, r Ref) error { _, err := s.Wake(t.Context(), o, r); return err },
		"delete":    func(o Owner, r Ref) error { return s.Delete(t.Context(), o, r) },
	}
	never := Ref{ID: newID()}
	for _, owner := range owners {
		for _, scope := range []Scope{TenantScope, SessionScope, PrivateScope} {
			c := create(t, s, owner, Draft{Content: Content{Text: "the same text for all"}, Scope: scope})
			for _, other := range owners {
				mine := owner.Tenant == other.Tenant &&
					(scope == TenantScope || (scope == SessionScope && owner.Session == other.Session) || (scope == PrivateScope && owner.Subject == other.Subject))
				if mine {
					continue
				}
				for name, way := range ways {
					err := way(other, Ref{ID: c.ID})
					if err == nil || err.Error() != way(other, never).Error() || !errors.Is(err, ErrNotFound) {
						t.Fatalf("%s by %+v of a context of %+v in scope %v: %v", name, other, owner, scope, err)
					}
				}
				list, _, err := s.List(t.Context(), other, "", 100)
				if err != nil || slices.ContainsFunc(list, func(x Context) bool { return x.ID == c.ID }) {
					t.Fatalf("listed for %+v, %v", other, err)
				}
			}
			if err := ways["resolve"](owner, Ref{ID: c.ID}); err != nil {
				t.Fatalf("the owner %+v: %v", owner, err)
			}
			if err := s.Delete(t.Context(), owner, Ref{ID: c.ID}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestListsGoThroughAllPages(t *testing.T) {
	t.Parallel()
	s := newStore(t, testOptions(testkit.NewClock()), nil)
	want := map[string]bool{}
	for i := range 25 {
		want[create(t, s, alice, draft(fmt.Sprint(i))).ID] = true
	}
	after, pages := "", 0
	for {
		list, next, err := s.List(t.Context(), alice, after, 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range list {
			if !want[c.ID] {
				t.Errorf("%s twice or never made", c.ID)
			}
			delete(want, c.ID)
		}
		if pages++; next == "" {
			break
		}
		after = next
	}
	if len(want) != 0 || pages != 3 {
		t.Errorf("%d are missing after %d pages", len(want), pages)
	}
}

func TestRunPagesOutWakesAndEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := testOptions(testkit.NewClock())
		o.Now = time.Now
		s := newStore(t, o, nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		c := create(t, s, alice, draft("text"))
		time.Sleep(32 * time.Second) // of the bubble
		got, err := s.Get(t.Context(), alice, Ref{ID: c.ID})
		if err != nil || got.Status != PagedL2 {
			t.Errorf("after 32 s: %v, %v", got.Status, err)
		}
		if got, err := s.Wake(t.Context(), alice, Ref{ID: c.ID}); err != nil || got.Status != Waking {
			t.Errorf("waking: %v, %v", got.Status, err)
		}
		synctest.Wait()
		if got, err = s.Get(t.Context(), alice, Ref{ID: c.ID}); err != nil || got.Status != Active {
			t.Errorf("woken: %v, %v", got.Status, err)
		}
		time.Sleep(2 * time.Hour) // of the bubble
		wantError(t, s, alice, Ref{ID: c.ID}, ErrExpired)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestWhatAnOlderModelDerivedIsDerivedAgainOnce(t *testing.T) {
	t.Parallel()
	clock := testkit.NewClock()
	server := testkit.NewRedis(t)
	old := newStore(t, testOptions(clock), connect(t, server, clock.Now))
	c := create(t, old, alice, draft("two words"))
	o := testOptions(clock)
	fails, words := true, new(wordCount)
	o.Revision = "r2"
	o.Derive = func(ctx context.Context, t Text) (Derived, error) {
		if fails {
			return Derived{}, errors.New("no model")
		}
		return words.derive(ctx, t)
	}
	s := newStore(t, o, connect(t, server, clock.Now))
	revision := func(s *Store) string {
		snap, err := s.Resolve(t.Context(), alice, Ref{ID: c.ID})
		if err != nil {
			t.Fatal(err)
		}
		defer snap.Release()
		return snap.Derived.Revision
	}
	if got := revision(s); got != "r1" {
		t.Errorf("without a model the verdicts are of %q", got)
	}
	fails = false
	for range 3 {
		if got := revision(s); got != "r2" {
			t.Errorf("the verdicts are of %q", got)
		}
	}
	s.repair(t.Context(), <-s.repairs)
	if got := revision(newStore(t, o, connect(t, server, clock.Now))); got != "r2" || words.calls != 1 {
		t.Errorf("a third replica has %q after %d derivations", got, words.calls)
	}
}

func TestWhatCouldNotBeDerivedIsDerivedAgain(t *testing.T) {
	t.Parallel()
	clock := testkit.NewClock()
	o, away, words := testOptions(clock), true, new(wordCount)
	o.Derive = func(ctx context.Context, t Text) (Derived, error) {
		if away {
			return Derived{Partial: true}, nil
		}
		return words.derive(ctx, t)
	}
	s := newStore(t, o, nil)
	c := create(t, s, alice, draft("two words"))
	verdicts := func() string {
		snap, err := s.Resolve(t.Context(), alice, Ref{ID: c.ID})
		if err != nil {
			t.Fatal(err)
		}
		defer snap.Release()
		return string(snap.Derived.Verdicts)
	}
	if got := verdicts(); got != "" {
		t.Errorf("without a model: %s", got)
	}
	away = false
	for range 2 {
		clock.Pass(10 * time.Minute)
		s.Sweep(t.Context())
		if got := verdicts(); got != `{"jailbreak":0.1}` {
			t.Errorf("with the model: %q", got)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{
		"short lives":                 {TTL: time.Second},
		"negative":                    {Fresh: -1, Contexts: -1},
		"watermarks":                  {Pages: page.Options{Low: 0.9, High: 0.8}},
		"deriving without a revision": {Derive: new(wordCount).derive},
	} {
		if _, err := New(o, nil); err == nil {
			t.Errorf("%s are taken", name)
		}
	}
}
