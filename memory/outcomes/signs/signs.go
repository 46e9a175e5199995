// Package signs tells from what a client does next how good the answer before was: that it asks the
// same again, asks it in other words, or goes on.
//
// It keeps hashes, no text. It knows nothing of requests, of models, or of what is made of a sign.
//
// Invariants: turns of one tenant say nothing of answers to another; what is kept is bounded, and
// the oldest goes first; each answer is judged at most once. The lock of a Watch is a leaf.
package signs

import (
	"strconv"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
)

// Sign is what a turn says of an earlier answer.
type Sign string

// The signs of a turn.
const (
	Regenerated Sign = "regenerated" // the same messages again
	Edited      Sign = "edited"      // the last message of the user in other words
	Continued   Sign = "continued"   // another turn after the answer
	ToolCall    Sign = "tool_call"   // another turn, and the answer called a tool with no JSON
)

// The signs of an answer itself, which Watch does not look for.
const (
	Length Sign = "length" // it was cut at its limit
	Guard  Sign = "guard"  // the guard of answers found a claim that it acts on
)

// Message is one of a conversation.
type Message struct {
	Role, Text string
	Broken     bool // it calls a tool with arguments that are no JSON
}

// Turn is a request that was answered.
type Turn struct {
	Tenant   string
	Session  string // by which the client names the conversation; empty where it does not
	ID       string // of the request
	Messages []Message
}

// span is how long an answer waits for what comes after it.
const span = 30 * time.Minute

// Watch keeps the last turns. Make it with New. It is safe for concurrent use.
type Watch struct {
	now func() time.Time

	mu    sync.Mutex // guards what follows
	whole map[uint64]*entry
	past  map[uint64]*entry // by what was said before the last message
	ring  []*entry
	next  int
}

type entry struct {
	whole, past uint64
	id          string
	at          time.Time
	open        bool // nothing has judged it
}

// New makes a Watch that keeps n turns, at least one.
func New(n int, now func() time.Time) *Watch {
	return &Watch{
		now: now, whole: make(map[uint64]*entry), past: make(map[uint64]*entry), ring: make([]*entry, max(n, 1)),
	}
}

// hashes are those of a turn: of all messages, of all but the last one, and of those before the last
// answer, where there is one. answer is its index; -1 without one.
func (t *Turn) hashes() (whole, past, before uint64, answer int) {
	answer = -1
	for i, m := range t.Messages {
		if m.Role == "assistant" {
			answer = i
		}
	}
	h := xxhash.New()
	put := func(s string) {
		_, _ = h.WriteString(strconv.Itoa(len(s)))
		_, _ = h.WriteString(":")
		_, _ = h.WriteString(s)
	}
	put(t.Tenant)
	put(t.Session)
	for i, m := range t.Messages {
		if i == answer {
			before = h.Sum64()
		}
		if i == len(t.Messages)-1 {
			past = h.Sum64()
		}
		put(m.Role)
		put(m.Text)
	}
	return h.Sum64(), past, before, answer
}

// See takes in a turn that was answered, and tells what it says of the answer to an earlier one, id;
// sign is empty where it says nothing.
func (w *Watch) See(t Turn) (id string, sign Sign) {
	n := len(t.Messages)
	if n == 0 || t.ID == "" {
		return "", ""
	}
	whole, past, before, answer := t.hashes()
	now := w.now()
	w.mu.Lock()
	defer w.mu.Unlock()
	find := func(in map[uint64]*entry, key uint64) *entry {
		if e := in[key]; e != nil && e.open && now.Sub(e.at) <= span {
			return e
		}
		return nil
	}
	// A first message that many send is nobody's second try, and neither are examples with their
	// answers that many questions begin with: what was said before has been asked here.
	asked := answer >= 0 && w.whole[before] != nil
	var of *entry
	switch again, other := find(w.whole, whole), find(w.past, past); {
	case again != nil && (asked || answer < 0 && t.Session != ""):
		of, sign = again, Regenerated
	case asked && other != nil && other.whole != whole && t.Messages[n-1].Role == "user":
		of, sign = other, Edited
	case answer >= 0:
		if of = find(w.whole, before); of == nil {
			break
		}
		if sign = Continued; t.Messages[answer].Broken {
			sign = ToolCall
		}
	}
	if of != nil {
		of.open, id = false, of.id
	}
	w.keep(&entry{whole: whole, past: past, id: t.ID, at: now, open: true})
	return id, sign
}

// keep puts an entry in the place of the oldest. mu is held.
func (w *Watch) keep(e *entry) {
	if old := w.ring[w.next]; old != nil {
		if w.whole[old.whole] == old {
			delete(w.whole, old.whole)
		}
		if w.past[old.past] == old {
			delete(w.past, old.past)
		}
	}
	w.ring[w.next] = e
	w.next = (w.next + 1) % len(w.ring)
	w.whole[e.whole], w.past[e.past] = e, e
}
