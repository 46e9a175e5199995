// Package conversation records which model and server served a conversation last, so that its next
// turn can be placed where its prefix is cached: in this process, and in Redis for replicas that
// share one.
//
// Redis keys, P being the prefix: P:s:KEY, a string with a time to live. A key is a SHA-256 and
// reveals nothing about tenants or texts. A state holds names of models, routes and labels with
// probabilities, names and addresses of model servers, digests of tenants, and, for conversations
// that clients name, the beginnings of the user's last texts.
//
// Everything here is a hint. Losing it costs a prefill; it costs a response only if a request
// continues with something that a single server has, because the owner of that response is then
// unknown. A Store is safe for concurrent use. It runs a goroutine for each state being written to
// Redis, at most 64, and Close waits for them.
package conversation

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"signalbox/internal/bounded"
)

// Key identifies a conversation of one tenant, or one of its turns.
type Key [32]byte

// String returns the key in hexadecimal digits.
func (k Key) String() string { return hex.EncodeToString(k[:]) }

// State is how a conversation was served last. It is immutable once it is kept.
type State struct {
	Model  string           `json:"m"`
	Route  string           `json:"r"`
	Tokens int              `json:"t"` // of its prompt, estimated: what the model's cache may hold
	Topics map[string]Topic `json:"s,omitempty"`
	// Said is the user's last texts, oldest first, for named conversations, whose next request may
	// omit them.
	Said []string `json:"u,omitempty"`
	// Seed is a number that stays the same throughout the conversation; 0 if none was requested.
	Seed uint64 `json:"d,omitempty"`
	// Server is the address of the server that responded, if it may store what the next request
	// omits, and Endpoint the name of its endpoint; empty for APIs other than Responses.
	Server   string `json:"a,omitempty"`
	Endpoint string `json:"e,omitempty"`
	// Owner identifies the owner of a response, in a state that only records this.
	Owner string `json:"o,omitempty"`
	// Previous is what a response continued from if no server has it because it came from a rule,
	// as JSON; else empty.
	Previous string `json:"w,omitempty"`
}

// Topic is the value of a signal about the subject of the conversation.
type Topic struct {
	Label  string    `json:"l"`
	Labels []string  `json:"n,omitempty"`
	Probs  []float32 `json:"p,omitempty"` // of Labels
}

// Link is a connection to Redis that fails fast while Redis is unreachable. Implementations must be
// safe for concurrent use.
type Link interface {
	// Do runs a call that ends within the time limit budget. While Redis is known to be unreachable
	// it fails immediately.
	Do(ctx context.Context, budget time.Duration, call func(context.Context, rueidis.Client) error) error
}

const (
	// maxStates is the maximum number of states in a process; the least recently used is evicted.
	// One takes about 1 KiB.
	maxStates = 1 << 15
	// readBudget limits a read from Redis, for which a request waits.
	readBudget = 8 * time.Millisecond
	// writeBudget limits a write to Redis, for which no request waits.
	writeBudget = time.Second
	// writesAtOnce is the maximum number of states being written; further ones are only kept in the
	// process.
	writesAtOnce = 64
)

// Store keeps states. Use New to make one.
type Store struct {
	local  *bounded.Cache[timed]
	link   Link // nil without Redis
	prefix string
	budget time.Duration
	slots  chan struct{} // holds a value for each state being written
	writes sync.WaitGroup
}

type timed struct {
	*State

	until time.Time
}

// New returns a Store. link is nil for a process without replicas; prefix is that of all keys in
// Redis, empty for cx.
func New(link Link, prefix string) *Store {
	prefix = cmp.Or(prefix, "cx")
	return &Store{
		local: bounded.New[timed](maxStates), link: link, prefix: prefix, budget: readBudget,
		slots: make(chan struct{}, writesAtOnce),
	}
}

// Find returns the state of the first key that has one, and the key's index; nil and -1 if none
// has. Redis is asked first, because another replica may have served the previous turn; if it is
// unreachable or slow, the states of this process are used.
func (s *Store) Find(ctx context.Context, keys ...Key) (state *State, at int) {
	if len(keys) == 0 {
		return nil, -1
	}
	if s.link != nil {
		if found, at, err := s.far(ctx, keys); err == nil && found != nil {
			if own, first := s.near(keys[:at]); own != nil { // being written to Redis
				return own, first
			}
			return found, at
		}
	}
	return s.near(keys)
}

// near returns a state of this process.
func (s *Store) near(keys []Key) (state *State, at int) {
	for i, k := range keys {
		if t, ok := s.local.Get(bounded.Key(k)); ok && time.Now().Before(t.until) {
			return t.State, i
		}
	}
	return nil, -1
}

// far asks Redis for all keys at once, and returns the index of the key whose state it found.
func (s *Store) far(ctx context.Context, keys []Key) (found *State, at int, err error) {
	err = s.link.Do(ctx, s.budget, func(ctx context.Context, c rueidis.Client) error {
		calls := make(rueidis.Commands, len(keys))
		for i, k := range keys {
			calls[i] = c.B().Get().Key(s.name(k)).Build()
		}
		for i, r := range c.DoMulti(ctx, calls...) {
			text, err := r.AsBytes()
			if rueidis.IsRedisNil(err) {
				continue
			}
			if err != nil {
				return err
			}
			var state State
			if json.Unmarshal(text, &state) == nil && state.Model != "" {
				found, at = &state, i
				return nil
			}
		}
		return nil
	})
	return found, at, err
}

// Entry is a state that is kept under a key for a time, which must be more than 0.
type Entry struct {
	Key   Key
	State *State
	Life  time.Duration
}

// Keep keeps a state under the keys for life, which must be more than 0. It returns immediately:
// the state is then available in this process, and soon in Redis.
func (s *Store) Keep(ctx context.Context, state *State, life time.Duration, keys ...Key) {
	entries := make([]Entry, len(keys))
	for i, k := range keys {
		entries[i] = Entry{k, state, life}
	}
	s.KeepAll(ctx, entries)
}

// KeepAll keeps all entries, with one write to Redis.
func (s *Store) KeepAll(ctx context.Context, entries []Entry) {
	for _, e := range entries {
		s.local.Set(bounded.Key(e.Key), timed{e.State, time.Now().Add(e.Life)})
	}
	if s.link == nil || len(entries) == 0 {
		return
	}
	select {
	case s.slots <- struct{}{}:
	default:
		return
	}
	s.writes.Go(func() {
		defer func() { <-s.slots }()
		// a failure costs a prefill
		_ = s.link.Do(context.WithoutCancel(ctx), writeBudget, func(ctx context.Context, c rueidis.Client) error {
			calls := make(rueidis.Commands, len(entries))
			for i, e := range entries {
				text, err := json.Marshal(e.State)
				if err != nil {
					return err // not reached: strings and finite numbers
				}
				calls[i] = c.B().Set().Key(s.name(e.Key)).Value(string(text)).Px(e.Life).Build()
			}
			for _, r := range c.DoMulti(ctx, calls...) {
				if err := r.Error(); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

func (s *Store) name(k Key) string { return s.prefix + ":s:" + k.String() }

// Len returns the approximate number of states in this process.
func (s *Store) Len() int { return s.local.Len() }

// Close waits for states that are being written.
func (s *Store) Close() { s.writes.Wait() }
