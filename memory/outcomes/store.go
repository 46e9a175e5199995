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

// Outcome is a rated response.
type Outcome struct {
	Time   time.Time `json:"time"`
	Tenant string    `json:"tenant"`
	// of the request; another outcome with the same id replaces the first
	ID     string `json:"id"`
	Model  string `json:"model"`
	Effort string `json:"effort,omitempty"` // of reasoning
	Domain string `json:"domain,omitempty"`
	// quality of the model according to the configuration, in [0,1]
	Prior  float64 `json:"prior"`
	Score  float64 `json:"score"`            // in [0,1]
	Weight float64 `json:"weight"`           // how far the score can be trusted, in (0,1]
	Tokens int     `json:"tokens,omitempty"` // of the response; 0 if not known
	Label  string  `json:"label,omitempty"`  // chosen by the caller
	Source string  `json:"source"`           // the origin of the rating, such as feedback
	// probability with which the model was chosen, in (0,1]
	Chance  float64 `json:"chance,omitempty"`
	Waiting bool    `json:"waiting,omitempty"` // not rated yet: Score has no meaning
	// of the request, 8 bits per component, two's complement
	Vector []byte `json:"vector"`

	codes []int8
}

// Prediction is the expectation for a model.
type Prediction struct {
	Model  string
	Effort string  // of reasoning; empty for all efforts with outcomes together
	Prior  float64 // in [0,1]; set by the caller, as the two above

	Mean float64 // expected score, in [0,1]
	// Sure is Mean minus one standard deviation of what the model's responses to similar requests
	// alone contribute. It is not limited to [0,1]. The greatest Mean of many models is more often
	// than not an overestimate; the greatest Sure belongs to the model that is best in general,
	// unless similar requests clearly favour another.
	Sure float64
	// Everywhere is the score expected of the model for any request: Prior plus the average
	// deviation of its scores from it. It is not limited to [0,1].
	Everywhere float64
	Deviation  float64 // standard deviation of the model's true mean score for this request
	Overall    float64 // the same for its true mean score over all requests
	Outcomes   float64 // total weight of the model's outcomes, at the effort, that were used
	Near       float64 // the part from similar requests, by weight and similarity
	// the part of Near at the effort itself; if it is zero, Near covers all efforts
	AtEffort float64
	Tokens   float64 // expected length of the response; 0 if not known
	Longest  float64 // length that 99 of 100 responses stay below; 0 if not known
	// Calibrated means that Mean and Sure are those of the model's reference effort plus the
	// measured difference from it. The reference itself is marked as well. Doubt is the standard
	// error of the difference, 0 for the reference.
	Calibrated bool
	Doubt      float64
}

// Options limit what is stored.
type Options struct {
	Path string // of the file; empty keeps everything in memory only
	// ReadOnly means that the file is read and never written, because it belongs to another
	// process.
	ReadOnly bool
	Limit    int // maximum number of outcomes per tenant, at least 1
	Tenants  int // maximum number of tenants with outcomes, at least 1
	Waiting  int // maximum number of decisions that wait for a rating, for all tenants, at least 1
	Now      func() time.Time
	// Tell receives each new line, for replicas, and nil for a tenant that was forgotten. It must
	// not block, and must not call the Store. It may be nil.
	Tell func(tenant string, line []byte)
}

// Store stores outcomes. Use Open to make one, and Close it.
type Store struct {
	opts Options

	mu      sync.RWMutex // guards the fields below
	lock    *os.File     // PATH.lock, if this process holds it; else nil
	held    bool         // another process holds the lock
	gone    []string     // tenants forgotten meanwhile, whose lines are no longer read
	due     bool         // the holder of mu must take the file over after releasing mu
	journal *[]entry     // events while the file is taken over; else nil
	tenants map[string]*table
	used    []string // tenants, the one with the newest outcome last
	waiting map[key]*Outcome
	ring    []*Outcome // of waiting decisions, the oldest at next once it is full
	next    int
	file    *os.File
	lines   int       // in file
	torn    bool      // the last write to file failed, possibly within a line
	remade  time.Time // when the file was last found replaced, or owned by another process
}

type key struct{ tenant, id string }

// maxDims is the maximum length of vectors in a file.
const maxDims = 1 << 14

// Open returns a Store with the contents of its file. A missing file is created. Lines that cannot
// be read, such as the last one of a process that ended while writing it, are counted in lost.
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

// calibrate examines the data of all tenants, after much of it has arrived at once.
func (s *Store) calibrate() {
	for _, t := range s.tenants {
		t.news = 0
		for t.measured = t.survey(max(lineRows/len(s.tenants), fewLineRows)); t.measured != nil; {
			t.calibrate(lineRows)
		}
	}
}

// load reads the contents of the file into s.
func (s *Store) load() (lost int, err error) {
	list, lost, err := s.readFile()
	for _, x := range list {
		s.take(x)
	}
	return lost, err
}

// readFile reads the file in order: of several lines with one id the last counts. Lines that cannot
// be read are counted in lost.
func (s *Store) readFile() (list []*Outcome, lost int, err error) {
	b, err := os.ReadFile(s.opts.Path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, 0, fmt.Errorf("read outcomes: %w", err)
	}
	for line := range bytes.Lines(b) {
		if x, ok := read(line); ok {
			list = append(list, x)
		} else if len(line) > 1 { // an empty line follows a failed write
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

// take stores an outcome that was read or rated.
func (s *Store) take(x *Outcome) {
	s.note(entry{x.Tenant, x})
	if x.Waiting {
		s.await(x)
		return
	}
	delete(s.waiting, key{x.Tenant, x.ID})
	t := s.tenants[x.Tenant]
	if t == nil || t.dims != len(x.codes) { // the vectors now come from another model
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

// learn is take for something new.
func (s *Store) learn(x *Outcome) {
	s.take(x)
	if t := s.tenants[x.Tenant]; t != nil && !x.Waiting {
		t.calibrate(looks)
	}
}

// await adds a decision to the ring.
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

// Decided records a request that a model has answered, so that it can be rated by its id. vector is
// its embedding, which is copied; without a vector or an id nothing is recorded.
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

// Answered records the number of tokens in the response to a request, also if it was already rated;
// values below one are ignored.
func (s *Store) Answered(tenant, id string, tokens int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.waiting[key{tenant, id}]; x != nil {
		x.Tokens = max(tokens, 0)
		s.tell(x) // so that it can be rated there as well
		return
	}
	if old := s.known(tenant, id); old != nil && tokens > 0 {
		x := *old
		x.Tokens = tokens
		s.note(entry{tenant, &x})
		s.tenants[tenant].put(&x) // the file gets it when it is next rewritten
	}
}

// known returns the outcome of a request that was rated, or nil.
func (s *Store) known(tenant, id string) *Outcome {
	if t := s.tenants[tenant]; t != nil {
		if at, ok := t.byID[id]; ok {
			return t.kept[at]
		}
	}
	return nil
}

// ErrUnknown reports that no request of the tenant has the id, or that it was too long ago.
var ErrUnknown = errors.New("no such request")

// Judge records the score of a request that was decided or rated before, and returns the outcome.
// score must be in [0,1], weight in (0,1]; a rating with less weight than an earlier one has no
// effect. Errors are ErrUnknown, and those of the file, after which the outcome counts until the
// process ends.
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

// Add adds an outcome as it is, such as one from another source. vector is copied.
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

// tell sends an outcome, or a waiting decision, to replicas.
func (s *Store) tell(x *Outcome) {
	if s.opts.Tell == nil {
		return
	}
	if b, err := x.line(); err == nil {
		s.opts.Tell(x.Tenant, b)
	}
}

// Learn adds what a replica sent about a tenant. Better local knowledge is kept. An error is that
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

// betters reports whether x replaces an earlier outcome of the same request.
func (x *Outcome) betters(old *Outcome) bool {
	if x.Waiting || old.Waiting {
		return old.Waiting
	}
	return x.Weight > old.Weight || x.Weight == old.Weight && !x.Time.Before(old.Time)
}

// change calls f under the lock, and afterwards takes the file over if that is due.
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

// Predict computes predictions for a tenant's request with the embedding vector, and reports
// whether there are outcomes to predict from. It allocates nothing and retains neither argument.
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

// Len returns the number of a tenant's outcomes.
func (s *Store) Len(tenant string) int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if t := s.tenants[tenant]; t != nil {
		return len(t.rows)
	}
	return 0
}

// Export writes the outcomes of a tenant, or of all tenants for an empty name, as JSON lines, the
// oldest of each tenant first. Waiting decisions are not included.
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

// Forget removes everything about a tenant.
func (s *Store) Forget(tenant string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opts.Tell != nil {
		s.opts.Tell(tenant, nil)
	}
	return s.forget(tenant)
}

// Forgotten is Forget for a notification from a replica.
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

// judged returns the outcomes of a tenant, or of all tenants for an empty name, in the order in
// which they would be read again.
func (s *Store) judged(tenant string) (out []*Outcome) {
	for _, name := range s.used {
		if t := s.tenants[name]; tenant == "" || tenant == name {
			out = append(append(out, t.kept[t.next:]...), t.kept[:t.next]...)
		}
	}
	return out
}

// undecided returns the waiting decisions, oldest first.
func (s *Store) undecided() (out []*Outcome) {
	for i := range s.ring {
		x := s.ring[(s.next+i)%len(s.ring)]
		if s.waiting[key{x.Tenant, x.ID}] == x {
			out = append(out, x)
		}
	}
	return out
}

// line returns an outcome as a line of the file.
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
	if s.torn { // an incomplete line left by a full disk must not corrupt the next one
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

// remakeEvery is the minimum interval between attempts to restore a replaced file, and to take over
// one that another process owns: a process that has put its own file there does the same, and
// writes everything each time.
const remakeEvery = time.Minute

// replaced reports whether the file at the path is not the open one: it was moved or removed, or
// another process has replaced it.
func (s *Store) replaced() bool {
	ours, err := s.file.Stat()
	there, err2 := os.Stat(s.opts.Path)
	return err == nil && (err2 != nil || !os.SameFile(ours, there))
}

// rewrite replaces the file by a new one and leaves that open. The caller must hold mu, if others
// use the store.
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

// Close writes the file including waiting decisions. The Store must not be used afterwards.
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
