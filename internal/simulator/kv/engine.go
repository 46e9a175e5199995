package kv

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// ErrTooLong reports that a request needs more blocks than the cache has.
var ErrTooLong = errors.New("request does not fit into the cache")

// ErrEmpty reports that a request has no prompt or no response.
var ErrEmpty = errors.New("request without prompt or answer")

// Engine is one simulated server. Create one with New. Times passed to its methods must not go
// back.
type Engine struct {
	o        Options
	cache    *Cache
	tier     *Tier // nil without one
	now      time.Time
	company  time.Duration // additional time per response token for all running requests
	waiting  []*Sequence   // ordered; the next one first
	prefills []*Sequence
	opening  []*Sequence // prompts being computed, in their Options.Latency
	decodes  []*Sequence
	count    Counters
	events   []Event
	handed   []Event // the slice that Advance returned last
}

// New returns a server that starts at now; the options must be valid.
func New(o Options, now time.Time) (*Engine, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("kv options: %w", err)
	}
	e := &Engine{o: o, cache: NewCache(o.Blocks), now: now}
	e.count.Started = now
	if o.OffloadBlocks > 0 {
		e.tier = NewTier(o.OffloadBlocks)
	}
	return e, nil
}

// Cache returns the server's cache, for reading.
func (e *Engine) Cache() *Cache { return e.cache }

// Tier returns the server's main memory, which other requests may set as Request.Remote; nil if it
// has none.
func (e *Engine) Tier() *Tier { return e.tier }

// Submit submits a request. It starts immediately if there is room. Errors are ErrTooLong and
// ErrEmpty.
func (e *Engine) Submit(now time.Time, r Request) (*Sequence, error) {
	if len(r.Prompt) == 0 || len(r.Answer) == 0 {
		return nil, ErrEmpty
	}
	if n := e.blocks(&r); n > e.o.Blocks {
		return nil, fmt.Errorf("%w: %d blocks of %d", ErrTooLong, n, e.o.Blocks)
	}
	e.run(now)
	e.compute()
	s := &Sequence{req: r}
	all := append(slices.Clone(r.Prompt), r.Answer...)
	s.chain = AppendChain(nil, r.Seed, all, e.o.BlockTokens)
	at := len(e.waiting)
	for at > 0 && e.waiting[at-1].req.Priority > r.Priority {
		at--
	}
	e.waiting = slices.Insert(e.waiting, at, s)
	e.admit()
	return s, nil
}

// Cancel ends a sequence whose client has left. Its computed blocks stay in the cache. A sequence
// that has ended does not change.
func (e *Engine) Cancel(now time.Time, s *Sequence) {
	e.run(now)
	if s.State >= Finished {
		return
	}
	e.compute()
	e.leave(s, Gone)
	e.admit()
}

// Next returns the time of the next event, or false if there is none.
func (e *Engine) Next() (time.Time, bool) {
	if len(e.events) > 0 {
		return e.events[0].At, true
	}
	return e.upcoming()
}

// Advance moves the time forward and returns the events since the last call, in order. The slice is
// valid until the next call.
func (e *Engine) Advance(now time.Time) []Event {
	e.run(now)
	e.handed, e.events = e.events, e.handed[:0]
	return e.handed
}

// Reset empties the cache, and the main memory as well if external is set. It does nothing and
// returns false while requests run.
func (e *Engine) Reset(now time.Time, external bool) bool { //nolint:revive // the flag is one of vLLM's own API
	e.run(now)
	if !e.cache.Reset() {
		return false
	}
	if external && e.tier != nil {
		e.tier.Clear()
	}
	return true
}

// Restart simulates the end of the process and the start of another: Drop, and the counts restart.
func (e *Engine) Restart(now time.Time) {
	e.Drop(now)
	e.count = Counters{Started: now}
}

// Drop ends all requests with the state Gone and empties both memories.
func (e *Engine) Drop(now time.Time) {
	e.run(now)
	for _, group := range [][]*Sequence{e.prefills, e.opening, e.decodes, e.waiting} {
		for _, s := range slices.Clone(group) {
			e.leave(s, Gone)
		}
	}
	e.cache.clear()
	if e.tier != nil {
		e.tier.Clear()
	}
}

// Counters returns the counts at the time passed to the last call.
func (e *Engine) Counters() Counters {
	c := e.count
	c.Running, c.Waiting = e.running(), len(e.waiting)
	for _, s := range e.decodes {
		c.GenerationTokens += uint64(e.Generated(s))
	}
	c.Usage = float64(e.cache.InUse()) / float64(e.cache.Size())
	return c
}

func (e *Engine) running() int { return len(e.prefills) + len(e.opening) + len(e.decodes) }

// blocks returns the number of blocks that a request needs: for all of its tokens but the last.
func (e *Engine) blocks(r *Request) int {
	return (len(r.Prompt) + len(r.Answer) - 1 + e.o.BlockTokens - 1) / e.o.BlockTokens
}

// run processes all events until now. The result depends on the events only, not on how often it is
// called.
func (e *Engine) run(now time.Time) {
	for {
		at, ok := e.upcoming()
		if !ok || at.After(now) {
			break
		}
		e.now = at
		e.compute()
		e.advance()
	}
	e.now = now
}

// upcoming returns the time when the next prompt or response is complete.
func (e *Engine) upcoming() (next time.Time, ok bool) {
	for _, group := range [...][]*Sequence{e.prefills, e.opening, e.decodes} {
		for _, s := range group {
			if !ok || s.ready.Before(next) {
				next, ok = s.ready, true
			}
		}
	}
	return next, ok
}

// Generated returns the number of response tokens that a sequence has at the time passed to the
// last call.
func (e *Engine) Generated(s *Sequence) int {
	switch {
	case s.State < Decode:
		return 0
	case s.State > Decode:
		return s.tokens
	}
	return len(s.req.Answer) - int((s.ready.Sub(e.now)+s.pace-1)/s.pace)
}

// compute marks the blocks that running sequences have computed by now.
func (e *Engine) compute() {
	for _, s := range e.prefills {
		left := s.ready.Sub(e.now)
		if left <= time.Duration(len(s.req.Prompt)-s.Cached)*e.o.Prefill { // otherwise it is still loading
			e.computed(s, len(s.req.Prompt)-int((left+e.o.Prefill-1)/max(1, e.o.Prefill)))
		}
	}
	for _, s := range e.opening {
		e.computed(s, len(s.req.Prompt))
	}
	for _, s := range e.decodes {
		e.computed(s, len(s.req.Prompt)+e.Generated(s)-1)
	}
}

// computed marks the first tokens of a sequence as cached.
func (e *Engine) computed(s *Sequence, tokens int) {
	from, n := s.lease.computed, tokens/e.o.BlockTokens
	if n <= from {
		return
	}
	e.cache.Compute(s.lease, n)
	if e.tier != nil {
		e.tier.Store(s.chain[from:s.lease.computed])
	}
}

// repace must follow every change of the number of running sequences: responses are slower with
// more of them.
func (e *Engine) repace() {
	company := e.o.Crowd * time.Duration(max(0, e.running()-1))
	if company == e.company {
		return
	}
	e.company = company
	for _, s := range e.decodes {
		pace := e.paceOf(s)
		left := float64(s.ready.Sub(e.now)) * float64(pace) / float64(s.pace)
		s.ready, s.pace = e.now.Add(time.Duration(math.Round(left))), pace
	}
}

// paceOf returns the time per token of a sequence's response with the current number of running
// sequences.
func (e *Engine) paceOf(s *Sequence) time.Duration {
	return max(1, cmp.Or(s.req.Decode, e.o.Decode)+e.company)
}

// advance ends completed sequences and starts others.
func (e *Engine) advance() {
	for _, s := range slices.Clone(e.prefills) {
		if s.ready.After(e.now) {
			continue
		}
		e.prefills = remove(e.prefills, s)
		e.opening = append(e.opening, s)
		s.ready = e.now.Add(e.o.Latency)
	}
	for _, s := range slices.Clone(e.opening) {
		if s.ready.After(e.now) {
			continue
		}
		e.opening = remove(e.opening, s)
		e.decodes = append(e.decodes, s)
		s.First, s.pace = e.now, e.paceOf(s)
		s.ready = e.now.Add(time.Duration(len(s.req.Answer)-1) * s.pace)
		e.enter(s, Decode)
	}
	for _, s := range slices.Clone(e.decodes) {
		if !s.ready.After(e.now) {
			e.leave(s, Finished)
		}
	}
	e.admit()
}

// admit starts waiting sequences in order, as long as there are seats, lanes and blocks.
func (e *Engine) admit() {
	defer e.repace()
	for len(e.waiting) > 0 && len(e.prefills) < e.o.Lanes && (e.o.Seats == 0 || e.running() < e.o.Seats) {
		s := e.waiting[0]
		reuse := (len(s.req.Prompt) - 1) / e.o.BlockTokens
		lease, ok := e.cache.Take(s.chain, reuse, e.blocks(&s.req))
		if !ok {
			return
		}
		e.waiting = slices.Delete(e.waiting, 0, 1)
		s.lease = lease
		e.start(s, reuse)
	}
}

// start sets the time at which the prompt of a sequence will be computed, and counts the cached
// tokens.
func (e *Engine) start(s *Sequence, reuse int) {
	local := s.lease.Hits()
	away := e.external(s, s.chain[local:reuse])
	s.External = away * e.o.BlockTokens
	s.Cached = local*e.o.BlockTokens + s.External
	s.Started = e.now
	uncached := len(s.req.Prompt) - s.Cached
	s.ready = e.now.Add(e.o.Overhead + time.Duration(s.External)*e.o.Load + time.Duration(uncached)*e.o.Prefill)

	prompt := uint64(len(s.req.Prompt))
	e.count.PrefixQueries += prompt
	e.count.PrefixHits += uint64(local * e.o.BlockTokens)
	e.count.PromptTokens += prompt
	e.count.CachedTokens += uint64(s.Cached)
	if e.tier != nil || s.req.Remote != nil {
		e.count.ExternalQueries += prompt - uint64(local*e.o.BlockTokens)
		e.count.ExternalHits += uint64(s.External)
	}
	e.prefills = append(e.prefills, s)
	e.enter(s, Prefill)
}

// external returns the number of leading blocks of chain that come from main memory, of this server
// or of the one named by the request, whichever has more.
func (e *Engine) external(s *Sequence, chain []Hash) int {
	n := 0
	if e.tier != nil {
		n = e.tier.Match(chain)
	}
	if s.req.Remote != nil && s.req.Remote != e.tier {
		n = max(n, s.req.Remote.Match(chain))
	}
	return n
}

// enter records a new state.
func (e *Engine) enter(s *Sequence, state State) {
	s.State = state
	e.events = append(e.events, Event{At: e.now, State: state, Sequence: s})
}

// leave removes a sequence from the server.
func (e *Engine) leave(s *Sequence, state State) {
	e.waiting, e.prefills = remove(e.waiting, s), remove(e.prefills, s)
	e.opening, e.decodes = remove(e.opening, s), remove(e.decodes, s)
	if s.lease != nil {
		e.cache.Release(s.lease)
	}
	s.tokens, s.Ended = e.Generated(s), e.now
	e.count.GenerationTokens += uint64(s.tokens)
	e.enter(s, state)
}

// remove removes s from list and keeps the order.
func remove(list []*Sequence, s *Sequence) []*Sequence {
	if i := slices.Index(list, s); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}
