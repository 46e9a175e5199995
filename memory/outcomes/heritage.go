package outcomes

import (
	"errors"
	"os"
	"slices"
	"time"

	"signalbox/internal/disk"
)

// own takes the lock beside the file, by which processes that have the same one see each other.
func (s *Store) own() {
	var err error
	if s.lock, err = s.acquire(); errors.Is(err, disk.ErrHeld) {
		s.held = true
	}
}

// acquire takes the lock. Of the errors all but disk.ErrHeld mean that there are no locks here.
func (s *Store) acquire() (*os.File, error) {
	lock, err := disk.Lock(s.opts.Path+".lock", 0o600)
	if !errors.Is(err, disk.ErrHeld) {
		disk.Clean(s.opts.Path)
	}
	return lock, err
}

// disown gives the lock back.
func (s *Store) disown() error {
	f := s.lock
	if s.lock = nil; f == nil {
		return nil
	}
	return f.Close()
}

// Contested reports whether another process has the file. It is not written then, until that one
// has ended.
func (s *Store) Contested() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.held
}

// entry is something that happened to a tenant: an outcome, or, without one, that it was forgotten.
type entry struct {
	tenant string
	x      *Outcome
}

// note takes an entry into the journal, if there is one. It is called with mu held.
func (s *Store) note(e entry) {
	if s.journal != nil {
		*s.journal = append(*s.journal, e)
	}
}

// inherit takes the file over from another process that had it, if that has ended: what the file has
// and what is known here become one, in the order of time. What fails is tried again as if that one
// had not ended. Reading and learning what was read, seconds for a large file, are done without mu.
func (s *Store) inherit() error {
	lock, err := s.acquire() // one call at a time gets it
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

// knowledge is what a process knows at a time.
type knowledge struct {
	outcomes []*Outcome
	gone     []string
}

// begin has everything that happens from now on noted in a journal, and returns what is known.
func (s *Store) begin(journal *[]entry) knowledge {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.journal = journal
	return knowledge{append(s.judged(""), s.undecided()...), slices.Clone(s.gone)}
}

// merged is a Store of memory alone with what the file has, but for that of tenants that are gone, and
// with what is known here. Of one request the outcome counts that betters the other.
func (s *Store) merged(theirs, mine []*Outcome, gone []string) *Store {
	type request struct {
		key

		at    time.Time // of one without an id, which is told by its time, its model
		model string
		nth   int // and how many of that time and model are listed before it
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
