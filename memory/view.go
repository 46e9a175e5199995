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
	digest    blob.Sum // of what decisions on requests read: the verdicts, the counts and the facts
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

// size is about how many bytes a view takes.
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

// views holds the views in use. They hold texts and prepared facts, so they are few and leave when
// idle.
type views struct {
	mu      sync.Mutex // guards what follows
	bytes   int        // of the items
	items   map[viewKey]*item
	flights map[viewKey]*flight
}

type item struct {
	view       *view
	made, used time.Time // made: or last asked to be made anew
}

// flight is a view that is being made. view and err are set before done is closed.
type flight struct {
	done chan struct{}
	view *view
	err  error
}

// The bounds of the views in RAM: how many, and their bytes.
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

// lacks calls ask where something is missing in a view since a time, however often it was used, and
// not again before it is as old as that once more, if ask reports that it is seen to. ask must not
// wait.
func (v *views) lacks(k viewKey, since, now time.Time, ask func() bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if item := v.items[k]; item != nil && item.view.derived.Partial && !item.made.After(since) && ask() {
		item.made = now
	}
}

// keep takes a view. The one that was not used for the longest time makes room.
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

// oldest is the view that was not used for the longest time. It is called with mu held, and there
// is one.
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

// drop forgets a view. It is called with mu held.
func (v *views) drop(k viewKey) {
	if item := v.items[k]; item != nil {
		v.bytes -= item.view.size()
		delete(v.items, k)
	}
}

// dropIf forgets the views that a test holds for.
func (v *views) dropIf(test func(viewKey, time.Time) bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for k, item := range v.items {
		if test(k, item.used) {
			v.drop(k)
		}
	}
}

// board returns the flight that makes k, and whether the caller is to make it. Unless it is to be made
// anew, one that has landed since the view was looked for will do.
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
	text    func() (string, error) // called when the text itself is needed
}

// errNotUsed ends the reading of a version that nobody uses any more.
var errNotUsed = errors.New("a context that is read again is not in use")

// view returns what goes with a version. One request makes it, and others that need it wait. Where
// there is one that lacks something no request waits: it serves, and Run is asked to have it made
// anew.
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
				return false // asked for with the next use
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
	f.err = &UnavailableError{RetryAfter: retryAfter, Err: errors.New("what goes with a context was not made")} // for those who wait, should this panic
	defer s.views.land(k, f)
	if !anew {
		ctx = context.WithoutCancel(ctx) // others wait for it; what is made anew ends with Run
	}
	f.view, f.err = s.makeView(ctx, what)
	sound := f.err == nil && (f.view.derived.Partial || f.view.derived.Revision == *s.revision.Load())
	if !sound && found != nil && revision == s.revision.Load() {
		f.view, f.err, sound = found, nil, true // it serves until the next try
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
		Facts    []Fact `json:",omitempty"` // none look alike, however they were given
	}{w.derived.Verdicts, w.derived.Tokens, w.facts})
	if err != nil {
		b = fmt.Appendf(nil, "%s %v %q", w.derived.Verdicts, w.derived.Tokens, w.facts) // verdicts that are no JSON
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

// deriveAnew replaces what another revision had derived. When that fails the old stays, and its
// revision says so.
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
		made.derived.Revision = "" // nothing was ever derived
	}
}

// ground completes a view: it names what was derived and prepares the facts.
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
