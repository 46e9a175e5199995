package memory

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"signalbox/memory/ledger"
	"signalbox/memory/page"
)

// attempts is how often a change is tried if concurrent changes conflict with it.
const attempts = 5

// commit stores the pieces, makes the change, and returns the new entry. Errors are those of
// Book.Commit and page.ErrFull; in that case nothing visible has changed.
func (s *Store) commit(ctx context.Context, c ledger.Change, pieces []piece) (ledger.Entry, error) {
	e := ledger.Entry{Record: c.New, Expires: c.Expires}
	for _, p := range pieces {
		s.o.Stored(page.L2, p.took)
	}
	var err error
	if s.remote == nil {
		e.Rev, err = s.commitAlone(ctx, c, pieces)
		return e, err
	}
	at := ledger.Name{Tenant: c.Tenant, ID: c.ID}
	for range attempts {
		var dropped []ledger.Object
		if e.Rev, dropped, err = s.send(ctx, c, pieces); err == nil {
			s.settled(at, e, pieces, dropped)
			s.unview(c)
			return e, nil
		}
		// else a piece was removed between Put and Commit, with the object it was shared with
		if !errors.Is(err, ledger.ErrMissing) {
			break
		}
	}
	s.cache.drop(at, 0) // the change may have been made
	return e, err
}

// send writes pieces and record to the remote.
func (s *Store) send(ctx context.Context, c ledger.Change, pieces []piece) (int64, []ledger.Object, error) {
	for _, p := range pieces {
		begun := time.Now()
		if err := s.remote.Put(ctx, c.Tenant, p.object, p.packed); err != nil {
			return 0, nil, err
		}
		s.o.Stored(page.L3, time.Since(begun))
	}
	return s.remote.Commit(ctx, c)
}

// settled updates RAM with what the remote has accepted.
func (s *Store) settled(at ledger.Name, e ledger.Entry, pieces []piece, dropped []ledger.Object) {
	if e.Record == nil {
		s.cache.drop(at, 0)
	} else {
		s.cache.keep(at, e, s.now())
		for _, p := range pieces {
			k := page.Key{Tenant: at.Tenant, Sum: p.object.Sum}
			c := p.copy()
			c.Safe = true
			_ = s.pager.Add(k, c, care(e)) // what does not fit is in L3
		}
	}
	for _, o := range dropped {
		s.leave(page.Key{Tenant: at.Tenant, Sum: o.Sum})
	}
}

// leave drops the copy in RAM of an object that L3 has, or had.
func (s *Store) leave(k page.Key) {
	s.pager.Unpin(k)
	s.pager.Drop(k)
}

// unview drops the views of versions that a change removes.
func (s *Store) unview(c ledger.Change) {
	if c.Old == nil || (c.New != nil && len(c.New.Versions) >= len(c.Old.Versions)) {
		return
	}
	for i := range c.Old.Versions {
		k := keyOf(c.Tenant, &c.Old.Versions[i])
		s.views.dropIf(func(other viewKey, _ time.Time) bool { return other == k })
	}
}

// commitAlone is commit without a remote.
func (s *Store) commitAlone(ctx context.Context, c ledger.Change, pieces []piece) (int64, error) {
	s.alone.Lock()
	defer s.alone.Unlock()
	rev, freed, err := s.enter(ctx, c, pieces)
	if err != nil {
		for _, p := range pieces {
			if !s.local.Refers(c.Tenant, p.object.Sum) {
				s.pager.Forget(page.Key{Tenant: c.Tenant, Sum: p.object.Sum})
			}
		}
		return 0, err
	}
	s.unview(c)
	for _, o := range freed {
		k := page.Key{Tenant: c.Tenant, Sum: o.Sum}
		s.leave(k)
		s.pager.Forget(k)
	}
	return rev, nil
}

func (s *Store) enter(ctx context.Context, c ledger.Change, pieces []piece) (int64, []ledger.Object, error) {
	wish := page.Care{}
	if c.New != nil {
		wish = care(ledger.Entry{Record: c.New, Expires: c.Expires})
	}
	for _, p := range pieces {
		k := page.Key{Tenant: c.Tenant, Sum: p.object.Sum}
		if err := s.pager.Add(k, p.copy(), wish); err != nil {
			return 0, nil, err
		}
	}
	added, _ := c.Difference()
	for _, o := range added {
		if !s.pager.Keep(page.Key{Tenant: c.Tenant, Sum: o.Sum}) {
			return 0, nil, ledger.ErrMissing
		}
	}
	return s.book.Commit(ctx, c)
}

// edit is a change of a record for update: the new record (nil removes it), its expiry, and its new
// objects.
type edit struct {
	record  *ledger.Record
	expires time.Time
	pieces  []piece
}

// update changes a record that the owner may use. decide receives the entry, whose record it must
// not modify, and may be called again after a conflict.
func (s *Store) update(ctx context.Context, owner Owner, ref Ref, decide func(ledger.Entry) (edit, error)) (ledger.Name, ledger.Entry, error) {
	at := ledger.Name{Tenant: ledger.TenantOf(owner.Tenant), ID: ref.ID}
	if !isID(ref.ID) {
		return at, ledger.Entry{}, ErrNotFound
	}
	if err := s.settlePending(ctx, at); err != nil {
		return at, ledger.Entry{}, public(err)
	}
	_, limits := s.quota(owner)
	var have ledger.Entry
	for range attempts {
		var err error
		if have, err = s.book.Load(ctx, at.Tenant, at.ID); err != nil {
			return at, have, public(err)
		}
		if err := s.admits(have, owner, ref); err != nil {
			return at, have, err
		}
		d, err := decide(have)
		if err != nil {
			return at, have, err
		}
		e, err := s.commit(ctx, ledger.Change{
			Tenant: at.Tenant, ID: at.ID, Old: have.Record, Rev: have.Rev, New: d.record, Expires: d.expires, Limits: limits,
		}, d.pieces)
		if !errors.Is(err, ledger.ErrConflict) {
			return at, e, public(err)
		}
	}
	return at, have, &ConflictError{Have: len(have.Record.Versions)}
}

// pending is a best-effort creation, to be sent once the remote is reachable.
type pending struct {
	change ledger.Change
	pieces []piece
}

func (s *Store) awaiting(at ledger.Name) *pending {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pending[at]
	if p == nil {
		return nil
	}
	same := *p
	return &same
}

// postpone keeps a creation in RAM.
func (s *Store) postpone(c ledger.Change, pieces []piece) (ledger.Entry, error) {
	e := ledger.Entry{Record: c.New, Expires: c.Expires}
	at := ledger.Name{Tenant: c.Tenant, ID: c.ID}
	if !s.pend(at, &pending{c, pieces}) {
		return e, fmt.Errorf("%w: %d creations wait for the remote", ErrFull, mostPending)
	}
	for _, p := range pieces {
		k := page.Key{Tenant: c.Tenant, Sum: p.object.Sum}
		if err := s.pager.Add(k, p.copy(), care(e)); err != nil {
			s.unpend(at)
			s.abandon(c.Tenant, pieces)
			return e, public(err)
		}
	}
	return e, nil
}

// pend adds a pending creation, if there is room for one more.
func (s *Store) pend(at ledger.Name, p *pending) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pending) >= mostPending {
		return false
	}
	s.pending[at] = p
	return true
}

// abandon drops pieces that no other pending creation shares. A piece that L3 has is only a copy.
func (s *Store) abandon(t ledger.Tenant, pieces []piece) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range pieces {
		if !s.shares(t, p.object) {
			s.pager.Forget(page.Key{Tenant: t, Sum: p.object.Sum})
		}
	}
}

// shares reports whether a pending creation includes the object. mu must be held.
func (s *Store) shares(t ledger.Tenant, o ledger.Object) bool {
	for at, p := range s.pending {
		for _, other := range p.pieces {
			if at.Tenant == t && other.object.Sum == o.Sum {
				return true
			}
		}
	}
	return false
}

// settlePending sends the pending creation of that name, if there is one.
func (s *Store) settlePending(ctx context.Context, at ledger.Name) error {
	p := s.awaiting(at)
	if p == nil {
		return nil
	}
	if !p.change.Expires.After(s.now()) {
		s.unpend(at)
		s.abandon(at.Tenant, p.pieces)
		return ledger.ErrNotFound
	}
	_, err := s.commit(ctx, p.change, p.pieces)
	// conflict: an earlier attempt succeeded after all
	if err != nil && !errors.Is(err, ledger.ErrConflict) {
		return err
	}
	for _, piece := range p.pieces {
		s.pager.Saved(page.Key{Tenant: at.Tenant, Sum: piece.object.Sum})
	}
	s.unpend(at)
	return nil
}

func (s *Store) unpend(at ledger.Name) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pending, at)
}

// settleAll sends pending creations, until the remote is unreachable.
func (s *Store) settleAll(ctx context.Context) {
	s.mu.Lock()
	names := slices.Collect(maps.Keys(s.pending))
	s.mu.Unlock()
	for _, at := range names {
		if err := s.settlePending(ctx, at); errors.Is(err, ledger.ErrUnavailable) {
			return
		}
	}
}
