// Package redis keeps records and packed bytes of contexts in Redis, for any number of replicas:
// the book of memory/ledger, the third tier of memory/page, and notifications of changes made by
// other replicas.
//
// Keys, where T is the hash of the tenant and the hash tag that keeps a tenant in one slot:
//
//	cx:{T}:c:ID      hash  rev, rec (JSON, contains T and ID), exp (ms)   one record
//	cx:{T}:o:SUM     hash  n (references), s (bytes), c (chunks), f (number of replacements of
//	                       the packed form)
//	cx:{T}:o:SUM:N   string, at most 512 KiB: chunk N of the packed object; SUM:X:N one of a form
//	                 that will replace it
//	cx:{T}:exp       sorted set of ids by expiry   cx:{T}:ids  sorted set of ids
//	cx:{T}:q         hash  n (contexts), b (bytes), p (pinned bytes)
//	cx:{T}:r:B       hash  f (level), t (ms), r (its size)   a bucket of the limits, by the hash of
//	                 its name; it expires when it is empty
//	cx:{vk}:keys  hash    name -> JSON: the records of virtual keys
//	cx:{vk}:rev   string  changes with each change of them
//	cx:ts            sorted set of T by when it was entered (s)
//	cx:ev            channel: "T ID REV", REV 0 for a removed record
//
// Chunks are written first, with a time to live, and lose it atomically when the record is
// committed; what a failing replica leaves behind expires. A key of another type than listed here
// counts as absent: it is logged, and overwritten. An object never changes, but its packed form may
// be atomically replaced by a smaller one; readers of several chunks compare f before and after
// them. Every call has a time limit. After several consecutive failures a circuit breaker refuses
// calls for a second, so that no request waits for a Redis that is down.
//
// A Store is safe for concurrent use. The client library runs goroutines until Close; Watch runs
// one that checks whether Redis responds and reconnects, and waits for it.
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

// Options are options of a Store. Zero fields take the value of DefaultOptions.
type Options struct {
	URL         string        // redis://, rediss:// or unix://, as accepted by redis-cli; required
	Prefix      string        // of all keys and of the channel
	RateBudget  time.Duration // for a charge of a limit, which delays a request
	MetaBudget  time.Duration // for reading a record
	BlobBudget  time.Duration // for reading an object
	WriteBudget time.Duration // for a commit, or for writing an object
	Failures    int           // consecutive failures that open the breaker
	Rest        time.Duration // time for which it stays open
	// interval between greetings of Redis while it responds, plus up to half as much at random
	Look time.Duration
	Now  func() time.Time
	Log  *slog.Logger // for operators; nil discards it
}

// DefaultOptions returns the prefix cx, time limits of 8 ms, 20 ms, 250 ms and 5 s, a breaker that
// opens for 1 s after 3 failures, and a greeting every 2 to 3 s.
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
	sweep   atomic.Uint64 // where the next Due continues among the tenants
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

// New returns a Store without a connection: until Connect or Watch has made one, all calls fail
// with ledger.ErrUnavailable. An invalid URL is an error.
func New(o Options) (*Store, error) {
	o = o.withDefaults()
	address, err := rueidis.ParseURL(o.URL)
	if err != nil {
		// the cause contains the password
		return nil, errors.New("redis url: not of the form redis://[user:password@]host:port[/database]")
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
			// Retryable scripts are those that may run twice: a connection broken by a restart
			// fails once. With a shebang Redis 7 refuses a whole script when memory is full;
			// scripts that free memory must not be refused.
			commit:  rueidis.NewLuaScript("#!lua\n" + commitScript),
			shrink:  rueidis.NewLuaScript("#!lua flags=allow-oom\n" + commitScript),
			touch:   rueidis.NewLuaScriptRetryable("#!lua flags=allow-oom\n" + touchScript), // what is in use must not end
			rate:    rueidis.NewLuaScript("#!lua\n" + rateScript),
			budget:  rueidis.NewLuaScript("#!lua\n" + budgetScript),
			flights: rueidis.NewLuaScript("#!lua\n" + flightsScript),
			virtual: rueidis.NewLuaScript("#!lua\n" + virtualScript),
			// Revoking a key must work when memory is full, too.
			unvirtual: rueidis.NewLuaScript("#!lua flags=allow-oom\n" + virtualScript),
			// It frees memory, or needs almost none.
			replace: rueidis.NewLuaScript("#!lua flags=allow-oom\n" + replaceScript),
			prune:   rueidis.NewLuaScriptRetryable("#!lua flags=allow-oom\n" + pruneScript),
			kinds:   rueidis.NewLuaScript("#!lua flags=allow-oom\n" + kindsScript),
		},
	}, nil
}

// retryBriefly retries a failed read, or a write that may run twice, immediately and then after 2
// to 32 ms, because connections broken by a restart fail once each. After that it gives up:
// otherwise a Redis that refuses connections would be asked until the time limit in every call.
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

// Connect connects to Redis. A failure is logged and is not an error, because Watch keeps trying.
// It must be called before Watch.
func (s *Store) Connect(ctx context.Context) {
	if err := s.connect(ctx); err != nil {
		s.health.away.Store(true)
		s.o.Log.LogAttrs(ctx, slog.LevelWarn, "redis cannot be reached, trying again", slog.String("error", err.Error()))
	}
}

// connect creates the client, once. Connect and Watch call it, never concurrently.
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

// inspect warns about settings under which contexts can disappear.
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

// Do runs a call within a time limit, unless the breaker is open, and reports the result to the
// breaker. Other users of the same Redis use it as well. Errors are ledger.ErrFull and
// ledger.ErrUnavailable; a missing key is not an error, the call has to detect it itself.
func (s *Store) Do(ctx context.Context, budget time.Duration, call func(context.Context, rueidis.Client) error) error {
	client := s.client.Load()
	if client == nil || !s.brake.allows() {
		return ledger.ErrUnavailable
	}
	within, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	err := translate(call(within, *client))
	switch {
	// Redis responds
	case !errors.Is(err, ledger.ErrUnavailable), errors.Is(err, ledger.ErrDamaged):
		s.brake.succeeded()
		s.back(ctx)
		if errors.Is(err, ledger.ErrFull) {
			s.filled(ctx, err)
		}
	case ctx.Err() == nil: // else the caller cancelled, which says nothing about Redis
		if s.brake.failed() {
			s.lost(ctx, err)
		}
	}
	return err
}

// translate converts errors of Redis to those of package ledger.
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
