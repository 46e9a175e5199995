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
	local  *ledger.Local // book, when there is no remote
	remote Remote        // nil: RAM is all there is
	pager  *page.Pager
	cache  *cache // of records of the remote
	views  views
	totals totals // of the remote

	wakes   chan wake   // what Wake asks for; more than it holds is refused
	rereads chan wake   // versions of which something is unknown; more than it holds is asked for again
	repairs chan repair // what was derived anew; more than it holds is dropped, and derived again some day

	revision atomic.Pointer[string] // of what Derive is made of

	alone sync.Mutex // orders commits without a remote: objects are in RAM exactly while the book refers to them

	mu      sync.Mutex // guards what follows
	touches map[ledger.Name]ledger.Touch
	pending map[ledger.Name]*pending
}

// Bounds of what waits in a Store.
const (
	mostWakes   = 64
	mostRepairs = 16
	mostPending = 1024
)

// New returns an empty store. With a remote it serves what is there; nil keeps all in RAM. It
// starts nothing.
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

// Revise says that Derive and Ground are made of something else from now on, which revision names:
// what was made by then is made anew before it is used.
func (s *Store) Revise(revision string) {
	s.revision.Store(&revision)
	s.views.dropIf(func(viewKey, time.Time) bool { return true })
}

// Reachable tells whether there is a Remote and whether it answers, as far as is known.
func (s *Store) Reachable() (remote, reachable bool) {
	if s.remote == nil {
		return false, true
	}
	h, ok := s.remote.(interface{ Healthy() bool })
	return true, !ok || h.Healthy()
}

// Stats counts what is in RAM.
func (s *Store) Stats() page.Stats { return s.pager.Stats() }

// Census counts contexts by where the bytes of their latest versions are, as seen from this
// process.
type Census struct {
	Hot, L2, L3                int64 // contexts; L3: those of all tenants in the Remote that are not in RAM here
	HotBytes, L2Bytes, L3Bytes int64 // unpacked, packed in RAM, and unpacked of all in the Remote
}

// Census looks at every record that is known here: some 100 ns for each. What the Remote holds is
// from the last look of Run, and counts sessions with facts as well.
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

// tierOf is where a version is: its farthest part.
func (s *Store) tierOf(t ledger.Tenant, v *ledger.Version) page.Tier {
	tier := page.Hot
	for i := range v.Segments {
		tier = min(tier, s.pager.Tier(page.Key{Tenant: t, Sum: v.Segments[i].Sum}))
	}
	return tier
}

// totals is what the Remote held when it was last asked.
type totals struct{ contexts, bytes atomic.Int64 }

// count asks the Remote what it holds, if it can tell.
func (s *Store) count(ctx context.Context) {
	r, ok := s.remote.(interface {
		Totals(ctx context.Context) (contexts, bytes int64, err error)
	})
	if !ok {
		return
	}
	if contexts, bytes, err := r.Totals(ctx); err == nil { // else the last ones stay
		s.totals.contexts.Store(contexts)
		s.totals.bytes.Store(bytes)
	}
}

// now is the time in the resolution in which ends of lives are kept.
func (s *Store) now() time.Time { return s.o.Now().UTC().Truncate(time.Millisecond) }

// lookup returns a record, from RAM while it is fresh. When the remote cannot be reached, an older
// one does.
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

// find returns the record that ref names, if the owner may use it and its time is not over.
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

// holder names who may use a record of the given scope, as a hash; empty: the whole tenant. It
// never returns the empty string for a narrower scope.
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

// leased tells whether the lease runs.
func leased(r *ledger.Record, id string, now time.Time) bool {
	return slices.ContainsFunc(r.Leases, func(l ledger.Lease) bool {
		return id != "" && l.ID == id && l.Until.After(now)
	})
}

// isID tells whether a string looks like what newID makes. Nothing else is looked up.
func isID(s string) bool {
	rest, ok := strings.CutPrefix(s, idPrefix)
	return ok && len(rest) == idLength &&
		!strings.ContainsFunc(rest, func(c rune) bool { return (c < 'a' || c > 'z') && (c < '2' || c > '7') })
}

// pick is the version that ref names, and its number.
func pick(r *ledger.Record, version int) (*ledger.Version, int, error) {
	version = cmp.Or(version, len(r.Versions))
	if version < 1 || version > len(r.Versions) {
		return nil, 0, &VersionError{Version: version, Latest: len(r.Versions)}
	}
	return &r.Versions[version-1], version, nil
}

// use notes that a record was used, so that its life ends later.
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

// care is how the bytes of a record are to be treated.
func care(e ledger.Entry) page.Care {
	c := page.Care{NextUse: e.Record.NextUse, Priority: e.Record.Priority}
	if e.Record.Pinned {
		c.PinUntil = e.Expires
	}
	return c
}

// open brings objects in, in order. The caller releases what is returned, of which there is nothing
// on error.
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
	took        time.Duration // to pack it
}

// copy is the piece as the pager takes it, with no other home.
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
