package affinity

import (
	"cmp"
	"time"
)

// Ticket is a placed request. It belongs to one goroutine and must not be copied after First or
// End.
type Ticket struct {
	Endpoint  int   // index of the endpoint
	Predicted int   // prompt tokens that the endpoint should have cached
	Basis     Basis // basis of Predicted
	Home      bool  // the endpoint is the home of the key
	Holder    int   // index of the endpoint that should have most of the prompt; on a tie, this one
	Held      int   // prompt tokens that the holder should have cached
	Cached    int   // cached prompt tokens, known after End; negative if not reported
	p         *Placer
	class     Class
	key       uint64
	source    Source
	blocks    []uint64
	brought   []uint64  // the blocks that were not cached before
	bytes     int       // length of the prompt
	tokens    int       // estimated length of the prompt
	placed    time.Time // when the request was placed
	first     time.Time // when the first token arrived; zero before that
	alone     bool      // the endpoint was idle
	ended     bool
}

// Usage is what a response reports at its end.
type Usage struct {
	Prompt int // usage.prompt_tokens; 0 if not reported
	Cached int // usage.prompt_tokens_details.cached_tokens; negative if not reported
	Failed bool
	Whole  bool   // the response arrived in one piece, when it was complete
	Of     string // name of the request in Prefixes
}

// tooLittle is the share of the predicted tokens below which a prediction was wrong.
const tooLittle = 0.5

// ticket records a request in flight to endpoint i.
func (p *Placer) ticket(now time.Time, r *Request, tokens, i, home int, b bid) Ticket {
	e := &p.endpoints[i]
	t := Ticket{
		Endpoint: i, Predicted: b.known, Basis: b.basis, Home: i == home, p: p, class: r.Class, key: r.Key, source: r.Source,
		blocks: r.Blocks, brought: r.Blocks[b.held:], bytes: r.Bytes, tokens: tokens, placed: now, alone: e.idle(),
	}
	e.load.queued.Add(t.uncached())
	e.load.pending.Add(1)
	e.load.running.Add(1)
	e.count.placed.Add(1)
	if !t.Home && r.Key != 0 {
		e.count.deviated.Add(1)
		p.left.set(r.Key, i, max(1, tokens), p.ticks(now.Add(p.o.Predicted)))
	}
	// A request that arrives before this one's first token is best sent to the same endpoint, where
	// the blocks will be cached.
	valid := max(p.o.Speculative, time.Duration(2*min(b.cost, 3600)*float64(time.Second)))
	t.touch(now, Speculative, valid)
	if !t.Home {
		// others assume that it goes home; they must be told immediately if it does not
		t.gained(now, valid)
	}
	return t
}

// uncached returns how many prompt tokens the endpoint must compute.
func (t *Ticket) uncached() int64 { return int64(max(0, t.tokens-t.Predicted)) }

// touch records that the endpoint has the prompt cached.
func (t *Ticket) touch(now time.Time, basis Basis, valid time.Duration) {
	if len(t.blocks) == 0 {
		return
	}
	t.p.endpoints[t.Endpoint].table.touch(t.class, t.blocks, basis, t.p.ticks(now), t.p.ticks(now.Add(valid)))
}

// First records that the first token of the response, or the response itself, has arrived, so the
// prompt is computed. Only the first call counts.
func (t *Ticket) First(now time.Time) {
	if t == nil || t.p == nil || t.ended || !t.first.IsZero() {
		return
	}
	t.first = now
	t.settle()
	t.touch(now, Predicted, t.p.o.Predicted)
}

// settle removes the prompt from the endpoint's queue.
func (t *Ticket) settle() {
	l := &t.p.endpoints[t.Endpoint].load
	l.queued.Add(-t.uncached())
	l.pending.Add(-1)
}

// End records the end of the request, answered or not, and reports whether the endpoint had less
// than half of the predicted tokens. Only the first call counts.
func (t *Ticket) End(now time.Time, u Usage) (mispredicted bool) {
	if t.p == nil || t.ended {
		return false
	}
	t.Cached = -1
	e := &t.p.endpoints[t.Endpoint]
	if t.first.IsZero() {
		t.settle()
	}
	e.load.running.Add(-1)
	t.ended = true
	if t.first.IsZero() {
		t.withdraw(now)
	}
	if u.Failed || t.first.IsZero() {
		return false
	}
	held := now.Sub(t.placed).Seconds()
	if u.Whole {
		e.load.release(held)
	} else {
		e.load.release(now.Sub(t.first).Seconds() + float64(t.uncached())*e.speed.perToken())
	}
	t.warm(now, held)
	defer e.prefixes.note(now, t, u)
	switch {
	case u.Cached > 0:
		e.tells.Store(true)
	case u.Cached < 0 && u.Prompt > 0 && e.tells.Load():
		u.Cached = 0 // vLLM omits the field when it is 0
	}
	if u.Cached < 0 {
		t.measured(u.Prompt)
		t.gained(now, t.p.o.Predicted)
		return false
	}
	t.Cached = u.Cached
	mispredicted = t.confirm(now, u)
	t.measured(u.Prompt)
	return mispredicted
}

// measured stores the real length of the prompt with its blocks.
func (t *Ticket) measured(prompt int) {
	if prompt > 0 && len(t.blocks) > 0 {
		t.p.endpoints[t.Endpoint].table.measured(t.class, t.blocks, t.bytes, prompt)
	}
}

// withdraw undoes what was assumed while the request was in flight, since as far as is known
// nothing was computed for it. What other responses have shown stays, and so does what earlier
// requests in flight have brought.
func (t *Ticket) withdraw(now time.Time) {
	t.p.endpoints[t.Endpoint].table.withdraw(t.class, t.brought)
	if t.Home || float64(t.Predicted) >= tooLittle*float64(t.tokens) {
		return // other proxies were not told
	}
	t.p.left.set(t.key, t.Endpoint, 0, 0)
	t.publish(now, 0, t.p.o.Predicted)
}

// warm adds the endpoint time that the request used: its prompt, and one seat for its response.
func (t *Ticket) warm(now time.Time, held float64) {
	if t.key == 0 {
		return
	}
	e := &t.p.endpoints[t.Endpoint]
	seats := cmp.Or(e.Seats, assumedSeats)
	prompt := float64(t.uncached()) * e.speed.perToken()
	t.p.heat.add(t.key, prompt+max(0, held-prompt)/float64(seats), now)
}

// confirm compares the prediction with the reported tokens. Estimated tokens are corrected by the
// real length of the prompt.
func (t *Ticket) confirm(now time.Time, u Usage) (mispredicted bool) {
	e := &t.p.endpoints[t.Endpoint]
	scale := 1.0
	if u.Prompt > 0 && t.tokens > 0 {
		scale = float64(u.Prompt) / float64(t.tokens)
	}
	predicted := scale * float64(t.Predicted)
	e.count.predicted.Add(int64(predicted))
	e.count.cached.Add(int64(u.Cached))
	if u.Prompt > 0 && t.alone && !u.Whole {
		e.speed.learn(float64(u.Prompt-u.Cached), t.first.Sub(t.placed).Seconds())
		t.p.level()
	}
	if t.Predicted == 0 || float64(u.Cached) >= tooLittle*predicted {
		t.touch(now, Confirmed, t.p.o.Confirmed)
		t.gained(now, t.p.o.Confirmed)
		return false
	}
	// The prompt is probably cached now, but the prediction was wrong. Trust only what was reported
	// until a response says more.
	e.count.mispredicted.Add(1)
	there := int(float64(len(t.blocks)) * float64(u.Cached) / max(1, scale*float64(t.tokens)))
	e.table.cut(t.class, t.blocks[min(there, len(t.blocks)):])
	t.p.residences.set(t.key, t.Endpoint, 0, 0)
	t.publish(now, 0, t.p.o.Confirmed)
	return true
}

// gained informs other proxies that the endpoint has the prompt, unless it already had most of it.
func (t *Ticket) gained(now time.Time, valid time.Duration) {
	if float64(t.Predicted) < tooLittle*float64(t.tokens) {
		t.publish(now, t.tokens, valid)
	}
}

// publish informs other proxies how many tokens of the key's prompts the endpoint has.
func (t *Ticket) publish(now time.Time, tokens int, valid time.Duration) {
	if t.key == 0 || t.p.o.Board == nil {
		return
	}
	t.p.o.Board.Publish(Residence{Key: t.key, Endpoint: t.p.endpoints[t.Endpoint].Name, Tokens: tokens, Expires: now.Add(valid)})
}
