// Package page keeps the bytes of contexts in tiers: hot (unpacked, ready to be spliced), L2
// (packed, in RAM) and L3 (packed, in the Source). Objects never change, so paging out drops bytes
// and costs no I/O.
//
// The bytes of hot and L2 are limited. Above the high watermark the objects that are cheapest to
// bring back are paged out first, until the low watermark is reached: GDSF, rank = age + uses x
// cost / size (Cherkasova, "Improving WWW Proxies Performance with Greedy-Dual-Size-Frequency
// Caching Policy", HP Labs 1998). Objects in use and pinned ones stay, and so does the packed form
// of objects that are not in L3.
//
// Objects that were packed fast (see blob.Pack) are packed again, tightly, once they are in L2
// only: Loose returns the objects to pack, and Replace stores the result.
//
// A Pager is safe for concurrent use, starts no goroutine and holds its lock for memory accesses
// only.
package page

import (
	"cmp"
	"container/list"
	"errors"
	"fmt"
	"sync"
	"time"

	"signalbox/memory/blob"
	"signalbox/memory/ledger"
)

// ErrFull reports that there is no room for an object that is not in L3.
var ErrFull = errors.New("no room left for contexts in memory")

// ErrGone reports that an object is neither in RAM nor in L3.
var ErrGone = errors.New("object is not stored")

// Tier is where an object's bytes are, or were when they were requested. Higher values are nearer.
type Tier uint8

// The tiers.
const (
	Gone Tier = iota
	L3
	L2
	Hot
)

// String returns the name of the tier, as in the header x-signalbox-context-tier.
func (t Tier) String() string {
	switch t {
	case L3:
		return "l3"
	case L2:
		return "l2"
	case Hot:
		return "hot"
	case Gone:
	}
	return "gone"
}

// Key identifies an object. Tenants never share one.
type Key struct {
	Tenant ledger.Tenant
	Sum    blob.Sum
}

// Care is how an object should be treated. Of several requests for one object the strongest
// applies.
type Care struct {
	PinUntil time.Time // until then it stays in RAM, and hot if it is hot
	NextUse  time.Time // until then idle timers ignore it, and others are paged out first
	Priority int       // 0..9; each step counts like that many more uses
}

// Options are options of a Pager. Zero fields except L3Latency take the value of DefaultOptions.
type Options struct {
	Bytes     int64         // limit of hot and L2 together
	High, Low float64       // watermarks as shares of Bytes, 0 < Low <= High <= 1
	IdleHot   time.Duration // time without use after which hot becomes L2
	IdleL2    time.Duration // time without use after which L2 becomes L3, if there is one
	Now       func() time.Time
	// called for every move, with the lock held; must be fast; may be nil
	Paged func(from, to Tier, bytes int)
	// Loaded receives the time taken to bring an object in, from L2 or L3, and its unpacked size;
	// may be nil.
	Loaded func(from Tier, took time.Duration, bytes int)
}

// DefaultOptions returns 1 GiB, watermarks of 85 and 70 %, 30 s and 5 min.
func DefaultOptions() Options {
	return Options{Bytes: 1 << 30, High: 0.85, Low: 0.70, IdleHot: 30 * time.Second, IdleL2: 5 * time.Minute, Now: time.Now}
}

// Validate reports every field that is out of range.
func (o Options) Validate() error {
	var errs []error
	if o.Bytes < 0 {
		errs = append(errs, fmt.Errorf("bytes %d: less than 0", o.Bytes))
	}
	if o.High < 0 || o.High > 1 || o.Low < 0 || o.Low > 1 || (o.High != 0 && o.Low > o.High) {
		errs = append(errs, fmt.Errorf("watermarks %g and %g: want 0 < low <= high <= 1", o.Low, o.High))
	}
	if o.IdleHot < 0 || o.IdleL2 < 0 {
		errs = append(errs, fmt.Errorf("idle times %v and %v: less than 0", o.IdleHot, o.IdleL2))
	}
	return errors.Join(errs...)
}

func (o Options) withDefaults() Options {
	d := DefaultOptions()
	o.Bytes = cmp.Or(o.Bytes, d.Bytes)
	if o.High == 0 {
		o.High, o.Low = d.High, d.Low
	}
	o.Low = cmp.Or(o.Low, o.High)
	o.IdleHot = cmp.Or(o.IdleHot, d.IdleHot)
	o.IdleL2 = cmp.Or(o.IdleL2, d.IdleL2)
	if o.Now == nil {
		o.Now = d.Now
	}
	if o.Paged == nil {
		o.Paged = func(Tier, Tier, int) {}
	}
	if o.Loaded == nil {
		o.Loaded = func(Tier, time.Duration, int) {}
	}
	return o
}

// Pager holds objects. See the package comment.
type Pager struct {
	o      Options
	source Source

	mu      sync.Mutex // guards the fields below
	entries map[Key]*entry
	victims ranking
	hot     list.List // *entry, least recently used first
	cold    list.List // of those in L2 only
	age     float64   // of GDSF: the rank of the last victim
	loose   []*entry  // entered L2 loosely packed; some may have moved on since
	leaving []Loose   // sent to L3 before they were packed tightly
	waiting int64     // packed bytes of leaving
	stats   Stats
}

// Stats are the current counts of a Pager.
type Stats struct {
	Hot, L2           int   // objects whose nearest tier this is
	HotBytes, L2Bytes int64 // unpacked; packed, including that of hot objects
}

// overhead is the size of an entry in addition to its bytes: the entry itself and its places in
// map, lists and ranking.
const overhead = 384

// New returns an empty Pager. source provides objects that are not in RAM; nil: there is no L3.
func New(o Options, source Source) (*Pager, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("pager options: %w", err)
	}
	return &Pager{o: o.withDefaults(), source: source, entries: map[Key]*entry{}}, nil
}

// entry is one object in RAM. Pager.mu guards all fields except key and object.
type entry struct {
	key    Key
	object ledger.Object

	hot, packed []byte
	safe        bool // L3 has it too
	doomed      bool // to be removed when the last user is done
	queued      bool // in Pager.loose
	refs        int
	care        Care
	uses        float64
	last        time.Time
	loading     *load

	rank   float64
	place  int           // index in the ranking, -1: not in it
	in     *list.List    // Pager.hot or Pager.cold, nil: in none
	seat   *list.Element // in that list
	seated time.Time     // when it got the seat
}

func (e *entry) tier() Tier {
	switch {
	case e.hot != nil:
		return Hot
	case e.packed != nil:
		return L2
	case e.safe:
		return L3
	}
	return Gone
}

// Copy is an object in both forms. The pager owns the bytes from Add on; they are read-only.
type Copy struct {
	Object      ledger.Object
	Hot, Packed []byte
	Safe        bool // L3 has it too
}

// Add adds an object. A safe one that does not fit is left in L3. One that is not safe stays until
// Forget or Saved; ErrFull reports that there is no room for it. Adding an existing object only
// changes its care, and may mark it safe.
func (p *Pager) Add(k Key, o Copy, c Care) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.entries[k]
	if e != nil && e.packed != nil {
		e.doomed, e.safe = false, e.safe || o.Safe
		e.tend(c)
		p.touch(e)
		return nil
	}
	if !p.room(int64(len(o.Packed))+overhead, nil) {
		if o.Safe {
			return nil
		}
		return fmt.Errorf("%w: %d bytes", ErrFull, len(o.Packed))
	}
	if e == nil {
		e = &entry{key: k, object: o.Object, place: -1}
		p.entries[k] = e
	}
	e.packed, e.doomed, e.safe = o.Packed, false, e.safe || o.Safe
	e.tend(c)
	p.stats.L2Bytes += int64(len(o.Packed))
	p.warm(e, o.Hot)
	p.touch(e)
	return nil
}

// warm gives an entry its hot form, if there is room.
func (p *Pager) warm(e *entry, hot []byte) {
	if e.hot != nil || !p.room(int64(len(hot)), e) {
		return
	}
	e.hot = hot
	p.stats.HotBytes += int64(len(hot))
}

// tend merges a request for the care of an object.
func (e *entry) tend(c Care) {
	if c.PinUntil.After(e.care.PinUntil) {
		e.care.PinUntil = c.PinUntil
	}
	if c.NextUse.After(e.care.NextUse) {
		e.care.NextUse = c.NextUse
	}
	e.care.Priority = max(e.care.Priority, c.Priority)
}

// Care adds a request for the care of an object that is in RAM.
func (p *Pager) Care(k Key, c Care) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.entries[k]; e != nil {
		e.tend(c)
		p.seat(e)
	}
}

// Unpin removes all care requests for an object. Contexts that share it state theirs again with
// their next use.
func (p *Pager) Unpin(k Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.entries[k]; e != nil {
		e.care = Care{}
		p.seat(e)
	}
}

// Saved marks an object as stored in L3.
func (p *Pager) Saved(k Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.entries[k]; e != nil {
		e.safe = true
		p.seat(e)
	}
}

// Keep cancels a Forget that waits for the last user, and reports whether the object is in RAM.
func (p *Pager) Keep(k Key) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.entries[k]
	if e == nil || e.packed == nil {
		return false
	}
	e.doomed = false
	return true
}

// Loose removes an object from the queue of those that are loosely packed and in L2 only, or were
// when PageOut sent them to L3. The bytes are read-only.
func (p *Pager) Loose() (l Loose, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.leaving) > 0 {
		l, p.leaving[0] = p.leaving[0], Loose{}
		if p.leaving = p.leaving[1:]; len(p.leaving) == 0 {
			p.leaving = nil
		}
		p.waiting -= int64(len(l.Packed))
		return l, true
	}
	for len(p.loose) > 0 {
		e := p.loose[0]
		p.loose[0] = nil
		p.loose = p.loose[1:]
		e.queued = false
		if p.entries[e.key] == e && e.isLoose() {
			return Loose{Key: e.key, Object: e.object, Packed: e.packed, Safe: e.safe}, true
		}
	}
	p.loose = nil
	return Loose{}, false
}

// Loose is an object that could be packed more tightly.
type Loose struct {
	Key    Key
	Object ledger.Object
	Packed []byte
	Safe   bool // L3 has it too
}

func (e *entry) isLoose() bool { return e.hot == nil && e.packed != nil && !blob.Tight(e.packed) }

// Replace replaces the packed form of an object by another, no longer one, unless the object has
// moved on.
func (p *Pager) Replace(l Loose, packed []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.entries[l.Key]
	if e == nil || len(e.packed) == 0 || len(l.Packed) == 0 || &e.packed[0] != &l.Packed[0] {
		return
	}
	p.stats.L2Bytes += int64(len(packed) - len(e.packed))
	e.packed = packed
	p.rank(e)
	p.seat(e)
}

// Forget removes an object that nothing refers to any more, whether safe or not. An object in use
// is removed when the last user is done.
func (p *Pager) Forget(k Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.entries[k]
	if e == nil {
		return
	}
	if e.refs > 0 || e.loading != nil {
		e.doomed = true
		p.seat(e)
		return
	}
	p.remove(e)
}

// PageOut moves an object to a farther tier immediately, pinned or not, and returns its tier
// afterwards. An object in use is not moved, and without L3 it stays in L2.
func (p *Pager) PageOut(k Key, to Tier) Tier {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.entries[k]; e != nil && to < L2 && e.safe && e.refs == 0 && e.loading == nil && e.packed != nil && !blob.Tight(e.packed) {
		if n := int64(len(e.packed)); p.waiting+n <= p.o.Bytes/mostWaiting {
			p.leaving = append(p.leaving, Loose{Key: k, Object: e.object, Packed: e.packed, Safe: true})
			p.waiting += n
		}
	}
	return p.out(k, to)
}

// Drop is PageOut to L3 for an object that may already be gone.
func (p *Pager) Drop(k Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out(k, L3)
}

// mostWaiting is the inverse of the share of the byte limit for objects that left for L3 and wait
// to be packed tightly; others stay in L3 as they are.
const mostWaiting = 16

// out is PageOut. mu must be held.
func (p *Pager) out(k Key, to Tier) Tier {
	e := p.entries[k]
	if e == nil {
		return p.far()
	}
	if e.refs > 0 || e.loading != nil {
		return e.tier()
	}
	if to < Hot && e.hot != nil {
		p.cool(e)
	}
	if to < L2 && e.safe && e.hot == nil {
		p.remove(e)
		return L3
	}
	p.seat(e)
	return e.tier()
}

// Tier returns where an object is, without using it.
func (p *Pager) Tier(k Key) Tier {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.entries[k]; e != nil && e.tier() > L3 {
		return e.tier()
	}
	return p.far()
}

// far returns the tier of objects that are not in RAM.
func (p *Pager) far() Tier {
	if p.source == nil {
		return Gone
	}
	return L3
}

// Waking reports whether an object is being brought in.
func (p *Pager) Waking(k Key) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.entries[k]
	return e != nil && e.loading != nil
}

// LastUse returns when an object in RAM was last used; zero if it is not in RAM.
func (p *Pager) LastUse(k Key) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.entries[k]; e != nil {
		return e.last
	}
	return time.Time{}
}

// Stats returns the current counts.
func (p *Pager) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stats
	s.Hot, s.L2 = p.hot.Len(), p.cold.Len()
	return s
}

// used returns the bytes that count towards the limit.
func (p *Pager) used() int64 {
	return p.stats.HotBytes + p.stats.L2Bytes + p.waiting + int64(len(p.entries))*overhead
}
