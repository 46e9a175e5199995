package memory

import (
	"cmp"
	"context"
	"errors"
	"time"

	"signalbox/memory/ledger"
	"signalbox/memory/page"
)

// Resolve returns the version of a context that ref refers to, ready to be spliced, and counts as a
// use of it. The caller must release the snapshot when the request is done. For a context in RAM
// this takes microseconds; otherwise it waits for the Remote within its time limits. Errors are
// ErrNotFound, ErrExpired and *UnavailableError.
func (s *Store) Resolve(ctx context.Context, owner Owner, ref Ref) (*Snapshot, error) {
	return s.resolve(ctx, owner, ref, false)
}

// resolve is Resolve. With anew it derives again what is incomplete in a version, which does not
// count as a use.
func (s *Store) resolve( //nolint:revive // anew is one of two ways to do the same
	ctx context.Context, owner Owner, ref Ref, anew bool,
) (*Snapshot, error) {
	at, e, err := s.find(ctx, owner, ref)
	if err != nil {
		return nil, err
	}
	v, n, err := pick(e.Record, ref.Version)
	if err != nil {
		return nil, err
	}
	if !anew {
		e.Expires = s.use(ctx, at, e)
	}
	wish := care(e)
	held, err := s.open(ctx, at.Tenant, v.Segments, wish)
	if err != nil {
		return nil, err
	}
	snap := &Snapshot{
		ID: ref.ID, Version: n, Sum: v.Sum, Kind: v.Kind, Fragments: fragments(held), Bytes: v.Bytes,
		Tier: nearestOf(held), held: held,
	}
	ready := false
	defer func() {
		if !ready { // also if Derive or Ground panics
			snap.Release()
		}
	}()
	what := viewed{owner: owner, at: at, version: v, n: n, lease: ref.Lease, care: wish, text: snap.Text}
	w, err := s.view(ctx, &what, anew)
	if err != nil {
		return nil, err
	}
	ready = true
	snap.Derived, snap.Facts, snap.Grounding, snap.Digest = w.derived, w.facts, w.grounding, w.digest
	return snap, nil
}

// Text returns the text of the snapshot as Derive receives it; messages are one per line.
func (s *Snapshot) Text() (string, error) { return textOf(s.Kind, s.Fragments) }

// Messages returns the content as a JSON list of messages; nil for a text.
func (s *Snapshot) Messages() []byte {
	if s.Kind != ledger.Messages {
		return nil
	}
	return append(append([]byte{'['}, join(s.Kind, s.Fragments)...), ']')
}

// nearestOf returns the tier of the whole: that of the farthest part.
func nearestOf(held []page.Held) page.Tier {
	t := page.Hot
	for _, h := range held {
		t = min(t, h.Tier)
	}
	return t
}

// Get describes a context. It does not count as a use.
func (s *Store) Get(ctx context.Context, owner Owner, ref Ref) (Context, error) {
	at, e, err := s.find(ctx, owner, ref)
	if err != nil {
		return Context{}, err
	}
	v, n, err := pick(e.Record, ref.Version)
	if err != nil {
		return Context{}, err
	}
	known := s.views.find(keyOf(at.Tenant, v), s.now())
	if known == nil {
		known = &view{}
		if err := s.readInto(ctx, at.Tenant, v, page.Care{}, known); err != nil {
			return Context{}, err
		}
	}
	return s.describe(at, e, n, known), nil
}

// List describes up to n contexts after the given id, in ascending order of id, n from 1 to 100.
// next is the id to continue after, empty at the end. Contexts that the owner may not use are left
// out, so a page may be short.
func (s *Store) List(ctx context.Context, owner Owner, after string, n int) (list []Context, next string, err error) {
	n = min(max(n, 1), 100)
	t := ledger.TenantOf(owner.Tenant)
	ids, err := s.book.List(ctx, t, after, n)
	if err != nil {
		return nil, "", public(err)
	}
	for _, id := range ids {
		at, e, err := s.find(ctx, owner, Ref{ID: id})
		if unavailable := (*UnavailableError)(nil); errors.As(err, &unavailable) {
			return nil, "", err // unreadable contexts must not be left out as if they did not exist
		}
		if err != nil || len(e.Record.Versions) == 0 {
			continue
		}
		latest := len(e.Record.Versions)
		list = append(list, s.describe(at, e, latest, s.views.find(keyOf(at.Tenant, &e.Record.Versions[latest-1]), s.now())))
	}
	if len(ids) == n {
		next = ids[n-1]
	}
	return list, next, nil
}

// describe returns the description for clients; known may be nil.
func (s *Store) describe(at ledger.Name, e ledger.Entry, n int, known *view) Context {
	r, v := e.Record, &e.Record.Versions[n-1]
	scope, _ := ParseScope(r.Scope)
	c := Context{
		ID: r.ID, Name: r.Name, Version: n, Latest: len(r.Versions), ETag: "sha256:" + v.Sum.String(), Sum: v.Sum, Kind: v.Kind, Bytes: v.Bytes,
		Pinned: r.Pinned, Scope: scope, Fixed: r.Fixed, TTL: r.TTL, Created: v.Created, Expires: e.Expires, Parent: v.Parent,
		FactCount: -1, Durable: s.remote != nil && s.awaiting(at) == nil,
	}
	c.Tier, c.Status = s.whereabouts(at.Tenant, v)
	for _, l := range r.Leases {
		if l.Until.After(s.now()) {
			c.Leases++
		}
	}
	if v.Facts == nil {
		c.FactCount = 0
	}
	if known != nil {
		c.Tokens, c.FactCount = known.derived.Tokens, len(known.facts)
		c.Verdicts, c.Known = known.derived.Verdicts, known.derived.Verdicts != nil
	}
	return c
}

// whereabouts returns the tier of a version and the resulting status.
func (s *Store) whereabouts(t ledger.Tenant, v *ledger.Version) (page.Tier, Status) {
	tier, last := page.Hot, time.Time{}
	for _, o := range v.Segments {
		k := page.Key{Tenant: t, Sum: o.Sum}
		if s.pager.Waking(k) {
			return s.pager.Tier(k), Waking
		}
		tier = min(tier, s.pager.Tier(k))
		if used := s.pager.LastUse(k); used.After(last) {
			last = used
		}
	}
	switch {
	case tier <= page.L3:
		return tier, PagedL3
	case tier == page.L2:
		return tier, PagedL2
	case s.o.Now().Sub(last) >= cmp.Or(max(s.o.Pages.IdleHot, 0), page.DefaultOptions().IdleHot):
		return tier, Idle
	}
	return tier, Active
}
