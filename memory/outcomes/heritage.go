package outcomes

import (
	"errors"
	"os"
	"slices"
	"time"

	"signalbox/internal/disk"
)

// own acquires the lock next to the file, with which processes that use the same file detect each
// other.
func (s *Store) own() {
	var err error
	if s.lock, err = s.acquire(); errors.Is(err, disk.ErrHeld) {
		s.held = true
	}
}

// acquire acquires the lock. Any error other than disk.ErrHeld means that locks are not supported
// here.
func (s *Store) acquire() (*os.File, error) {
	lock, err := disk.Lock(s.opts.Path+".lock", 0o600)
	if !errors.Is(err, disk.ErrHeld) {
		disk.Clean(s.opts.Path)
	}
	return lock, err
}

// disown releases the lock.
func (s *Store) disown() error {
	f := s.lock
	if s.lock = nil; f == nil {
		return nil
	}
	return f.Close()
}

// Contested reports whether another process owns the file. It is not written until that process has
// ended.
func (s *Store) Contested() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.held
}

// entry is an event of a tenant: an outcome, or, without one, that the tenant was forgotten.
type entry struct {
	tenant string
	x      *Outcome
}

// note appends an entry to the journal, if there is one. mu must be held.
func (s *Store) note(e entry) {
	if s.journal != nil {
		*s.journal = append(*s.journal, e)
	}
}

// inherit takes the file over from another process that owned it, if that has ended: the contents
// of the file and of memory are merged in the order of time. After an error it is tried again
// later. Reading and processing the file, seconds for a large one, happen without mu.
func (s *Store) inherit() error {
	lock, err := s.acquire() // only one call gets it
	if errors.Is(err, disk.ErrHeld) {
		return nil
	}
	theirs, _, err := s.readFile()
	if err != nil {
		return errors.Join(err, closed(lock))
	}
	var journal []entry
	mine := s.begin(&journal)
	both := s.merged(theirs, mine.outcomes, mine.gone)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.journal = nil
	for _, e := range journal {
		if e.x == nil {
			_ = both.forget(e.tenant) // it has no file
		} else if old := both.known(e.tenant, e.x.ID); old == nil || e.x.ID == "" || e.x.betters(old) {
			both.take(e.x)
		}
	}
	s.tenants, s.used, s.waiting, s.ring, s.next = both.tenants, both.used, both.waiting, both.ring, both.next
	s.lock, s.held = lock, false
	if err := s.rewrite(); err != nil {
		s.held = true
		return errors.Join(err, s.disown())
	}
	s.gone = nil
	return nil
}

func closed(f *os.File) error {
	if f == nil {
		return nil
	}
	return f.Close()
}

// knowledge is what a process knows at a point in time.
type knowledge struct {
	outcomes []*Outcome
	gone     []string
}

// begin starts recording all further events in a journal, and returns the current knowledge.
func (s *Store) begin(journal *[]entry) knowledge {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.journal = journal
	return knowledge{append(s.judged(""), s.undecided()...), slices.Clone(s.gone)}
}

// merged returns a Store in memory only, with the contents of the file except those of tenants in
// gone, and of memory. If both have an outcome of one request, betters decides.
func (s *Store) merged(theirs, mine []*Outcome, gone []string) *Store {
	type request struct {
		key

		at    time.Time // of an outcome without an id, which is identified by its time and model
		model string
		nth   int // and its index among those with that time and model
	}
	places := map[request]int{}
	var all []*Outcome
	add := func(list []*Outcome) {
		nths := map[request]int{}
		for _, x := range list {
			r := request{key: key{x.Tenant, x.ID}}
			if x.ID == "" {
				r.at, r.model = x.Time.Round(0).UTC(), x.Model
				n := nths[r]
				nths[r]++
				r.nth = n
			}
			if at, ok := places[r]; !ok {
				places[r] = len(all)
				all = append(all, x)
			} else if x.betters(all[at]) {
				all[at] = x
			}
		}
	}
	add(slices.DeleteFunc(theirs, func(x *Outcome) bool { return slices.Contains(gone, x.Tenant) }))
	add(mine)
	slices.SortStableFunc(all, func(a, b *Outcome) int { return a.Time.Compare(b.Time) })
	both := &Store{opts: s.opts, tenants: map[string]*table{}, waiting: map[key]*Outcome{}}
	for _, x := range all {
		both.take(x)
	}
	both.calibrate()
	return both
}
