package proxy

import (
	"sync/atomic"

	"signalbox/proxy/affinity"
)

// Board tells other replicas what endpoints hold, and is told by them. Implementations are safe for concurrent use.
type Board interface {
	// Publish must not block. What is lost costs time only.
	Publish(model string, r affinity.Residence)
}

// notices are what goes to the board; until there is one, nowhere.
type notices struct{ board atomic.Pointer[Board] }

// notice is the notices of one model.
type notice struct {
	to    *notices
	model string
}

var _ affinity.Board = (*notice)(nil)

// Publish implements affinity.Board.
func (n *notice) Publish(r affinity.Residence) {
	if b := n.to.board.Load(); b != nil {
		(*b).Publish(n.model, r)
	}
}
