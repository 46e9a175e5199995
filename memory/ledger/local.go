package ledger

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"signalbox/memory/blob"
)

// Local is a book in RAM, for one process. It is safe for concurrent use and starts no goroutine.
// Its methods only fail for the documented reasons, and ignore their contexts.
type Local struct {
	most int // maximum number of records of all tenants

	mu      sync.Mutex // guards the fields below
	records int
	gone    int // of records: those of expired contexts
	tenants map[Tenant]*shelf
	next    time.Time // nothing expires before this time
}

// shelf holds the data of one tenant.
type shelf struct {
	entries  map[string]Entry
	refs     map[blob.Sum]int
	contexts int64
	bytes    int64
	pinned   int64
}

// NewLocal returns an empty book for at most the given number of records, of all tenants together.
// When it is full, records of expired contexts make room for new ones, the oldest first.
func NewLocal(most int) *Local { return &Local{most: most, tenants: map[Tenant]*shelf{}} }

// Load returns a record, or ErrNotFound.
func (l *Local) Load(_ context.Context, t Tenant, id string) (Entry, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.tenants[t]; s != nil {
		if e, ok := s.entries[id]; ok {
			return e, nil
		}
	}
	return Entry{}, ErrNotFound
}

// Commit applies a change and returns the new revision, and the objects that nothing refers to any
// more. Errors are ErrConflict, ErrFull and *LimitError; in that case nothing has changed.
func (l *Local) Commit(_ context.Context, c Change) (int64, []Object, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.tenants[c.Tenant]
	if s == nil {
		s = &shelf{entries: map[string]Entry{}, refs: map[blob.Sum]int{}}
	}
	if s.entries[c.ID].Rev != c.Rev {
		return 0, nil, ErrConflict
	}
	if c.Rev == 0 && l.records >= l.most && !l.makeRoom() {
		return 0, nil, ErrFull
	}
	added, dropped := c.Difference()
	if err := s.within(c, added, dropped); err != nil {
		return 0, nil, err
	}
	freed := s.count(added, dropped)
	s.contexts += c.Step()
	s.pinned += c.PinnedStep()
	if c.New == nil {
		delete(s.entries, c.ID)
	} else {
		s.entries[c.ID] = Entry{Record: c.New, Rev: c.Rev + 1, Expires: c.Expires}
		if c.Expires.Before(l.next) {
			l.next = c.Expires
		}
	}
	l.keep(c.Tenant, s, c)
	return c.Rev + 1, freed, nil
}

// keep counts the records of all tenants and removes tenants without records.
func (l *Local) keep(t Tenant, s *shelf, c Change) {
	switch {
	case c.Rev == 0 && c.New != nil:
		l.records++
	case c.Rev != 0 && c.New == nil:
		l.records--
	}
	if c.Rev != 0 && !c.Old.Counts() {
		l.gone--
	}
	if c.New != nil && !c.New.Counts() {
		l.gone++
	}
	if len(s.entries) == 0 {
		delete(l.tenants, t)
		return
	}
	l.tenants[t] = s
}

// roomShare is the inverse of the share of the records that makeRoom drops at once, since it looks
// at all records each time.
const roomShare = 64

// makeRoom drops the oldest records of expired contexts, and reports whether there were any. The
// caller holds the lock.
func (l *Local) makeRoom() bool {
	if l.gone == 0 {
		return false
	}
	all := make([]due, 0, l.gone)
	for t, s := range l.tenants {
		for id, e := range s.entries {
			if !e.Record.Counts() {
				all = append(all, due{Name{t, id}, e.Expires})
			}
		}
	}
	slices.SortFunc(all, due.compare)
	for _, d := range all[:min(max(l.most/roomShare, 1), len(all))] {
		s := l.tenants[d.Tenant]
		delete(s.entries, d.ID)
		if l.records, l.gone = l.records-1, l.gone-1; len(s.entries) == 0 {
			delete(l.tenants, d.Tenant)
		}
	}
	return true
}

// within checks the tenant's limits. A change that increases nothing is always allowed.
func (s *shelf) within(c Change, added, dropped []Object) error {
	var grows int64
	for _, o := range added {
		if s.refs[o.Sum] == 0 {
			grows += o.Size
		}
	}
	for _, o := range dropped {
		if s.refs[o.Sum] == 1 {
			grows -= o.Size
		}
	}
	if c.Step() > 0 && c.Limits.Contexts > 0 && s.contexts+1 > c.Limits.Contexts {
		return &LimitError{What: "contexts", Limit: c.Limits.Contexts}
	}
	if grows > 0 && c.Limits.Bytes > 0 && s.bytes+grows > c.Limits.Bytes {
		return &LimitError{What: "bytes", Limit: c.Limits.Bytes}
	}
	if c.PinnedStep() > 0 && c.Limits.Pinned > 0 && s.pinned+c.PinnedStep() > c.Limits.Pinned {
		return &LimitError{What: "pinned bytes", Limit: c.Limits.Pinned}
	}
	return nil
}

func (s *shelf) count(added, dropped []Object) (freed []Object) {
	for _, o := range added {
		if s.refs[o.Sum]++; s.refs[o.Sum] == 1 {
			s.bytes += o.Size
		}
	}
	for _, o := range dropped {
		if s.refs[o.Sum]--; s.refs[o.Sum] == 0 {
			delete(s.refs, o.Sum)
			s.bytes -= o.Size
			freed = append(freed, o)
		}
	}
	return freed
}

// Touch moves expiry times. Records that are gone, or whose TTL has changed since, are skipped.
func (l *Local) Touch(_ context.Context, touches []Touch) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range touches {
		s := l.tenants[t.Tenant]
		if s == nil {
			continue
		}
		if e, ok := s.entries[t.ID]; ok && t.Moves(&e) {
			e.Expires = t.Expires
			s.entries[t.ID] = e
		}
	}
	return nil
}

// due is a record and the end of its life.
type due struct {
	Name

	at time.Time
}

func (d due) compare(other due) int {
	return cmp.Or(d.at.Compare(other.at), strings.Compare(d.ID, other.ID))
}

// Due returns up to n records that have expired by now, the oldest first.
func (l *Local) Due(_ context.Context, now time.Time, n int) ([]Name, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Before(l.next) {
		return nil, nil
	}
	l.next = now.Add(time.Hour)
	var all []due
	for t, s := range l.tenants {
		for id, e := range s.entries {
			if !e.Expires.After(now) {
				all = append(all, due{Name{t, id}, e.Expires})
			}
			if e.Expires.Before(l.next) {
				l.next = e.Expires
			}
		}
	}
	slices.SortFunc(all, due.compare)
	names := make([]Name, 0, min(n, len(all)))
	for _, d := range all[:min(n, len(all))] {
		names = append(names, d.Name)
	}
	return names, nil
}

// List returns up to n ids of the tenant after the given one, in ascending order.
func (l *Local) List(_ context.Context, t Tenant, after string, n int) ([]string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.tenants[t]
	if s == nil {
		return nil, nil
	}
	var ids []string
	for id := range s.entries {
		if id > after {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids[:min(n, len(ids))], nil
}

// Each calls see for every record until it returns false. see must not use the book.
func (l *Local) Each(see func(Name, Entry) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for t, s := range l.tenants {
		for id, e := range s.entries {
			if !see(Name{t, id}, e) {
				return
			}
		}
	}
}

// Refers reports whether a record of the tenant refers to an object.
func (l *Local) Refers(t Tenant, sum blob.Sum) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.tenants[t]
	return s != nil && s.refs[sum] > 0
}

// Usage returns the number of contexts and bytes of a tenant.
func (l *Local) Usage(_ context.Context, t Tenant) (contexts, bytes int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.tenants[t]; s != nil {
		return s.contexts, s.bytes, nil
	}
	return 0, 0, nil
}
