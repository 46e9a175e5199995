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

// Store keeps the records of keys as texts, by their names. Implementations are safe for concurrent
// use, by several processes too.
type Store interface {
	// Load returns all texts, which are the caller's, and a word that stands for them; nil and known
	// where known still does. Errors wrap ErrUnavailable.
	Load(ctx context.Context, known string) (texts map[string]string, revision string, err error)
	// Swap puts text in the place of was; an empty one stands for no record. A new one must leave no
	// more than most. When it returns, the change is kept. Errors are ErrConflict, ErrTooMany and
	// ErrUnavailable, after which the change may have been made or not.
	Swap(ctx context.Context, name, was, text string, most int) error
}

// What can be wrong with a change.
var (
	ErrNotFound    = errors.New("there is no such key")
	ErrTaken       = errors.New("the name is taken")
	ErrConflict    = errors.New("the key was changed at the same time")
	ErrTooMany     = errors.New("there are as many virtual keys as there may be")
	ErrUnavailable = errors.New("virtual keys cannot be reached")
)

// errBlind is ErrUnavailable where nothing is known yet.
var errBlind = fmt.Errorf("%w: they were never read", ErrUnavailable)

// FieldError reports what is wrong with a field of a request.
type FieldError struct{ Field, Problem string }

// Error implements error.
func (e *FieldError) Error() string {
	if e.Field == "" {
		return e.Problem
	}
	return e.Field + ": " + e.Problem
}

// Options of a Ring.
type Options struct {
	Max     int           // keys there may be, expired ones included
	Refresh time.Duration // between two looks at the Store
	Now     func() time.Time
	Log     *slog.Logger // of changes, and of a Store that fails
	// Check reports what is wrong with the models of a key in view of the configuration, one "field:
	// problem" a line. nil: nothing is.
	Check func(k *auth.KeyOptions) error
	// Unknown are those of some models that the configuration does not have. nil: it has all.
	Unknown func(models []string) []string
	// Hint says what of a role and a tenant is probably a slip. nil: nothing is.
	Hint func(role, tenant string) string
	// Taken reports whether the configuration has a key of a name. nil: it has none.
	Taken func(name string) bool
	// Usage tells what is used of all that bounds a key. nil: nothing is bounded.
	Usage func(ctx context.Context, k *auth.KeyOptions) []Usage
}

// Ring is the virtual keys. See the package comment.
type Ring struct {
	o       Options
	store   Store
	turn    chan struct{} // holds 1: whoever reads or changes the Store, and current after it
	current atomic.Pointer[snapshot]
	failing atomic.Bool // the last look at the Store failed
	nobody  entry
}

// snapshot is what requests are served from. It never changes.
type snapshot struct {
	revision string // of the Store; empty when it is to be read anew
	byID     map[string]*entry
	byName   map[string]*entry
}

var _ auth.Virtual = (*Ring)(nil)

// New returns a Ring that knows no key yet. Look or Run reads them.
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

var errUnread = errors.New("virtual keys were not read yet")

// Find implements auth.Virtual.
func (r *Ring) Find(shown string, sum *[sha256.Size]byte) (*auth.KeyOptions, error) {
	id, ok := idOf(shown)
	if !ok {
		return nil, nil //nolint:nilnil // none
	}
	s := r.current.Load()
	if s == nil {
		return nil, errUnread
	}
	e, ok := s.byID[id]
	if !ok {
		e = &r.nobody // compared all the same
	}
	now := r.o.Now()
	same := subtle.ConstantTimeCompare(sum[:], e.current[:])
	before := subtle.ConstantTimeCompare(sum[:], e.previous[:])
	if now.Before(e.Until) {
		same |= before
	}
	if same != 1 || e.expired(now) {
		return nil, nil //nolint:nilnil // none
	}
	return &e.key, nil
}

// Taken implements auth.Virtual. Of a key that has expired contexts may be left.
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
		return "the virtual keys were not read yet: nobody who shows one is let in", true
	case r.failing.Load():
		return "the virtual keys cannot be read again: those that are known go on, and what other replicas change, " +
			"such as a revocation, is not seen", false
	}
	return "", false
}

// Run looks for changes that others made, until ctx ends; it returns nil.
func (r *Ring) Run(ctx context.Context) error {
	tick := time.NewTicker(r.o.Refresh)
	defer tick.Stop()
	for {
		_ = r.Look(ctx) // it has told
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Look reads what the Store has. On an error what was known before holds.
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

// look is Look; it is the caller's turn.
func (r *Ring) look(ctx context.Context) error {
	old := r.current.Load()
	known := ""
	if old != nil {
		known = old.revision
	}
	texts, revision, err := r.store.Load(ctx, known)
	if ctx.Err() != nil && err != nil {
		return err // whoever asked went away, which says nothing of the Store
	}
	if failed := err != nil; r.failing.Swap(failed) != failed {
		if failed {
			r.o.Log.LogAttrs(ctx, slog.LevelWarn, "virtual keys cannot be read: those that are known go on",
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

// compile makes a snapshot of texts. Those that cannot be read let nobody in, and are told.
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
				r.o.Log.LogAttrs(ctx, slog.LevelError, "a virtual key cannot be read: it lets nobody in",
					slog.String("key_name", name), slog.String("cause", err.Error()))
				continue
			}
			if r.o.Taken(name) {
				r.o.Log.LogAttrs(ctx, slog.LevelWarn, "a virtual key lets nobody in: the configuration has a key of its name",
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

// with is the snapshot after one change; it is read anew at the next look.
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

// Collision is the first of some names that a virtual key has; empty when none is known to.
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

// List returns the records, by name; those of a tenant alone unless it is empty.
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

// Lost are the ids of the keys that name a model which the configuration does not have, by name of
// the key.
func (r *Ring) Lost() (ids []string) {
	list, _ := r.List("") // none, as long as they were not read
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

// Create makes a key, which is shown this once. Errors are *FieldError, ErrTaken, ErrTooMany,
// ErrConflict and ErrUnavailable.
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
		return Record{}, "", &FieldError{"expires_at", "it has passed"}
	}
	if err := r.check(&made, nil); err != nil {
		return Record{}, "", err
	}
	if r.current.Load().byName[name] != nil || r.o.Taken(name) {
		return Record{}, "", ErrTaken
	}
	return made, secret, r.swap(ctx, name, "", &made)
}

// Rotate makes a new key for a record, which is shown this once. The one before holds for grace,
// and one before that no more. Errors are those of Change.
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

// Change changes a record by change, whose error it returns. Others are *FieldError, ErrNotFound,
// ErrConflict and ErrUnavailable.
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

// stored is the record of a key as the Store has it. The caller has entered.
func (r *Ring) stored(ctx context.Context, id string) (*entry, error) {
	if err := r.look(ctx); err != nil {
		return nil, err
	}
	if e := r.current.Load().byID[id]; e != nil {
		return e, nil
	}
	return nil, ErrNotFound
}

// Revoke ends a key for good. Errors are ErrNotFound, ErrConflict and ErrUnavailable.
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

// now is the time to a second, as records have it.
func (r *Ring) now() time.Time { return r.o.Now().UTC().Truncate(time.Second) }

// check reports what is wrong with a record that had some models before. A configuration that has
// lost one since is nothing that a change of something else could mend.
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

// swap changes the Store, and the snapshot with it; nil is no record. It is the caller's turn.
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
		r.current.Store(&snapshot{byID: s.byID, byName: s.byName}) // to be read anew
		return err
	}
	r.current.Store(s.with(name, next))
	return nil
}
