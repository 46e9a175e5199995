package memory

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"time"

	"signalbox/memory/ledger"
	"signalbox/memory/page"
)

// SetFacts replaces the facts of a version; an empty list removes them. Versions appended later
// inherit them; existing versions and requests in flight keep theirs. Errors are those of Patch.
func (s *Store) SetFacts(ctx context.Context, owner Owner, ref Ref, facts []Fact) (Context, error) {
	q, _ := s.quota(owner)
	pieces, object, err := factPieces(facts, q)
	if err != nil {
		return Context{}, err
	}
	number := 0
	at, e, err := s.update(ctx, owner, Ref{ID: ref.ID}, func(e ledger.Entry) (edit, error) {
		_, n, err := pick(e.Record, ref.Version)
		if err != nil {
			return edit{}, err
		}
		number = n
		r := *e.Record
		r.Versions = slices.Clone(r.Versions)
		r.Versions[n-1].Facts = object
		return edit{record: &r, expires: e.Expires, pieces: pieces}, nil
	})
	if err != nil {
		return Context{}, err
	}
	return s.describe(at, e, number, &view{facts: facts}), nil
}

// factPieces encodes facts as an object; without facts there is no object.
func factPieces(facts []Fact, q Quota) ([]piece, *ledger.Object, error) {
	if len(facts) == 0 {
		return nil, nil, nil
	}
	raw, err := spellFacts(facts, q)
	if err != nil {
		return nil, nil, err
	}
	p := newPiece(raw)
	return []piece{p}, &p.object, nil
}

// Facts returns the facts of a version. Errors are those of Resolve.
func (s *Store) Facts(ctx context.Context, owner Owner, ref Ref) ([]Fact, error) {
	at, e, err := s.find(ctx, owner, ref)
	if err != nil {
		return nil, err
	}
	v, _, err := pick(e.Record, ref.Version)
	if err != nil || v.Facts == nil {
		return nil, err
	}
	var facts []Fact
	err = s.read(ctx, at.Tenant, *v.Facts, care(e), &facts)
	return facts, err
}

// sessionName returns the name under which the facts of the owner's session are kept.
func sessionName(owner Owner) (ledger.Name, error) {
	if owner.Session == "" {
		return ledger.Name{}, &InvalidError{Field: "session", Reason: "must be named"}
	}
	sum := sha256.Sum256([]byte("session facts\x00" + owner.Session))
	return ledger.Name{Tenant: ledger.TenantOf(owner.Tenant), ID: "ses_" + hex.EncodeToString(sum[:16])}, nil
}

// SetSessionFacts replaces the facts of the owner's session; an empty list removes them. They live
// for ttl after their last use; 0 means the default of the store. Errors are those of Create.
func (s *Store) SetSessionFacts(ctx context.Context, owner Owner, facts []Fact, ttl time.Duration) error {
	at, err := sessionName(owner)
	if err != nil {
		return err
	}
	if ttl, err = s.ttl(ttl); err != nil {
		return err
	}
	q, limits := s.quota(owner)
	pieces, object, err := factPieces(facts, q)
	if err != nil {
		return err
	}
	for range attempts {
		old, err := s.book.Load(ctx, at.Tenant, at.ID)
		if err != nil && !errors.Is(err, ledger.ErrNotFound) {
			return public(err)
		}
		c := ledger.Change{Tenant: at.Tenant, ID: at.ID, Old: old.Record, Rev: old.Rev, Expires: s.now().Add(ttl), Limits: limits}
		if object != nil {
			c.New = &ledger.Record{ID: at.ID, Created: s.now(), TTL: ttl, Facts: object}
		}
		if c.New == nil && c.Old == nil {
			return nil
		}
		if _, err = s.commit(ctx, c, pieces); !errors.Is(err, ledger.ErrConflict) {
			return public(err)
		}
	}
	return &ConflictError{}
}

// SessionFacts returns the facts of the owner's session, nil if there are none or the owner has no
// session. It counts as a use of them. Errors are *UnavailableError and those of ctx.
func (s *Store) SessionFacts(ctx context.Context, owner Owner) ([]Fact, error) {
	if owner.Session == "" {
		return nil, nil
	}
	at, err := sessionName(owner)
	if err != nil {
		return nil, err
	}
	e, err := s.lookup(ctx, at)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, public(err)
	}
	if e.Record.Facts == nil || !e.Expires.After(s.now()) {
		return nil, nil
	}
	s.use(ctx, at, e)
	var facts []Fact
	err = s.read(ctx, at.Tenant, *e.Record.Facts, page.Care{}, &facts)
	return facts, err
}
