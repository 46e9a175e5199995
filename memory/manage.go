package memory

import (
	"context"
	"slices"
	"time"

	"signalbox/memory/ledger"
	"signalbox/memory/page"
)

// Patch changes the attributes of a context. nil fields stay unchanged.
type Patch struct {
	Name   *string
	TTL    *time.Duration // counted from now
	Fixed  *bool
	Pinned *bool
	Hints  *Hints
}

// Patch changes a context; a version in ref must be the latest. Errors are those of Resolve,
// *ConflictError, *InvalidError and *QuotaError.
func (s *Store) Patch(ctx context.Context, owner Owner, ref Ref, p Patch) (Context, error) {
	at, e, err := s.update(ctx, owner, Ref{ID: ref.ID}, func(e ledger.Entry) (edit, error) {
		if err := expect(e.Record, ref.Version); err != nil {
			return edit{}, err
		}
		r := *e.Record
		expires, err := s.apply(&r, e.Expires, p)
		return edit{record: &r, expires: expires}, err
	})
	if err != nil {
		return Context{}, err
	}
	s.tend(at.Tenant, e)
	n := len(e.Record.Versions)
	return s.describe(at, e, n, s.views.find(keyOf(at.Tenant, &e.Record.Versions[n-1]), s.now())), nil
}

// expect checks that the latest version is the expected one; 0 accepts any.
func expect(r *ledger.Record, version int) error {
	if have := len(r.Versions); version != 0 && version != have {
		return &ConflictError{Want: version, Have: have}
	}
	return nil
}

// apply changes a copy of a record and returns its new expiry.
func (s *Store) apply(r *ledger.Record, expires time.Time, p Patch) (time.Time, error) {
	if p.Name != nil {
		if len(*p.Name) > mostName {
			return expires, &InvalidError{Field: "name", Reason: "is too long"}
		}
		r.Name = *p.Name
	}
	if p.Fixed != nil {
		s.fix(r, expires, *p.Fixed)
	}
	if p.Pinned != nil {
		r.Pinned = *p.Pinned
	}
	if p.Hints != nil {
		if p.Hints.Priority < 0 || p.Hints.Priority > 9 || p.Hints.NextUse < 0 {
			return expires, &InvalidError{Field: "hints", Reason: "must have a priority of 0 to 9 and a next use in the future"}
		}
		r.Priority, r.NextUse = p.Hints.Priority, s.now().Add(p.Hints.NextUse)
	}
	if p.TTL == nil {
		return expires, nil
	}
	ttl, err := s.ttl(*p.TTL)
	if err != nil {
		return expires, err
	}
	r.TTL = ttl
	end := s.now().Add(ttl)
	if r.Fixed {
		r.Ends = end
	}
	return later(end, r.Leases), nil
}

// fix makes the life of a record fixed, from its last use on, or one that use makes longer.
func (s *Store) fix(r *ledger.Record, expires time.Time, fixed bool) {
	switch {
	case !fixed:
		r.Ends = time.Time{}
	case !r.Fixed:
		if r.Ends = s.now().Add(r.TTL); expires.Before(r.Ends) {
			r.Ends = expires
		}
	}
	r.Fixed = fixed
}

// later returns t, or the end of the last lease if that is later.
func later(t time.Time, leases []ledger.Lease) time.Time {
	for _, l := range leases {
		if l.Until.After(t) {
			t = l.Until
		}
	}
	return t
}

// tend tells the pager how the objects of a record are to be treated from now on.
func (s *Store) tend(t ledger.Tenant, e ledger.Entry) {
	for _, o := range e.Record.Objects() {
		k := page.Key{Tenant: t, Sum: o.Sum}
		s.pager.Unpin(k)
		s.pager.Care(k, care(e))
	}
}

// Append makes a new version that begins with the latest one; if ref names a version it must be the
// latest. It has the facts of the latest version. Errors are those of Create and Patch.
func (s *Store) Append(ctx context.Context, owner Owner, ref Ref, c Content) (Context, error) {
	content, err := canon(c)
	if err != nil {
		return Context{}, err
	}
	q, _ := s.quota(owner)
	var m made
	at, e, err := s.update(ctx, owner, Ref{ID: ref.ID}, func(e ledger.Entry) (edit, error) {
		if err := expect(e.Record, ref.Version); err != nil {
			return edit{}, err
		}
		latest := len(e.Record.Versions)
		if latest >= q.Versions {
			return edit{}, &QuotaError{What: "versions", Limit: int64(q.Versions)}
		}
		at := ledger.Name{Tenant: ledger.TenantOf(owner.Tenant), ID: ref.ID}
		from, err := s.basisOf(ctx, at, &e.Record.Versions[latest-1], "", content.kind)
		if err != nil {
			return edit{}, err
		}
		defer release(from.held)
		if m, err = s.build(ctx, owner, from, content, Draft{}); err != nil {
			return edit{}, err
		}
		r := *e.Record
		r.Versions = append(slices.Clip(r.Versions), m.version)
		return edit{record: &r, expires: s.renewed(e), pieces: m.pieces}, nil
	})
	if err != nil {
		return Context{}, err
	}
	n := len(e.Record.Versions)
	s.views.keep(keyOf(at.Tenant, &e.Record.Versions[n-1]), m.view, s.now())
	return s.describe(at, e, n, m.view), nil
}

// renewed returns the expiry of a record that is used now.
func (s *Store) renewed(e ledger.Entry) time.Time {
	end := s.now().Add(e.Record.TTL)
	if e.Record.Fixed || end.Before(e.Expires) {
		return e.Expires
	}
	return end
}

// Delete deletes a context; it can no longer be found. Its bytes are removed immediately, except
// for requests in flight and for leases, which keep them until they end. Errors are those of Patch.
func (s *Store) Delete(ctx context.Context, owner Owner, ref Ref) error {
	_, _, err := s.update(ctx, owner, Ref{ID: ref.ID}, func(e ledger.Entry) (edit, error) {
		if err := expect(e.Record, ref.Version); err != nil {
			return edit{}, err
		}
		now := s.now()
		if end := later(now, e.Record.Leases); end.After(now) {
			r := *e.Record
			r.State, r.Pinned = ledger.Deleted, false
			return edit{record: &r, expires: end}, nil
		}
		return edit{}, nil
	})
	return err
}

// mostLeases is the maximum number of leases of one context.
const mostLeases = 64

// Lease keeps a context until the returned time, d from now, even if it is deleted; then only a Ref
// with the lease finds it. Errors are those of Patch.
func (s *Store) Lease(ctx context.Context, owner Owner, ref Ref, d time.Duration) (ledger.Lease, error) {
	if d <= 0 || d > s.o.MaxTTL {
		return ledger.Lease{}, &InvalidError{Field: "lease", Reason: "must last longer than 0 and at most " + s.o.MaxTTL.String()}
	}
	lease := ledger.Lease{ID: newID()[len(idPrefix):], Until: s.now().Add(d)}
	_, _, err := s.update(ctx, owner, ref, func(e ledger.Entry) (edit, error) {
		r := *e.Record
		r.Leases = append(running(r.Leases, s.now()), lease)
		if len(r.Leases) > mostLeases {
			return edit{}, &QuotaError{What: "leases", Limit: mostLeases}
		}
		return edit{record: &r, expires: later(e.Expires, r.Leases)}, nil
	})
	return lease, err
}

// Unlease ends the lease in ref. The bytes of a deleted context are removed with its last lease;
// any other context then lives no longer than if it had been used now.
func (s *Store) Unlease(ctx context.Context, owner Owner, ref Ref) error {
	_, _, err := s.update(ctx, owner, ref, func(e ledger.Entry) (edit, error) {
		r := *e.Record
		r.Leases = slices.DeleteFunc(running(r.Leases, s.now()), func(l ledger.Lease) bool { return l.ID == ref.Lease })
		if r.State == ledger.Deleted && len(r.Leases) == 0 {
			return edit{}, nil
		}
		own := s.now()
		switch {
		case r.State == ledger.Deleted:
		case r.Fixed:
			own = r.FixedEnd()
		default:
			own = own.Add(r.TTL)
		}
		expires := later(own, r.Leases)
		if e.Expires.Before(expires) {
			expires = e.Expires
		}
		return edit{record: &r, expires: expires}, nil
	})
	return err
}

// running returns the leases that have not ended, in a new slice.
func running(leases []ledger.Lease, now time.Time) []ledger.Lease {
	var out []ledger.Lease
	for _, l := range leases {
		if l.Until.After(now) {
			out = append(out, l)
		}
	}
	return out
}

// PageOut moves a version to L2 or L3 immediately, except for objects in use. Errors are those of
// Resolve, and ErrNoRemote for L3 without a Remote; in that case it is not moved.
func (s *Store) PageOut(ctx context.Context, owner Owner, ref Ref, to page.Tier) (Context, error) {
	at, e, err := s.find(ctx, owner, ref)
	if err != nil {
		return Context{}, err
	}
	v, n, err := pick(e.Record, ref.Version)
	switch {
	case err != nil:
		return Context{}, err
	case to <= page.L3 && s.remote == nil:
		return Context{}, ErrNoRemote
	}
	known := s.views.find(keyOf(at.Tenant, v), s.now())
	for _, o := range v.Segments {
		s.pager.PageOut(page.Key{Tenant: at.Tenant, Sum: o.Sum}, to)
	}
	if k := keyOf(at.Tenant, v); to <= page.L3 {
		s.views.dropIf(func(other viewKey, _ time.Time) bool { return other == k })
	}
	return s.describe(at, e, n, known), nil
}
