package affinity

import (
	"slices"

	"github.com/cespare/xxhash/v2"
)

// BlockBytes is the amount of text in a block of a chain: 60 to 100 tokens. Ignoring the last
// incomplete block loses less than one block of vLLM on a CPU (128 tokens), or about four of those
// on a GPU (16). A text of 600 KiB has 2,400 blocks.
const BlockBytes = 256

// Chain is a prompt's text as a list of hashes. Each hash covers BlockBytes of text and everything
// before it; an incomplete last block is not in the list. The zero value is an empty chain. A Chain
// belongs to one goroutine while it is written; after that, any number of goroutines may read it.
type Chain struct {
	blocks  []uint64
	pending xxhash.Digest
	begun   bool
	bytes   int
}

// Reset empties the chain and keeps its memory.
func (c *Chain) Reset() { c.blocks, c.begun, c.bytes = c.blocks[:0], false, 0 }

// Grow makes room for that many more bytes of text.
func (c *Chain) Grow(bytes int) { c.blocks = slices.Grow(c.blocks, bytes/BlockBytes+1) }

// Resume makes the chain a copy of from, such as the chain of a stored context, to continue
// writing. The text of from is not read again.
func (c *Chain) Resume(from *Chain) {
	c.blocks = append(c.blocks[:0], from.blocks...)
	c.pending, c.begun, c.bytes = from.pending, from.begun, from.bytes
}

// Message adds a message. Its end is not marked: text written after it continues it.
func (c *Chain) Message(role, text string) {
	c.Write("\x1e")
	c.Write(role)
	c.Write("\x1f")
	c.Write(text)
}

// Write adds text to the last message.
func (c *Chain) Write(text string) {
	c.begin()
	for text != "" {
		n := min(BlockBytes-c.bytes%BlockBytes, len(text))
		_, _ = c.pending.WriteString(text[:n])
		text = text[n:]
		c.advance(n)
	}
}

// WriteBytes is Write for bytes, such as a message as spelled in the request. It does not retain
// them.
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

// advance records n more bytes, which must not exceed the current block.
func (c *Chain) advance(n int) {
	if c.bytes += n; c.bytes%BlockBytes == 0 {
		h := c.pending.Sum64()
		c.blocks = append(c.blocks, h)
		c.pending.ResetWithSeed(h)
	}
}

// Blocks returns the hashes. The slice is valid until the chain changes.
func (c *Chain) Blocks() []uint64 { return c.blocks }

// Bytes returns the amount of text written, including roles and marks.
func (c *Chain) Bytes() int { return c.bytes }
