// Package signs infers from the next turn of a client how good the previous answer was: the client
// asks the same again, rephrases it, or continues.
//
// It stores hashes, no text. It knows nothing about requests or models, or about the use of the
// signs.
//
// Invariants: turns of one tenant never refer to answers for another; what is stored is bounded,
// and the oldest is evicted first; each answer is rated at most once. The lock of a Watch is a
// leaf.
package signs

import (
	"strconv"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
)

// Sign is what a turn says about an earlier answer.
type Sign string

// The signs of a turn.
const (
	Regenerated Sign = "regenerated" // the same messages again
	Edited      Sign = "edited"      // the last user message in other words
	Continued   Sign = "continued"   // another turn after the answer
	ToolCall    Sign = "tool_call"   // another turn, and the answer called a tool with invalid JSON
)

// The signs of an answer itself, which Watch does not produce.
const (
	Length Sign = "length" // it was cut off at its limit
	Guard  Sign = "guard"  // the guard found a claim on which it acts
)

// Message is one message of a conversation.
type Message struct {
	Role, Text string
	Broken     bool // it calls a tool with arguments that are not valid JSON
}

// Turn is a request that was answered.
type Turn struct {
	Tenant   string
	Session  string // the client's name for the conversation; may be empty
	ID       string // of the request
	Messages []Message
}

// span is how long an answer waits for a following turn.
const span = 30 * time.Minute

// Watch stores the last turns. Use New to make one. It is safe for concurrent use.
type Watch struct {
	now func() time.Time

	mu    sync.Mutex // guards the fields below
	whole map[uint64]*entry
	past  map[uint64]*entry // by the messages before the last one
	ring  []*entry
	next  int
}

type entry struct {
	whole, past uint64
	id          string
	at          time.Time
	open        bool // not rated yet
}

// New returns a Watch that stores n turns, at least one.
func New(n int, now func() time.Time) *Watch {
	return &Watch{
		now: now, whole: make(map[uint64]*entry), past: make(map[uint64]*entry), ring: make([]*entry, max(n, 1)),
	}
}

// hashes returns the hashes of a turn: of all messages, of all except the last, and of those before
// the last answer, if there is one. answer is its index; -1 without one.
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

// See processes a turn that was answered. If it says something about an earlier answer, it returns
// the id of that answer and the sign; otherwise sign is empty.
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
	// A first message that many clients send is not a second attempt, and neither are few-shot
	// examples with answers with which many questions begin: the earlier messages must have been a
	// turn here.
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

// keep replaces the oldest entry. mu must be held.
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
