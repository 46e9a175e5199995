// Package board passes on, among the replicas of a proxy, which model servers hold which prompts:
// what a replica cannot work out by itself, because another one sent the request. Redis carries it.
//
// Keys and the channel, P being the prefix:
//
//	P:r:MODEL:KEY   hash  endpoint -> "TOKENS EXPIRES"; it ends with its last entry
//	P:rs            sorted set of MODEL:KEY by when the hash ends (ms)
//	P:rv            channel of notes, in JSON
//	P:w:NAME        string: a claim
//
// Everything here is a hint. What is lost costs time and never an answer, so nothing waits: notes
// are queued, and dropped when the queue is full or a Redis that was there is down.
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

// Note says that an endpoint of a model has the beginning of the prompts of a key.
type Note struct {
	Model    string
	Key      uint64
	Endpoint string
	Tokens   int       // of the prompt that it has; 0 withdraws what was said before
	Expires  time.Time // after which it does not hold
}

// Options of a Board. Zero fields take the value of DefaultOptions.
type Options struct {
	URL    string        // redis://, rediss:// or unix://; required
	Prefix string        // of all keys and of the channel
	Queue  int           // notes that wait to be written at most; more are dropped
	Load   int           // keys that are read at most when a connection was made
	Budget time.Duration // for one exchange with Redis
	Rest   time.Duration // between two attempts at a Redis that fails
	Log    *slog.Logger  // nil discards it
}

// DefaultOptions are the prefix cx, 1,024 notes, 4,096 keys, 250 ms and 1 s.
func DefaultOptions() Options {
	return Options{Prefix: "cx", Queue: 1024, Load: 4096, Budget: 250 * time.Millisecond, Rest: time.Second, Log: slog.New(slog.DiscardHandler)}
}

// Board is a connection to the other replicas. See the package comment.
type Board struct {
	o       Options
	origin  string // of its own notes
	address rueidis.ClientOption
	client  atomic.Pointer[rueidis.Client] // nil until the first connection, and after Run
	made    chan struct{}                  // closed by the first connection
	queue   chan Note                      // bounded by Options.Queue; full: dropped
	dropped atomic.Int64
}

// New returns a Board. It connects when it runs. The error is about the URL.
func New(o Options) (*Board, error) {
	d := DefaultOptions()
	o.Prefix, o.Queue, o.Load = cmp.Or(o.Prefix, d.Prefix), cmp.Or(o.Queue, d.Queue), cmp.Or(o.Load, d.Load)
	o.Budget, o.Rest, o.Log = cmp.Or(o.Budget, d.Budget), cmp.Or(o.Rest, d.Rest), cmp.Or(o.Log, d.Log)
	address, err := rueidis.ParseURL(o.URL)
	if err != nil {
		return nil, errors.New("read redis URL: it must be redis://, rediss:// or unix://") // the cause may hold a password
	}
	address.DisableCache, address.ClientName, address.Dialer.Timeout = true, "signalbox-board", time.Second
	return &Board{o: o, origin: rand.Text(), address: address, made: make(chan struct{}), queue: make(chan Note, o.Queue)}, nil
}

// Publish tells the other replicas, soon. It never blocks.
func (b *Board) Publish(n Note) {
	select {
	case b.queue <- n:
	default:
		b.dropped.Add(1)
	}
}

// Dropped is how many notes were not told.
func (b *Board) Dropped() int64 { return b.dropped.Load() }

// Run passes notes on until ctx ends. learn gets those of other replicas, from one goroutine at a
// time, and must be quick. A Redis that is down is tried again. Run returns nil. It is called once.
func (b *Board) Run(ctx context.Context, learn func(Note)) error {
	var wg sync.WaitGroup
	defer b.disconnect()
	defer wg.Wait()
	wg.Go(func() { b.write(ctx) })
	rest := time.NewTicker(b.o.Rest)
	defer rest.Stop()
	for {
		err := b.listen(ctx, learn)
		if ctx.Err() != nil {
			return nil
		}
		b.o.Log.LogAttrs(ctx, slog.LevelDebug, "board lost, trying again", slog.Any("cause", err))
		select {
		case <-ctx.Done():
			return nil
		case <-rest.C:
		}
	}
}

func (b *Board) disconnect() {
	if c := b.client.Swap(nil); c != nil {
		(*c).Close()
	}
}

// connect makes the client, once. Only Run calls it.
func (b *Board) connect() (rueidis.Client, error) {
	if c := b.client.Load(); c != nil {
		return *c, nil
	}
	c, err := rueidis.NewClient(b.address)
	if err != nil {
		return nil, fmt.Errorf("connect to redis: %w", err)
	}
	b.client.Store(&c)
	close(b.made)
	return c, nil
}

// listen reads what is known, and then what comes in, on one connection.
func (b *Board) listen(ctx context.Context, learn func(Note)) error {
	client, err := b.connect()
	if err != nil {
		return err
	}
	known := make(chan struct{}, 1) // holds 1: subscriptions that follow each other at once need one look
	hooked := rueidis.WithOnSubscriptionHook(ctx, func(p rueidis.PubSubSubscription) {
		if p.Kind == "subscribe" {
			select {
			case known <- struct{}{}:
			default:
			}
		}
	})
	ctx, stop := context.WithCancel(hooked)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	var mu sync.Mutex // guards learn
	tell := func(n Note) {
		mu.Lock()
		defer mu.Unlock()
		learn(n)
	}
	wg.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-known:
				b.load(ctx, client, tell)
			}
		}
	})
	err = client.Receive(ctx, client.B().Subscribe().Channel(b.channel()).Build(), func(m rueidis.PubSubMessage) {
		if n, origin, ok := parse(m.Message); ok && origin != b.origin {
			tell(n)
		}
	})
	return fmt.Errorf("receive notes: %w", err)
}

// write puts queued notes into Redis. Until the first connection they wait in the queue.
func (b *Board) write(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-b.made:
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
			rest := time.NewTimer(b.o.Rest)
			select {
			case <-ctx.Done():
			case <-rest.C:
			}
			rest.Stop()
		}
	}
}

var errDown = errors.New("redis is not connected")

func (b *Board) put(ctx context.Context, n Note) error {
	c := b.client.Load()
	if c == nil {
		return errDown
	}
	ctx, cancel := context.WithTimeout(ctx, b.o.Budget)
	defer cancel()
	if n.Tokens > 0 && !n.Expires.After(time.Now()) {
		return nil // it waited for too long
	}
	client, key, end := *c, b.key(n), n.Expires.UnixMilli()
	calls := rueidis.Commands{client.B().Hdel().Key(key).Field(n.Endpoint).Build()}
	if n.Tokens > 0 {
		calls = rueidis.Commands{
			client.B().Hset().Key(key).FieldValue().FieldValue(n.Endpoint, strconv.Itoa(n.Tokens)+" "+strconv.FormatInt(end, 10)).Build(),
			client.B().Pexpireat().Key(key).MillisecondsTimestamp(end).Nx().Build(),
			client.B().Pexpireat().Key(key).MillisecondsTimestamp(end).Gt().Build(), // another entry may hold for longer
			client.B().Zadd().Key(b.index()).Gt().ScoreMember().ScoreMember(float64(end), strings.TrimPrefix(key, b.keys())).Build(),
			client.B().Pexpireat().Key(b.index()).MillisecondsTimestamp(end).Nx().Build(),
			client.B().Pexpireat().Key(b.index()).MillisecondsTimestamp(end).Gt().Build(),
			client.B().Zremrangebyscore().Key(b.index()).Min("-inf").Max(strconv.FormatInt(time.Now().UnixMilli(), 10)).Build(),
		}
	}
	for _, r := range client.DoMulti(ctx, append(calls, client.B().Publish().Channel(b.channel()).Message(b.format(n)).Build())...) {
		if err := r.Error(); err != nil {
			return fmt.Errorf("write a note: %w", err)
		}
	}
	return nil
}

// load reads what other replicas wrote before this one listened, as far as it is still valid: what
// holds the longest, of very much.
func (b *Board) load(ctx context.Context, client rueidis.Client, learn func(Note)) {
	within, cancel := context.WithTimeout(ctx, b.o.Budget)
	names, err := client.Do(within, client.B().Zrange().Key(b.index()).Min("+inf").Max(strconv.FormatInt(time.Now().UnixMilli(), 10)).
		Byscore().Rev().Limit(0, int64(b.o.Load)).Build()).AsStrSlice()
	cancel()
	for page := range slices.Chunk(names, 256) {
		if err != nil {
			break
		}
		within, cancel := context.WithTimeout(ctx, b.o.Budget)
		err = b.loadPage(within, client, page, learn)
		cancel()
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

// Claim takes a name for a while and reports whether nobody else has it. Without Redis every claim
// is granted, since what it guards is bounded elsewhere too.
func (b *Board) Claim(ctx context.Context, name string, d time.Duration) bool {
	c := b.client.Load()
	if c == nil {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, b.o.Budget)
	defer cancel()
	client := *c
	err := client.Do(ctx, client.B().Set().Key(b.o.Prefix+":w:"+name).Value(b.origin).Nx().PxMilliseconds(max(d.Milliseconds(), 1)).Build()).Error()
	return !rueidis.IsRedisNil(err)
}

func (b *Board) channel() string { return b.o.Prefix + ":rv" }

func (b *Board) index() string { return b.o.Prefix + ":rs" }

// keys is what the keys of hashes begin with.
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
		return "" // not reached: texts and numbers
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
