package redis

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"signalbox/internal/testkit"
	"signalbox/memory/blob"
	"signalbox/memory/ledger"
)

func TestMain(m *testing.M) { testkit.VerifyNoLeaks(m) }

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// patient budgets keep a busy machine from failing tests that are not about time.
func patient(url string) Options {
	return Options{
		URL: url, RateBudget: 10 * time.Second, MetaBudget: 10 * time.Second, BlobBudget: 10 * time.Second,
		WriteBudget: 10 * time.Second,
	}
}

func open(tb testing.TB, o Options) *Store {
	tb.Helper()
	s, err := Open(tb.Context(), o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Close)
	return s
}

func object(name string, n int) (ledger.Object, []byte, []byte) {
	var b bytes.Buffer
	for i := 0; b.Len() < n; i++ {
		sum := blob.Of(fmt.Appendf(nil, "%s %d", name, i))
		b.Write(sum[:])
	}
	raw := b.Bytes()[:n]
	packed, sum := blob.Pack(raw)
	return ledger.Object{Sum: sum, Size: int64(n), Packed: int64(len(packed))}, raw, packed
}

// book is what Local and Store have in common, but for Usage.
type book interface {
	Load(ctx context.Context, t ledger.Tenant, id string) (ledger.Entry, error)
	Commit(ctx context.Context, c ledger.Change) (int64, []ledger.Object, error)
	Touch(ctx context.Context, touches []ledger.Touch) error
	Due(ctx context.Context, now time.Time, n int) ([]ledger.Name, error)
	List(ctx context.Context, t ledger.Tenant, after string, n int) ([]string, error)
}

// TestBothBooksAnswerAlike does the same with the book in RAM and the one in Redis.
func TestBothBooksAnswerAlike(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	run := 0
	s := open(t, patient(server.URL()))
	rapid.Check(t, func(r *rapid.T) {
		if run++; testkit.Race && run > 25 {
			return
		}
		one := ledger.NewLocal(1000)
		s.o.Prefix = fmt.Sprintf("run%d", run)
		s.known.forget()
		tenants := []ledger.Tenant{"t1", "t2"}
		var objects []ledger.Object
		for i := range 4 {
			o, _, packed := object(fmt.Sprint(i), 1000*(i+1))
			objects = append(objects, o)
			for _, tenant := range tenants {
				if err := s.Put(r.Context(), tenant, o, packed); err != nil {
					r.Fatal(err)
				}
			}
		}
		ids := []string{"a", "b", "c"}
		draw := func(r *rapid.T) ledger.Name {
			return ledger.Name{Tenant: rapid.SampledFrom(tenants).Draw(r, "tenant"), ID: rapid.SampledFrom(ids).Draw(r, "id")}
		}
		r.Repeat(map[string]func(*rapid.T){
			"": func(r *rapid.T) { alike(r, one, s, tenants, ids) },
			"commit": func(r *rapid.T) {
				c := change(r, one, draw(r), objects)
				for _, o := range c.New.Objects() { // what was dropped before has gone from Redis
					_, _, packed := object(fmt.Sprint(o.Size/1000-1), int(o.Size))
					if err := s.Put(r.Context(), c.Tenant, o, packed); err != nil {
						r.Fatal(err)
					}
				}
				rev1, _, err1 := one.Commit(r.Context(), c)
				rev2, _, err2 := s.Commit(r.Context(), c)
				if rev1 != rev2 || reason(err1) != reason(err2) {
					r.Fatalf("RAM: %d, %v; Redis: %d, %v", rev1, err1, rev2, err2)
				}
			},
			"touch": func(r *rapid.T) {
				at := draw(r)
				end := start.Add(time.Duration(rapid.IntRange(0, 100).Draw(r, "end")) * time.Minute)
				list := []ledger.Touch{{Name: at, TTL: lifetime(r), Expires: end}}
				if err := errors.Join(one.Touch(r.Context(), list), s.Touch(r.Context(), list)); err != nil {
					r.Fatal(err)
				}
			},
		})
	})
}

func change(r *rapid.T, b book, at ledger.Name, objects []ledger.Object) ledger.Change {
	c := ledger.Change{
		Tenant: at.Tenant, ID: at.ID, Expires: start.Add(time.Duration(rapid.IntRange(0, 60).Draw(r, "expires")) * time.Minute),
		Limits: ledger.Limits{Contexts: 2, Bytes: 8000, Pinned: 100},
	}
	if e, err := b.Load(r.Context(), at.Tenant, at.ID); err == nil {
		c.Old, c.Rev = e.Record, e.Rev
	}
	if rapid.IntRange(0, 9).Draw(r, "stale") == 0 {
		c.Rev += 7
	}
	if rapid.IntRange(0, 3).Draw(r, "remove") == 0 {
		return c
	}
	c.New = &ledger.Record{
		ID: at.ID, Created: start, Pinned: rapid.Bool().Draw(r, "pinned"),
		Name: rapid.SampledFrom([]string{"", `"fixed":true`, `"ttl":1,`}).Draw(r, "name"),
		TTL:  lifetime(r), Fixed: rapid.IntRange(0, 3).Draw(r, "fixed") == 0,
		State: rapid.SampledFrom([]ledger.State{ledger.Live, ledger.Live, ledger.Deleted, ledger.Expired}).Draw(r, "state"),
	}
	segments := rapid.SliceOfNDistinct(rapid.SampledFrom(objects), 1, 3, rapid.ID[ledger.Object]).Draw(r, "segments")
	c.New.Versions = []ledger.Version{{Created: start, Segments: segments, Bytes: int64(rapid.IntRange(1, 80).Draw(r, "bytes"))}}
	return c
}

// lifetime is how long a record lives, or lived when it was used.
func lifetime(r *rapid.T) time.Duration {
	return rapid.SampledFrom([]time.Duration{time.Minute, time.Hour}).Draw(r, "ttl")
}

// reason is what an error says to a program.
func reason(err error) string {
	var limit *ledger.LimitError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &limit):
		return limit.What
	case errors.Is(err, ledger.ErrConflict):
		return "conflict"
	case errors.Is(err, ledger.ErrNotFound):
		return "not found"
	}
	return err.Error()
}

func alike(r *rapid.T, one *ledger.Local, two *Store, tenants []ledger.Tenant, ids []string) {
	ctx := r.Context()
	for _, t := range tenants {
		for _, id := range ids {
			a, err1 := one.Load(ctx, t, id)
			b, err2 := two.Load(ctx, t, id)
			if diff := cmp.Diff(a, b); diff != "" || reason(err1) != reason(err2) {
				r.Fatalf("load %s %s: %v, %v: %s", t, id, err1, err2, diff)
			}
		}
		n1, b1, err1 := one.Usage(ctx, t)
		n2, b2, err2 := two.Usage(ctx, t)
		if n1 != n2 || b1 != b2 || err1 != nil || err2 != nil {
			r.Fatalf("totals of %s: %d, %d, %v and %d, %d, %v", t, n1, b1, err1, n2, b2, err2)
		}
		l1, _ := one.List(ctx, t, "a", 5)
		l2, err := two.List(ctx, t, "a", 5)
		if fmt.Sprint(l1) != fmt.Sprint(l2) || err != nil {
			r.Fatalf("lists %v and %v, %v", l1, l2, err)
		}
	}
	d1, _ := one.Due(ctx, start.Add(30*time.Minute), 10)
	d2, err := two.Due(ctx, start.Add(30*time.Minute), 10)
	if len(d1) != len(d2) || err != nil {
		r.Fatalf("due %v and %v, %v", d1, d2, err)
	}
}

func record(id string, objects ...ledger.Object) *ledger.Record {
	return &ledger.Record{ID: id, Created: start, TTL: time.Hour, Versions: []ledger.Version{{Created: start, Segments: objects}}}
}

func create(tb testing.TB, s *Store, tenant ledger.Tenant, id, name string, n int) (ledger.Change, []byte) {
	tb.Helper()
	o, raw, packed := object(name, n)
	if err := s.Put(tb.Context(), tenant, o, packed); err != nil {
		tb.Fatal(err)
	}
	c := ledger.Change{Tenant: tenant, ID: id, New: record(id, o), Expires: start.Add(time.Hour)}
	if _, _, err := s.Commit(tb.Context(), c); err != nil {
		tb.Fatal(err)
	}
	return c, raw
}

func TestObjectsOfSeveralChunksComeBackAndGoWithTheLastReference(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	s := open(t, patient(server.URL()))
	first, raw := create(t, s, "t", "a", "big", 3*chunkSize/2)
	second, _ := create(t, s, "t", "b", "big", 3*chunkSize/2)
	o := first.New.Versions[0].Segments[0]
	get := func() error {
		packed, err := s.Get(t.Context(), "t", o)
		if err != nil {
			return err
		}
		got, err := blob.Unpack(packed, o.Size, o.Sum)
		if err == nil && !bytes.Equal(got, raw) {
			t.Error("other bytes")
		}
		return err
	}
	client := *s.client.Load()
	for n := range 2 {
		ttl, err := client.Do(t.Context(), client.B().Pttl().Key(s.chunkKey("t", o, n)).Build()).AsInt64()
		if err != nil || ttl != -1 {
			t.Errorf("chunk %d of a committed object lives for %d ms, %v", n, ttl, err)
		}
	}
	for _, c := range []ledger.Change{first, second} {
		if err := get(); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Commit(t.Context(), ledger.Change{Tenant: "t", ID: c.ID, Old: c.New, Rev: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if err := get(); !errors.Is(err, ledger.ErrMissing) {
		t.Errorf("nothing refers to it any more: %v", err)
	}
	keys, err := client.Do(t.Context(), client.B().Keys().Pattern("cx:{t}:*").Build()).AsStrSlice()
	if err != nil || len(keys) != 0 {
		t.Errorf("keys are left: %v, %v", keys, err)
	}
}

// keysOf are the keys of a tenant.
func keysOf(tb testing.TB, s *Store, tenant string) []string {
	tb.Helper()
	client := *s.client.Load()
	keys, err := client.Do(tb.Context(), client.B().Keys().Pattern(s.o.Prefix+":{"+tenant+"}:*").Build()).AsStrSlice()
	if err != nil {
		tb.Fatal(err)
	}
	return keys
}

func TestAnObjectIsReplacedByASmallerFormAndReadInEither(t *testing.T) {
	t.Parallel()
	s := open(t, patient(testkit.NewRedis(t).URL()))
	c, raw := create(t, s, "t", "a", "big", 5*chunkSize/2)
	o := c.New.Versions[0].Segments[0]
	whole, _ := blob.Pack(raw)
	forms := map[string][]byte{"three chunks": whole, "one": []byte("smaller"), "two": bytes.Repeat([]byte("x"), chunkSize+1)}
	for _, name := range []string{"one", "two", "three chunks", "two", "one"} {
		if err := s.Replace(t.Context(), "t", o, forms[name]); err != nil {
			t.Fatal(err)
		}
		got, err := s.Get(t.Context(), "t", o) // whose record speaks of three chunks
		if err != nil || !bytes.Equal(got, forms[name]) {
			t.Fatalf("in %s: %d bytes, %v", name, len(got), err)
		}
		if n := len(keysOf(t, s, "t")); n != 5+chunks(int64(len(got))) { // the record, its three sets and the object
			t.Errorf("in %s: %d keys: %v", name, n, keysOf(t, s, "t"))
		}
	}
	client := *s.client.Load()
	if ttl, err := client.Do(t.Context(), client.B().Pttl().Key(s.chunkKey("t", o, 0)).Build()).AsInt64(); err != nil || ttl != -1 {
		t.Errorf("what replaced a chunk lives for %d ms, %v", ttl, err)
	}
	if _, _, err := s.Commit(t.Context(), ledger.Change{Tenant: "t", ID: "a", Old: c.New, Rev: 1}); err != nil {
		t.Fatal(err)
	}
	if err := s.Replace(t.Context(), "t", o, forms["two"]); err != nil {
		t.Errorf("of what is gone: %v", err)
	}
	if keys := keysOf(t, s, "t"); len(keys) != 0 {
		t.Errorf("keys are left: %v", keys)
	}
}

func TestReadersNeverSeeHalfOfAReplacement(t *testing.T) {
	t.Parallel()
	s := open(t, patient(testkit.NewRedis(t).URL()))
	c, raw := create(t, s, "t", "a", "big", 5*chunkSize/2)
	o := c.New.Versions[0].Segments[0]
	whole, _ := blob.Pack(raw)
	forms := [][]byte{bytes.Repeat([]byte("a"), 2*chunkSize), bytes.Repeat([]byte("b"), 3*chunkSize), whole}
	done := make(chan error)
	go func() {
		var err error
		for i := 0; i < 60 && err == nil; i++ {
			err = s.Replace(t.Context(), "t", o, forms[i%len(forms)])
		}
		done <- err
	}()
	for reads, busy := 0, true; busy || reads < 20; reads++ {
		select {
		case err := <-done:
			if busy = false; err != nil {
				t.Fatal(err)
			}
		default:
		}
		got, err := s.Get(t.Context(), "t", o)
		if errors.Is(err, ledger.ErrMissing) && strings.Contains(err.Error(), "again and again") {
			continue // three times in a row, which only a test does
		}
		if err != nil || !slices.ContainsFunc(forms, func(f []byte) bool { return bytes.Equal(f, got) }) {
			t.Fatalf("%d bytes, which are no form of it, %v", len(got), err)
		}
	}
}

func TestARecordIsNotCommittedWithoutItsBytes(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	s := open(t, patient(server.URL()))
	o, _, packed := object("x", 2*chunkSize)
	c := ledger.Change{Tenant: "t", ID: "a", New: record("a", o), Expires: start}
	if _, _, err := s.Commit(t.Context(), c); !errors.Is(err, ledger.ErrMissing) {
		t.Fatalf("committed: %v", err)
	}
	if err := s.Put(t.Context(), "t", o, packed); err != nil {
		t.Fatal(err)
	}
	client := *s.client.Load()
	if ttl, err := client.Do(t.Context(), client.B().Pttl().Key(s.chunkKey("t", o, 1)).Build()).AsInt64(); err != nil || ttl <= 0 {
		t.Errorf("a chunk without a record lives for %d ms, %v", ttl, err)
	}
	if err := client.Do(t.Context(), client.B().Del().Key(s.chunkKey("t", o, 1)).Build()).Error(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Commit(t.Context(), c); !errors.Is(err, ledger.ErrMissing) {
		t.Fatalf("committed without a chunk: %v", err)
	}
}

func TestScriptsSurviveAFlushOfTheScriptCache(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	s := open(t, patient(server.URL()))
	create(t, s, "t", "a", "x", 100)
	client := *s.client.Load()
	if err := client.Do(t.Context(), client.B().ScriptFlush().Build()).Error(); err != nil {
		t.Fatal(err)
	}
	create(t, s, "t", "b", "y", 100)
}

func TestFullRedisRefusesWhatGrowsAndLetsGoWhatShrinks(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t, "--maxmemory", "8mb", "--maxmemory-policy", "noeviction")
	s := open(t, patient(server.URL()))
	var done []ledger.Change
	var err error
	for i := 0; err == nil && i < 100; i++ {
		o, _, packed := object(fmt.Sprint("n", i), 300<<10)
		id := fmt.Sprint("id", i)
		if err = s.Put(t.Context(), "t", o, packed); err != nil {
			break
		}
		c := ledger.Change{Tenant: "t", ID: id, New: record(id, o), Expires: start}
		if _, _, err = s.Commit(t.Context(), c); err == nil {
			done = append(done, c)
		}
	}
	if !errors.Is(err, ledger.ErrFull) || len(done) == 0 {
		t.Fatalf("after %d records: %v", len(done), err)
	}
	n, size, err := s.Usage(t.Context(), "t")
	if err != nil || n != int64(len(done)) || size != n*300<<10 {
		t.Errorf("%d records of %d bytes are counted, %d were made, %v", n, size, len(done), err)
	}
	for _, c := range done {
		if _, _, err := s.Commit(t.Context(), ledger.Change{Tenant: "t", ID: c.ID, Old: c.New, Rev: 1}); err != nil {
			t.Fatalf("a full Redis does not delete: %v", err)
		}
	}
	if n, size, err := s.Usage(t.Context(), "t"); n != 0 || size != 0 || err != nil {
		t.Errorf("%d and %d are left, %v", n, size, err)
	}
	create(t, s, "t", "again", "z", 300<<10)
}

func TestAnOutageCostsTheBudgetAndThenNothing(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	clock := testkit.NewClock()
	o := Options{URL: server.URL(), MetaBudget: 20 * time.Millisecond, BlobBudget: 50 * time.Millisecond, WriteBudget: 10 * time.Second, Failures: 3, Now: clock.Now}
	s := open(t, o)
	create(t, s, "t", "a", "x", 100)
	server.Pause()
	for range 3 {
		if _, err := s.Load(t.Context(), "t", "a"); !errors.Is(err, ledger.ErrUnavailable) {
			t.Fatalf("a Redis that hangs: %v", err)
		}
	}
	if s.Healthy() {
		t.Fatal("three failures did not open the breaker")
	}
	if _, err := s.Load(t.Context(), "t", "a"); !errors.Is(err, ledger.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("an open breaker lets calls wait: %v", err)
	}
	server.Resume()
	s.o.MetaBudget = 10 * time.Second
	clock.Pass(time.Second)
	if _, err := s.Load(t.Context(), "t", "a"); err != nil || !s.Healthy() {
		t.Fatalf("after the outage: %v", err)
	}
}

// A Redis that refuses connections is no matter of waiting: with an hour to spend, a read fails
// soon. It hangs, and fails with the package, where reads are repeated for as long as they may.
func TestARefusedConnectionIsNotTriedForTheWholeBudget(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	s := open(t, Options{URL: server.URL(), MetaBudget: time.Hour, BlobBudget: time.Hour, Failures: 1000})
	server.Stop()
	for range 4 {
		if _, err := s.Load(t.Context(), ledger.TenantOf("acme"), "ctx_a"); !errors.Is(err, ledger.ErrUnavailable) {
			t.Fatal(err)
		}
	}
}

func TestACallerWhoLeavesDoesNotOpenTheBreaker(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	s := open(t, patient(server.URL()))
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for range 10 {
		if _, err := s.Load(gone, "t", "a"); err == nil {
			t.Fatal("loaded")
		}
	}
	if !s.Healthy() {
		t.Error("the breaker is open")
	}
}

func TestWatchersHearOfChangesAndOfWhatTheyMissed(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	a, b := open(t, patient(server.URL())), open(t, patient(server.URL()))
	news, missed := make(chan ledger.News, 10), make(chan struct{}, 10)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- b.Watch(ctx, func(n ledger.News) { news <- n }, func() { missed <- struct{}{} })
	}()
	<-missed
	c, _ := create(t, a, "t", "a", "x", 100)
	if n := <-news; n != (ledger.News{Name: ledger.Name{Tenant: "t", ID: "a"}, Rev: 1}) {
		t.Errorf("heard of %+v", n)
	}
	if _, _, err := a.Commit(t.Context(), ledger.Change{Tenant: "t", ID: "a", Old: c.New, Rev: 1}); err != nil {
		t.Fatal(err)
	}
	if n := <-news; n.Rev != 0 || n.ID != "a" {
		t.Errorf("heard of %+v", n)
	}
	server.Kill()
	server.Start()
	<-missed
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestAStoreOpensBeforeItsRedisDoes(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	server.Stop()
	o := patient(server.URL())
	o.Rest = 10 * time.Millisecond
	s := open(t, o)
	if _, err := s.Load(t.Context(), "t", "a"); !errors.Is(err, ledger.ErrUnavailable) || s.Healthy() {
		t.Fatalf("without Redis: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	connected, done := make(chan struct{}, 10), make(chan error)
	go func() { done <- s.Watch(ctx, func(ledger.News) {}, func() { connected <- struct{}{} }) }()
	server.Start()
	<-connected
	if _, err := s.Load(t.Context(), "t", "a"); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("with Redis: %v", err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestAnEvictingRedisIsWarnedOf(t *testing.T) {
	t.Parallel()
	for policy, warns := range map[string]bool{"allkeys-lru": true, "noeviction": false} {
		server := testkit.NewRedis(t, "--maxmemory-policy", policy)
		var log bytes.Buffer
		o := patient(server.URL())
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
		open(t, o)
		if got := strings.Contains(log.String(), "maxmemory-policy should be noeviction"); got != warns {
			t.Errorf("%s: the log says %q", policy, log.String())
		}
	}
}

func TestURLsThatAreNoneAreRefusedWithoutTellingThem(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "http://x", "http://user:secret@host"} {
		s, err := Open(t.Context(), Options{URL: url})
		if err == nil {
			s.Close()
			t.Errorf("%q is taken for a URL", url)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("the error tells the password: %v", err)
		}
	}
}

func FuzzNews(f *testing.F) {
	f.Add("t ctx_a 3")
	f.Add("t  -1")
	f.Fuzz(func(t *testing.T, message string) {
		n, ok := parseNews(message)
		if ok && (n.Tenant == "" || n.ID == "" || n.Rev < 0) {
			t.Errorf("%q is %+v", message, n)
		}
	})
}

// BenchmarkPage writes and reads an object of 600 KiB of prose, packed, over loopback.
func BenchmarkPage(b *testing.B) {
	server := testkit.NewRedis(b)
	s := open(b, patient(server.URL()))
	raw := []byte(strings.Repeat("The lessee pays on the first of the month. ", 600<<10/43))
	for i := range raw {
		if i%7 == 0 {
			raw[i] = byte('a' + (i*i/7)%26)
		}
	}
	b.Run("out", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			copy(raw, fmt.Sprintf("%012d", i))
			packed, sum := blob.Pack(raw)
			o := ledger.Object{Sum: sum, Size: int64(len(raw)), Packed: int64(len(packed))}
			id := fmt.Sprint("id", i)
			if err := s.Put(b.Context(), "t", o, packed); err != nil {
				b.Fatal(err)
			}
			if _, _, err := s.Commit(b.Context(), ledger.Change{Tenant: "t", ID: fmt.Sprint(b.N, id), New: record(id, o), Expires: start}); err != nil && !errors.Is(err, ledger.ErrConflict) {
				b.Fatal(err)
			}
		}
	})
	packed, sum := blob.Pack(raw)
	o := ledger.Object{Sum: sum, Size: int64(len(raw)), Packed: int64(len(packed))}
	if err := s.Put(b.Context(), "t", o, packed); err != nil {
		b.Fatal(err)
	}
	b.Run("in", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			packed, err := s.Get(b.Context(), "t", o)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := blob.Unpack(packed, o.Size, o.Sum); err != nil {
				b.Fatal(err)
			}
		}
	})
}
