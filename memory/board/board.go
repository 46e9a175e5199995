// Package board shares among the replicas of a proxy which model servers hold which prompts. A
// replica cannot know this for requests sent by others. The transport is Redis.
//
// Keys and the channel, P being the prefix:
//
//	P:r:MODEL:KEY   hash  endpoint -> "TOKENS EXPIRES"; it expires with its last entry
//	P:rs            sorted set of MODEL:KEY by the expiry of the hash (ms)
//	P:rv            channel of notes, in JSON
//	P:w:NAME        string: a claim
//
// Everything here is a hint. Losing it costs time and never a response, so nothing waits: notes are
// queued, and dropped if the queue is full or Redis has become unreachable.
//
// A Board is safe for concurrent use. Run owns two goroutines and returns when they have ended.
package board

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// Note states that an endpoint of a model has the beginning of the prompts of a key.
type Note struct {
	Model    string
	Key      uint64
	Endpoint string
	Tokens   int       // of the prompt that it has; 0 withdraws an earlier note
	Expires  time.Time // after which it is no longer valid
}

// Link is a connection to Redis that fails fast while Redis is unreachable. Implementations must be
// safe for concurrent use.
type Link interface {
	// Do runs a call that ends within the time limit budget. While Redis is known to be unreachable
	// it fails immediately.
	Do(ctx context.Context, budget time.Duration, call func(context.Context, rueidis.Client) error) error
	// Listen passes on messages of a channel until ctx is done, and then returns nil. connected is
	// called after every connect. Both functions are called from one goroutine and must be fast.
	Listen(ctx context.Context, channel string, connected func(), heard func(message string)) error
}

// Options are options of a Board. Zero fields take the value of DefaultOptions.
type Options struct {
	Prefix string        // of all keys and of the channel
	Queue  int           // maximum number of notes that wait to be written; more are dropped
	Load   int           // maximum number of keys read after connecting
	Budget time.Duration // for one exchange with Redis
	Rest   time.Duration // pause after a note that could not be written
	Log    *slog.Logger  // nil discards it
}

// DefaultOptions returns the prefix cx, 1,024 notes, 4,096 keys, 250 ms and 1 s.
func DefaultOptions() Options {
	return Options{Prefix: "cx", Queue: 1024, Load: 4096, Budget: 250 * time.Millisecond, Rest: time.Second, Log: slog.New(slog.DiscardHandler)}
}

// Board exchanges notes with the other replicas. See the package comment.
type Board struct {
	o       Options
	link    Link
	origin  string    // of its own notes
	queue   chan Note // capacity Options.Queue; notes that do not fit are dropped
	dropped atomic.Int64
}

// New returns a Board that uses a link. It is inactive until Run.
func New(link Link, o Options) *Board {
	d := DefaultOptions()
	o.Prefix, o.Queue, o.Load = cmp.Or(o.Prefix, d.Prefix), cmp.Or(o.Queue, d.Queue), cmp.Or(o.Load, d.Load)
	o.Budget, o.Rest, o.Log = cmp.Or(o.Budget, d.Budget), cmp.Or(o.Rest, d.Rest), cmp.Or(o.Log, d.Log)
	return &Board{o: o, link: link, origin: rand.Text(), queue: make(chan Note, o.Queue)}
}

// Publish sends a note to the other replicas, asynchronously. It never blocks.
func (b *Board) Publish(n Note) {
	select {
	case b.queue <- n:
	default:
		b.dropped.Add(1)
	}
}

// Dropped returns the number of notes that were not sent.
func (b *Board) Dropped() int64 { return b.dropped.Load() }

// Run exchanges notes until ctx ends, and then returns nil. learn receives the notes of other
// replicas, from one goroutine at a time, and must be fast. Run must be called once.
func (b *Board) Run(ctx context.Context, learn func(Note)) error {
	ctx, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	var mu sync.Mutex // guards learn
	tell := func(n Note) {
		mu.Lock()
		defer mu.Unlock()
		learn(n)
	}
	known := make(chan struct{}, 1) // capacity 1: several connects in a row require one load
	made := make(chan struct{})     // closed by the first connection
	var first sync.Once
	wg.Go(func() { b.write(ctx, made) })
	wg.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-known:
				b.load(ctx, tell)
			}
		}
	})
	return b.link.Listen(ctx, b.channel(), func() {
		first.Do(func() { close(made) })
		select {
		case known <- struct{}{}:
		default:
		}
	}, func(message string) {
		if n, origin, ok := parse(message); ok && origin != b.origin {
			tell(n)
		}
	})
}

// write writes queued notes to Redis. Until the first connection they wait in the queue.
func (b *Board) write(ctx context.Context, made <-chan struct{}) {
	select {
	case <-ctx.Done():
		return
	case <-made:
	}
	for {
		select {
		case <-ctx.Done():
			return
		case n := <-b.queue:
			if err := b.put(ctx, n); err == nil {
				continue
			}
			b.dropped.Add(1)
			select {
			case <-ctx.Done():
			case <-time.After(b.o.Rest):
			}
		}
	}
}

// do runs a call. A command of the board that Redis refuses does not mean that Redis is unreachable
// for others, so it is not reported to the link as a failure.
func (b *Board) do(ctx context.Context, call func(context.Context, rueidis.Client) error) error {
	var refused error
	err := b.link.Do(ctx, b.o.Budget, func(ctx context.Context, client rueidis.Client) error {
		err := call(ctx, client)
		if reply := (*rueidis.RedisError)(nil); errors.As(err, &reply) {
			refused = err
			return nil
		}
		return err
	})
	return errors.Join(err, refused)
}

func (b *Board) put(ctx context.Context, n Note) error {
	if n.Tokens > 0 && !n.Expires.After(time.Now()) {
		return nil // it waited for too long
	}
	return b.do(ctx, func(ctx context.Context, client rueidis.Client) error {
		key, end, now := b.key(n), n.Expires.UnixMilli(), strconv.FormatInt(time.Now().UnixMilli(), 10)
		calls := rueidis.Commands{client.B().Hdel().Key(key).Field(n.Endpoint).Build()}
		if n.Tokens > 0 {
			calls = rueidis.Commands{
				client.B().Hset().Key(key).FieldValue().
					FieldValue(n.Endpoint, strconv.Itoa(n.Tokens)+" "+strconv.FormatInt(end, 10)).Build(),
				client.B().Pexpireat().Key(key).MillisecondsTimestamp(end).Nx().Build(),
				// Another entry may expire later.
				client.B().Pexpireat().Key(key).MillisecondsTimestamp(end).Gt().Build(),
				client.B().Zadd().Key(b.index()).Gt().ScoreMember().
					ScoreMember(float64(end), strings.TrimPrefix(key, b.keys())).Build(),
				client.B().Pexpireat().Key(b.index()).MillisecondsTimestamp(end).Nx().Build(),
				client.B().Pexpireat().Key(b.index()).MillisecondsTimestamp(end).Gt().Build(),
				client.B().Zremrangebyscore().Key(b.index()).Min("-inf").Max(now).Build(),
			}
		}
		calls = append(calls, client.B().Publish().Channel(b.channel()).Message(b.format(n)).Build())
		for _, r := range client.DoMulti(ctx, calls...) {
			if err := r.Error(); err != nil {
				return fmt.Errorf("write a note: %w", err)
			}
		}
		return nil
	})
}

// load reads what other replicas wrote before this one listened and what is still valid; if that is
// too much, the entries that are valid longest.
func (b *Board) load(ctx context.Context, learn func(Note)) {
	var names []string
	err := b.do(ctx, func(ctx context.Context, client rueidis.Client) (err error) {
		now := strconv.FormatInt(time.Now().UnixMilli(), 10)
		names, err = client.Do(ctx, client.B().Zrange().Key(b.index()).Min("+inf").Max(now).
			Byscore().Rev().Limit(0, int64(b.o.Load)).Build()).AsStrSlice()
		return err
	})
	for page := range slices.Chunk(names, 256) {
		if err != nil {
			break
		}
		err = b.do(ctx, func(ctx context.Context, client rueidis.Client) error {
			return b.loadPage(ctx, client, page, learn)
		})
	}
	if err != nil {
		b.o.Log.LogAttrs(ctx, slog.LevelDebug, "notes of other replicas were not read", slog.String("cause", err.Error()))
	}
}

func (b *Board) loadPage(ctx context.Context, client rueidis.Client, names []string, learn func(Note)) error {
	ask := make(rueidis.Commands, 0, len(names))
	for _, name := range names {
		ask = append(ask, client.B().Hgetall().Key(b.keys()+name).Build())
	}
	for i, r := range client.DoMulti(ctx, ask...) {
		entries, err := r.AsStrMap()
		if err != nil {
			return fmt.Errorf("read notes: %w", err)
		}
		n, ok := parseName(names[i])
		for endpoint, value := range entries {
			if n.Endpoint = endpoint; ok && n.parseValue(value) {
				learn(n)
			}
		}
	}
	return nil
}

// Claim takes a name for a while and reports whether no other replica has it. Without Redis every
// claim is granted, because there are other limits on what it guards.
func (b *Board) Claim(ctx context.Context, name string, d time.Duration) bool {
	granted := true
	_ = b.do(ctx, func(ctx context.Context, client rueidis.Client) error {
		err := client.Do(ctx, client.B().Set().Key(b.o.Prefix+":w:"+name).Value(b.origin).Nx().
			PxMilliseconds(max(d.Milliseconds(), 1)).Build()).Error()
		if granted = !rueidis.IsRedisNil(err); !granted {
			return nil
		}
		return err
	})
	return granted
}

func (b *Board) channel() string { return b.o.Prefix + ":rv" }

func (b *Board) index() string { return b.o.Prefix + ":rs" }

// keys returns the prefix of the keys of hashes.
func (b *Board) keys() string { return b.o.Prefix + ":r:" }

func (b *Board) key(n Note) string {
	return b.keys() + n.Model + ":" + strconv.FormatUint(n.Key, 16)
}

// parseName reads MODEL:KEY.
func parseName(name string) (n Note, ok bool) {
	at := strings.LastIndexByte(name, ':')
	if at < 0 {
		return n, false
	}
	k, err := strconv.ParseUint(name[at+1:], 16, 64)
	return Note{Model: name[:at], Key: k}, err == nil
}

func (n *Note) parseValue(s string) bool {
	tokens, ms, ok := strings.Cut(s, " ")
	t, err := strconv.Atoi(tokens)
	at, err2 := strconv.ParseInt(ms, 10, 64)
	if !ok || err != nil || err2 != nil || t <= 0 {
		return false
	}
	n.Tokens, n.Expires = t, time.UnixMilli(at)
	return true
}

// message is a note on the channel.
type message struct {
	Origin   string `json:"o"`
	Model    string `json:"m"`
	Key      uint64 `json:"k"`
	Endpoint string `json:"e"`
	Tokens   int    `json:"t"`
	Expires  int64  `json:"x"` // Unix milliseconds
}

func (b *Board) format(n Note) string {
	out, err := json.Marshal(message{b.origin, n.Model, n.Key, n.Endpoint, n.Tokens, n.Expires.UnixMilli()})
	if err != nil {
		return "" // not reached: strings and numbers
	}
	return string(out)
}

func parse(s string) (n Note, origin string, ok bool) {
	var m message
	if json.Unmarshal([]byte(s), &m) != nil || m.Tokens < 0 || m.Model == "" || m.Endpoint == "" {
		return Note{}, "", false
	}
	return Note{Model: m.Model, Key: m.Key, Endpoint: m.Endpoint, Tokens: m.Tokens, Expires: time.UnixMilli(m.Expires)}, m.Origin, true
}
