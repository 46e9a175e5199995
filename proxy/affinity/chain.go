package affinity

import (
	"slices"

	"github.com/cespare/xxhash/v2"
)

// BlockBytes is how much text a block of a chain has: 60 to 100 tokens. What is lost by looking at
// whole blocks only is less than one block of vLLM on a CPU (128 tokens), and about four of those
// on a GPU (16). A text of 600 KiB has 2,400.
const BlockBytes = 256

// Chain is a prompt's text as a list of hashes. Each stands for 256 bytes of text and all before
// it; an incomplete last block is not in the list. The zero value is an empty chain. A Chain
// belongs to one goroutine while it is written to; after that any number may read it.
type Chain struct {
	blocks  []uint64
	pending xxhash.Digest
	begun   bool
	bytes   int
}

// Reset makes the chain empty and keeps its memory.
func (c *Chain) Reset() { c.blocks, c.begun, c.bytes = c.blocks[:0], false, 0 }

// Grow makes room for so many bytes of text more.
func (c *Chain) Grow(bytes int) { c.blocks = slices.Grow(c.blocks, bytes/BlockBytes+1) }

// Resume makes the chain a copy of from, such as the chain of a stored context, to be written on.
// Nothing of from's text is read again.
func (c *Chain) Resume(from *Chain) {
	c.blocks = append(c.blocks[:0], from.blocks...)
	c.pending, c.begun, c.bytes = from.pending, from.begun, from.bytes
}

// Message adds a message. Its end is not marked: text that is written after it continues it.
func (c *Chain) Message(role, text string) {
	c.Write("\x1e")
	c.Write(role)
	c.Write("\x1f")
	c.Write(text)
}

// Write adds text to the message before it.
func (c *Chain) Write(text string) {
	c.begin()
	for text != "" {
		n := min(BlockBytes-c.bytes%BlockBytes, len(text))
		_, _ = c.pending.WriteString(text[:n])
		text = text[n:]
		c.advance(n)
	}
}

// WriteBytes is Write of bytes, such as a message in the spelling of the request. They are not
// kept.
func (c *Chain) WriteBytes(text []byte) {
	c.begin()
	for len(text) > 0 {
		n := min(BlockBytes-c.bytes%BlockBytes, len(text))
		_, _ = c.pending.Write(text[:n])
		text = text[n:]
		c.advance(n)
	}
}

func (c *Chain) begin() {
	if !c.begun {
		c.pending.Reset()
		c.begun = true
	}
}

// advance notes n bytes more, which fill the block at most.
func (c *Chain) advance(n int) {
	if c.bytes += n; c.bytes%BlockBytes == 0 {
		h := c.pending.Sum64()
		c.blocks = append(c.blocks, h)
		c.pending.ResetWithSeed(h)
	}
}

// Blocks is the chain. It is valid until the chain is changed.
func (c *Chain) Blocks() []uint64 { return c.blocks }

// Bytes is how much text was written, roles and marks included.
func (c *Chain) Bytes() int { return c.bytes }
