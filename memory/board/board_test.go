package board

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"signalbox/internal/testkit"
	"signalbox/memory/ledger"
	"signalbox/memory/redis"
)

func TestMain(m *testing.M) { testkit.VerifyNoLeaks(m) }

// replica is a board that runs, with what it has learnt.
type replica struct {
	*Board
	redis *redis.Store
	mu    sync.Mutex // guards notes
	notes []Note
}

func start(t *testing.T, url string, change ...func(*Options)) *replica {
	t.Helper()
	o := Options{Rest: 20 * time.Millisecond, Budget: 10 * time.Second} // a note that a busy machine drops is told once only
	for _, f := range change {
		f(&o)
	}
	ctx, cancel := context.WithCancel(context.Background())
	link, err := redis.Open(ctx, redis.Options{URL: url, Rest: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	r := &replica{Board: New(link, o), redis: link}
	var running sync.WaitGroup
	running.Go(func() {
		if err := link.Watch(ctx, func(ledger.News) {}, func() {}); err != nil {
			t.Errorf("watch: %v", err)
		}
	})
	running.Go(func() {
		if err := r.Run(ctx, r.learn); err != nil {
			t.Errorf("run: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait(); link.Close() })
	return r
}

// do asks Redis for something.
func (r *replica) do(t *testing.T, call func(ctx context.Context, client rueidis.Client) error) {
	t.Helper()
	if err := r.redis.Do(t.Context(), testkit.Patience, call); err != nil {
		t.Error(err)
	}
}

func (r *replica) learn(n Note) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes = append(r.notes, n)
}

// knows reports whether a note has come.
func (r *replica) knows(n Note) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, x := range r.notes {
		if x.Model == n.Model && x.Key == n.Key && x.Endpoint == n.Endpoint && x.Tokens == n.Tokens && x.Expires.Equal(n.Expires) {
			return true
		}
	}
	return false
}

// eventually waits for what comes through Redis.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.After(testkit.Patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s did not happen", what)
		}
	}
}

func note(key uint64, tokens int) Note {
	return Note{Model: "a model: 7b", Key: key, Endpoint: "end point", Tokens: tokens, Expires: time.Now().Add(time.Hour).Truncate(time.Millisecond)}
}

func TestReplicasTellEachOther(t *testing.T) {
	t.Parallel()
	r := testkit.NewRedis(t)
	b, before, n := start(t, r.URL()), note(6, 60), note(1<<63+5, 4000)
	first := start(t, r.URL())
	eventually(t, "the first note", func() bool { first.Publish(before); return b.knows(before) })
	last := note(8, 80)
	first.Publish(last)
	eventually(t, "the last note of the first", func() bool { return b.knows(last) })
	a := start(t, r.URL()) // nothing is said any more: it knows by reading alone
	eventually(t, "reading what is known", func() bool { return a.knows(before) && a.knows(last) })
	eventually(t, "a note", func() bool { a.Publish(n); return b.knows(n) })
	if a.knows(n) {
		t.Error("a replica was told what it said itself")
	}
	late := start(t, r.URL())
	eventually(t, "a note from before", func() bool { return late.knows(n) })

	gone := n
	gone.Tokens = 0
	a.Publish(gone)
	eventually(t, "a withdrawal", func() bool { return b.knows(gone) })
	other := note(7, 10)
	a.Publish(other)
	later := start(t, r.URL())
	eventually(t, "another note", func() bool { return later.knows(other) })
	if later.knows(n) {
		t.Error("what was withdrawn is told to who comes later")
	}
}

func TestWhatRedisRefusesTheBoardIsNotRefusedToOthers(t *testing.T) {
	t.Parallel()
	r := testkit.NewRedis(t)
	b := start(t, r.URL())
	first := note(1, 10)
	b.do(t, func(ctx context.Context, client rueidis.Client) error {
		return client.Do(ctx, client.B().Arbitrary("ACL", "SETUSER", "default", "-zadd").Build()).Error()
	})
	for i := range uint64(12) { // more than the breaker of the link stands
		first.Key = i
		if err := b.put(t.Context(), first); err == nil {
			t.Fatal("a note was written where that is forbidden")
		}
	}
	b.do(t, func(ctx context.Context, client rueidis.Client) error {
		return client.Do(ctx, client.B().Ping().Build()).Error()
	})
}

func TestANoteThatEndsSoonEndsNoOther(t *testing.T) {
	t.Parallel()
	r := testkit.NewRedis(t)
	a, b := start(t, r.URL()), start(t, r.URL())
	long := note(5, 4000)
	eventually(t, "a note", func() bool { a.Publish(long); return b.knows(long) })
	short, gone := long, long
	short.Endpoint, short.Expires = "another", time.Now().Add(30*time.Second).Truncate(time.Millisecond)
	gone.Endpoint, gone.Tokens, gone.Expires = "a third", 0, short.Expires
	for _, n := range []Note{short, gone} {
		a.Publish(n)
		eventually(t, "another note", func() bool { return b.knows(n) })
		var left int64
		a.do(t, func(ctx context.Context, client rueidis.Client) (err error) {
			left, err = client.Do(ctx, client.B().Pttl().Key(a.key(long)).Build()).AsInt64()
			return err
		})
		if left < time.Minute.Milliseconds() {
			t.Errorf("after %+v the notes of the key end in %d ms", n, left)
		}
	}
}

// The set of keys holds those whose notes hold, as one who comes later reads it, and ends with
// them.
func TestTheSetOfKeysEndsWithTheirNotes(t *testing.T) {
	t.Parallel()
	r := testkit.NewRedis(t)
	a, b := start(t, r.URL()), start(t, r.URL())
	short, long := note(1, 10), note(2, 10)
	short.Expires = time.Now().Add(5 * time.Second).Truncate(time.Millisecond)
	eventually(t, "a note", func() bool { a.Publish(short); return b.knows(short) })
	keys := func() (list []string) {
		a.do(t, func(ctx context.Context, client rueidis.Client) (err error) {
			list, err = client.Do(ctx, client.B().Zrange().Key(a.index()).Min("0").Max("-1").Build()).AsStrSlice()
			return err
		})
		return list
	}
	if got := keys(); len(got) != 1 {
		t.Errorf("the set is %v", got)
	}
	eventually(t, "the end of the set", func() bool { return len(keys()) == 0 }) // nothing is written meanwhile
	a.Publish(long)
	eventually(t, "another note", func() bool { return b.knows(long) })
	later := start(t, r.URL(), func(o *Options) { o.Load = 1 })
	eventually(t, "what held before", func() bool { return later.knows(long) })
	if got := keys(); len(got) != 1 || later.knows(short) {
		t.Errorf("the set is %v", got)
	}
}

func TestAnOutageCostsNothingButNotes(t *testing.T) {
	t.Parallel()
	r := testkit.NewRedis(t)
	a, b := start(t, r.URL(), func(o *Options) { o.Queue = 8 }), start(t, r.URL())
	first := note(1, 1)
	eventually(t, "a first note", func() bool { a.Publish(first); return b.knows(first) })
	r.Kill()
	begun := time.Now()
	for i := range 1000 {
		a.Publish(note(uint64(i), 5))
	}
	if took := time.Since(begun); testkit.Timed() && took > time.Second {
		t.Errorf("1000 notes took %v without Redis", took)
	}
	if a.Dropped() == 0 {
		t.Error("a queue of 8 held 1000 notes")
	}
	r.Start()
	n := note(99, 500)
	eventually(t, "a note after the outage", func() bool { a.Publish(n); return b.knows(n) })
}

func TestAClaimIsGrantedOnce(t *testing.T) {
	t.Parallel()
	r := testkit.NewRedis(t)
	a, b := start(t, r.URL()), start(t, r.URL())
	if !a.Claim(t.Context(), "x", time.Minute) || b.Claim(t.Context(), "x", time.Minute) || a.Claim(t.Context(), "x", time.Minute) {
		t.Error("a claim was granted twice, or never")
	}
	if !b.Claim(t.Context(), "y", 30*time.Millisecond) {
		t.Error("another name was refused")
	}
	eventually(t, "the end of a claim", func() bool { return a.Claim(t.Context(), "y", time.Minute) })
	r.Kill()
	if !a.Claim(t.Context(), "x", time.Minute) {
		t.Error("without Redis a claim was refused")
	}
}

func TestABoardWithoutRedisWaits(t *testing.T) {
	t.Parallel()
	r := testkit.NewRedis(t)
	r.Stop()
	a, first := start(t, r.URL()), note(1, 1)
	a.Publish(first) // told once, when there is a Redis
	r.Start()
	b := start(t, r.URL())
	eventually(t, "the note from before the first connection", func() bool { return b.knows(first) })
}

func FuzzNotes(f *testing.F) {
	f.Add(`{"o":"a","m":"b","k":18446744073709551615,"e":"c","t":5,"x":1}`, "a:b:ff", "5 6")
	f.Fuzz(func(t *testing.T, m, key, value string) {
		if n, _, ok := parse(m); ok && (n.Tokens < 0 || n.Model == "") {
			t.Errorf("%+v", n)
		}
		if n, ok := parseName(key); ok && n.parseValue(value) && n.Tokens <= 0 {
			t.Errorf("%+v", n)
		}
	})
}
