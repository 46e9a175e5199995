package affinity

import (
	"cmp"
	"fmt"
	"math"
	"sync/atomic"
	"time"
)

// tokensPerByte is assumed of a prompt whose length in tokens is not known: English, four bytes a
// token.
const tokensPerByte = 0.25

// defaultTokens is the cache that an endpoint is taken to have when its size is not known: that of
// an 8B model with 16 bits a value on a GPU of 80 GB, 131,072 bytes a token and some 52 GB left
// beside the weights.
const defaultTokens = 400_000

// Request is what placement looks at.
type Request struct {
	Class  Class
	Key    uint64   // what it belongs to, see Hints.Key; 0 means nothing
	Source Source   // of Key
	Blocks []uint64 // Chain.Blocks of its prompt; must not change until its Ticket has ended
	Bytes  int      // Chain.Bytes
	Tokens int      // estimated length of the prompt; 0 means not known
	// Penalty is what speaks against each endpoint besides, in seconds, such as failures; +Inf
	// rules it out. It has an entry for each endpoint of the Placer, or is nil.
	Penalty []float64
}

// Placer places the requests of one model. It is safe for concurrent use.
type Placer struct {
	o          Options
	epoch      time.Time // expiry is counted from here
	endpoints  []endpoint
	heat       *heat
	residences residencies
	left       residencies   // where this proxy has sent prompts whose home was busy
	drawn      atomic.Uint64 // requests without a key so far
}

// endpoint is an endpoint with what was learnt of it.
type endpoint struct {
	Endpoint
	*server

	hash uint64
}

// server is what was learnt of an endpoint. Placers that follow each other share it; see Adopt.
type server struct {
	table *table
	speed speed
	load  load
	count counts
	tells atomic.Bool  // its answers report cached tokens when there are any
	block atomic.Int64 // tokens in a block of its cache; 0 when not known

	prefixes prefixes // that were sent to it lately
}

// New returns a Placer for the endpoints of one model. Endpoints are known by their index from here
// on. now is the earliest time that its methods will be given.
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

// blocksOf is how many blocks of a chain tokens of a cache hold.
func blocksOf(tokens int) int { return max(1, int(float64(tokens)/(BlockBytes*tokensPerByte))) }

// ticks is a time in ticks since the epoch. What expires at a tick has expired when the tick is
// there.
func (p *Placer) ticks(at time.Time) uint32 { return uint32(max(0, at.Sub(p.epoch)/tick)) }

// bid is what is known of one endpoint for one request.
type bid struct {
	known int     // leading tokens of the prompt that it should have
	held  int     // and blocks of its chain
	told  int     // tokens of those blocks as answers told; 0 for not told
	basis Basis   // why
	own   float64 // seconds to compute the rest
	cost  float64 // seconds that count against the endpoint
}

// Place picks an endpoint. It reports false when all are ruled out. The ticket that it returns must
// be told of the first token and of the end. Place allocates nothing.
func (p *Placer) Place(now time.Time, r *Request) (Ticket, bool) {
	return p.place(now, r, p.ticket)
}

// Find is Place of a request that is not sent: its ticket counts for nothing and need not be told
// of anything.
func (p *Placer) Find(now time.Time, r *Request) (Ticket, bool) {
	return p.place(now, r, func(_ time.Time, _ *Request, _, i, home int, b bid) Ticket {
		return Ticket{Endpoint: i, Predicted: b.known, Basis: b.basis, Home: i == home}
	})
}

// place picks an endpoint and makes a ticket for it.
func (p *Placer) place(now time.Time, r *Request, ticket func(now time.Time, r *Request, tokens, i, home int, b bid) Ticket) (Ticket, bool) {
	var bids [MaxEndpoints]bid
	tokens := p.look(&bids, now, r)
	key := r.Key
	if key == 0 {
		key = p.drawn.Add(1) // any order is as good as another, as long as it is not always the same
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

// Sent notes a request that another choice than Place sent to endpoint i, so that it counts there
// as what it is: load, and a measure of speed. Its ticket is as those of Place. Sent allocates
// nothing.
func (p *Placer) Sent(now time.Time, r *Request, i int) Ticket {
	t := p.ticket(now, r, r.length(), i, i, bid{})
	t.Holder = i
	return t
}

// length is the estimated length of the prompt in tokens.
func (r *Request) length() int {
	if r.Tokens > 0 {
		return r.Tokens
	}
	return int(float64(r.Bytes) * tokensPerByte)
}

// holder returns the endpoint that should have most of the prompt of those that are not ruled out,
// which is the chosen one unless another should have more.
func (p *Placer) holder(bids *[MaxEndpoints]bid, chosen int) (i, tokens int) {
	i, tokens = chosen, bids[chosen].known
	for j := range p.endpoints {
		if bids[j].known > tokens && !math.IsInf(bids[j].cost, 1) {
			i, tokens = j, bids[j].known
		}
	}
	return i, tokens
}

// bid fills in what is known of all endpoints.
func (p *Placer) bid(bids *[MaxEndpoints]bid, now time.Time, r *Request, tokens, home int) {
	most := p.known(bids, now, r, tokens)
	for i := range p.endpoints {
		e, b := &p.endpoints[i], &bids[i]
		have := float64(b.known)
		if i == home && r.Key != 0 && b.known == 0 && float64(most) < tooLittle*float64(tokens) {
			have = p.o.Prior * float64(tokens) // another proxy may have sent it there; where it is known to be elsewhere, nobody has
		}
		b.own = (float64(tokens) - have) * e.speed.perToken()
		b.cost = p.o.Burden*b.own + e.wait(now, p.o.Crowd.Seconds())
		if r.Penalty != nil {
			b.cost += r.Penalty[i]
		}
	}
}

// look fills in which blocks of the prompt endpoints should have, and returns its length in tokens:
// as answers told of its beginning, and estimated from there on.
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

// known is how many of the prompt's tokens the blocks have that an endpoint should have.
func (r *Request) known(b *bid, tokens int) int {
	if b.told > 0 {
		return b.told
	}
	return r.tokensOf(b.held, tokens)
}

// lengthFrom is the length of the prompt in tokens when its first blocks have told ones.
func (r *Request) lengthFrom(blocks, told int) int {
	rest := float64(r.Bytes-blocks*BlockBytes) / float64(max(r.Bytes, 1))
	return told + int(max(0, rest)*float64(r.length()))
}

// known fills in what endpoints should have of the prompt, and returns the most that one of them
// should have, in tokens.
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

// shareCost counts a prompt that several homes are to have once only: it is computed for those that
// follow too.
func (p *Placer) shareCost(bids *[MaxEndpoints]bid, homes []uint8) {
	for _, i := range homes {
		bids[i].cost -= (p.o.Burden - 1) * bids[i].own
	}
}

// tokensOf is how many of the prompt's tokens the first blocks have.
func (r *Request) tokensOf(blocks, tokens int) int {
	if blocks == 0 {
		return 0
	}
	return min(tokens, int(float64(tokens)*float64(blocks*BlockBytes)/float64(max(r.Bytes, blocks*BlockBytes))))
}

// templateTokens is how many tokens chat templates put behind the last text of a prompt: the end of
// a message and the beginning of the answer, 5 to 8 in those of Llama 3, Qwen3 and Gemma 3. They
// differ from prompt to prompt, and the last token of a prompt is never taken from a cache.
const templateTokens = 8

// usable is how many of the first known tokens of a prompt the endpoint takes from its cache: whole
// blocks, none with a part of what the template ends with. It is known itself where the size of a
// block is not known.
func (e *endpoint) usable(known, tokens int) int {
	block := int(e.block.Load())
	if block == 0 {
		return known
	}
	return max(0, min(known, tokens-templateTokens)) / block * block
}

// Most is how many tokens of a prompt endpoint i can be known to have.
func (p *Placer) Most(i int, r *Request) int {
	tokens := r.length()
	known := r.tokensOf(len(r.Blocks), tokens)
	if n, _, told := p.endpoints[i].table.match(r.Class, r.Blocks, 0); told > 0 && n == len(r.Blocks) {
		known, tokens = told, r.lengthFrom(n, told)
	}
	return p.endpoints[i].usable(known, tokens)
}

// choose returns the index of the endpoint to take, or -1. Of the homes of a key the cheapest one
// counts as its home, but for a request that is kept by another endpoint; kept is -1 when it is
// not. It stays there unless another endpoint is enough better. Others are asked in the order of
// the key whether they are as good as the best one. homes is how many the key has.
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
	return -1 // not reached: the best one is near itself
}

// kept returns the endpoint that keeps a request as its home would, -1 for none: prompts of its key
// went there when home was busy, it should have most of this one, and the only home less than half
// of that. To go home would be to compute it again. What prompts of several keys have in common
// does not count, or who was first with it would get them all.
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

// near reports whether a cost is so close to the best that leaving would not pay.
func (p *Placer) near(cost, best float64) bool {
	return !math.IsInf(cost, 1) && cost-best <= max(p.o.Leave*cost, p.o.LeaveBy.Seconds())
}

// homes is how many homes a key has: enough that none is busier with it than Options.Hot.
func (p *Placer) homes(key uint64, now time.Time) int {
	most := min(p.o.Homes, len(p.endpoints))
	if key == 0 || most == 1 {
		return 1
	}
	return min(max(1, int(math.Ceil(p.heat.share(key, now)/p.o.Hot))), most)
}

// Learn takes in what another proxy has published. Endpoints that are not known here are left out.
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

// Forget drops what an endpoint should have, as after its restart.
func (p *Placer) Forget(i int) {
	p.endpoints[i].table.clear()
	p.residences.drop(i)
	p.left.drop(i)
}
