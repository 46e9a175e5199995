package memory

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"signalbox/internal/testkit"
	"signalbox/memory/ledger"
	"signalbox/memory/page"
	"signalbox/memory/redis"
)

// S12: everything that Redis has of one tenant is put where the other tenant's is. Neither gets a
// byte of the other's text, its facts or those of its sessions: what is found in the wrong place
// cannot be read.
func TestS12SnapshotsInThePlaceOfAnotherTenantsAreNotRead(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	clock := testkit.NewClock()
	bob := Owner{Tenant: "bobs", Session: alice.Session, Subject: "bob"}
	fresh := func() *Store { // with nothing in RAM; what cannot be read is no outage
		const long = testkit.Patience
		r, err := redis.Open(t.Context(), redis.Options{URL: server.URL(), MetaBudget: long, BlobBudget: long, WriteBudget: long, Failures: 1})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(r.Close)
		return newStore(t, testOptions(clock), r)
	}
	a := fresh()
	ids := map[Owner]string{}
	for _, o := range []Owner{alice, bob} {
		ids[o] = create(t, a, o, Draft{Content: Content{Text: "the secret of " + o.Subject}, Facts: []Fact{{Text: "a fact of " + o.Subject}}}).ID
		if err := a.SetSessionFacts(t.Context(), o, []Fact{{Text: "a session's fact of " + o.Subject}}, 0); err != nil {
			t.Fatal(err)
		}
	}
	link := connect(t, server, clock.Now)
	n := swapTenants(t, link, alice.Tenant, bob.Tenant)
	if n < 20 {
		t.Fatalf("%d keys were swapped: there is nothing to find", n)
	}
	b := fresh()
	for o, other := range map[Owner]Owner{alice: bob, bob: alice} {
		for _, id := range ids {
			snap, err := b.Resolve(t.Context(), o, Ref{ID: id})
			if err == nil {
				text, _ := snap.Text()
				t.Errorf("%s got %q and %v", o.Subject, text, snap.Facts)
			}
			snap.Release()
		}
		if facts, err := b.SessionFacts(t.Context(), o); err == nil {
			t.Errorf("%s got %v of the session of %s", o.Subject, facts, other.Subject)
		}
	}
	swapTenants(t, link, alice.Tenant, bob.Tenant)
	c := fresh()
	for o, id := range ids {
		wantText(t, c, o, Ref{ID: id}, "the secret of "+o.Subject, page.L3)
		if facts, err := c.SessionFacts(t.Context(), o); err != nil || len(facts) != 1 || facts[0].Text != "a session's fact of "+o.Subject {
			t.Errorf("back in its place: %v, %v", facts, err)
		}
	}
}

// swapTenants gives the keys of each tenant the names of the other, and returns how many there
// were.
func swapTenants(t *testing.T, link *redis.Store, a, b string) (n int) {
	t.Helper()
	hashes := [2]string{string(ledger.TenantOf(a)), string(ledger.TenantOf(b))}
	err := link.Do(t.Context(), time.Minute, func(ctx context.Context, c rueidis.Client) error {
		keys, err := c.Do(ctx, c.B().Keys().Pattern("cx:{*").Build()).AsStrSlice()
		if err != nil {
			return err
		}
		for _, step := range []struct{ from, to string }{{"", "swapped:"}, {"swapped:", ""}} {
			for _, k := range keys {
				from, to := step.from+k, step.to+k
				if step.to == "" {
					to = strings.NewReplacer(hashes[0], hashes[1], hashes[1], hashes[0]).Replace(k)
				}
				if err := c.Do(ctx, c.B().Rename().Key(from).Newkey(to).Build()).Error(); err != nil {
					return err
				}
			}
		}
		n = len(keys)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// S12: a record that says of its objects what cannot be is an error, and costs no more than one
// that is whole.
func TestS12RecordsThatSayWhatCannotBeAreErrors(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	clock := testkit.NewClock()
	c := create(t, newStore(t, testOptions(clock), connect(t, server, clock.Now)), alice, draft(prose("x", 5000)))
	link := connect(t, server, clock.Now)
	key := "cx:{" + string(ledger.TenantOf(alice.Tenant)) + "}:c:" + c.ID
	whole := ""
	if err := link.Do(t.Context(), time.Minute, func(ctx context.Context, r rueidis.Client) (err error) {
		whole, err = r.Do(ctx, r.B().Hget().Key(key).Field("rec").Build()).ToString()
		return err
	}); err != nil {
		t.Fatal(err)
	}
	number := regexp.MustCompile(`("size"|"packed"|"bytes"):\d+`)
	var bad []string
	for _, n := range []string{"-1", "0", "1", "4611686018427387904", "-9223372036854775808", "1e400", `"5000"`, "{}"} {
		bad = append(bad, number.ReplaceAllString(whole, "$1:"+n), strings.Replace(whole, `"packed":`, `"packed":`+n+`,"was":`, 1), strings.Replace(whole, `"size":`, `"size":`+n+`,"was":`, 1))
	}
	bad = append(bad, "", "null", "{}", "[]", whole[:len(whole)-1], whole+"}", strings.ReplaceAll(whole, `"segments":[`, `"segments":[{},`),
		regexp.MustCompile(`"sum":"[0-9a-f]{64}"`).ReplaceAllString(whole, `"sum":"`+strings.Repeat("00", 32)+`"`), strings.ReplaceAll(whole, `"versions":[`, `"versions":[[`))
	put := func(record string) {
		t.Helper()
		if err := link.Do(t.Context(), time.Minute, func(ctx context.Context, r rueidis.Client) error {
			return r.Do(ctx, r.B().Hset().Key(key).FieldValue().FieldValue("rec", record).Build()).Error()
		}); err != nil {
			t.Fatal(err)
		}
	}
	for i, record := range bad {
		put(record)
		s := newStore(t, testOptions(clock), connect(t, server, clock.Now))
		snap, err := s.Resolve(t.Context(), alice, Ref{ID: c.ID})
		if err == nil {
			if text, _ := snap.Text(); text != prose("x", 5000) { // what no reader looks at may be anything
				t.Errorf("%d: %.40q of %s", i, text, record)
			}
		}
		snap.Release()
	}
	put(whole)
	wantText(t, newStore(t, testOptions(clock), connect(t, server, clock.Now)), alice, Ref{ID: c.ID}, prose("x", 5000), page.L3)
}
