// Package redis keeps records and packed bytes of contexts in Redis, for any number of replicas:
// the book of memory/ledger, the third tier of memory/page, and the news of changes that other
// replicas made.
//
// Keys, where T is the hash of the tenant and the hash tag that keeps a tenant in one slot:
//
//	cx:{T}:c:ID      hash  rev, rec (JSON, which says T and ID), exp (ms)   one record
//	cx:{T}:o:SUM     hash  n (references), s (bytes), c (chunks), f (how often it was replaced by another packed form)
//	cx:{T}:o:SUM:N   string, at most 512 KiB: chunk N of the packed object; SUM:X:N one of a form that is to replace it
//	cx:{T}:exp       sorted set of ids by end of life   cx:{T}:ids  sorted set of ids
//	cx:{T}:q         hash  n (contexts), b (bytes), p (pinned bytes)
//	cx:{T}:r:B       hash  f (how full), t (ms)   a bucket of the limits, by the hash of its name; it ends when it is empty
//	cx:{vk}:keys  hash    name -> JSON: the records of virtual keys
//	cx:{vk}:rev   string  another one after each change of them
//	cx:ts            sorted set of T by when it was entered (s)
//	cx:ev            channel: "T ID REV", REV 0 when the record went
//
// Chunks are written first, with a time to live, and lose it in the step that commits the record;
// what a dying replica leaves behind vanishes. A key of another type than here counts as absent: it
// is logged, and replaced by what is written. An object never changes, but its packed form may be
// replaced by a smaller one, in one step; who reads several chunks looks at f before and behind
// them. Every call has a budget of time. After several failures in a row a breaker refuses calls
// for a second, so nobody waits for a Redis that is down.
//
// A Store is safe for concurrent use. The client library runs goroutines until Close; Watch runs
// one, which looks whether Redis answers and makes connections anew, and waits for it.
package redis

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"signalbox/memory/ledger"
)

// Options of a Store. Zero fields take the value of DefaultOptions.
type Options struct {
	URL         string        // redis://, rediss:// or unix://, as redis-cli takes it; required
	Prefix      string        // of all keys and of the channel
	RateBudget  time.Duration // for a charge of a limit, which a request waits for
	MetaBudget  time.Duration // for reading a record
	BlobBudget  time.Duration // for reading an object
	WriteBudget time.Duration // for a commit, or for writing an object
	Failures    int           // failures in a row that open the breaker
	Rest        time.Duration // for which it stays open
	Look        time.Duration // how often Redis is greeted while it answers, half as much more by chance
	Now         func() time.Time
	Log         *slog.Logger // of what an operator should know; nil discards it
}

// DefaultOptions are the prefix cx, budgets of 8 ms, 20 ms, 250 ms and 5 s, a breaker that opens for
// 1 s after 3 failures, and a greeting every 2 to 3 s.
func DefaultOptions() Options {
	return Options{
		Prefix: "cx", RateBudget: 8 * time.Millisecond, MetaBudget: 20 * time.Millisecond, BlobBudget: 250 * time.Millisecond, WriteBudget: 5 * time.Second,
		Failures: 3, Rest: time.Second, Look: 2 * time.Second, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	}
}

func (o Options) withDefaults() Options {
	d := DefaultOptions()
	o.Prefix = cmp.Or(o.Prefix, d.Prefix)
	o.RateBudget = cmp.Or(max(o.RateBudget, 0), d.RateBudget)
	o.MetaBudget = cmp.Or(max(o.MetaBudget, 0), d.MetaBudget)
	o.BlobBudget = cmp.Or(max(o.BlobBudget, 0), d.BlobBudget)
	o.WriteBudget = cmp.Or(max(o.WriteBudget, 0), d.WriteBudget)
	o.Rest = cmp.Or(max(o.Rest, 0), d.Rest)
	o.Look = cmp.Or(max(o.Look, 0), d.Look)
	o.Failures = cmp.Or(max(o.Failures, 0), d.Failures)
	if o.Now == nil {
		o.Now = d.Now
	}
	o.Log = cmp.Or(o.Log, d.Log)
	return o
}

// Store is a connection to Redis. See the package comment.
type Store struct {
	o       Options
	client  atomic.Pointer[rueidis.Client] // nil until the first connection
	address rueidis.ClientOption
	brake   breaker
	health  health
	known   tenants
	sweep   atomic.Uint64 // where the next Due goes on among the tenants
	scripts scripts

	strangers strangers
}

type scripts struct{ commit, shrink, touch, rate, flights, budget, replace, prune, kinds, virtual, unvirtual *rueidis.Lua }

//go:embed commit.lua
var commitScript string

//go:embed touch.lua
var touchScript string

//go:embed replace.lua
var replaceScript string

//go:embed prune.lua
var pruneScript string

// Open is New and Connect.
func Open(ctx context.Context, o Options) (*Store, error) {
	s, err := New(o)
	if err != nil {
		return nil, err
	}
	s.Connect(ctx)
	return s, nil
}

// New returns a Store without a connection: until Connect or Watch made one, all calls fail with
// ledger.ErrUnavailable. A URL that cannot be read is an error.
func New(o Options) (*Store, error) {
	o = o.withDefaults()
	address, err := rueidis.ParseURL(o.URL)
	if err != nil {
		return nil, errors.New("redis url: not of the form redis://[user:password@]host:port[/database]") // the cause repeats the password
	}
	address.DisableCache = true
	address.ClientName = "signalbox"
	address.Dialer.Timeout = time.Second
	address.PipelineMultiplex = multiplex
	address.DialCtxFn = o.dial
	address.ConnWriteTimeout = o.WriteBudget
	address.RetryDelay = retryBriefly
	return &Store{
		o: o, address: address,
		brake: breaker{failures: int64(o.Failures), rest: o.Rest, now: o.Now},
		scripts: scripts{
			// Retryable are those that may run twice: a connection that a restart has broken fails once.
			// With a shebang Redis 7 refuses a script as a whole when memory is full; what frees
			// memory must not be refused.
			commit:  rueidis.NewLuaScript("#!lua\n" + commitScript),
			shrink:  rueidis.NewLuaScript("#!lua flags=allow-oom\n" + commitScript),
			touch:   rueidis.NewLuaScriptRetryable("#!lua\n" + touchScript),
			rate:    rueidis.NewLuaScript("#!lua\n" + rateScript),
			budget:  rueidis.NewLuaScript("#!lua\n" + budgetScript),
			flights: rueidis.NewLuaScript("#!lua\n" + flightsScript),
			virtual: rueidis.NewLuaScript("#!lua\n" + virtualScript),
			// A key is revoked when memory is full, too.
			unvirtual: rueidis.NewLuaScript("#!lua flags=allow-oom\n" + virtualScript),
			// What it writes makes room, or almost none.
			replace: rueidis.NewLuaScript("#!lua flags=allow-oom\n" + replaceScript),
			prune:   rueidis.NewLuaScriptRetryable("#!lua flags=allow-oom\n" + pruneScript),
			kinds:   rueidis.NewLuaScript("#!lua flags=allow-oom\n" + kindsScript),
		},
	}, nil
}

// retryBriefly has a read that failed repeated, or a write that may run twice, at once and then
// after 2 to 32 ms: connections that a restart has broken fail once each. Then no more, for a Redis
// that refuses connections would otherwise be asked until the budget is spent, each time.
func retryBriefly(attempts int, _ rueidis.Completed, _ error) time.Duration {
	const most = 6
	switch {
	case attempts > most:
		return -1
	case attempts == 1:
		return 0
	default:
		return time.Millisecond << (attempts - 1)
	}
}

// Connect connects to Redis. One that cannot be reached is logged and no error, since Watch keeps
// trying. It is called before Watch.
func (s *Store) Connect(ctx context.Context) {
	if err := s.connect(ctx); err != nil {
		s.health.away.Store(true)
		s.o.Log.LogAttrs(ctx, slog.LevelWarn, "redis cannot be reached, trying again", slog.String("error", err.Error()))
	}
}

// connect makes the client, once. It is called by Connect and by Watch, never at the same time.
func (s *Store) connect(ctx context.Context) error {
	if s.client.Load() != nil {
		return nil
	}
	client, err := rueidis.NewClient(s.address)
	if err != nil {
		return fmt.Errorf("connect to redis: %w", err)
	}
	s.inspect(ctx, client)
	if s.greet(ctx, client) == nil { // else the breaker opens, and Watch tries again
		s.back(ctx)
	}
	s.client.Store(&client)
	return nil
}

// inspect warns of settings under which contexts can vanish.
func (s *Store) inspect(ctx context.Context, client rueidis.Client) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	for _, section := range []string{"memory", "server"} {
		text, err := client.Do(ctx, client.B().Info().Section(section).Build()).ToString()
		if err != nil {
			s.o.Log.LogAttrs(ctx, slog.LevelWarn, "redis does not tell its settings", slog.String("error", err.Error()))
			return
		}
		for line := range strings.Lines(text) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			s.judge(ctx, name, value)
		}
	}
}

func (s *Store) judge(ctx context.Context, name, value string) {
	switch {
	case name == "maxmemory_policy" && value != "noeviction":
		s.o.Log.LogAttrs(ctx, slog.LevelWarn, "redis may evict contexts: maxmemory-policy should be noeviction", slog.String("policy", value))
	case name == "redis_version" && len(value) > 1 && value[0] < '7' && value[1] == '.':
		s.o.Log.LogAttrs(ctx, slog.LevelWarn, "redis is older than 7: scripts are refused", slog.String("version", value))
	}
}

// Close ends all connections and waits for calls in flight.
func (s *Store) Close() {
	if c := s.client.Load(); c != nil {
		(*c).Close()
	}
}

// Do runs a call within a budget, unless the breaker is open, and tells the breaker how it went.
// Who keeps other things in the same Redis uses it as well. Errors are ledger.ErrFull and
// ledger.ErrUnavailable; a key that is not there is none, which the call has to tell apart itself.
func (s *Store) Do(ctx context.Context, budget time.Duration, call func(context.Context, rueidis.Client) error) error {
	client := s.client.Load()
	if client == nil || !s.brake.allows() {
		return ledger.ErrUnavailable
	}
	within, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	err := translate(call(within, *client))
	switch {
	case !errors.Is(err, ledger.ErrUnavailable), errors.Is(err, ledger.ErrDamaged): // Redis answers
		s.brake.succeeded()
		s.back(ctx)
		if errors.Is(err, ledger.ErrFull) {
			s.filled(ctx, err)
		}
	case ctx.Err() == nil: // else the caller went away, which says nothing of Redis
		if s.brake.failed() {
			s.lost(ctx, err)
		}
	}
	return err
}

// translate names the reasons why Redis fails.
func translate(err error) error {
	if err == nil || errors.Is(err, ledger.ErrNotFound) || errors.Is(err, ledger.ErrMissing) || errors.Is(err, ledger.ErrConflict) {
		return err
	}
	if limit := (*ledger.LimitError)(nil); errors.As(err, &limit) {
		return err
	}
	if isKind(err) {
		return fmt.Errorf("%w: %w: %w", ledger.ErrUnavailable, ledger.ErrDamaged, err)
	}
	reply, ok := rueidis.IsRedisErr(err)
	if ok && (strings.HasPrefix(reply.Error(), "OOM") || strings.Contains(reply.Error(), "-OOM")) {
		return fmt.Errorf("%w: %w", ledger.ErrFull, err)
	}
	return fmt.Errorf("%w: %w", ledger.ErrUnavailable, err)
}

func (s *Store) key(t ledger.Tenant, rest string) string {
	return s.o.Prefix + ":{" + string(t) + "}:" + rest
}

func (s *Store) channel() string { return s.o.Prefix + ":ev" }
