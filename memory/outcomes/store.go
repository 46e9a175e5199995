package outcomes

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"signalbox/internal/disk"
)

// Outcome is an answer that was judged.
type Outcome struct {
	Time    time.Time `json:"time"`
	Tenant  string    `json:"tenant"`
	ID      string    `json:"id"` // of the request; a second outcome of one id replaces the first
	Model   string    `json:"model"`
	Effort  string    `json:"effort,omitempty"` // of reasoning
	Domain  string    `json:"domain,omitempty"`
	Prior   float64   `json:"prior"`             // quality that the configuration expected of the model, in [0,1]
	Score   float64   `json:"score"`             // in [0,1]
	Weight  float64   `json:"weight"`            // how far the score is to be trusted, in (0,1]
	Tokens  int       `json:"tokens,omitempty"`  // of the answer; 0 when not known
	Label   string    `json:"label,omitempty"`   // the caller's own
	Source  string    `json:"source"`            // who judged, such as feedback
	Chance  float64   `json:"chance,omitempty"`  // with which the model was chosen, in (0,1]
	Waiting bool      `json:"waiting,omitempty"` // nobody has judged it yet: Score means nothing
	Vector  []byte    `json:"vector"`            // of the request, 8 bits a component, two's complement

	codes []int8
}

// Prediction is what is expected of a model.
type Prediction struct {
	Model  string
	Effort string  // of reasoning; empty for those that it was asked at, taken together
	Prior  float64 // in [0,1]; for the caller to fill in, as the two before

	Mean float64 // expected score, in [0,1]
	// Sure is Mean but for what answers of the model to near requests say of it alone, of which one
	// standard deviation counts for nothing. It is not bounded. The greatest Mean of many models is
	// one that is estimated too high more often than not; of Sure it is the one that is the best
	// everywhere, but where near requests say for sure that another is.
	Sure float64
	// Everywhere is the score that is expected of the model whatever is asked: Prior, and by how much
	// its answers were better than that. It is not bounded.
	Everywhere float64
	Deviation  float64 // standard deviation of the score that the model deserves here on the mean
	Overall    float64 // the same of the score that it deserves whatever is asked
	Outcomes   float64 // of the model, at the effort, that it was made of, by their weights
	Near       float64 // those of near requests, by weight and nearness
	AtEffort   float64 // of Near, those at the effort itself: Near is of all where it has none
	Tokens     float64 // expected length of the answer; 0 when not known
	Longest    float64 // length that 99 of 100 answers stay below; 0 when not known
	// Calibrated: Mean and Sure are those of the reference effort of the model and the measured
	// difference between the two. The reference itself is marked as well. Doubt is the standard error
	// of the difference, 0 of the reference.
	Calibrated bool
	Doubt      float64
}

// Options says how much is kept.
type Options struct {
	Path string // of the file; empty keeps everything in memory alone
	// ReadOnly: the file is read and never written, since it is that of another process.
	ReadOnly bool
	Limit    int // outcomes a tenant, at least 1
	Tenants  int // that outcomes are kept of, at least 1
	Waiting  int // decisions that wait for a judgement, of all tenants, at least 1
	Now      func() time.Time
	// Tell is told each line that is new, for replicas, and nil of a tenant that is forgotten. It
	// must not wait, and must not call the Store. nil tells nobody.
	Tell func(tenant string, line []byte)
}

// Store keeps outcomes. Make it with Open, and Close it.
type Store struct {
	opts Options

	mu      sync.RWMutex // guards what follows
	lock    *os.File     // PATH.lock, which this process holds; nil without it
	held    bool         // another process holds it
	gone    []string     // tenants that were forgotten meanwhile, whose lines are not read any more
	due     bool         // whoever has mu is to take the file over, once it has given mu back
	journal *[]entry     // what happened while the file is taken over; nil where it is not
	tenants map[string]*table
	used    []string // tenants, the one that an outcome came for last at the end
	waiting map[key]*Outcome
	ring    []*Outcome // of waiting, the oldest at next once it is full
	next    int
	file    *os.File
	lines   int       // in file
	torn    bool      // the last write to file failed, maybe inside a line
	remade  time.Time // when the file was found replaced, or with another process, last
}

type key struct{ tenant, id string }

// maxDims bounds the vectors of a file.
const maxDims = 1 << 14

// Open makes a Store and reads what its file has. A file that does not exist is made; lines that
// cannot be read, as the last one of a process that was ended while it wrote, are counted in lost.
func Open(o Options) (s *Store, lost int, err error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	s = &Store{
		opts: o, tenants: map[string]*table{}, waiting: map[key]*Outcome{},
	}
	if o.Path == "" {
		return s, 0, nil
	}
	if !o.ReadOnly {
		s.own()
	}
	if lost, err = s.load(); err != nil {
		return nil, 0, errors.Join(err, s.disown())
	}
	s.calibrate()
	if o.ReadOnly || s.held {
		return s, lost, nil
	}
	if err := s.rewrite(); err != nil {
		return nil, lost, errors.Join(err, s.disown())
	}
	return s, lost, nil
}

// calibrate looks at what all tenants have, after much of it has come at once.
func (s *Store) calibrate() {
	for _, t := range s.tenants {
		t.news = 0
		for t.measured = t.survey(max(lineRows/len(s.tenants), fewLineRows)); t.measured != nil; {
			t.calibrate(lineRows)
		}
	}
}

// load takes in what the file has.
func (s *Store) load() (lost int, err error) {
	list, lost, err := s.readFile()
	for _, x := range list {
		s.take(x)
	}
	return lost, err
}

// readFile reads the file, as it was written: of one id the last line counts. Lines that cannot be
// read are counted in lost.
func (s *Store) readFile() (list []*Outcome, lost int, err error) {
	b, err := os.ReadFile(s.opts.Path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, 0, fmt.Errorf("read outcomes: %w", err)
	}
	for line := range bytes.Lines(b) {
		if x, ok := read(line); ok {
			list = append(list, x)
		} else if len(line) > 1 { // an empty one follows a write that failed
			lost++
		}
	}
	return list, lost, nil
}

func read(line []byte) (*Outcome, bool) {
	x := new(Outcome)
	if json.Unmarshal(line, x) != nil || len(x.Vector) == 0 || len(x.Vector) > maxDims || x.Model == "" ||
		!(x.Score >= 0 && x.Score <= 1) || !(x.Prior >= 0 && x.Prior <= 1) ||
		!x.Waiting && !(x.Weight > 0 && x.Weight <= 1) || x.Tokens < 0 {
		return nil, false
	}
	x.codes = make([]int8, len(x.Vector))
	for i, b := range x.Vector {
		x.codes[i] = int8(b)
	}
	return x, true
}

// take keeps what was read, or was judged.
func (s *Store) take(x *Outcome) {
	s.note(entry{x.Tenant, x})
	if x.Waiting {
		s.await(x)
		return
	}
	delete(s.waiting, key{x.Tenant, x.ID})
	t := s.tenants[x.Tenant]
	if t == nil || t.dims != len(x.codes) { // another model makes the vectors now
		t = newTable(len(x.codes), s.opts.Limit)
		s.tenants[x.Tenant] = t
	}
	t.put(x)
	t.refit()
	if i := slices.Index(s.used, x.Tenant); i >= 0 {
		s.used = slices.Delete(s.used, i, i+1)
	}
	if s.used = append(s.used, x.Tenant); len(s.used) > s.opts.Tenants {
		delete(s.tenants, s.used[0])
		s.used = slices.Delete(s.used, 0, 1)
	}
}

// learn is take of something new.
func (s *Store) learn(x *Outcome) {
	s.take(x)
	if t := s.tenants[x.Tenant]; t != nil && !x.Waiting {
		t.calibrate(looks)
	}
}

// await puts a decision into the ring.
func (s *Store) await(x *Outcome) {
	k := key{x.Tenant, x.ID}
	if len(s.ring) < s.opts.Waiting {
		s.ring = append(s.ring, x)
	} else {
		old := s.ring[s.next]
		if gone := (key{old.Tenant, old.ID}); s.waiting[gone] == old {
			delete(s.waiting, gone)
		}
		s.ring[s.next] = x
		s.next = (s.next + 1) % s.opts.Waiting
	}
	s.waiting[k] = x
}

// Decided notes a request that a model has answered, so that it can be judged by its id. vector is
// its embedding, which is copied; without one, or without an id, nothing is kept.
func (s *Store) Decided(x Outcome, vector []float32) {
	if x.ID == "" || len(vector) == 0 {
		return
	}
	x.codes, _, _ = quantise(vector, make([]int8, 0, len(vector)), nil)
	x.Waiting, x.Time = true, s.opts.Now()
	x.Prior = clamp(x.Prior)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.take(&x)
}

// Answered notes how many tokens the answer to a request had, also where it was judged already; for
// less than one nothing is noted.
func (s *Store) Answered(tenant, id string, tokens int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.waiting[key{tenant, id}]; x != nil {
		x.Tokens = max(tokens, 0)
		s.tell(x) // so that it can be judged there as well
		return
	}
	if old := s.known(tenant, id); old != nil && tokens > 0 {
		x := *old
		x.Tokens = tokens
		s.note(entry{tenant, &x})
		s.tenants[tenant].put(&x) // the file has it from the next time that it is written anew
	}
}

// known is the outcome of a request that was judged; nil where none was.
func (s *Store) known(tenant, id string) *Outcome {
	if t := s.tenants[tenant]; t != nil {
		if at, ok := t.byID[id]; ok {
			return t.kept[at]
		}
	}
	return nil
}

// ErrUnknown says that no request of the tenant has the id, or that it was too long ago.
var ErrUnknown = errors.New("no such request")

// Judge keeps the score of a request that was decided or judged before, and returns what was
// judged. score is in [0,1], weight in (0,1]; a judgement whose weight is less than that of one
// before changes nothing. Errors are ErrUnknown, and those of the file: the outcome counts then
// until the process ends.
func (s *Store) Judge(tenant, id string, score, weight float64, label, source string) (x Outcome, err error) {
	err = s.change(func() error {
		x, err = s.judge(tenant, id, score, weight, label, source)
		return err
	})
	return x, err
}

func (s *Store) judge(tenant, id string, score, weight float64, label, source string) (Outcome, error) {
	old := cmp.Or(s.waiting[key{tenant, id}], s.known(tenant, id))
	if old == nil {
		return Outcome{}, ErrUnknown
	}
	if !old.Waiting && weight < old.Weight {
		return *old, nil
	}
	x := *old
	x.Score, x.Weight, x.Label, x.Source = clamp(score), weight, label, source
	x.Waiting, x.Time = false, s.opts.Now()
	s.learn(&x)
	s.tell(&x)
	return x, s.write(&x)
}

// Add keeps an outcome as it is, as one that was known before. vector is copied.
func (s *Store) Add(x Outcome, vector []float32) error {
	if len(vector) == 0 {
		return nil
	}
	x.codes, _, _ = quantise(vector, make([]int8, 0, len(vector)), nil)
	x.Score, x.Prior, x.Waiting = clamp(x.Score), clamp(x.Prior), false
	if x.Time.IsZero() {
		x.Time = s.opts.Now()
	}
	return s.change(func() error {
		s.learn(&x)
		s.tell(&x)
		return s.write(&x)
	})
}

// tell tells replicas of an outcome, or of a decision that waits.
func (s *Store) tell(x *Outcome) {
	if s.opts.Tell == nil {
		return
	}
	if b, err := x.line(); err == nil {
		s.opts.Tell(x.Tenant, b)
	}
}

// Learn takes in what a replica told of a tenant. What is known better here stays. An error is that
// of the file.
func (s *Store) Learn(tenant string, line []byte) error {
	x, ok := read(line)
	if !ok || x.Tenant != tenant {
		return nil
	}
	return s.change(func() error {
		if old := s.known(tenant, x.ID); old != nil && x.ID != "" && !x.betters(old) {
			return nil
		}
		s.learn(x)
		if x.Waiting {
			return nil
		}
		return s.write(x)
	})
}

// betters reports whether x takes the place of another outcome of the same request, which came
// before it.
func (x *Outcome) betters(old *Outcome) bool {
	if x.Waiting || old.Waiting {
		return old.Waiting
	}
	return x.Weight > old.Weight || x.Weight == old.Weight && !x.Time.Before(old.Time)
}

// change makes a change under the lock, and takes the file over behind it where that is due.
func (s *Store) change(f func() error) error {
	due, err := func() (bool, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		err := f()
		due := s.due
		s.due = false
		return due, err
	}()
	if due {
		err = errors.Join(err, s.inherit())
	}
	return err
}

// Predict fills in predictions for a tenant's request, of which vector is the embedding, and
// reports whether there are outcomes to predict from. It allocates nothing and keeps neither.
func (s *Store) Predict(tenant string, vector []float32, ps []Prediction) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	t := s.tenants[tenant]
	if t == nil || t.dims != len(vector) || len(t.rows) == 0 {
		return false
	}
	t.predict(vector, ps)
	return true
}

// Len is how many outcomes a tenant has.
func (s *Store) Len(tenant string) int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if t := s.tenants[tenant]; t != nil {
		return len(t.rows)
	}
	return 0
}

// Export writes the outcomes of a tenant, of all for an empty name, as JSON lines, the oldest of
// each tenant first. Decisions that wait are not among them.
func (s *Store) Export(w io.Writer, tenant string) error {
	s.mu.RLock()
	judged := s.judged(tenant)
	s.mu.RUnlock()
	return writeLines(w, judged)
}

func writeLines(w io.Writer, list []*Outcome) error {
	for _, x := range list {
		b, err := x.line()
		if err == nil {
			_, err = w.Write(b)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Forget drops all that is known of a tenant.
func (s *Store) Forget(tenant string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opts.Tell != nil {
		s.opts.Tell(tenant, nil)
	}
	return s.forget(tenant)
}

// Forgotten is Forget of what a replica was told to forget.
func (s *Store) Forgotten(tenant string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.forget(tenant)
}

func (s *Store) forget(tenant string) error {
	s.note(entry{tenant, nil})
	delete(s.tenants, tenant)
	s.used = slices.DeleteFunc(s.used, func(t string) bool { return t == tenant })
	for k := range s.waiting {
		if k.tenant == tenant {
			delete(s.waiting, k)
		}
	}
	inOrder := slices.Concat(s.ring[s.next:], s.ring[:s.next])
	s.ring = slices.DeleteFunc(inOrder, func(x *Outcome) bool { return x.Tenant == tenant })
	s.next = 0
	if s.held && !slices.Contains(s.gone, tenant) {
		s.gone = append(s.gone, tenant)
	}
	if s.file == nil {
		return nil
	}
	return s.rewrite()
}

// judged lists the outcomes of a tenant, of all for an empty name, in the order in which they would
// be read again.
func (s *Store) judged(tenant string) (out []*Outcome) {
	for _, name := range s.used {
		if t := s.tenants[name]; tenant == "" || tenant == name {
			out = append(append(out, t.kept[t.next:]...), t.kept[:t.next]...)
		}
	}
	return out
}

// undecided lists the decisions that wait, the oldest first.
func (s *Store) undecided() (out []*Outcome) {
	for i := range s.ring {
		x := s.ring[(s.next+i)%len(s.ring)]
		if s.waiting[key{x.Tenant, x.ID}] == x {
			out = append(out, x)
		}
	}
	return out
}

// line is an outcome as the file has it.
func (x *Outcome) line() ([]byte, error) {
	out := *x
	out.Vector = make([]byte, len(x.codes))
	for i, c := range x.codes {
		out.Vector[i] = byte(c)
	}
	b, err := json.Marshal(&out)
	return append(b, '\n'), err
}

// write appends an outcome to the file.
func (s *Store) write(x *Outcome) error {
	now := s.opts.Now()
	look := now.Sub(s.remade) >= remakeEvery
	switch {
	case s.held && look:
		s.remade, s.due = now, true
		return nil
	case s.file == nil:
		return nil
	case look && s.replaced():
		s.remade = now
		return s.rewrite()
	}
	if s.torn { // what a disk that was full left of a line must spoil no other
		if _, err := s.file.WriteString("\n"); err != nil {
			return fmt.Errorf("write outcomes: %w", err)
		}
	}
	err := writeLines(s.file, []*Outcome{x})
	if s.torn = err != nil; err != nil {
		return fmt.Errorf("write outcomes: %w", err)
	}
	have := 0
	for _, t := range s.tenants {
		have += len(t.rows)
	}
	if s.lines++; s.lines > 2*have+1000 {
		return s.rewrite()
	}
	return nil
}

// remakeEvery is how often a file that was replaced is made anew at most, and how often one that
// another process has is tried: a process that has put its own there does the same, and writes all
// of it each time.
const remakeEvery = time.Minute

// replaced reports whether the file at the path is not the one that is open: something has moved or
// removed it, or another process has put its own there.
func (s *Store) replaced() bool {
	ours, err := s.file.Stat()
	there, err2 := os.Stat(s.opts.Path)
	return err == nil && (err2 != nil || !os.SameFile(ours, there))
}

// rewrite puts a new file in the place of the old one and leaves it open. The caller holds mu,
// where others have the store.
func (s *Store) rewrite() error {
	f, err := disk.Temp(s.opts.Path)
	if err != nil {
		return fmt.Errorf("write outcomes: %w", err)
	}
	w, all := bufio.NewWriter(f), append(s.judged(""), s.undecided()...)
	err = writeLines(w, all)
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = os.Rename(f.Name(), s.opts.Path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write outcomes: %w", err), f.Close(), os.Remove(f.Name()))
	}
	if s.file != nil {
		_ = s.file.Close()
	}
	s.file, s.lines, s.torn = f, len(all), false
	return nil
}

// Close writes the file with the decisions that wait. The Store must not be used any more.
func (s *Store) Close() error {
	if s.Contested() {
		if err := s.inherit(); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return nil
	}
	err := errors.Join(s.rewrite(), s.file.Close(), s.disown())
	s.file = nil
	return err
}
