package tokenize

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// charsMap is the normalization table of SentencePiece: a double-array trie in the layout of
// Darts-clone (github.com/s-yata/darts-clone, include/darts.h) from strings to offsets in blob,
// which contains the NUL-terminated replacements.
type charsMap struct {
	units []uint32
	blob  []byte
}

// longestKey is the maximum length of a grapheme cluster, in bytes, that the reference looks up as
// a whole.
const longestKey = 5

func newCharsMap(encoded string) (*charsMap, error) {
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, err
	}
	if len(data) < 8 {
		return nil, errors.New("truncated")
	}
	size := int64(binary.LittleEndian.Uint32(data))
	if size%4 != 0 || size == 0 || size > int64(len(data)-4) {
		return nil, errors.New("size of the trie does not fit")
	}
	c := &charsMap{units: make([]uint32, size/4), blob: data[4+size:]}
	for i := range c.units {
		c.units[i] = binary.LittleEndian.Uint32(data[4+4*i:])
	}
	return c, nil
}

// unitOffset is the distance to the children of a unit.
func unitOffset(u uint32) uint32 { return (u >> 10) << ((u & (1 << 9)) >> 6) }

// lookup returns the replacement of the shortest key that is a prefix of s. The reference takes the
// first match that its trie reports, which is the shortest.
func (c *charsMap) lookup(s []byte) ([]byte, bool) {
	id := unitOffset(c.units[0])
	for _, b := range s {
		if b == 0 {
			return nil, false
		}
		id ^= uint32(b)
		if int64(id) >= int64(len(c.units)) {
			return nil, false
		}
		u := c.units[id]
		if u&(1<<31|0xFF) != uint32(b) {
			return nil, false
		}
		id ^= unitOffset(u)
		if int64(id) >= int64(len(c.units)) {
			return nil, false
		}
		if u>>8&1 == 1 {
			return c.replacement(c.units[id] &^ (1 << 31))
		}
	}
	return nil, false
}

func (c *charsMap) replacement(at uint32) ([]byte, bool) {
	if int64(at) > int64(len(c.blob)) {
		return nil, false
	}
	rest := c.blob[at:]
	for i, b := range rest {
		if b == 0 {
			return rest[:i], utf8.Valid(rest[:i])
		}
	}
	return rest, utf8.Valid(rest)
}

// step replaces whole grapheme clusters if the table contains them, otherwise single code points.
func (c *charsMap) step(w *work) {
	dst, src := &w.spare, &w.text
	dst.prepare(len(src.b))
	var p place
	state := -1
	for i := 0; i < len(src.b); {
		dst.expect(i, len(src.b))
		rest := src.b[i:]
		// ASCII before ASCII is a cluster of its own, CR LF aside.
		if rest[0] < utf8.RuneSelf && (len(rest) == 1 || rest[1] < utf8.RuneSelf && rest[0] != '\r') {
			c.put(w, i, 1, &p)
			i++
			state = -1
			continue
		}
		var cluster []byte
		cluster, _, _, state = uniseg.FirstGraphemeCluster(rest, state)
		if len(cluster) <= longestKey {
			if r, ok := c.lookup(cluster); ok {
				spread(w, r, i, i+len(cluster), &p)
				i += len(cluster)
				continue
			}
		}
		for end := i + len(cluster); i < end; {
			_, n := utf8.DecodeRune(src.b[i:end])
			c.put(w, i, n, &p)
			i += n
		}
	}
	w.flip()
}

// put writes the replacement of the n bytes at i, or the bytes themselves.
func (c *charsMap) put(w *work, i, n int, p *place) {
	r, ok := c.lookup(w.text.b[i : i+n])
	if !ok {
		w.spare.copy(&w.text, i, i+n, p)
		return
	}
	spread(w, r, i, i+n, p)
}

// spread replaces [i,end) by replacement. As in the reference, characters on both sides correspond
// in order, and surplus ones belong to the last one.
func spread(w *work, replacement []byte, i, end int, p *place) {
	for len(replacement) > 0 {
		from, to := w.text.origin(i, p)
		r, n := utf8.DecodeRune(replacement)
		w.spare.rune(r, from, to)
		replacement = replacement[n:]
		if _, size := utf8.DecodeRune(w.text.b[i:end]); i+size < end {
			i += size
		}
	}
}
