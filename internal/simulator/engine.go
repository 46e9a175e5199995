package simulator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"signalbox/internal/option"
	"signalbox/internal/simulator/kv"
)

// DefaultKV returns a cache of 16384 blocks of 16 tokens with prompts that take no time. The block
// size is vLLM's.
func DefaultKV() kv.Options {
	return kv.Options{Blocks: 16384, BlockTokens: 16, Lanes: 1}
}

// kv returns the options of the cache model.
func (o Options) kv() kv.Options {
	k := o.KV
	k.Seats, k.Latency, k.Decode = o.MaxNumSeqs, o.TTFT, o.TPOT
	return k
}

// validateKV reports the problems of the cache, and of options that need one.
func (o Options) validateKV() error {
	var p option.Problems
	if o.KV.Blocks == 0 {
		for _, need := range []struct {
			name string
			set  bool
		}{{"--priority-scheduling", o.PriorityScheduling}, {"--dev", o.DevMode}, {"transfer_addr", o.TransferAddr != ""}} {
			if need.set {
				p.Addf(need.name, "needs a prefix cache (--num-gpu-blocks-override)")
			}
		}
		return p.Err()
	}
	err := o.KV.Validate()
	if room := o.KV.Blocks * o.KV.BlockTokens; err == nil && o.MaxModelLen > room {
		p.Addf("--max-model-len", "%d tokens do not fit into the %d of the prefix cache "+
			"(--num-gpu-blocks-override of --block-size)", o.MaxModelLen, room)
	}
	if o.TransferAddr != "" && (o.KV.OffloadBlocks == 0 || o.Network == nil) {
		p.Addf("transfer_addr", "needs --offload-blocks and a network")
	}
	return errors.Join(err, p.Err())
}

// engine drives a kv.Engine by the clock: a timer is set to its next event, and waiting requests
// are woken. Its methods are safe for concurrent use. The timer's function is the only background
// activity; the timer is not set while no request is in flight.
type engine struct {
	options kv.Options

	mu      sync.Mutex // guards the fields below; no other lock is taken under it, except that of a kv.Tier
	kv      *kv.Engine
	timer   *time.Timer // nil before the first request
	flights map[*kv.Sequence]*flight
	awake   chan struct{} // nil while the server is awake; closed when it wakes up
}

// newEngine returns the engine of a server; the options must be valid.
func newEngine(o Options) *engine {
	e := &engine{options: o.kv(), flights: map[*kv.Sequence]*flight{}}
	var err error
	if e.kv, err = kv.New(e.options, time.Now()); err != nil {
		panic("simulator: options were not validated: " + err.Error())
	}
	o.Network.join(o.TransferAddr, e.kv.Tier())
	return e
}

// flight is a request in flight, with one sequence per choice. It belongs to the request's
// goroutine.
type flight struct {
	engine    *engine
	g         *generation
	sequences []*kv.Sequence
	changed   chan struct{} // holds an element if the due times may have changed
	timer     *time.Timer   // nil until the first wait
	lost      bool          // the server dropped it
}

// submit submits all choices of a request. It waits while the server sleeps, and returns false if
// ctx ends meanwhile.
func (e *engine) submit(ctx context.Context, g *generation) (*flight, bool, error) {
	if !e.wake(ctx) {
		return nil, false, nil
	}
	f := &flight{engine: e, g: g, changed: make(chan struct{}, 1)}
	each := len(g.choices) / len(g.prompts)
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	for i := range g.choices {
		s, err := e.kv.Submit(now, kv.Request{
			Seed: g.seed, Prompt: g.prompts[i/each], Answer: g.choices[i].ids(),
			Remote: g.remote, Decode: g.tpot, Priority: g.priority,
		})
		if err != nil {
			f.leave(now)
			return nil, true, fmt.Errorf("submit choice %d: %w", i, err)
		}
		f.sequences = append(f.sequences, s)
		e.flights[s] = f
	}
	e.advance(now)
	return f, true, nil
}

// wake waits until the server is awake. It returns false if ctx ends first.
func (e *engine) wake(ctx context.Context) bool {
	e.mu.Lock()
	awake := e.awake
	e.mu.Unlock()
	if awake == nil {
		return true
	}
	select {
	case <-awake:
		return true
	case <-ctx.Done():
		return false
	}
}

// advance processes the events that are due, notifies the flights, and sets the timer to the next
// event. mu is held.
func (e *engine) advance(now time.Time) {
	events := e.kv.Advance(now)
	for _, event := range events {
		if f := e.flights[event.Sequence]; f != nil {
			f.signal()
		}
	}
	if len(events) > 0 && e.options.Crowd > 0 { // the number of running requests has changed, and with it every pace
		for _, f := range e.flights {
			f.signal()
		}
	}
	next, ok := e.kv.Next()
	switch wait := next.Sub(now); {
	case !ok:
	case e.timer == nil:
		e.timer = time.AfterFunc(wait, e.tick)
	default:
		e.timer.Reset(wait)
	}
}

// tick is called by the timer.
func (e *engine) tick() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.advance(time.Now())
}

// counters returns the counters of the server.
func (e *engine) counters() kv.Counters {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.advance(time.Now())
	return e.kv.Counters()
}

// drop ends all requests and empties the cache, and resets the counts if it is for a restart.
func (e *engine) drop(restart bool) { //nolint:revive // the two are the same but for the counts
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	if restart {
		e.kv.Restart(now)
	} else {
		e.kv.Drop(now)
	}
	e.advance(now)
}

// reset empties the cache, unless requests run.
func (e *engine) reset(external bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.kv.Reset(time.Now(), external)
}

// sleep drops everything and lets requests wait for rouse.
func (e *engine) sleep() {
	e.mu.Lock()
	if e.awake == nil {
		e.awake = make(chan struct{})
	}
	e.mu.Unlock()
	e.drop(false)
}

// rouse ends sleep.
func (e *engine) rouse() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.awake != nil {
		close(e.awake)
		e.awake = nil
	}
}

func (e *engine) sleeping() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.awake != nil
}

// signal makes a waiting flight check again.
func (f *flight) signal() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// leave removes the unfinished sequences of a flight from the server. engine.mu is held.
func (f *flight) leave(now time.Time) {
	for _, s := range f.sequences {
		f.engine.kv.Cancel(now, s)
		delete(f.engine.flights, s)
	}
}

func (f *flight) dropped() bool { return f.lost }

func (f *flight) end() {
	if f.timer != nil {
		f.timer.Stop()
	}
	e := f.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	f.leave(now)
	e.advance(now)
}

// until implements schedule. The cached tokens are known when it first returns true.
func (f *flight) until(ctx context.Context, k int) bool {
	for {
		wait, known := f.due(k)
		switch {
		case f.lost || ctx.Err() != nil:
			return false
		case known && wait <= 0:
			return true
		}
		var timer <-chan time.Time
		if known {
			if f.timer == nil {
				f.timer = time.NewTimer(wait)
			} else {
				f.timer.Reset(wait)
			}
			timer = f.timer.C
		}
		select {
		case <-timer:
		case <-f.changed:
		case <-ctx.Done():
		}
	}
}

// due returns the time until token k is available for every choice that has one, if known.
func (f *flight) due(k int) (wait time.Duration, known bool) {
	e := f.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	e.advance(now)
	for i, s := range f.sequences {
		at, ok := s.Due(min(k, max(0, len(f.g.choices[i].pieces)-1)))
		if !ok {
			f.lost = f.lost || s.State == kv.Gone
			return 0, false
		}
		wait = max(wait, at.Sub(now))
	}
	if f.g.cached < 0 {
		f.g.cached = 0
		each := len(f.sequences) / len(f.g.prompts)
		for i := range f.g.prompts {
			f.g.cached += f.sequences[i*each].Cached
		}
	}
	return wait, true
}

// ids returns the token ids of a response. A response without text still has one token.
func (c *choice) ids() []uint32 {
	ids := make([]uint32, 0, max(1, len(c.pieces)))
	for _, p := range c.pieces {
		ids = append(ids, uint32(tokenID(p.text)))
	}
	if len(ids) == 0 {
		ids = append(ids, uint32(tokenID("<|im_end|>")))
	}
	return ids
}

// share sets the data of a request that determine the cached blocks: its prompts, and the other
// values that must be equal. Requests to a server without KV share nothing.
func (s *Server) share(g *generation, p *sampling, effort string, prompts ...[]uint32) {
	if s.engine == nil {
		return
	}
	g.prompts = prompts
	g.seed = kv.Seed{LoRA: s.opt.Model, Effort: effort}
	if p.CacheSalt != nil {
		g.seed.Salt = *p.CacheSalt
	}
	g.priority = int(p.Priority)
	g.remote = s.opt.Network.tier(p.Transfer.RemoteKVSource.Host, p.Transfer.RemoteKVSource.Port)
}
