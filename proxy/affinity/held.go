package affinity

import "time"

// Held is what one endpoint should have of a prompt.
type Held struct {
	Endpoint int // index
	Tokens   int // of the prompt, from its beginning
	Basis    Basis
	Age      time.Duration // since that was last seen or predicted
}

// Held lists the endpoints that should have something of a prompt, without placing it.
func (p *Placer) Held(now time.Time, r *Request) []Held {
	var out []Held
	var told [MaxEndpoints]int32
	var bids [MaxEndpoints]bid
	tokens, ticks := p.look(&bids, now, r), p.ticks(now)
	if r.Key != 0 {
		p.residences.read(&told, r.Key, ticks)
	}
	for i := range p.endpoints {
		b := &bids[i]
		h := Held{Endpoint: i, Tokens: r.known(b, tokens), Basis: b.basis}
		if b.held > 0 {
			end := p.endpoints[i].table.end(r.Class, r.Blocks[b.held-1])
			h.Age = p.age(b.basis, end, ticks)
		}
		if int(told[i]) > h.Tokens {
			h = Held{Endpoint: i, Tokens: min(int(told[i]), tokens), Basis: Predicted}
		}
		if h.Tokens = p.endpoints[i].usable(h.Tokens, tokens); h.Tokens > 0 {
			out = append(out, h)
		}
	}
	return out
}

// age is how long ago something was noted that holds until a tick.
func (p *Placer) age(basis Basis, end, now uint32) time.Duration {
	held := p.o.Speculative
	switch basis {
	case Predicted:
		held = p.o.Predicted
	case Confirmed:
		held = p.o.Confirmed
	case Unknown, Speculative:
	}
	return max(held-time.Duration(end-min(end, now))*tick, 0)
}
