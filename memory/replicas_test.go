package memory

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"signalbox/internal/testkit"
	"signalbox/memory/blob"
	"signalbox/memory/ledger"
	"signalbox/memory/page"
	"signalbox/memory/redis"
)

// replicaURL names the environment variable that makes the test binary a replica.
const replicaURL = "SIGNALBOX_TEST_REPLICA"

// replica creates and appends without end, and prints each id and version once it is acknowledged.
func replica() {
	ctx := context.Background()
	fail := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	remote, err := redis.Open(ctx, redis.Options{
		URL: os.Getenv(replicaURL), MetaBudget: testkit.Patience, BlobBudget: testkit.Patience, WriteBudget: testkit.Patience,
	})
	fail(err)
	s, err := New(Options{}, remote)
	fail(err)
	for i := 0; ; i++ {
		c, err := s.Create(ctx, alice, Draft{Content: Content{Text: prose(fmt.Sprint(i), 80_000)}, Facts: []Fact{{Text: "fact"}}})
		fail(err)
		fmt.Println(i, c.ID, c.Version)
		_, err = s.PageOut(ctx, alice, Ref{ID: c.ID}, page.L3)
		fail(err)
		s.Sweep(ctx) // it is packed tightly, and replaced in Redis
		c, err = s.Append(ctx, alice, Ref{ID: c.ID}, Content{Text: fmt.Sprint("more ", i)})
		fail(err)
		fmt.Println(i, c.ID, c.Version)
	}
}

func TestKillingAReplicaLosesNothingAcknowledged(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), replicaURL+"="+server.URL())
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var acknowledged []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if acknowledged = append(acknowledged, lines.Text()); len(acknowledged) == 25 {
			if err := cmd.Process.Kill(); err != nil { // and read on: what was printed was acknowledged
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait()
	if len(acknowledged) < 25 {
		t.Fatalf("the replica ended after %d", len(acknowledged))
	}
	s := newStore(t, Options{}, connect(t, server, time.Now))
	for _, line := range acknowledged {
		var i, version int
		var id string
		if _, err := fmt.Sscan(line, &i, &id, &version); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		want := prose(fmt.Sprint(i), 80_000)
		if version == 2 {
			want += fmt.Sprint("more ", i)
		}
		wantText(t, s, alice, Ref{ID: id, Version: version}, want, page.Gone)
		if facts, err := s.Facts(t.Context(), alice, Ref{ID: id, Version: version}); err != nil || len(facts) != 1 {
			t.Fatalf("facts of %s: %v, %v", line, facts, err)
		}
	}
}

// watching runs a store until the test ends, and returns once it hears of changes.
func watching(t *testing.T, s *Store) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done, heard := make(chan error, 1), make(chan struct{}, 1)
	remote, ok := s.remote.(*redis.Store)
	if !ok {
		t.Fatal("not a store over Redis")
	}
	s.remote = listening{remote, heard}
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	<-heard
}

// listening says when the channel is subscribed to.
type listening struct {
	*redis.Store
	heard chan struct{}
}

func (l listening) Watch(ctx context.Context, changed func(ledger.News), missed func()) error {
	return l.Store.Watch(ctx, changed, func() { missed(); l.heard <- struct{}{} })
}

func TestReplicasSeeEachOther(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	clock := testkit.NewClock()
	a := newStore(t, testOptions(clock), connect(t, server, clock.Now))
	b := newStore(t, testOptions(clock), connect(t, server, clock.Now))
	news := make(chan ledger.News, 100)
	ctx, cancel := context.WithCancel(t.Context())
	ready, done := make(chan struct{}, 1), make(chan error)
	go func() {
		done <- b.remote.Watch(ctx, func(n ledger.News) { b.changed(n); news <- n }, func() { b.cache.doubt(); ready <- struct{}{} })
	}()
	<-ready
	c := create(t, a, alice, draft("from a"))
	<-news
	wantText(t, b, alice, Ref{ID: c.ID}, "from a", page.L3)
	wantText(t, b, alice, Ref{ID: c.ID}, "from a", page.Hot)
	if _, err := a.Append(t.Context(), alice, Ref{ID: c.ID}, Content{Text: ", more"}); err != nil {
		t.Fatal(err)
	}
	<-news
	wantText(t, b, alice, Ref{ID: c.ID}, "from a, more", page.L3)
	if _, err := a.SetFacts(t.Context(), alice, Ref{ID: c.ID}, []Fact{{Text: "f"}}); err != nil {
		t.Fatal(err)
	}
	<-news
	if facts, err := b.Facts(t.Context(), alice, Ref{ID: c.ID}); err != nil || len(facts) != 1 {
		t.Errorf("b has facts %v, %v", facts, err)
	}
	if err := a.Delete(t.Context(), alice, Ref{ID: c.ID}); err != nil {
		t.Fatal(err)
	}
	<-news
	wantError(t, b, alice, Ref{ID: c.ID}, ErrNotFound)
	if st := b.Stats(); st.Hot+st.L2 != 0 {
		t.Errorf("b keeps %+v of what a has deleted", st)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestWithoutNewsARecordIsAskedForAgainSoon(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	clock := testkit.NewClock()
	a := newStore(t, testOptions(clock), connect(t, server, clock.Now))
	b := newStore(t, testOptions(clock), connect(t, server, clock.Now))
	c := create(t, a, alice, draft("text"))
	wantText(t, b, alice, Ref{ID: c.ID}, "text", page.L3)
	if err := a.Delete(t.Context(), alice, Ref{ID: c.ID}); err != nil {
		t.Fatal(err)
	}
	clock.Pass(b.o.Fresh)
	wantError(t, b, alice, Ref{ID: c.ID}, ErrNotFound)
}

func TestTouchesReachTheOtherReplicas(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	clock := testkit.NewClock()
	a := newStore(t, testOptions(clock), connect(t, server, clock.Now))
	b := newStore(t, testOptions(clock), connect(t, server, clock.Now))
	c := create(t, a, alice, draft("text"))
	wantText(t, b, alice, Ref{ID: c.ID}, "text", page.L3)
	for range 3 {
		clock.Pass(50 * time.Minute)
		wantText(t, a, alice, Ref{ID: c.ID}, "text", page.Gone)
		a.Sweep(t.Context())
		b.Sweep(t.Context())
	}
	wantText(t, b, alice, Ref{ID: c.ID}, "text", page.L3)
	clock.Pass(2 * time.Hour)
	a.Sweep(t.Context())
	b.Sweep(t.Context())
	wantError(t, a, alice, Ref{ID: c.ID}, ErrExpired)
	wantError(t, b, alice, Ref{ID: c.ID}, ErrExpired)
}

// What was put off before a change of how long a context lives must not undo the change, whichever
// replica put it off.
func TestAChangedLifeOutlastsTheUsesBeforeIt(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	short, fixed := 30*time.Second, true
	for name, p := range map[string]Patch{"a ttl": {TTL: &short}, "a fixed end": {Fixed: &fixed}} {
		clock := testkit.NewClock()
		a := newStore(t, testOptions(clock), connect(t, server, clock.Now))
		b := newStore(t, testOptions(clock), connect(t, server, clock.Now))
		c := create(t, a, alice, draft("text"))
		clock.Pass(20 * time.Minute)
		for _, s := range []*Store{a, b} {
			wantText(t, s, alice, Ref{ID: c.ID}, "text", page.Gone)
		}
		changed, err := a.Patch(t.Context(), alice, Ref{ID: c.ID}, p)
		if err != nil {
			t.Fatal(name, err)
		}
		a.Sweep(t.Context())
		b.Sweep(t.Context())
		clock.Pass(b.o.Fresh)
		for _, s := range []*Store{a, b} {
			got, err := s.Get(t.Context(), alice, Ref{ID: c.ID})
			if err != nil || !got.Expires.Equal(changed.Expires) {
				t.Errorf("%s: it ends %v, want %v (%v)", name, got.Expires, changed.Expires, err)
			}
		}
	}
}

func TestAnOutageIsServedFromRAM(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	clock := testkit.NewClock()
	s := newStore(t, testOptions(clock), connect(t, server, clock.Now))
	hot := create(t, s, alice, draft("hot"))
	l2 := create(t, s, alice, draft("l2"))
	l3 := create(t, s, alice, draft("l3"))
	for id, tier := range map[string]page.Tier{l2.ID: page.L2, l3.ID: page.L3} {
		if got, err := s.PageOut(t.Context(), alice, Ref{ID: id}, tier); err != nil || got.Tier != tier {
			t.Fatalf("paged out to %v, %v", got.Tier, err)
		}
	}
	server.Stop()
	clock.Pass(10 * time.Second)
	wantText(t, s, alice, Ref{ID: hot.ID}, "hot", page.Hot)
	wantText(t, s, alice, Ref{ID: l2.ID}, "l2", page.L2)
	if _, err := s.Resolve(t.Context(), alice, Ref{ID: l3.ID}); !isUnavailable(err) {
		t.Errorf("what is in Redis: %v", err)
	}
	if _, err := s.Create(t.Context(), alice, draft("strict")); !isUnavailable(err) {
		t.Errorf("created without Redis: %v", err)
	}
	if err := s.Delete(t.Context(), alice, Ref{ID: hot.ID}); !isUnavailable(err) {
		t.Errorf("deleted without Redis: %v", err)
	}
	d := draft("best effort")
	d.BestEffort = true
	kept := create(t, s, alice, d)
	if kept.Durable {
		t.Error("it is said to be durable")
	}
	s.Sweep(t.Context())
	clock.Pass(10 * time.Minute)
	s.Sweep(t.Context())
	wantText(t, s, alice, Ref{ID: kept.ID}, "best effort", page.L2)
	server.Start()
	clock.Pass(2 * time.Second)
	s.Sweep(t.Context())
	for _, c := range []struct {
		id, text string
		from     page.Tier
	}{{l3.ID, "l3", page.L3}, {kept.ID, "best effort", page.Gone}, {hot.ID, "hot", page.Gone}} {
		wantText(t, s, alice, Ref{ID: c.id}, c.text, c.from)
	}
	other := newStore(t, testOptions(clock), connect(t, server, clock.Now))
	wantText(t, other, alice, Ref{ID: kept.ID}, "best effort", page.L3)
	if got, err := s.Get(t.Context(), alice, Ref{ID: kept.ID}); err != nil || !got.Durable {
		t.Errorf("after the outage: durable %v, %v", got.Durable, err)
	}
	create(t, s, alice, draft("strict again"))
}

// wrong hands out other bytes than were stored.
type wrong struct {
	Remote
	damage func([]byte) []byte
}

func (w wrong) Get(ctx context.Context, t ledger.Tenant, o ledger.Object) ([]byte, error) {
	packed, err := w.Remote.Get(ctx, t, o)
	return w.damage(packed), err
}

// S12: what Redis gives in the place of a snapshot is not served.
func TestBytesWithAWrongSumAreNeverServed(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	clock := testkit.NewClock()
	a := newStore(t, testOptions(clock), connect(t, server, clock.Now))
	c := create(t, a, alice, draft(prose("x", 5000)))
	for name, damage := range map[string]func([]byte) []byte{
		"another text": func([]byte) []byte { other, _ := blob.Pack([]byte(prose("y", 5000))); return other },
		"a bit":        func(b []byte) []byte { b = bytes.Clone(b); b[len(b)/2] ^= 4; return b },
		"half of it":   func(b []byte) []byte { return b[:len(b)/2] },
		"nothing":      func([]byte) []byte { return nil },
	} {
		s := newStore(t, testOptions(clock), wrong{connect(t, server, clock.Now), damage})
		snap, err := s.Resolve(t.Context(), alice, Ref{ID: c.ID})
		if !isUnavailable(err) || snap != nil {
			t.Errorf("%s: %v, %v", name, snap, err)
		}
	}
}

// silent is a Redis that tells of names and of no records.
type silent struct{ *redis.Store }

func (silent) Load(context.Context, ledger.Tenant, string) (ledger.Entry, error) {
	return ledger.Entry{}, ledger.ErrUnavailable
}

func TestAListIsWholeOrAnError(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	clock := testkit.NewClock()
	create(t, newStore(t, testOptions(clock), connect(t, server, clock.Now)), alice, draft("text"))
	s := newStore(t, testOptions(clock), silent{connect(t, server, clock.Now)})
	if list, _, err := s.List(t.Context(), alice, "", 10); !isUnavailable(err) {
		t.Errorf("records cannot be read, and the list has %d contexts, %v", len(list), err)
	}
}

func TestAFullRedisIsAFullStore(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t, "--maxmemory", "6mb", "--maxmemory-policy", "noeviction")
	clock := testkit.NewClock()
	s := newStore(t, testOptions(clock), connect(t, server, clock.Now))
	var made []string
	for i := 0; ; i++ {
		c, err := s.Create(t.Context(), alice, draft(prose(fmt.Sprint(i), 900_000)))
		if errors.Is(err, ErrFull) {
			break
		}
		if err != nil || i > 200 {
			t.Fatal(i, err)
		}
		made = append(made, c.ID)
	}
	for i, id := range made {
		wantText(t, s, alice, Ref{ID: id}, prose(fmt.Sprint(i), 900_000), page.Gone)
	}
	if err := s.Delete(t.Context(), alice, Ref{ID: made[0]}); err != nil {
		t.Fatal(err)
	}
	create(t, s, alice, draft("small"))
}

// That a Redis has no room for more ends nothing that is in use.
func TestAFullRedisKeepsWhatIsUsed(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t, "--maxmemory-policy", "noeviction")
	clock := testkit.NewClock()
	link := connect(t, server, clock.Now)
	s := newStore(t, testOptions(clock), link)
	c := create(t, s, alice, draft("text"))
	err := link.Do(t.Context(), testkit.Patience, func(ctx context.Context, r rueidis.Client) error {
		return r.Do(ctx, r.B().ConfigSet().ParameterValue().ParameterValue("maxmemory", "100kb").Build()).Error()
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create(t.Context(), alice, draft("more")); !errors.Is(err, ErrFull) {
		t.Fatalf("it is not full: %v", err)
	}
	for range 5 {
		clock.Pass(40 * time.Minute)
		s.Sweep(t.Context())
		wantText(t, s, alice, Ref{ID: c.ID}, "text", page.Gone)
		s.Sweep(t.Context())
	}
}

func TestReplicasThatChangeTheSameContextAllSucceed(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	a := newStore(t, Options{}, connect(t, server, time.Now))
	b := newStore(t, Options{}, connect(t, server, time.Now))
	watching(t, a)
	watching(t, b)
	c := create(t, a, alice, draft("start"))
	const each = 10
	errs := make(chan error, 2)
	for _, s := range []*Store{a, b} {
		go func() {
			var err error
			for n := 0; n < each && err == nil; {
				_, err = s.Append(t.Context(), alice, Ref{ID: c.ID}, Content{Text: "."})
				if conflict := (*ConflictError)(nil); errors.As(err, &conflict) {
					err = nil // five others in a row were faster
					continue
				}
				n++
			}
			errs <- err
		}()
	}
	if err := errors.Join(<-errs, <-errs); err != nil {
		t.Fatal(err)
	}
	wantText(t, newStore(t, Options{}, connect(t, server, time.Now)), alice, Ref{ID: c.ID}, "start"+strings.Repeat(".", 2*each), page.L3)
}
