package cache

import (
	"sync"
	"time"

	"github.com/viterin/vek/vek32"

	"signalbox/memory/cache/question"
)

// Index finds the stored questions near another one. It holds a bounded number of them and evicts
// the least recently asked. It scans all vectors of a partition: the bound keeps that within a few
// milliseconds, and an exact search loses no recall. It is safe for concurrent use and starts no
// goroutine.
type Index struct {
	max int
	now func() time.Time

	mu         sync.RWMutex // guards the fields below; held for reading during a scan
	partitions map[Key]*partition
	entries    map[Key]*entry // by the key of the answer
	recent     entry          // ring of all entries, most recently used first
}

// partition holds the questions that are compared with each other.
type partition struct {
	dims    int
	vectors []float32 // [len(entries)][dims], row-major
	entries []*entry
}

// entry is one question.
type entry struct {
	key        Key // of its answer
	part       Key
	slot       int // index in the partition
	text       string
	reading    *question.Reading
	expires    time.Time
	next, prev *entry // neighbours in the ring
}

// NewIndex returns an index of at most size questions, at least one. now tells the time.
func NewIndex(size int, now func() time.Time) *Index {
	x := &Index{max: max(size, 1), now: now, partitions: map[Key]*partition{}, entries: map[Key]*entry{}}
	x.recent.next, x.recent.prev = &x.recent, &x.recent
	return x
}

// Len returns the number of stored questions, including expired ones that have not been removed
// yet.
func (x *Index) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.entries)
}

// Found is a stored question with the same meaning.
type Found struct {
	Key        Key     // of the answer
	Question   string  // as it was asked
	Similarity float64 // cosine of the two embeddings, in [-1,1]
	Refused    question.Difference
}

// candidates is the number of near questions that are compared word by word.
const candidates = 8

// Find returns the nearest question of a partition that has the same meaning as text and at least
// the similarity least; vector is the L2-normalised embedding of text. If there is none it returns
// false; Refused is then the difference of the nearest question that is similar enough, or Same if
// there was none. It allocates nothing and retains neither text nor vector.
func (x *Index) Find(part Key, text string, vector []float32, least float64) (Found, bool) {
	x.mu.RLock()
	p := x.partitions[part]
	if p == nil || p.dims != len(vector) {
		x.mu.RUnlock()
		return Found{}, false
	}
	var top shortlist
	p.scan(vector, float32(least), x.now(), &top)
	found, ok := top.judge(text)
	x.mu.RUnlock()
	if ok {
		x.touch(found.Key)
	}
	return found, ok
}

// scan collects the nearest questions in top.
func (p *partition) scan(vector []float32, least float32, now time.Time, top *shortlist) {
	for i, e := range p.entries {
		if s := vek32.Dot(vector, p.vectors[i*p.dims:(i+1)*p.dims]); s >= least && top.takes(s) && e.expires.After(now) {
			top.put(e, s)
		}
	}
}

// shortlist holds the nearest questions, nearest first.
type shortlist struct {
	n      int
	scores [candidates]float32
	list   [candidates]*entry
}

func (l *shortlist) takes(s float32) bool { return l.n < candidates || s > l.scores[candidates-1] }

func (l *shortlist) put(e *entry, s float32) {
	l.n = min(l.n+1, candidates)
	i := l.n - 1
	for ; i > 0 && l.scores[i-1] < s; i-- {
		l.scores[i], l.list[i] = l.scores[i-1], l.list[i-1]
	}
	l.scores[i], l.list[i] = s, e
}

// readings are kept between lookups.
//
//nolint:gochecknoglobals // a pool
var readings = sync.Pool{New: func() any { return new(question.Reading) }}

// judge returns the nearest question without a difference.
func (l *shortlist) judge(text string) (Found, bool) {
	if l.n == 0 {
		return Found{}, false
	}
	r, ok := readings.Get().(*question.Reading)
	if !ok {
		r = new(question.Reading)
	}
	defer readings.Put(r)
	r.Read(text)
	var first question.Difference
	for i, e := range l.list[:l.n] {
		d := difference(text, r, e)
		if d == question.Same {
			return Found{Key: e.key, Question: e.text, Similarity: float64(l.scores[i])}, true
		}
		if i == 0 {
			first = d
		}
	}
	return Found{Refused: first}, false
}

// difference compares a text with a question; equal texts are always the same.
func difference(text string, r *question.Reading, e *entry) question.Difference {
	if text == e.text {
		return question.Same
	}
	return question.Compare(r, e.reading)
}

// touch marks a question as most recently used.
func (x *Index) touch(key Key) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e := x.entries[key]; e != nil {
		e.unlink()
		x.push(e)
	}
}

// Put stores a question with the L2-normalised embedding of its text for ttl. vector is copied. A
// question whose answer has the same key is replaced.
func (x *Index) Put(part, key Key, text string, vector []float32, ttl time.Duration) {
	if len(vector) == 0 || ttl <= 0 {
		return
	}
	e := &entry{key: key, part: part, text: text, expires: x.now().Add(ttl)}
	var r question.Reading
	r.Read(text)
	e.reading = r.Clone()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.drop(x.entries[key])
	for len(x.entries) >= x.max {
		x.drop(x.recent.prev)
	}
	p := x.partitions[part]
	if p == nil || p.dims != len(vector) { // the vectors now come from another model
		if p != nil {
			x.clear(p)
		}
		p = &partition{dims: len(vector)}
		x.partitions[part] = p
	}
	e.slot = len(p.entries)
	p.entries = append(p.entries, e)
	p.vectors = append(p.vectors, vector...)
	x.entries[key] = e
	x.push(e)
}

// Forget removes the question whose answer has the key, if there is one.
func (x *Index) Forget(key Key) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.drop(x.entries[key])
}

// clear removes all questions of a partition.
func (x *Index) clear(p *partition) {
	for len(p.entries) > 0 {
		x.drop(p.entries[len(p.entries)-1])
	}
}

// drop removes an entry, if it is not nil. The last entry of its partition moves to its place.
func (x *Index) drop(e *entry) {
	if e == nil {
		return
	}
	e.unlink()
	delete(x.entries, e.key)
	p := x.partitions[e.part]
	last := len(p.entries) - 1
	p.entries[e.slot] = p.entries[last]
	p.entries[e.slot].slot = e.slot
	copy(p.vectors[e.slot*p.dims:(e.slot+1)*p.dims], p.vectors[last*p.dims:])
	p.entries[last] = nil
	p.entries, p.vectors = p.entries[:last], p.vectors[:last*p.dims]
	if last == 0 {
		delete(x.partitions, e.part)
	}
}

// push inserts an entry at the front of the ring.
func (x *Index) push(e *entry) {
	e.next, e.prev = x.recent.next, &x.recent
	e.next.prev, x.recent.next = e, e
}

func (e *entry) unlink() {
	e.prev.next, e.next.prev = e.next, e.prev
}
