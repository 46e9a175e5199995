package simulator

import (
	"net"
	"strconv"
	"sync"

	"signalbox/internal/simulator/kv"
)

// Network connects servers of one process that can take blocks from each other's main memory, as
// vLLM's offloading connector does over its p2p tier. Nothing is sent over a network: servers of
// different processes do not find each other. The zero value is ready, a nil Network has no
// servers. It is safe for concurrent use.
type Network struct {
	mu sync.Mutex // guards by
	by map[string]*kv.Tier
}

// join registers a server's main memory under an address; an empty address does nothing.
func (n *Network) join(addr string, t *kv.Tier) {
	if addr == "" {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.by == nil {
		n.by = map[string]*kv.Tier{}
	}
	n.by[addr] = t
}

// tier returns the main memory of the server at host and port, or nil.
func (n *Network) tier(host string, port int) *kv.Tier {
	if n == nil || host == "" {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.by[net.JoinHostPort(host, strconv.Itoa(port))]
}
