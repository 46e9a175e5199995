// Package shared exchanges outcomes between replicas, with a bounded stream per tenant in Redis
// that each replica reads from its last position.
//
// It decides nothing, and no request waits for it. While Redis is unreachable each replica learns
// by itself; the newest lines that could not be sent are queued, older ones are dropped and
// counted.
//
// Invariants: one goroutine, ended by Close; the queue is bounded. Outcomes of a forgotten tenant
// are deleted from Redis, and the other replicas forget the tenant when they read that.
package shared

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"signalbox/memory/outcomes"
)

// Link is a connection to Redis. Do fails immediately if Redis was unreachable recently.
type Link interface {
	Do(ctx context.Context, budget time.Duration, call func(context.Context, rueidis.Client) error) error
}

// Options are the options of New.
type Options struct {
	Prefix  string // of keys
	Limit   int    // approximate maximum number of lines of a tenant in Redis
	Tenants int    // maximum number of tenants that are read
	Every   time.Duration
	Log     *slog.Logger
}

// The limits of one exchange.
const (
	maxPending = 4096            // lines that wait to be sent
	batch      = 256             // lines sent or read at once
	budget     = 2 * time.Second // for one call
	keeps      = 90 * 24 * 3600  // seconds after the last addition for which Redis keeps a stream
	lastWords  = 500 * time.Millisecond
)

// Shared sends and receives outcomes. Use New to make one, Start it, and Close it.
type Shared struct {
	o      Options
	link   Link
	store  *outcomes.Store
	writer string
	stop   context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex // guards the fields below
	pending []told
	dropped int

	last map[string]string // last ids read, by stream; only used by the goroutine
}

type told struct {
	tenant string
	line   []byte // nil: the tenant is forgotten
}

// New returns a Shared, whose Tell is for the outcomes.Options of the store that is passed to
// Start.
func New(link Link, o Options) *Shared {
	return &Shared{o: o, link: link, writer: rand.Text(), done: make(chan struct{}), last: map[string]string{}}
}

// Tell queues a line of a tenant for the other replicas, or, if line is nil, that the tenant was
// forgotten. It does not block.
func (s *Shared) Tell(tenant string, line []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pending) >= maxPending {
		s.pending = append(s.pending[:0], s.pending[1:]...)
		s.dropped++
	}
	s.pending = append(s.pending, told{tenant, line})
}

// Start begins to send and to receive, for a store.
func (s *Shared) Start(store *outcomes.Store) {
	s.store = store
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	go func() {
		defer close(s.done)
		tick := time.NewTicker(s.o.Every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				s.exchange(ctx)
			}
		}
	}()
}

// Close ends the exchange, and sends the queued lines as far as that is possible immediately.
func (s *Shared) Close() {
	s.stop()
	<-s.done
	ctx, stop := context.WithTimeout(context.Background(), lastWords)
	defer stop()
	_ = s.tell(ctx)
}

// exchange sends and reads once.
func (s *Shared) exchange(ctx context.Context) {
	if s.tell(ctx) != nil {
		return // Redis is unreachable: the next tick tries again
	}
	if err := s.read(ctx); err != nil && ctx.Err() == nil {
		s.o.Log.LogAttrs(ctx, slog.LevelDebug, "outcomes of replicas not read", slog.String("cause", err.Error()))
	}
}

// tell writes the queued lines. Lines that could not be written stay queued.
func (s *Shared) tell(ctx context.Context) error {
	for {
		s.mu.Lock()
		n := min(len(s.pending), batch)
		now := append([]told(nil), s.pending[:n]...)
		dropped := s.dropped
		s.mu.Unlock()
		if n == 0 {
			return nil
		}
		err := s.link.Do(ctx, budget, func(ctx context.Context, c rueidis.Client) error { return s.write(ctx, c, now) })
		if err != nil {
			return err //nolint:wrapcheck // it is only counted
		}
		s.mu.Lock()
		s.pending = s.pending[max(0, n-(s.dropped-dropped)):] // dropped ones were among them
		lost := s.dropped
		s.dropped = 0
		s.mu.Unlock()
		if lost > 0 {
			s.o.Log.LogAttrs(ctx, slog.LevelWarn, "outcomes that replicas will not know", slog.Int("lines", lost))
		}
	}
}

func (s *Shared) write(ctx context.Context, c rueidis.Client, now []told) error {
	var cmds rueidis.Commands
	for _, t := range now {
		key, member := s.stream(t.tenant)
		if t.line == nil {
			cmds = append(cmds, c.B().Del().Key(key).Build())
		}
		cmds = append(cmds,
			c.B().Xadd().Key(key).Maxlen().Almost().Threshold(strconv.Itoa(s.o.Limit)).Id("*").
				FieldValue().FieldValue("w", s.writer).FieldValue("t", t.tenant).FieldValue("l", string(t.line)).Build(),
			c.B().Expire().Key(key).Seconds(keeps).Build(),
			c.B().Sadd().Key(s.tenants()).Member(member).Build(),
		)
	}
	for _, r := range c.DoMulti(ctx, cmds...) {
		if err := r.Error(); err != nil {
			return err //nolint:wrapcheck // the link does
		}
	}
	return nil
}

// read processes what other replicas sent.
func (s *Shared) read(ctx context.Context) error {
	return s.link.Do(ctx, budget, func(ctx context.Context, c rueidis.Client) error { //nolint:wrapcheck // the link does
		members, err := c.Do(ctx, c.B().Smembers().Key(s.tenants()).Build()).AsStrSlice()
		if err != nil {
			return err
		}
		for _, m := range members[:min(len(members), s.o.Tenants)] {
			if err := s.readOne(ctx, c, m); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *Shared) readOne(ctx context.Context, c rueidis.Client, member string) error {
	for ctx.Err() == nil {
		from := "-"
		if id := s.last[member]; id != "" {
			from = "(" + id
		}
		got, err := c.Do(ctx, c.B().Xrange().Key(s.o.Prefix+":out:"+member).Start(from).End("+").Count(batch).Build()).AsXRange()
		if err != nil {
			return err //nolint:wrapcheck // the link does
		}
		for _, e := range got {
			s.last[member] = e.ID
			line, tenant := e.FieldValues["l"], e.FieldValues["t"]
			switch {
			case e.FieldValues["w"] == s.writer:
			case line == "":
				err = s.store.Forgotten(tenant)
			default:
				err = s.store.Learn(tenant, []byte(line))
			}
			if err != nil {
				s.o.Log.LogAttrs(ctx, slog.LevelWarn, "outcome of a replica not kept", slog.String("cause", err.Error()))
				err = nil
			}
		}
		switch {
		case len(got) == 0 && from == "-":
			return s.leave(ctx, c, member)
		case len(got) < batch:
			return nil
		}
	}
	return ctx.Err() //nolint:wrapcheck // the link does
}

// leave removes a member whose stream has expired from the set, so that it does not take the place
// of an active one. Writers enter the member after adding to a stream: one added in between is
// entered again.
func (s *Shared) leave(ctx context.Context, c rueidis.Client, member string) error {
	there := func() (bool, error) {
		return c.Do(ctx, c.B().Exists().Key(s.o.Prefix+":out:"+member).Build()).AsBool()
	}
	if is, err := there(); is || err != nil {
		return err //nolint:wrapcheck // the link does
	}
	if err := c.Do(ctx, c.B().Srem().Key(s.tenants()).Member(member).Build()).Error(); err != nil {
		return err //nolint:wrapcheck // the link does
	}
	if is, err := there(); !is || err != nil {
		return err //nolint:wrapcheck // the link does
	}
	return c.Do(ctx, c.B().Sadd().Key(s.tenants()).Member(member).Build()).Error() //nolint:wrapcheck // the link does
}

func (s *Shared) tenants() string { return s.o.Prefix + ":out" }

// stream returns the key of a tenant's stream, and its last part; the tenant's name may contain
// anything.
func (s *Shared) stream(tenant string) (key, member string) {
	sum := sha256.Sum256([]byte(tenant))
	member = hex.EncodeToString(sum[:16])
	return s.o.Prefix + ":out:" + member, member
}
