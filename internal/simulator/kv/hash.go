package kv

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// Hash identifies a full block and all that precede it. vLLM uses SHA-256 by default; 64 bits are
// sufficient for a simulation of some million blocks.
type Hash uint64

// Seed holds the values besides tokens that determine whether blocks are equal. It is part of the
// first block and, through the chain, of all that follow.
type Seed struct {
	Salt   string // cache_salt of the request
	LoRA   string // name of the adapter
	Effort string // reasoning_effort, which chat templates place before the messages
}

// hash separates the fields by their lengths: ("a","bc") differs from ("ab","c").
func (s Seed) hash() Hash {
	var d xxhash.Digest
	d.Reset()
	for _, field := range [...]string{s.Salt, s.LoRA, s.Effort} {
		var size [8]byte
		binary.LittleEndian.PutUint64(size[:], uint64(len(field)))
		_, _ = d.Write(size[:])
		_, _ = d.WriteString(field)
	}
	return Hash(d.Sum64())
}

// AppendChain appends the hashes of the full blocks of tokens to dst, in order. blockTokens is at
// least 1.
func AppendChain(dst []Hash, seed Seed, tokens []uint32, blockTokens int) []Hash {
	parent := seed.hash()
	var d xxhash.Digest
	bytes := make([]byte, 0, 256)
	for ; len(tokens) >= blockTokens; tokens = tokens[blockTokens:] {
		bytes = bytes[:0]
		for _, t := range tokens[:blockTokens] {
			bytes = binary.LittleEndian.AppendUint32(bytes, t)
		}
		d.ResetWithSeed(uint64(parent))
		_, _ = d.Write(bytes)
		parent = Hash(d.Sum64())
		dst = append(dst, parent)
	}
	return dst
}
