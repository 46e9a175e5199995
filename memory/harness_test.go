package memory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"signalbox/internal/testkit"
	"signalbox/memory/blob"
	"signalbox/memory/page"
	"signalbox/memory/redis"
)

func TestMain(m *testing.M) {
	if os.Getenv(replicaURL) != "" {
		replica() // never returns
	}
	x := make([]byte, blob.Small+1) // the codecs' channels must not be of a bubble
	packed, sum := blob.Pack(x)
	if _, err := blob.Repack(packed, int64(len(x)), sum); err != nil {
		panic(err)
	}
	testkit.VerifyNoLeaks(m)
}

var alice = Owner{Tenant: "acme", Session: "s1", Subject: "alice"}

// wordCount derives the number of words, and counts its calls.
type wordCount struct{ calls int }

func (w *wordCount) derive(_ context.Context, t Text) (Derived, error) {
	w.calls++
	return Derived{Tokens: map[string]int{"m": len(strings.Fields(t.Text))}, Verdicts: json.RawMessage(`{"jailbreak":0.1}`), Skeleton: t.Text[:min(20, len(t.Text))]}, nil
}

// ground makes the facts into a string.
func ground(_ context.Context, t Text) (any, error) { return fmt.Sprint(len(t.Facts), " facts"), nil }

func testOptions(clock *testkit.Clock) Options {
	return Options{Now: clock.Now, Revision: "r1", Derive: new(wordCount).derive, Ground: ground}
}

func newStore(tb testing.TB, o Options, remote Remote) *Store {
	tb.Helper()
	s, err := New(o, remote)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// connect opens a connection to Redis with budgets that a busy machine keeps.
func connect(tb testing.TB, server *testkit.Redis, now func() time.Time) *redis.Store {
	tb.Helper()
	r, err := redis.Open(tb.Context(), redis.Options{
		URL: server.URL(), MetaBudget: testkit.Patience, BlobBudget: testkit.Patience, WriteBudget: testkit.Patience, Failures: 1, Now: now,
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(r.Close)
	return r
}

func create(tb testing.TB, s *Store, owner Owner, d Draft) Context {
	tb.Helper()
	c, err := s.Create(tb.Context(), owner, d)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func draft(text string) Draft { return Draft{Content: Content{Text: text}} }

// wantText resolves a reference and compares the text.
func wantText(tb testing.TB, s *Store, owner Owner, ref Ref, want string, from page.Tier) {
	tb.Helper()
	snap, err := s.Resolve(tb.Context(), owner, ref)
	if err != nil {
		tb.Fatalf("resolve %+v: %v", ref, err)
	}
	defer snap.Release()
	if got, err := snap.Text(); err != nil || got != want {
		tb.Fatalf("%+v is %.60q, %v; want %.60q", ref, got, err, want)
	}
	if from != page.Gone && snap.Tier != from {
		tb.Fatalf("%+v came from %v, want %v", ref, snap.Tier, from)
	}
}

func wantError(tb testing.TB, s *Store, owner Owner, ref Ref, want error) {
	tb.Helper()
	snap, err := s.Resolve(tb.Context(), owner, ref)
	snap.Release()
	if !errors.Is(err, want) {
		tb.Fatalf("resolve %+v: %v, want %v", ref, err, want)
	}
}

func isUnavailable(err error) bool {
	var u *UnavailableError
	return errors.As(err, &u) && u.RetryAfter > 0
}

// prose is n bytes of text that differ by name.
func prose(name string, n int) string {
	words := strings.Fields("the lessee shall pay rent on first day of each month to lessor at address given in writing unless premises are unfit for use as agreed herein")
	var b strings.Builder
	state := uint64(len(name)) + 88172645463325252
	for _, c := range name {
		state = state*31 + uint64(c)
	}
	for b.Len() < n {
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
		b.WriteString(words[state%uint64(len(words))])
		if state%11 == 0 {
			fmt.Fprintf(&b, " %d", state>>40%10_000)
		}
		b.WriteByte(" \n"[state>>20&15/15])
	}
	return b.String()[:n]
}
