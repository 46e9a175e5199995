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

// view is what a request needs of a version besides its bytes. It is immutable.
type view struct {
	derived   Derived
	facts     []Fact
	grounding any
	digest    blob.Sum // of what decisions depend on: the verdicts, the token counts and the facts
}

// viewKey identifies a view by its inputs.
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

// size returns the approximate size of a view in bytes.
func (w *view) size() int {
	n := len(w.derived.Skeleton) + len(w.derived.Verdicts)
	for i := range w.facts {
		n += len(w.facts[i].Text)
	}
	if g, ok := w.grounding.(interface{ Size() int }); ok {
		n += g.Size()
	}
	return n
}

// views holds the views in use. They contain texts and prepared facts, so their number is small and
// idle ones are dropped.
type views struct {
	mu      sync.Mutex // guards the fields below
	bytes   int        // of the items
	items   map[viewKey]*item
	flights map[viewKey]*flight
}

type item struct {
	view       *view
	made, used time.Time // made: or last requested to be made again
}

// flight is a view being made. view and err are set before done is closed.
type flight struct {
	done chan struct{}
	view *view
	err  error
}

// The limits of the views in RAM: their number and bytes.
const (
	mostViews     = 1024
	mostViewBytes = 256 << 20
)

func (v *views) find(k viewKey, now time.Time) *view {
	v.mu.Lock()
	defer v.mu.Unlock()
	if item := v.items[k]; item != nil {
		item.used = now
		return item.view
	}
	return nil
}

// lacks calls ask if a view has been incomplete since a given time, however often it was used. If
// ask returns true, it is not called again until as much time has passed once more. ask must not
// block.
func (v *views) lacks(k viewKey, since, now time.Time, ask func() bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if item := v.items[k]; item != nil && item.view.derived.Partial && !item.made.After(since) && ask() {
		item.made = now
	}
}

// keep stores a view and evicts the least recently used one if there is no room.
func (v *views) keep(k viewKey, made *view, now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.items == nil {
		v.items = map[viewKey]*item{}
	}
	v.drop(k)
	size := made.size()
	for len(v.items) > 0 && (len(v.items) >= mostViews || v.bytes+size > mostViewBytes) {
		v.drop(v.oldest())
	}
	v.items[k] = &item{made, now, now}
	v.bytes += size
}

// oldest returns the least recently used view. mu must be held, and there must be a view.
func (v *views) oldest() (oldest viewKey) {
	var used time.Time
	first := true
	for k, item := range v.items {
		if first || item.used.Before(used) {
			oldest, used, first = k, item.used, false
		}
	}
	return oldest
}

// drop removes a view. mu must be held.
func (v *views) drop(k viewKey) {
	if item := v.items[k]; item != nil {
		v.bytes -= item.view.size()
		delete(v.items, k)
	}
}

// dropIf removes the views for which test is true.
func (v *views) dropIf(test func(viewKey, time.Time) bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for k, item := range v.items {
		if test(k, item.used) {
			v.drop(k)
		}
	}
}

// board returns the flight that makes k, and whether the caller has to make it. Unless anew is set,
// a view completed since the last lookup is used.
func (v *views) board(k viewKey, anew bool) (f *flight, leads bool) { //nolint:revive // as of view
	v.mu.Lock()
	defer v.mu.Unlock()
	if f = v.flights[k]; f != nil {
		return f, false
	}
	if made := v.items[k]; made != nil && !anew {
		f = &flight{view: made.view, done: make(chan struct{})}
		close(f.done)
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

// viewed is a version for which a view is needed.
type viewed struct {
	owner   Owner
	at      ledger.Name
	version *ledger.Version
	n       int // its number
	lease   string
	care    page.Care
	text    func() (string, error) // called if the text itself is needed
}

// errNotUsed ends the renewal of a version that is no longer in use.
var errNotUsed = errors.New("a context that is read again is not in use")

// view returns the view of a version. One request makes it, and others that need it wait. For an
// incomplete one no request waits: it is used, and Run is asked to make it again.
func (s *Store) view(ctx context.Context, what *viewed, anew bool) (*view, error) { //nolint:revive // as of resolve
	k, revision := keyOf(what.at.Tenant, what.version), s.revision.Load()
	found := s.views.find(k, s.now())
	switch {
	case anew && found == nil:
		return nil, errNotUsed
	case anew && !found.derived.Partial:
		return found, nil
	case found != nil && !anew:
		s.views.lacks(k, s.idle(), s.now(), func() bool {
			select {
			case s.rereads <- wake{what.owner, Ref{ID: what.at.ID, Version: what.n, Lease: what.lease}}:
				return true
			default:
				return false // requested with the next use
			}
		})
		return found, nil
	}
	f, leads := s.views.board(k, anew)
	if !leads && found != nil {
		return found, nil
	}
	if !leads {
		select {
		case <-f.done:
			return f.view, f.err
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for what goes with a context: %w", ctx.Err())
		}
	}
	// for those who wait, in case this panics
	f.err = &UnavailableError{RetryAfter: retryAfter, Err: errors.New("what goes with a context was not made")}
	defer s.views.land(k, f)
	if !anew {
		ctx = context.WithoutCancel(ctx) // others wait for it; a renewal ends with Run
	}
	f.view, f.err = s.makeView(ctx, what)
	sound := f.err == nil && (f.view.derived.Partial || f.view.derived.Revision == *s.revision.Load())
	if !sound && found != nil && revision == s.revision.Load() {
		f.view, f.err, sound = found, nil, true // it is used until the next attempt
	}
	if sound {
		s.views.keep(k, f.view, s.now())
	}
	return f.view, f.err
}

func (s *Store) makeView(ctx context.Context, what *viewed) (*view, error) {
	revision, v := *s.revision.Load(), what.version
	made := &view{}
	if v.Derived == nil {
		made.derived.Revision = revision
	}
	if err := s.readInto(ctx, what.at.Tenant, v, what.care, made); err != nil {
		return nil, err
	}
	text := Text{Tenant: what.owner.Tenant, Kind: v.Kind, Whole: what.text}
	if s.o.Derive != nil && (v.Derived == nil || made.derived.Revision != revision) {
		s.deriveAnew(ctx, text, what.at, what.n, revision, made)
	}
	return made, s.ground(ctx, text, made)
}

// sign sets the digest.
func (w *view) sign() {
	b, err := json.Marshal(struct {
		Verdicts json.RawMessage
		Tokens   map[string]int
		Facts    []Fact `json:",omitempty"` // missing and empty lists are equal
	}{w.derived.Verdicts, w.derived.Tokens, w.facts})
	if err != nil {
		// verdicts that are not JSON
		b = fmt.Appendf(nil, "%s %v %q", w.derived.Verdicts, w.derived.Tokens, w.facts)
	}
	w.digest = blob.Of(b)
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

// deriveAnew replaces what another revision derived. After an error the old data stays, with its
// revision.
func (s *Store) deriveAnew(ctx context.Context, t Text, at ledger.Name, n int, revision string, made *view) {
	var err error
	if t.Text, err = t.Whole(); err == nil {
		var d Derived
		if d, err = s.o.Derive(ctx, t); err == nil {
			d.seal(revision)
			made.derived = d
			if d.Partial {
				return
			}
			select {
			case s.repairs <- repair{at: at, version: n, derived: d}:
			default:
			}
			return
		}
	}
	s.o.Log.LogAttrs(ctx, slog.LevelWarn, "context is used with what an older model made of it",
		slog.String("context", at.ID), slog.String("error", err.Error()))
	if made.derived.Revision == revision {
		made.derived.Revision = "" // nothing has been derived
	}
}

// ground completes a view: it sets the revision of the derived data and prepares the facts.
func (s *Store) ground(ctx context.Context, t Text, made *view) (err error) {
	made.sign()
	if s.o.Ground == nil {
		return nil
	}
	t.Facts = made.facts
	if made.grounding, err = s.o.Ground(ctx, t); err != nil {
		return fmt.Errorf("prepare facts: %w", err)
	}
	return nil
}

// read brings in an object that is JSON.
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
