// Package conversation keeps what a conversation was answered with last, so that its next turn can
// go where its prefix is cached: in this process, and in Redis for the replicas that share one.
//
// Redis keys, P being the prefix: P:s:KEY, a string that ends by itself. A key is a SHA-256 and
// tells nothing of tenants or texts; a state holds names of models, routes and labels with
// probabilities, names and addresses of model servers, digests of tenants, and, of conversations
// that clients name, the beginnings of what the user said last.
//
// Everything here is a hint: what is lost, or late, costs a prefill, and an answer only where a
// request goes on with what one server alone has; whose a response is, is not known then. A Store is
// safe for concurrent use. It runs a goroutine for each state on its way to Redis, 64 at most, and
// Close waits for them.
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

// Key names a conversation of one tenant, or one of its turns.
type Key [32]byte

// String returns the key in hexadecimal digits.
func (k Key) String() string { return hex.EncodeToString(k[:]) }

// State is what a conversation was answered with last. It is not changed once it is kept.
type State struct {
	Model  string           `json:"m"`
	Route  string           `json:"r"`
	Tokens int              `json:"t"` // of its prompt, estimated: what the model's cache may hold
	Topics map[string]Topic `json:"s,omitempty"`
	// Said is what the user said last, the oldest first: of conversations that are named, whose
	// next request may leave it out.
	Said []string `json:"u,omitempty"`
	// Seed is a number that is the same through the conversation; 0 where nobody asked for one.
	Seed uint64 `json:"d,omitempty"`
	// Server is the address of the server that answered, where it may keep what the next request
	// leaves out, and Endpoint the name of the endpoint that it is; empty for other APIs than
	// Responses.
	Server   string `json:"a,omitempty"`
	Endpoint string `json:"e,omitempty"`
	// Owner tells whose a response is, of a state that says only who has it.
	Owner string `json:"o,omitempty"`
	// Previous is what a response went on with that no server has, since it is that of a rule, as
	// JSON; empty for others.
	Previous string `json:"w,omitempty"`
}

// Topic is what a signal said of what the conversation is about.
type Topic struct {
	Label  string    `json:"l"`
	Labels []string  `json:"n,omitempty"`
	Probs  []float32 `json:"p,omitempty"` // of Labels
}

// Link is a connection to Redis that lets nobody wait long for one that is away. Implementations
// are safe for concurrent use.
type Link interface {
	// Do runs a call that ends within the budget. While Redis is known to be away it fails at once.
	Do(ctx context.Context, budget time.Duration, call func(context.Context, rueidis.Client) error) error
}

const (
	// maxStates is how many states a process keeps; the one not used for longest goes first. One
	// takes about 1 KiB.
	maxStates = 1 << 15
	// readBudget bounds a look into Redis: a request waits for it.
	readBudget = 8 * time.Millisecond
	// writeBudget bounds the way to Redis, which nobody waits for.
	writeBudget = time.Second
	// writesAtOnce bounds the states on their way; more are kept in the process alone.
	writesAtOnce = 64
)

// Store keeps states. Make it with New.
type Store struct {
	local  *bounded.Cache[timed]
	link   Link // nil without Redis
	prefix string
	budget time.Duration
	slots  chan struct{} // holds a value for each state on its way
	writes sync.WaitGroup
}

type timed struct {
	*State

	until time.Time
}

// New returns a Store. link is nil for a process that stands alone; prefix is that of all keys in
// Redis, empty for cx.
func New(link Link, prefix string) *Store {
	prefix = cmp.Or(prefix, "cx")
	return &Store{
		local: bounded.New[timed](maxStates), link: link, prefix: prefix, budget: readBudget,
		slots: make(chan struct{}, writesAtOnce),
	}
}

// Find returns the state of the first key that has one, and the key's index; nil and -1 when none
// has.
// Redis is asked first, for another replica may have answered the turn before; while it is away, or
// slow, what this process knows counts.
func (s *Store) Find(ctx context.Context, keys ...Key) (state *State, at int) {
	if len(keys) == 0 {
		return nil, -1
	}
	if s.link != nil {
		if found, at, err := s.far(ctx, keys); err == nil && found != nil {
			if own, first := s.near(keys[:at]); own != nil { // on its way to Redis
				return own, first
			}
			return found, at
		}
	}
	return s.near(keys)
}

// near returns what this process knows.
func (s *Store) near(keys []Key) (state *State, at int) {
	for i, k := range keys {
		if t, ok := s.local.Get(bounded.Key(k)); ok && time.Now().Before(t.until) {
			return t.State, i
		}
	}
	return nil, -1
}

// far asks Redis for all keys at once, and returns the index of the one that has what is found.
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

// Entry is a state that is kept under a key for a time, which is more than 0.
type Entry struct {
	Key   Key
	State *State
	Life  time.Duration
}

// Keep keeps a state under the keys for a time, which is more than 0. It returns at once: in this
// process the state is there then, in Redis soon.
func (s *Store) Keep(ctx context.Context, state *State, life time.Duration, keys ...Key) {
	entries := make([]Entry, len(keys))
	for i, k := range keys {
		entries[i] = Entry{k, state, life}
	}
	s.KeepAll(ctx, entries)
}

// KeepAll does so with each entry, on one way to Redis.
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
					return err // not reached: names and finite numbers
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

// Len is about how many states this process keeps.
func (s *Store) Len() int { return s.local.Len() }

// Close waits for the states that are on their way.
func (s *Store) Close() { s.writes.Wait() }
