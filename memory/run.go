package memory

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"signalbox/memory/ledger"
	"signalbox/memory/page"
)

const (
	tick     = time.Second // interval between checks for idle objects and postponed work
	dueTicks = 10          // interval between checks for expired records, in ticks
	// goroutines that bring contexts in, and as many that derive them again.
	wakers   = 2
	mostDue  = 256             // maximum number of records expired by one Sweep
	lastWord = 2 * time.Second // time limit for what is sent when Run ends
)

// Run runs timers, listens to the Remote and wakes contexts, until ctx is done and all its
// goroutines have ended. It must be called once. The error is that of a closed Remote; when ctx
// ends it is nil.
func (s *Store) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	if s.remote != nil {
		g.Go(func() error { return s.remote.Watch(ctx, s.changed, s.cache.doubt) })
	}
	for range wakers {
		g.Go(func() error { s.wakeAll(ctx); return nil })
		g.Go(func() error { s.rereadAll(ctx); return nil })
	}
	g.Go(func() error { s.sweepAll(ctx); return nil })
	g.Go(func() error { s.tightenAll(ctx); return nil })
	if err := g.Wait(); err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	return nil
}

func (s *Store) sweepAll(ctx context.Context) {
	t := time.NewTicker(tick)
	defer t.Stop()
	s.count(ctx)
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWord)
			defer cancel()
			s.settleAll(last)
			s.flush(last)
			return
		case <-t.C:
			s.tidy(ctx)
			if n%dueTicks == 0 {
				s.expire(ctx)
				s.count(ctx)
			}
		case r := <-s.repairs:
			s.repair(ctx, r)
		}
	}
}

// Sweep does the periodic work: it pages out idle objects, packs resting ones tightly, sends
// postponed work, derives again what is incomplete, and expires records. Run does this every second
// (expiry every ten), and packs and derives in the background; an additional Sweep is harmless.
func (s *Store) Sweep(ctx context.Context) {
	s.tidy(ctx)
	for n := len(s.rereads); n > 0; n-- {
		select {
		case w := <-s.rereads:
			s.reread(ctx, w)
		default:
		}
	}
	s.tightenLoose(ctx, func(time.Duration) {})
	s.expire(ctx)
}

func (s *Store) tidy(ctx context.Context) {
	s.pager.Idle()
	idle := s.idle()
	s.views.dropIf(func(_ viewKey, used time.Time) bool { return used.Before(idle) })
	s.settleAll(ctx)
	s.flush(ctx)
}

// idle returns the time since which a view must have been used to stay. An incomplete one of that
// age is made again.
func (s *Store) idle() time.Time {
	return s.now().Add(-cmp.Or(max(s.o.Pages.IdleL2, 0), page.DefaultOptions().IdleL2))
}

// flush sends touches to the remote. After an error they are sent next time.
func (s *Store) flush(ctx context.Context) {
	s.mu.Lock()
	touches := s.touches
	s.touches = map[ledger.Name]ledger.Touch{}
	s.mu.Unlock()
	for batch := range slices.Chunk(slices.Collect(maps.Values(touches)), mostDue) {
		if err := s.book.Touch(ctx, batch); err != nil {
			s.again(batch)
		}
	}
}

// again restores touches that could not be sent, except for records used since.
func (s *Store) again(list []ledger.Touch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range list {
		if _, ok := s.touches[t.Name]; !ok {
			s.touches[t.Name] = t
		}
	}
}

// expire expires records. With a remote it gives other replicas time to send their touches.
func (s *Store) expire(ctx context.Context) {
	now := s.now()
	if s.remote != nil {
		now = now.Add(-2 * s.o.TouchEvery)
	}
	due, err := s.book.Due(ctx, now, mostDue)
	if err != nil {
		return // the remote is unreachable, which its breaker reports
	}
	for _, at := range due {
		err := s.end(ctx, at, now)
		if err == nil || errors.Is(err, ledger.ErrConflict) || errors.Is(err, ledger.ErrNotFound) {
			continue
		}
		s.o.Log.LogAttrs(ctx, slog.LevelWarn, "context could not be ended", slog.String("context", at.ID), slog.String("error", err.Error()))
		if !errors.Is(err, ledger.ErrDamaged) {
			return // the next ones would fail as well
		}
	}
}

// end replaces an expired record by a tombstone, and removes tombstones that have been kept for
// long enough.
func (s *Store) end(ctx context.Context, at ledger.Name, now time.Time) error {
	e, err := s.book.Load(ctx, at.Tenant, at.ID)
	if err != nil || e.Expires.After(now) {
		return err
	}
	c := ledger.Change{Tenant: at.Tenant, ID: at.ID, Old: e.Record, Rev: e.Rev}
	if r := e.Record; r.State == ledger.Live && len(r.Versions) > 0 {
		c.New = &ledger.Record{ID: r.ID, Scope: r.Scope, Holder: r.Holder, State: ledger.Expired, Created: r.Created, TTL: s.o.KeepGone}
		c.Expires = s.now().Add(s.o.KeepGone)
	}
	_, err = s.commit(ctx, c, nil)
	return err
}

// changed handles a notification of the remote.
func (s *Store) changed(n ledger.News) {
	if old := s.cache.drop(n.Name, n.Rev); old != nil && n.Rev == 0 {
		for _, o := range old.Objects() {
			s.leave(page.Key{Tenant: n.Tenant, Sum: o.Sum})
		}
		s.unview(ledger.Change{Tenant: n.Tenant, Old: old})
	}
}

// vanished drops a record that the remote no longer has.
func (s *Store) vanished(at ledger.Name) { s.changed(ledger.News{Name: at}) }

// wake is a version to be brought in.
type wake struct {
	owner Owner
	ref   Ref
}

// Wake requests that a version be brought into RAM, and returns immediately; Run does it. It counts
// as a use. Errors are those of Resolve; *UnavailableError also if too many requests are waiting.
func (s *Store) Wake(ctx context.Context, owner Owner, ref Ref) (Context, error) {
	at, e, err := s.find(ctx, owner, ref)
	if err != nil {
		return Context{}, err
	}
	v, n, err := pick(e.Record, ref.Version)
	if err != nil {
		return Context{}, err
	}
	c := s.describe(at, e, n, s.views.find(keyOf(at.Tenant, v), s.now()))
	if c.Tier == page.Hot {
		return c, nil
	}
	select {
	case s.wakes <- wake{owner, Ref{ID: ref.ID, Version: n, Lease: ref.Lease}}:
		c.Status = Waking
		return c, nil
	default:
		return c, &UnavailableError{RetryAfter: retryAfter, Err: fmt.Errorf("%d contexts wait to be woken", mostWakes)}
	}
}

func (s *Store) wakeAll(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case w := <-s.wakes:
			s.bring(ctx, w, false, "context could not be woken")
		}
	}
}

func (s *Store) rereadAll(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case w := <-s.rereads:
			s.reread(ctx, w)
		}
	}
}

// reread replaces the incomplete view of a version, while the old one stays in use.
func (s *Store) reread(ctx context.Context, w wake) {
	s.bring(ctx, w, true, "context could not be read again")
}

// bring resolves a version without a request. A panic while a text is read is logged, like that of
// a request, and does not end the process.
func (s *Store) bring(ctx context.Context, w wake, anew bool, failed string) {
	defer func() {
		if v := recover(); v != nil {
			s.o.Log.LogAttrs(ctx, slog.LevelError, "panic", slog.String("context", w.ref.ID), slog.Any("value", v),
				slog.String("stack", string(debug.Stack())))
		}
	}()
	snap, err := s.resolve(ctx, w.owner, w.ref, anew)
	if err != nil {
		s.o.Log.LogAttrs(ctx, slog.LevelDebug, failed, //nolint:sloglint // one of two, that callers spell
			slog.String("context", w.ref.ID), slog.String("error", err.Error()))
		return
	}
	snap.Release()
}

// repair is the newly derived data of a version.
type repair struct {
	at      ledger.Name
	version int
	derived Derived
}

// repair stores newly derived data. Another replica may already have stored the same.
func (s *Store) repair(ctx context.Context, r repair) {
	raw, err := json.Marshal(r.derived)
	if err != nil {
		return
	}
	e, err := s.book.Load(ctx, r.at.Tenant, r.at.ID)
	if err != nil || e.Record.State != ledger.Live || len(e.Record.Versions) < r.version {
		return
	}
	p := newPiece(raw)
	changed := *e.Record
	changed.Versions = slices.Clone(changed.Versions)
	changed.Versions[r.version-1].Derived = &p.object
	c := ledger.Change{Tenant: r.at.Tenant, ID: r.at.ID, Old: e.Record, Rev: e.Rev, New: &changed, Expires: e.Expires}
	if _, err := s.commit(ctx, c, []piece{p}); err != nil {
		s.o.Log.LogAttrs(ctx, slog.LevelDebug, "what was derived anew could not be stored", slog.String("context", r.at.ID), slog.String("error", err.Error()))
	}
}
