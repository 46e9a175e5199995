package affinity

import (
	"cmp"
	"fmt"
	"math"
	"sync/atomic"
	"time"
)

// tokensPerByte is assumed for a prompt whose length in tokens is unknown: English text, four bytes
// per token.
const tokensPerByte = 0.25

// defaultTokens is the assumed cache size of an endpoint when it is unknown: that of an 8B model
// with 16-bit values on a GPU of 80 GB, with 131,072 bytes per token and about 52 GB left after the
// weights.
const defaultTokens = 400_000

// Request is the input of placement.
type Request struct {
	Class  Class
	Key    uint64   // what it belongs to, see Hints.Key; 0 for nothing
	Source Source   // what Key was derived from
	Blocks []uint64 // Chain.Blocks of its prompt; must not change until its Ticket has ended
	Bytes  int      // Chain.Bytes
	Tokens int      // estimated length of the prompt; 0 if unknown
	// Penalty is an additional cost for each endpoint in seconds, for example because of failures;
	// +Inf excludes the endpoint. It has one entry per endpoint of the Placer, or is nil.
	Penalty []float64
}

// Placer places the requests of one model. It is safe for concurrent use.
type Placer struct {
	o          Options
	epoch      time.Time // origin of expiry times
	endpoints  []endpoint
	heat       *heat
	residences residencies
	left       residencies   // where this proxy sent prompts whose home was busy
	drawn      atomic.Uint64 // number of requests without a key
}

// endpoint is an endpoint with its learned state.
type endpoint struct {
	Endpoint
	*server

	hash uint64
}

// server is the learned state of an endpoint. Successive Placers share it; see Adopt.
type server struct {
	table *table
	speed speed
	load  load
	count counts
	tells atomic.Bool  // its responses report cached tokens, if there are any
	block atomic.Int64 // tokens per cache block; 0 if unknown

	prefixes prefixes // recently sent to it
}

// New returns a Placer for the endpoints of one model. Endpoints are identified by their index. No
// later call may pass a time before now.
func New(endpoints []Endpoint, o Options, now time.Time) (*Placer, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("affinity options: %w", err)
	}
	if err := validate(endpoints); err != nil {
		return nil, fmt.Errorf("affinity endpoints: %w", err)
	}
	p := &Placer{o: o, epoch: now.Add(-tick), endpoints: make([]endpoint, len(endpoints)), heat: newHeat()}
	p.residences.byKey = make(map[uint64]*resident)
	p.left.byKey = make(map[uint64]*resident)
	for i, e := range endpoints {
		held := cmp.Or(e.Tokens, defaultTokens)
		x := &server{table: newTable(blocksOf(held))}
		x.speed.start(cmp.Or(e.Prefill, o.Prefill).Seconds())
		p.endpoints[i] = endpoint{Endpoint: e, server: x, hash: sum(0, e.Name)}
	}
	return p, nil
}

// blocksOf returns the number of chain blocks that fit into a cache of that many tokens.
func blocksOf(tokens int) int { return max(1, int(float64(tokens)/(BlockBytes*tokensPerByte))) }

// ticks converts a time to ticks since the epoch. A block that expires at a tick has expired once
// that tick is reached.
func (p *Placer) ticks(at time.Time) uint32 { return uint32(max(0, at.Sub(p.epoch)/tick)) }

// bid is what is known about one endpoint for one request.
type bid struct {
	known int     // leading tokens of the prompt that it should have cached
	held  int     // the same in blocks of the chain
	told  int     // tokens in those blocks as reported by responses; 0 if not reported
	basis Basis   // basis of known
	own   float64 // seconds to compute the rest
	cost  float64 // total cost in seconds
}

// Place selects an endpoint; it returns false if all are excluded. The caller must report the first
// token and the end of the request to the ticket. Place does not allocate.
func (p *Placer) Place(now time.Time, r *Request) (Ticket, bool) {
	return p.place(now, r, p.ticket)
}

// Find is Place for a request that is not sent. Its ticket has no effect and needs no reports.
func (p *Placer) Find(now time.Time, r *Request) (Ticket, bool) {
	return p.place(now, r, func(_ time.Time, _ *Request, _, i, home int, b bid) Ticket {
		return Ticket{Endpoint: i, Predicted: b.known, Basis: b.basis, Home: i == home}
	})
}

// place selects an endpoint and makes a ticket for it.
func (p *Placer) place(now time.Time, r *Request, ticket func(now time.Time, r *Request, tokens, i, home int, b bid) Ticket) (Ticket, bool) {
	var bids [MaxEndpoints]bid
	tokens := p.look(&bids, now, r)
	key := r.Key
	if key == 0 {
		key = p.drawn.Add(1) // any order will do, as long as it varies
	}
	var order ranking
	rank(&order, key, p.endpoints)
	home, homes := int(order[0]), p.homes(r.Key, now)
	p.bid(&bids, now, r, tokens, home)
	if homes > 1 {
		p.shareCost(&bids, order[:homes])
	}
	at := p.choose(order[:len(p.endpoints)], &bids, homes, p.kept(now, r, &bids, home, homes, tokens))
	if at < 0 {
		return Ticket{}, false
	}
	t := ticket(now, r, tokens, at, home, bids[at])
	t.Holder, t.Held = p.holder(&bids, at)
	return t, true
}

// Sent records a request that was sent to endpoint i without Place, so that it counts as load and
// for measuring speed. Its ticket is like those of Place. Sent does not allocate.
func (p *Placer) Sent(now time.Time, r *Request, i int) Ticket {
	t := p.ticket(now, r, r.length(), i, i, bid{})
	t.Holder = i
	return t
}

// length returns the estimated length of the prompt in tokens.
func (r *Request) length() int {
	if r.Tokens > 0 {
		return r.Tokens
	}
	return int(float64(r.Bytes) * tokensPerByte)
}

// holder returns the endpoint that should have most of the prompt, among those that are not
// excluded. On a tie it is the chosen one.
func (p *Placer) holder(bids *[MaxEndpoints]bid, chosen int) (i, tokens int) {
	i, tokens = chosen, bids[chosen].known
	for j := range p.endpoints {
		if bids[j].known > tokens && !math.IsInf(bids[j].cost, 1) {
			i, tokens = j, bids[j].known
		}
	}
	return i, tokens
}

// bid computes the bids of all endpoints.
func (p *Placer) bid(bids *[MaxEndpoints]bid, now time.Time, r *Request, tokens, home int) {
	most := p.known(bids, now, r, tokens)
	for i := range p.endpoints {
		e, b := &p.endpoints[i], &bids[i]
		have := float64(b.known)
		if i == home && r.Key != 0 && b.known == 0 && float64(most) < tooLittle*float64(tokens) {
			// another proxy may have sent it there; but if it is known to be elsewhere, none has
			have = p.o.Prior * float64(tokens)
		}
		b.own = (float64(tokens) - have) * e.speed.perToken()
		b.cost = p.o.Burden*b.own + e.wait(now, p.o.Crowd.Seconds())
		if r.Penalty != nil {
			b.cost += r.Penalty[i]
		}
	}
}

// look determines which blocks of the prompt each endpoint should have, and returns the prompt's
// length in tokens: as reported for its beginning, and estimated for the rest.
func (p *Placer) look(bids *[MaxEndpoints]bid, now time.Time, r *Request) (tokens int) {
	ticks, deepest := p.ticks(now), 0
	tokens = r.length()
	for i := range p.endpoints {
		b := &bids[i]
		b.held, b.basis, b.told = p.endpoints[i].table.match(r.Class, r.Blocks, ticks)
		if b.told > 0 && b.held > deepest {
			deepest, tokens = b.held, r.lengthFrom(b.held, b.told)
		}
	}
	return tokens
}

// known returns the prompt tokens in the blocks that an endpoint should have.
func (r *Request) known(b *bid, tokens int) int {
	if b.told > 0 {
		return b.told
	}
	return r.tokensOf(b.held, tokens)
}

// lengthFrom returns the length of the prompt in tokens when its first blocks are known to have
// told tokens.
func (r *Request) lengthFrom(blocks, told int) int {
	rest := float64(r.Bytes-blocks*BlockBytes) / float64(max(r.Bytes, 1))
	return told + int(max(0, rest)*float64(r.length()))
}

// known computes how many tokens of the prompt each endpoint should have, and returns the maximum.
func (p *Placer) known(bids *[MaxEndpoints]bid, now time.Time, r *Request, tokens int) (most int) {
	var told [MaxEndpoints]int32
	ticks := p.ticks(now)
	others := r.Key != 0 && p.residences.read(&told, r.Key, ticks)
	for i := range p.endpoints {
		b := &bids[i]
		b.known = r.known(b, tokens)
		if others && int(told[i]) > b.known {
			b.known, b.basis = min(int(told[i]), tokens), Predicted
		}
		b.known = p.endpoints[i].usable(b.known, tokens)
		most = max(most, b.known)
	}
	return most
}

// shareCost removes the burden from the cost of computing a prompt at its homes when there are
// several: the computation benefits the requests that follow as well.
func (p *Placer) shareCost(bids *[MaxEndpoints]bid, homes []uint8) {
	for _, i := range homes {
		bids[i].cost -= (p.o.Burden - 1) * bids[i].own
	}
}

// tokensOf estimates the number of prompt tokens in the first blocks.
func (r *Request) tokensOf(blocks, tokens int) int {
	if blocks == 0 {
		return 0
	}
	return min(tokens, int(float64(tokens)*float64(blocks*BlockBytes)/float64(max(r.Bytes, blocks*BlockBytes))))
}

// templateTokens is how many tokens chat templates add after the last text of a prompt: the end of
// the message and the start of the response, 5 to 8 in Llama 3, Qwen3 and Gemma 3. They differ from
// prompt to prompt, and the last token of a prompt is never taken from a cache.
const templateTokens = 8

// usable returns how many of the first known tokens of a prompt the endpoint reuses from its cache:
// whole blocks without any part of the template's ending. If the block size is unknown, it returns
// known.
func (e *endpoint) usable(known, tokens int) int {
	block := int(e.block.Load())
	if block == 0 {
		return known
	}
	return max(0, min(known, tokens-templateTokens)) / block * block
}

// Most returns the maximum number of tokens of a prompt that endpoint i can be known to have.
func (p *Placer) Most(i int, r *Request) int {
	tokens := r.length()
	known := r.tokensOf(len(r.Blocks), tokens)
	if n, _, told := p.endpoints[i].table.match(r.Class, r.Blocks, 0); told > 0 && n == len(r.Blocks) {
		known, tokens = told, r.lengthFrom(n, told)
	}
	return p.endpoints[i].usable(known, tokens)
}

// choose returns the index of the endpoint to use, or -1. The cheapest of a key's homes counts as
// its home, unless kept, the endpoint that keeps the request, is not -1. The request stays there
// unless another endpoint is enough cheaper. In that case the first endpoint in the order of the
// key that is about as good as the best one is used. homes is the number of homes of the key.
func (p *Placer) choose(order []uint8, bids *[MaxEndpoints]bid, homes, kept int) int {
	best := math.Inf(1)
	for _, i := range order {
		best = min(best, bids[i].cost)
	}
	if math.IsInf(best, 1) || math.IsNaN(best) {
		return -1
	}
	seat := order[0]
	for _, i := range order[1:homes] {
		if bids[i].cost < bids[seat].cost {
			seat = i
		}
	}
	if kept < 0 {
		kept = int(seat)
	}
	if p.near(bids[kept].cost, best) {
		return kept
	}
	for _, i := range order {
		if p.near(bids[i].cost, best) {
			return int(i)
		}
	}
	return -1 // unreachable: the best endpoint is near itself
}

// kept returns the endpoint that keeps a request in place of its home, or -1. That is an endpoint
// to which prompts of the key went when the home was busy and which should have most of this one,
// while the only home should have less than half of that. Returning home would mean computing the
// prompt again. Text shared by several keys does not count: otherwise the first endpoint to have it
// would get all of them.
func (p *Placer) kept(now time.Time, r *Request, bids *[MaxEndpoints]bid, home, homes, tokens int) int {
	if r.Key == 0 || homes > 1 {
		return -1
	}
	i, has := p.holder(bids, home)
	if i == home || float64(has) < tooLittle*float64(tokens) || float64(bids[home].known) >= tooLittle*float64(has) {
		return -1
	}
	var at [MaxEndpoints]int32
	ticks := p.ticks(now)
	if p.left.read(&at, r.Key, ticks) && at[i] > 0 || p.residences.read(&at, r.Key, ticks) && at[i] > 0 {
		return i
	}
	return -1
}

// near reports whether a cost is so close to the best that moving would not pay.
func (p *Placer) near(cost, best float64) bool {
	return !math.IsInf(cost, 1) && cost-best <= max(p.o.Leave*cost, p.o.LeaveBy.Seconds())
}

// homes returns the number of homes of a key: enough that none spends more than Options.Hot of its
// time on it.
func (p *Placer) homes(key uint64, now time.Time) int {
	most := min(p.o.Homes, len(p.endpoints))
	if key == 0 || most == 1 {
		return 1
	}
	return min(max(1, int(math.Ceil(p.heat.share(key, now)/p.o.Hot))), most)
}

// Learn records what another proxy has published. Unknown endpoints are ignored.
func (p *Placer) Learn(now time.Time, r Residence) {
	if !r.Expires.After(now) {
		return
	}
	for i := range p.endpoints {
		if p.endpoints[i].Name == r.Endpoint {
			p.residences.set(r.Key, i, r.Tokens, p.ticks(r.Expires))
			p.endpoints[i].count.told.Add(1)
		}
	}
}

// Forget clears the predicted cache of an endpoint, for example after its restart.
func (p *Placer) Forget(i int) {
	p.endpoints[i].table.clear()
	p.residences.drop(i)
	p.left.drop(i)
}
