package affinity

import "time"

// Held is the part of a prompt that one endpoint should have in its cache.
type Held struct {
	Endpoint int // index of the endpoint
	Tokens   int // from the beginning of the prompt
	Basis    Basis
	Age      time.Duration // since this was last observed or predicted
}

// Held lists the endpoints that should have a part of a prompt, without placing it.
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

// age returns how long ago something was recorded that expires at the tick end.
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
