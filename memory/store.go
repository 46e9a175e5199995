package memory

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"signalbox/memory/blob"
	"signalbox/memory/ledger"
	"signalbox/memory/page"
)

// Store keeps contexts. See the package comment.
type Store struct {
	o      Options
	book   Book
	local  *ledger.Local // book, if there is no remote
	remote Remote        // nil: RAM holds the only copy
	pager  *page.Pager
	cache  *cache // of records of the remote
	views  views
	totals totals // of the remote

	wakes   chan wake   // requests of Wake; further ones are refused
	rereads chan wake   // versions with incomplete views; further ones are requested again later
	repairs chan repair // newly derived data; what does not fit is dropped, and derived again later

	revision atomic.Pointer[string] // of Derive

	// orders commits without a remote: objects are in RAM exactly while the book refers to them
	alone sync.Mutex

	mu      sync.Mutex // guards the fields below
	touches map[ledger.Name]ledger.Touch
	pending map[ledger.Name]*pending
}

// Limits on what waits in a Store.
const (
	mostWakes   = 64
	mostRepairs = 16
	mostPending = 1024
)

// New returns a store. With a remote it serves what is stored there; nil keeps everything in RAM.
// It starts no goroutines.
func New(o Options, remote Remote) (*Store, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("memory options: %w", err)
	}
	o = o.withDefaults()
	s := &Store{
		o: o, remote: remote, book: remote,
		wakes: make(chan wake, mostWakes), repairs: make(chan repair, mostRepairs),
		rereads: make(chan wake, mostWakes),
		touches: map[ledger.Name]ledger.Touch{}, pending: map[ledger.Name]*pending{},
	}
	s.revision.Store(&o.Revision)
	var source page.Source
	if remote != nil {
		source = remote
		s.cache = newCache(o.Contexts)
	} else {
		s.local = ledger.NewLocal(o.Contexts)
		s.book = s.local
	}
	var err error
	if s.pager, err = page.New(o.Pages, source); err != nil {
		return nil, fmt.Errorf("memory: %w", err)
	}
	return s, nil
}

// Revise declares that Derive and Ground have changed to the given revision: what was made before
// is made again before use.
func (s *Store) Revise(revision string) {
	s.revision.Store(&revision)
	s.views.dropIf(func(viewKey, time.Time) bool { return true })
}

// Reachable reports whether there is a Remote and whether it is believed to respond.
func (s *Store) Reachable() (remote, reachable bool) {
	if s.remote == nil {
		return false, true
	}
	h, ok := s.remote.(interface{ Healthy() bool })
	return true, !ok || h.Healthy()
}

// Stats returns counts of what is in RAM.
func (s *Store) Stats() page.Stats { return s.pager.Stats() }

// Census counts contexts by the tier of their latest versions, as seen from this process.
type Census struct {
	// contexts; L3: those of all tenants in the Remote that are not in RAM here
	Hot, L2, L3                int64
	HotBytes, L2Bytes, L3Bytes int64 // unpacked; packed in RAM; unpacked, of all in the Remote
}

// Census examines every record known here: some 100 ns each. The Remote's totals are from the last
// check by Run, and include sessions with facts.
func (s *Store) Census() Census {
	stats := s.pager.Stats()
	c := Census{HotBytes: stats.HotBytes, L2Bytes: stats.L2Bytes, L3Bytes: s.totals.bytes.Load()}
	each := func(at ledger.Name, e ledger.Entry) bool {
		if r := e.Record; r.State == ledger.Live && len(r.Versions) > 0 {
			switch s.tierOf(at.Tenant, &r.Versions[len(r.Versions)-1]) {
			case page.Hot:
				c.Hot++
			case page.L2:
				c.L2++
			case page.L3, page.Gone:
			}
		}
		return true
	}
	if s.remote == nil {
		s.local.Each(each)
		return c
	}
	s.cache.each(each)
	c.L3 = max(s.totals.contexts.Load()-c.Hot-c.L2, 0)
	return c
}

// tierOf returns the tier of a version: that of its farthest part.
func (s *Store) tierOf(t ledger.Tenant, v *ledger.Version) page.Tier {
	tier := page.Hot
	for i := range v.Segments {
		tier = min(tier, s.pager.Tier(page.Key{Tenant: t, Sum: v.Segments[i].Sum}))
	}
	return tier
}

// totals is what the Remote held at the last check.
type totals struct{ contexts, bytes atomic.Int64 }

// count asks the Remote for its totals, if it supports that.
func (s *Store) count(ctx context.Context) {
	r, ok := s.remote.(interface {
		Totals(ctx context.Context) (contexts, bytes int64, err error)
	})
	if !ok {
		return
	}
	if contexts, bytes, err := r.Totals(ctx); err == nil { // else the previous ones stay
		s.totals.contexts.Store(contexts)
		s.totals.bytes.Store(bytes)
	}
}

// now returns the time in the resolution of stored expiry times.
func (s *Store) now() time.Time { return s.o.Now().UTC().Truncate(time.Millisecond) }

// lookup returns a record, from RAM while it is fresh. If the remote is unreachable, an older one
// is used.
func (s *Store) lookup(ctx context.Context, at ledger.Name) (ledger.Entry, error) {
	if s.remote == nil {
		return s.book.Load(ctx, at.Tenant, at.ID)
	}
	if p := s.awaiting(at); p != nil {
		return ledger.Entry{Record: p.change.New, Expires: p.change.Expires}, nil
	}
	asked := s.now()
	known, ok := s.cache.find(at)
	if ok && asked.Sub(known.loaded) < s.o.Fresh && (known.absent || known.entry.Expires.After(asked)) {
		return known.answer()
	}
	e, err := s.book.Load(ctx, at.Tenant, at.ID)
	switch {
	case err == nil:
		s.cache.keep(at, e, asked)
		return e, nil
	case errors.Is(err, ledger.ErrNotFound):
		s.vanished(at)
		s.cache.miss(at, asked)
		return ledger.Entry{}, err
	case ok:
		return known.answer()
	}
	return ledger.Entry{}, err
}

// find returns the record that ref refers to, if the owner may use it and it has not expired.
func (s *Store) find(ctx context.Context, owner Owner, ref Ref) (ledger.Name, ledger.Entry, error) {
	at := ledger.Name{Tenant: ledger.TenantOf(owner.Tenant), ID: ref.ID}
	if !isID(ref.ID) {
		return at, ledger.Entry{}, ErrNotFound
	}
	e, err := s.lookup(ctx, at)
	if err != nil {
		return at, ledger.Entry{}, public(err)
	}
	return at, e, s.admits(e, owner, ref)
}

// admits checks that the owner may use the record now.
func (s *Store) admits(e ledger.Entry, owner Owner, ref Ref) error {
	r := e.Record
	if r.Holder != "" && r.Holder != holder(r.Scope, owner) {
		return ErrNotFound
	}
	if r.State == ledger.Deleted && !leased(r, ref.Lease, s.now()) {
		return ErrNotFound
	}
	if r.State == ledger.Expired || !e.Expires.After(s.now()) {
		return ErrExpired
	}
	return nil
}

// holder returns a hash of who may use a record of the given scope; empty: the whole tenant. It
// never returns an empty string for a narrower scope.
func holder(scope string, owner Owner) string {
	var who string
	switch scope {
	case SessionScope.String():
		who = owner.Session
	case PrivateScope.String():
		who = owner.Subject
	default:
		return ""
	}
	sum := sha256.Sum256([]byte(scope + "\x00" + who))
	return hex.EncodeToString(sum[:16])
}

// leased reports whether the lease is active.
func leased(r *ledger.Record, id string, now time.Time) bool {
	return slices.ContainsFunc(r.Leases, func(l ledger.Lease) bool {
		return id != "" && l.ID == id && l.Until.After(now)
	})
}

// isID reports whether a string has the form of newID. Other strings are not looked up.
func isID(s string) bool {
	rest, ok := strings.CutPrefix(s, idPrefix)
	return ok && len(rest) == idLength &&
		!strings.ContainsFunc(rest, func(c rune) bool { return (c < 'a' || c > 'z') && (c < '2' || c > '7') })
}

// pick returns the version that ref refers to, and its number.
func pick(r *ledger.Record, version int) (*ledger.Version, int, error) {
	version = cmp.Or(version, len(r.Versions))
	if version < 1 || version > len(r.Versions) {
		return nil, 0, &VersionError{Version: version, Latest: len(r.Versions)}
	}
	return &r.Versions[version-1], version, nil
}

// use records a use of a record, which extends its life, and returns the new expiry.
func (s *Store) use(ctx context.Context, at ledger.Name, e ledger.Entry) time.Time {
	r := e.Record
	if r.Fixed || r.State != ledger.Live {
		return e.Expires
	}
	end := s.now().Add(r.TTL)
	if end.Sub(e.Expires) < min(s.o.TouchEvery, r.TTL/4) {
		return e.Expires
	}
	t := ledger.Touch{Name: at, TTL: r.TTL, Expires: end}
	if s.remote == nil {
		if err := s.book.Touch(ctx, []ledger.Touch{t}); err != nil {
			return e.Expires
		}
		return end
	}
	s.cache.extend(&t)
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.pending[at]; p != nil {
		p.change.Expires = end
		return end
	}
	if _, ok := s.touches[at]; ok || len(s.touches) < s.o.Contexts {
		s.touches[at] = t
	}
	return end
}

// care returns how the bytes of a record are to be treated.
func care(e ledger.Entry) page.Care {
	c := page.Care{NextUse: e.Record.NextUse, Priority: e.Record.Priority}
	if e.Record.Pinned {
		c.PinUntil = e.Expires
	}
	return c
}

// open brings objects in, in order. The caller must release the result, which is empty after an
// error.
func (s *Store) open(ctx context.Context, t ledger.Tenant, objects []ledger.Object, c page.Care) ([]page.Held, error) {
	held := make([]page.Held, 0, len(objects))
	for _, o := range objects {
		h, err := s.pager.Get(ctx, t, o, c)
		if err != nil {
			release(held)
			return nil, public(err)
		}
		held = append(held, h)
	}
	return held, nil
}

func release(held []page.Held) {
	for _, h := range held {
		h.Release()
	}
}

func fragments(held []page.Held) [][]byte {
	out := make([][]byte, len(held))
	for i, h := range held {
		out[i] = h.Bytes
	}
	return out
}

// piece is an object that is about to be stored.
type piece struct {
	object      ledger.Object
	raw, packed []byte
	took        time.Duration // time to pack it
}

// copy returns the piece for the pager, not marked as safe in L3.
func (p piece) copy() page.Copy { return page.Copy{Object: p.object, Hot: p.raw, Packed: p.packed} }

func newPiece(raw []byte) piece {
	begun := time.Now()
	packed, sum := blob.Pack(raw)
	o := ledger.Object{Sum: sum, Size: int64(len(raw)), Packed: int64(len(packed))}
	return piece{object: o, raw: raw, packed: packed, took: time.Since(begun)}
}

func (s *Store) quota(owner Owner) (Quota, ledger.Limits) {
	q := s.o.Quota(owner.Tenant).withDefaults()
	return q, ledger.Limits{Contexts: q.Contexts, Bytes: q.Bytes, Pinned: q.PinnedBytes}
}
