package proxy

import (
	"context"
	"sync/atomic"
	"time"

	"signalbox/proxy/affinity"
)

// Board tells other replicas what endpoints hold; what they tell goes to Proxy.Learn.
// Implementations are safe for concurrent use.
type Board interface {
	// Publish must not block. What is lost costs time only.
	Publish(model string, r affinity.Residence)
	// Claim takes a name for a while and reports whether no other replica has it. In doubt it is
	// granted.
	Claim(ctx context.Context, name string, d time.Duration) bool
}

// UseBoard makes b the board. Call it once, before the first request.
func (p *Proxy) UseBoard(b Board) { p.state.Load().notices.board.Store(&b) }

// Learn takes in what another replica told of a model's endpoint.
func (p *Proxy) Learn(model string, r affinity.Residence) {
	st := p.acquire()
	defer st.release()
	if m, ok := st.byName[model]; ok && m.where.Placer != nil {
		m.where.Placer.Learn(time.Now(), r)
	}
}

// boardLink are what goes to the board; until there is one, nowhere.
type boardLink struct{ board atomic.Pointer[Board] }

// claim takes a name among all replicas.
func (n *boardLink) claim(ctx context.Context, name string, d time.Duration) bool {
	b := n.board.Load()
	return b == nil || (*b).Claim(ctx, name, d)
}

// notice is the notices of one model.
type notice struct {
	to    *boardLink
	model string
}

var _ affinity.Board = (*notice)(nil)

// Publish implements affinity.Board.
func (n *notice) Publish(r affinity.Residence) {
	if b := n.to.board.Load(); b != nil {
		(*b).Publish(n.model, r)
	}
}
