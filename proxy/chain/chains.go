package chain

import (
	"sync"

	"signalbox/internal/openai"
	"signalbox/memory"
	"signalbox/memory/blob"
	"signalbox/memory/ledger"
	"signalbox/memory/prefix"
	"signalbox/proxy/affinity"
)

// Memo remembers the chains of stored contexts, so that their text is not read again for each
// request that names them. It has two generations: when the young one is full, it replaces the old
// one. It is safe for concurrent use.
type Memo struct {
	mu            sync.Mutex // guards the fields below
	recent, older map[string]*affinity.Chain
}

// manyChains is the minimum number remembered; the maximum is twice that. The chain of a context of
// 600 KiB has 19 KiB.
const manyChains = 1024

// Known returns the chain of one context; nil if it is not remembered.
func (c *Memo) Known(sum blob.Sum) *affinity.Chain {
	c.mu.Lock()
	defer c.mu.Unlock()
	if found := c.recent[string(sum[:])]; found != nil {
		return found
	}
	return c.older[string(sum[:])]
}

// Of returns the chain of consecutive contexts. It must not be changed.
func (c *Memo) Of(snaps []*memory.Snapshot) *affinity.Chain {
	var space [256]byte
	name := space[:0]
	for _, s := range snaps {
		name = append(name, s.Sum[:]...)
	}
	c.mu.Lock()
	known := c.recent[string(name)]
	if known == nil {
		known = c.older[string(name)]
	}
	c.mu.Unlock()
	if known != nil {
		return known
	}
	chain := new(affinity.Chain)
	joined := false // to a previous text
	for _, s := range snaps {
		writeContext(chain, s, joined)
		joined = s.Kind == ledger.Text
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.recent) >= manyChains || c.recent == nil {
		c.older, c.recent = c.recent, make(map[string]*affinity.Chain)
	}
	c.recent[string(name)] = chain
	return chain
}

// writeContext adds a context in the form in which a client would have sent it: a text as a system
// message, joined to the text before it, messages unchanged. So a request with a reference matches
// one that was sent in full.
func writeContext(c *affinity.Chain, s *memory.Snapshot, joined bool) { //nolint:revive // a property of the text before
	if s.Kind == ledger.Messages {
		const head = `{"model":"none","messages":`
		list := s.Messages()
		body := append(append(append(make([]byte, 0, len(head)+len(list)+1), head...), list...), '}')
		if r, err := openai.ParseChat(body, openai.Limits{}); err == nil {
			WriteMessages(c, r)
			return
		}
	} else if text, err := s.Text(); err == nil {
		if joined {
			c.Write(prefix.Separator)
			c.Write(text)
		} else {
			c.Message("system", text)
		}
		return
	}
	for _, f := range s.Fragments {
		// unreachable: stored texts are always readable
		c.WriteBytes(f)
	}
}

// WriteMessages adds messages, independent of their spelling. Parts that are not text, such as
// images and tool calls, count as spelled.
func WriteMessages(c *affinity.Chain, r *openai.Request) {
	for i := range r.Messages {
		m := &r.Messages[i]
		c.Message(m.Role, m.Text)
		if m.HasImage || m.Text == "" {
			c.WriteBytes(r.Raw[m.Span.Start:m.Span.End])
		}
	}
}
