package memory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"signalbox/memory/blob"
	"signalbox/memory/ledger"
	"signalbox/memory/page"
)

// view is what a request needs of a version beside its bytes. It is immutable.
type view struct {
	derived   Derived
	facts     []Fact
	grounding any
}

// viewKey names a view by what it is made of.
type viewKey struct {
	tenant                  ledger.Tenant
	version, derived, facts blob.Sum
}

func keyOf(t ledger.Tenant, v *ledger.Version) viewKey {
	k := viewKey{tenant: t, version: v.Sum}
	if v.Derived != nil {
		k.derived = v.Derived.Sum
	}
	if v.Facts != nil {
		k.facts = v.Facts.Sum
	}
	return k
}

// views holds the views in use. They hold texts and prepared facts, so they are few and leave when idle.
type views struct {
	mu      sync.Mutex // guards what follows
	items   map[viewKey]*viewed
	flights map[viewKey]*flight
}

type viewed struct {
	view *view
	used time.Time
}

// flight is a view that is being made. view and err are set before done is closed.
type flight struct {
	done chan struct{}
	view *view
	err  error
}

// mostViews bounds the views in RAM.
const mostViews = 1024

func (v *views) find(k viewKey, now time.Time) *view {
	v.mu.Lock()
	defer v.mu.Unlock()
	if item := v.items[k]; item != nil {
		item.used = now
		return item.view
	}
	return nil
}

// keep takes a view. The one that was not used for the longest time makes room.
func (v *views) keep(k viewKey, made *view, now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.items == nil {
		v.items = map[viewKey]*viewed{}
	}
	if len(v.items) >= mostViews {
		var oldest viewKey
		at := now
		for k, item := range v.items {
			if !item.used.After(at) {
				oldest, at = k, item.used
			}
		}
		delete(v.items, oldest)
	}
	v.items[k] = &viewed{made, now}
}

// dropIf forgets the views that a test holds for.
func (v *views) dropIf(test func(viewKey, time.Time) bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for k, item := range v.items {
		if test(k, item.used) {
			delete(v.items, k)
		}
	}
}

// board returns the flight that makes k, and whether the caller is to make it.
func (v *views) board(k viewKey) (f *flight, leads bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if f = v.flights[k]; f != nil {
		return f, false
	}
	if v.flights == nil {
		v.flights = map[viewKey]*flight{}
	}
	f = &flight{done: make(chan struct{})}
	v.flights[k] = f
	return f, true
}

func (v *views) land(k viewKey, f *flight) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.flights, k)
	close(f.done)
}

// view returns what goes with a version. One request makes it, others that need it wait. text is called when
// the text itself is needed.
func (s *Store) view(ctx context.Context, tenant string, at ledger.Name, r *ledger.Record, n int, c page.Care, text func() (string, error)) (*view, error) {
	v := &r.Versions[n-1]
	k := keyOf(at.Tenant, v)
	if found := s.views.find(k, s.now()); found != nil {
		return found, nil
	}
	f, leads := s.views.board(k)
	if !leads {
		select {
		case <-f.done:
			return f.view, f.err
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for what goes with a context: %w", ctx.Err())
		}
	}
	f.err = &UnavailableError{RetryAfter: retryAfter, Err: errors.New("what goes with a context was not made")} // for those who wait, should this panic
	defer s.views.land(k, f)
	f.view, f.err = s.makeView(context.WithoutCancel(ctx), tenant, at, v, n, c, text)
	if f.err == nil && f.view.derived.Revision == s.o.Revision {
		s.views.keep(k, f.view, s.now())
	}
	return f.view, f.err
}

func (s *Store) makeView(ctx context.Context, tenant string, at ledger.Name, v *ledger.Version, n int, c page.Care, text func() (string, error)) (*view, error) {
	made := &view{derived: Derived{Revision: s.o.Revision}}
	if err := s.readInto(ctx, at.Tenant, v, c, made); err != nil {
		return nil, err
	}
	if s.o.Derive != nil && (v.Derived == nil || made.derived.Revision != s.o.Revision) {
		s.deriveAnew(ctx, tenant, at, n, made, text)
	}
	return made, s.ground(ctx, tenant, made, text)
}

// readInto brings in what is stored with a version.
func (s *Store) readInto(ctx context.Context, t ledger.Tenant, v *ledger.Version, c page.Care, into *view) error {
	if v.Derived != nil {
		if err := s.read(ctx, t, *v.Derived, c, &into.derived); err != nil {
			return err
		}
	}
	if v.Facts != nil {
		return s.read(ctx, t, *v.Facts, c, &into.facts)
	}
	return nil
}

// deriveAnew replaces what another revision had derived. When that fails the old stays, and its revision says so.
func (s *Store) deriveAnew(ctx context.Context, tenant string, at ledger.Name, n int, made *view, text func() (string, error)) {
	all, err := text()
	if err == nil {
		var d Derived
		if d, err = s.o.Derive(ctx, Text{Tenant: tenant, Text: all}); err == nil {
			d.Revision = s.o.Revision
			made.derived = d
			select {
			case s.repairs <- repair{at: at, version: n, derived: d}:
			default:
			}
			return
		}
	}
	s.o.Log.LogAttrs(ctx, slog.LevelWarn, "context is used with what an older model made of it",
		slog.String("context", at.ID), slog.String("error", err.Error()))
	if made.derived.Revision == s.o.Revision {
		made.derived.Revision = "" // nothing was ever derived
	}
}

// ground prepares the facts of a view.
func (s *Store) ground(ctx context.Context, tenant string, made *view, text func() (string, error)) error {
	if s.o.Ground == nil {
		return nil
	}
	all, err := text()
	if err != nil {
		return err
	}
	if made.grounding, err = s.o.Ground(ctx, Text{Tenant: tenant, Text: all, Facts: made.facts}); err != nil {
		return fmt.Errorf("prepare facts: %w", err)
	}
	return nil
}

// read brings an object of JSON in.
func (s *Store) read(ctx context.Context, t ledger.Tenant, o ledger.Object, c page.Care, into any) error {
	h, err := s.pager.Get(ctx, t, o, c)
	if err != nil {
		return public(err)
	}
	defer h.Release()
	if err := json.Unmarshal(h.Bytes, into); err != nil {
		return &UnavailableError{RetryAfter: retryAfter, Err: fmt.Errorf("read object: %w", err)}
	}
	return nil
}
