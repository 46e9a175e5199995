package keyring

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"signalbox/proxy/auth"
)

// Store stores the records of keys as texts, by name. Implementations are safe for concurrent use,
// also by several processes.
type Store interface {
	// Load returns all texts, which belong to the caller, and a revision that identifies them. If
	// known is still the current revision, it returns nil and known. Errors wrap ErrUnavailable.
	Load(ctx context.Context, known string) (texts map[string]string, revision string, err error)
	// Swap replaces was by text; an empty text stands for no record. Adding a record must not lead
	// to more than most records. When Swap returns nil, the change is durable. Errors are
	// ErrConflict, ErrTooMany and ErrUnavailable; after the last, the change may have been made or
	// not.
	Swap(ctx context.Context, name, was, text string, most int) error
}

// The errors of changes.
var (
	ErrNotFound    = errors.New("no such key")
	ErrTaken       = errors.New("the name is taken")
	ErrConflict    = errors.New("the key was changed concurrently")
	ErrTooMany     = errors.New("the maximum number of virtual keys is reached")
	ErrUnavailable = errors.New("the store of virtual keys is not reachable")
)

// errBlind is an ErrUnavailable before the keys were first read.
var errBlind = fmt.Errorf("%w: they were never read", ErrUnavailable)

// FieldError reports a problem with a field of a request.
type FieldError struct{ Field, Problem string }

// Error implements error.
func (e *FieldError) Error() string {
	if e.Field == "" {
		return e.Problem
	}
	return e.Field + ": " + e.Problem
}

// Options configures a Ring. Functions may be nil.
type Options struct {
	Max     int           // maximum number of keys, including expired ones
	Refresh time.Duration // interval of reading the Store
	Now     func() time.Time
	Log     *slog.Logger // for changes, and for failures of the Store
	// Check reports problems with the models of a key under the configuration, one "field: problem"
	// per line. nil means no problems.
	Check func(k *auth.KeyOptions) error
	// Unknown returns those of the models that are not configured. nil means none.
	Unknown func(models []string) []string
	// Hint points out a probable typo in a role or tenant. nil means never.
	Hint func(role, tenant string) string
	// Taken reports whether the configuration has a key with a name. nil means no.
	Taken func(name string) bool
	// Usage reports the use of a key's limits and budgets. nil means that there are none.
	Usage func(ctx context.Context, k *auth.KeyOptions) []Usage
}

// Ring holds the virtual keys. See the package comment.
type Ring struct {
	o       Options
	store   Store
	turn    chan struct{} // capacity 1: held by whoever reads or changes the Store and then current
	current atomic.Pointer[snapshot]
	failing atomic.Bool // the last reading of the Store failed
	nobody  entry
}

// snapshot is what requests are served from. It is immutable.
type snapshot struct {
	revision string // of the Store; empty to force a new reading
	byID     map[string]*entry
	byName   map[string]*entry
}

var _ auth.Virtual = (*Ring)(nil)

// New returns a Ring without keys. Look or Run reads them.
func New(store Store, o Options) *Ring {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Check == nil {
		o.Check = func(*auth.KeyOptions) error { return nil }
	}
	if o.Unknown == nil {
		o.Unknown = func([]string) []string { return nil }
	}
	if o.Hint == nil {
		o.Hint = func(string, string) string { return "" }
	}
	if o.Taken == nil {
		o.Taken = func(string) bool { return false }
	}
	if o.Usage == nil {
		o.Usage = func(context.Context, *auth.KeyOptions) []Usage { return []Usage{} }
	}
	return &Ring{o: o, store: store, turn: make(chan struct{}, 1)}
}

var errUnread = errors.New("virtual keys are not loaded yet")

// Find implements auth.Virtual.
func (r *Ring) Find(shown string, sum *[sha256.Size]byte) (*auth.KeyOptions, error) {
	id, ok := idOf(shown)
	if !ok {
		return nil, nil //nolint:nilnil // no such key
	}
	s := r.current.Load()
	if s == nil {
		return nil, errUnread
	}
	e, ok := s.byID[id]
	if !ok {
		e = &r.nobody // compare anyway, to take the same time
	}
	now := r.o.Now()
	same := subtle.ConstantTimeCompare(sum[:], e.current[:])
	before := subtle.ConstantTimeCompare(sum[:], e.previous[:])
	if now.Before(e.Until) {
		same |= before
	}
	if same != 1 || e.expired(now) {
		return nil, nil //nolint:nilnil // not valid
	}
	return &e.key, nil
}

// Taken implements auth.Virtual. An expired key counts, since its contexts may still exist.
func (r *Ring) Taken(name string) (bool, error) {
	s := r.current.Load()
	if s == nil {
		return false, errUnread
	}
	return s.byName[name] != nil, nil
}

// Lacking implements auth.Virtual.
func (r *Ring) Lacking() (what string, blind bool) {
	switch {
	case r.current.Load() == nil:
		return "virtual keys are not loaded yet: requests that use one are refused", true
	case r.failing.Load():
		return "virtual keys cannot be reloaded: known keys stay valid, and changes made by other replicas, " +
			"such as revocations, are not seen", false
	}
	return "", false
}

// Run reads changes by other processes until ctx ends; it returns nil.
func (r *Ring) Run(ctx context.Context) error {
	tick := time.NewTicker(r.o.Refresh)
	defer tick.Stop()
	for {
		_ = r.Look(ctx) // it logs errors itself
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Look reads the Store. On an error the known keys stay valid.
func (r *Ring) Look(ctx context.Context) error {
	if err := r.enter(ctx); err != nil {
		return err
	}
	defer r.leave()
	return r.look(ctx)
}

func (r *Ring) enter(ctx context.Context) error {
	select {
	case r.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrUnavailable, ctx.Err())
	}
}

func (r *Ring) leave() { <-r.turn }

// look is Look for callers that hold the turn.
func (r *Ring) look(ctx context.Context) error {
	old := r.current.Load()
	known := ""
	if old != nil {
		known = old.revision
	}
	texts, revision, err := r.store.Load(ctx, known)
	if ctx.Err() != nil && err != nil {
		return err // the caller left, which says nothing about the Store
	}
	if failed := err != nil; r.failing.Swap(failed) != failed {
		if failed {
			r.o.Log.LogAttrs(ctx, slog.LevelWarn, "virtual keys cannot be read: known keys stay valid",
				slog.String("cause", err.Error()))
		} else {
			r.o.Log.LogAttrs(ctx, slog.LevelInfo, "virtual keys can be read again")
		}
	}
	if err != nil || old != nil && revision == known {
		return err
	}
	r.current.Store(r.compile(ctx, texts, revision, old))
	return nil
}

// compile makes a snapshot from texts. Records that cannot be read are logged and admit nobody.
func (r *Ring) compile(ctx context.Context, texts map[string]string, revision string, old *snapshot) *snapshot {
	s := &snapshot{revision: revision, byID: make(map[string]*entry, len(texts)), byName: make(map[string]*entry, len(texts))}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		var e *entry
		if old != nil {
			e = old.byName[name]
		}
		if e == nil || e.text != texts[name] {
			var err error
			if e, err = parse(name, texts[name]); err != nil {
				r.o.Log.LogAttrs(ctx, slog.LevelError, "virtual key ignored: its record cannot be read",
					slog.String("key_name", name), slog.String("cause", err.Error()))
				continue
			}
			if r.o.Taken(name) {
				r.o.Log.LogAttrs(ctx, slog.LevelWarn, "virtual key ignored: the configuration has a key with the same name",
					slog.String("key_name", name), slog.String("key_id", e.ID))
			}
		}
		s.byID[e.ID], s.byName[name] = e, e
	}
	if old != nil && len(old.byName) > 0 && len(texts) == 0 {
		r.o.Log.LogAttrs(ctx, slog.LevelWarn, "all virtual keys are gone", slog.Int("known_before", len(old.byName)))
	}
	return s
}

// with returns the snapshot after one change. The next look reads the Store again.
func (s *snapshot) with(name string, e *entry) *snapshot {
	n := &snapshot{byID: maps.Clone(s.byID), byName: maps.Clone(s.byName)}
	if was := n.byName[name]; was != nil {
		delete(n.byID, was.ID)
		delete(n.byName, name)
	}
	if e != nil {
		n.byID[e.ID], n.byName[name] = e, e
	}
	return n
}

// Collision returns the first of the names that a virtual key has; empty if none is known to.
func (r *Ring) Collision(names []string) string {
	s := r.current.Load()
	if s == nil {
		return ""
	}
	for _, name := range names {
		if s.byName[name] != nil {
			return name
		}
	}
	return ""
}

// List returns the records sorted by name, of one tenant unless tenant is empty.
func (r *Ring) List(tenant string) ([]Record, error) {
	s := r.current.Load()
	if s == nil {
		return nil, errBlind
	}
	out := make([]Record, 0, len(s.byName))
	for _, e := range s.byName {
		if tenant == "" || e.Tenant == tenant {
			out = append(out, e.Record)
		}
	}
	slices.SortFunc(out, func(a, b Record) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// Lost returns the ids of keys that name a model that is not configured, sorted by key name.
func (r *Ring) Lost() (ids []string) {
	list, _ := r.List("") // empty until the keys were read
	for i := range list {
		if len(r.o.Unknown(list[i].Models)) > 0 {
			ids = append(ids, list[i].ID)
		}
	}
	return ids
}

// Key returns one record. The error is ErrNotFound or ErrUnavailable.
func (r *Ring) Key(id string) (Record, error) {
	s := r.current.Load()
	if s == nil {
		return Record{}, errBlind
	}
	e := s.byID[id]
	if e == nil {
		return Record{}, ErrNotFound
	}
	return e.Record, nil
}

// Create creates a key and returns its secret, which is not available later. Errors are
// *FieldError, ErrTaken, ErrTooMany, ErrConflict and ErrUnavailable.
func (r *Ring) Create(ctx context.Context, name string, g *Grants, expires time.Time) (made Record, secret string, err error) {
	if err := r.enter(ctx); err != nil {
		return Record{}, "", err
	}
	defer r.leave()
	if err := r.look(ctx); err != nil {
		return Record{}, "", err
	}
	now := r.now()
	made = Record{Grants: *g, ID: newID(), Name: name, Created: now, Updated: now, Expires: expires}
	made.Models = slices.Clone(g.Models)
	secret, made.SHA256 = newSecret(made.ID)
	if made.expired(now) {
		return Record{}, "", &FieldError{"expires_at", "must be in the future"}
	}
	if err := r.check(&made, nil); err != nil {
		return Record{}, "", err
	}
	if r.current.Load().byName[name] != nil || r.o.Taken(name) {
		return Record{}, "", ErrTaken
	}
	return made, secret, r.swap(ctx, name, "", &made)
}

// Rotate gives a key a new secret and returns it; it is not available later. The previous secret
// remains valid for grace, and one before that no longer. Errors are those of Change.
func (r *Ring) Rotate(ctx context.Context, id string, grace time.Duration) (changed Record, secret string, err error) {
	changed, err = r.Change(ctx, id, func(rec *Record) error {
		rec.Rotated = r.now()
		rec.Previous, rec.Until = "", time.Time{}
		if grace > 0 {
			rec.Previous, rec.Until = rec.SHA256, rec.Rotated.Add(grace)
		}
		secret, rec.SHA256 = newSecret(id)
		return nil
	})
	return changed, secret, err
}

// Change applies change to a record and returns its error. Other errors are *FieldError,
// ErrNotFound, ErrConflict and ErrUnavailable.
func (r *Ring) Change(ctx context.Context, id string, change func(*Record) error) (Record, error) {
	if err := r.enter(ctx); err != nil {
		return Record{}, err
	}
	defer r.leave()
	e, err := r.stored(ctx, id)
	if err != nil {
		return Record{}, err
	}
	changed := e.Record
	changed.Models = slices.Clone(e.Models)
	changed.Updated = r.now()
	if err := change(&changed); err != nil {
		return Record{}, err
	}
	if err := r.check(&changed, e.Models); err != nil {
		return Record{}, err
	}
	return changed, r.swap(ctx, e.Name, e.text, &changed)
}

// stored returns the current record of a key in the Store. The caller holds the turn.
func (r *Ring) stored(ctx context.Context, id string) (*entry, error) {
	if err := r.look(ctx); err != nil {
		return nil, err
	}
	if e := r.current.Load().byID[id]; e != nil {
		return e, nil
	}
	return nil, ErrNotFound
}

// Revoke deletes a key. Errors are ErrNotFound, ErrConflict and ErrUnavailable.
func (r *Ring) Revoke(ctx context.Context, id string) (Record, error) {
	if err := r.enter(ctx); err != nil {
		return Record{}, err
	}
	defer r.leave()
	e, err := r.stored(ctx, id)
	if err != nil {
		return Record{}, err
	}
	return e.Record, r.swap(ctx, e.Name, e.text, nil)
}

// now returns the time truncated to seconds, as stored in records.
func (r *Ring) now() time.Time { return r.o.Now().UTC().Truncate(time.Second) }

// check reports problems of a record that previously had the given models. Unchanged models are not
// checked, so that a key with a model that was since removed can still be changed otherwise.
func (r *Ring) check(rec *Record, models []string) error {
	k := rec.options(rec.Name)
	err := k.CheckGrants()
	if err == nil && !slices.Equal(k.Models, models) {
		err = r.o.Check(&k)
	}
	if err == nil {
		return nil
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	field, problem, _ := strings.Cut(first, ": ")
	return &FieldError{field, problem}
}

// swap changes the Store and the snapshot; a nil rec deletes the record. The caller holds the turn.
func (r *Ring) swap(ctx context.Context, name, was string, rec *Record) error {
	var next *entry
	text := ""
	if rec != nil {
		var err error
		if text, err = rec.text(); err != nil {
			return err
		}
		if next, err = parse(name, text); err != nil {
			return fmt.Errorf("a record that was just written: %w", err)
		}
	}
	s := r.current.Load()
	err := r.store.Swap(ctx, name, was, text, r.o.Max)
	if err != nil {
		r.current.Store(&snapshot{byID: s.byID, byName: s.byName}) // forces a new reading
		return err
	}
	r.current.Store(s.with(name, next))
	return nil
}
