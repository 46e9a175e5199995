package tokenize

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// bpe merges neighbouring symbols, lowest rank first. The symbols of a word are its bytes
// (byte-level models) or its characters.
type bpe struct {
	vocab        map[string]int32
	merges       map[uint64]merged
	byteIDs      [256]int32 // byte-level: id of each byte; otherwise of <0xNN>; -1 when absent
	byteLevel    bool
	byteFallback bool
	fuseUnknown  bool
	cuts         bool  // no merge joins text to a mark after it, so text may be cut before marks
	wholeWords   bool  // a word in the vocabulary is not merged
	unknown      int32 // -1 if the model has none: unknown text is then dropped
	size         int   // one more than the highest id
	cache        wordCache
}

// spaceMark stands for a space in the vocabularies of SentencePiece.
const spaceMark = "\u2581"

// merged is the result of merging a pair of symbols, and its rank.
type merged struct{ rank, id int32 }

// symbol is a node of the list of symbols of one word; its text is word[from:to].
type symbol struct {
	id, from, to, prev, next int32
	// rank and result of the merge with the next symbol; rank is -1 if there is none
	rank, whole int32
}

func pair(left, right int32) uint64 { return uint64(uint32(left))<<32 | uint64(uint32(right)) }

func newBPE(f *modelFile, byteLevel bool, hidden map[int32]bool) (*bpe, error) { //nolint:revive // flag-parameter: a property of the model
	if f.Dropout != nil && *f.Dropout != 0 {
		return nil, errors.New("model.dropout: not supported")
	}
	if f.Suffix != nil && *f.Suffix != "" || f.Prefix != nil && *f.Prefix != "" {
		return nil, errors.New("model: subword prefix and suffix are not supported for BPE")
	}
	vocab, err := f.vocabMap()
	if err != nil {
		return nil, err
	}
	m := &bpe{
		vocab: vocab, byteLevel: byteLevel, byteFallback: f.ByteFallback, fuseUnknown: f.FuseUnk,
		wholeWords: f.IgnoreMerges, unknown: -1, size: maxOf(vocab),
	}
	m.cache.init()
	if f.UnkToken != nil && *f.UnkToken != "" {
		id, ok := vocab[*f.UnkToken]
		if !ok {
			return nil, fmt.Errorf("model.unk_token: %q is not in the vocabulary", *f.UnkToken)
		}
		m.unknown = id
	}
	if err := m.readMerges(f.Merges); err != nil {
		return nil, err
	}
	for k, v := range m.merges {
		if hidden[v.id] {
			delete(m.merges, k)
		}
	}
	if !byteLevel {
		m.byteIDs = byteTokens(vocab)
		dropHidden(m.vocab, hidden)
		return m, nil
	}
	m.vocab = bytesOf(vocab)
	for b := range m.byteIDs {
		m.byteIDs[b] = m.unknown
		if id, ok := m.vocab[string([]byte{byte(b)})]; ok {
			m.byteIDs[b] = id
		}
	}
	dropHidden(m.vocab, hidden)
	return m, nil
}

func dropHidden(vocab map[string]int32, hidden map[int32]bool) {
	if len(hidden) == 0 {
		return
	}
	for k, id := range vocab {
		if hidden[id] {
			delete(vocab, k)
		}
	}
}

// readMerges accepts both formats: ["a b", ...] and [["a", "b"], ...].
func (m *bpe) readMerges(raw json.RawMessage) error {
	var pairs [][]string
	if err := json.Unmarshal(raw, &pairs); err != nil {
		var lines []string
		if err := json.Unmarshal(raw, &lines); err != nil {
			return fmt.Errorf("model.merges: %w", err)
		}
		pairs = make([][]string, len(lines))
		for i, l := range lines {
			pairs[i] = strings.SplitN(l, " ", 2)
		}
	}
	m.merges = make(map[uint64]merged, len(pairs))
	_, m.cuts = m.vocab[spaceMark]
	m.cuts = m.cuts && !m.byteLevel && !m.wholeWords
	for i, p := range pairs {
		if len(p) != 2 {
			return fmt.Errorf("model.merges[%d]: want a pair", i)
		}
		m.cuts = m.cuts && (strings.HasSuffix(p[0], spaceMark) || !strings.HasPrefix(p[1], spaceMark))
		left, okLeft := m.vocab[p[0]]
		right, okRight := m.vocab[p[1]]
		whole, okWhole := m.vocab[p[0]+p[1]]
		if !okLeft || !okRight || !okWhole {
			return fmt.Errorf("model.merges[%d]: %q %q or their union is not in the vocabulary", i, p[0], p[1])
		}
		// of equal pairs the last applies, as in the reference
		m.merges[pair(left, right)] = merged{int32(i), whole}
	}
	return nil
}

// byteTokens finds the tokens <0x00> to <0xFF> that stand for single bytes.
func byteTokens(vocab map[string]int32) (ids [256]int32) {
	for b := range ids {
		ids[b] = -1
		if id, ok := vocab[fmt.Sprintf("<0x%02X>", b)]; ok {
			ids[b] = id
		}
	}
	return ids
}

// bytesOf converts a byte-level vocabulary, in which every byte is written as a printable character
// (openai/gpt-2, src/encoder.py, bytes_to_unicode), to plain bytes.
func bytesOf(vocab map[string]int32) map[string]int32 {
	spelt := make(map[rune]byte, 256)
	extra := rune(256)
	for b := range 256 {
		if b >= '!' && b <= '~' || b >= 0xA1 && b <= 0xAC || b >= 0xAE {
			spelt[rune(b)] = byte(b)
			continue
		}
		spelt[extra] = byte(b)
		extra++
	}
	out := make(map[string]int32, len(vocab))
next:
	for k, id := range vocab {
		b := make([]byte, 0, len(k))
		for _, r := range k {
			c, ok := spelt[r]
			if !ok {
				continue next // a special token, not text
			}
			b = append(b, c)
		}
		out[string(b)] = id
	}
	return out
}

// split cuts a text of many words, as Gemma's files produce, into its words if that does not change
// the result: words are short and often cached.
func (m *bpe) split(w *work, s span) {
	for m.cuts && s.from < s.to {
		at := s.from
		for bytes.HasPrefix(w.text.b[at:s.to], []byte(spaceMark)) {
			at += len(spaceMark)
		}
		n := bytes.Index(w.text.b[at:s.to], []byte(spaceMark))
		if n < 0 {
			break
		}
		m.splitWord(w, span{s.from, at + n})
		s.from = at + n
	}
	m.splitWord(w, s)
}

func (m *bpe) splitWord(w *work, s span) { m.cache.split(w, s, m.merge) }

// merge appends the tokens of word, which starts at byte base.
func (m *bpe) merge(w *work, word []byte, base int32) {
	if m.wholeWords {
		if id, ok := m.vocab[string(word)]; ok {
			w.pieces = append(w.pieces, piece{id, base, base + int32(len(word))})
			return
		}
	}
	if m.byteLevel {
		w.symbols = atLeast(w.symbols[:0], len(word))
		m.addBytes(w, word)
	} else {
		m.addRunes(w, word)
	}
	s := w.symbols
	if len(s) == 0 {
		return
	}
	w.heap = atLeast(w.heap[:0], len(s))
	for i := range s {
		s[i].prev, s[i].next = int32(i-1), int32(i+1)
	}
	s[len(s)-1].next = -1
	for i := range s {
		m.consider(w, int32(i))
	}
	left := len(s)
	w.steps += left
	for len(w.heap) > 0 {
		w.steps++
		left -= m.apply(w, popMerge(w))
	}
	w.pieces = atLeast(w.pieces, left)
	for i := int32(0); i >= 0; i = s[i].next {
		w.pieces = append(w.pieces, piece{s[i].id, base + s[i].from, base + s[i].to})
	}
}

// apply carries out a merge, unless an earlier one has used one of its symbols, and returns the
// number done.
func (m *bpe) apply(w *work, order uint64) int {
	s := w.symbols
	pos := int32(order) // its low half
	left := &s[pos]
	if left.rank != int32(order>>32) {
		return 0
	}
	right := &s[left.next]
	left.id, left.to, left.next = left.whole, right.to, right.next
	right.rank = -1
	if left.next >= 0 {
		s[left.next].prev = pos
	}
	m.consider(w, pos)
	if left.prev >= 0 {
		m.consider(w, left.prev)
	}
	return 1
}

// consider queues the merge of symbol i with its successor, if there is one.
func (m *bpe) consider(w *work, i int32) {
	left := &w.symbols[i]
	left.rank = -1
	if left.next < 0 {
		return
	}
	if v, ok := m.merges[pair(left.id, w.symbols[left.next].id)]; ok {
		left.rank, left.whole = v.rank, v.id
		pushMerge(w, pair(v.rank, i))
	}
}

func (m *bpe) addBytes(w *work, word []byte) {
	for i, c := range word {
		if id := m.byteIDs[c]; id >= 0 {
			w.symbols = append(w.symbols, symbol{id: id, from: int32(i), to: int32(i + 1)})
		}
	}
}

func (m *bpe) addRunes(w *work, word []byte) {
	w.symbols = atLeast(w.symbols[:0], min(len(word), 1<<13)+utf8.UTFMax)
	unknown := false // the last symbol is the unknown token
	for i := 0; i < len(word); {
		_, n := utf8.DecodeRune(word[i:])
		from, to := int32(i), int32(i+n)
		if len(w.symbols)+utf8.UTFMax > cap(w.symbols) {
			w.symbols = room(w.symbols, forecast(len(w.symbols), i, len(word)))
		}
		i += n
		if id, ok := m.vocab[string(word[from:to])]; ok {
			w.symbols = append(w.symbols, symbol{id: id, from: from, to: to})
			unknown = false
			continue
		}
		if m.byteFallback && allKnown(&m.byteIDs, word[from:to]) {
			for _, c := range word[from:to] {
				w.symbols = append(w.symbols, symbol{id: m.byteIDs[c], from: from, to: to})
			}
			unknown = false
			continue
		}
		if m.unknown < 0 {
			continue
		}
		if unknown && m.fuseUnknown {
			w.symbols[len(w.symbols)-1].to = to
		} else {
			w.symbols = append(w.symbols, symbol{id: m.unknown, from: from, to: to})
		}
		unknown = true
	}
}

func allKnown(ids *[256]int32, b []byte) bool {
	return !slices.ContainsFunc(b, func(c byte) bool { return ids[c] < 0 })
}

// pushMerge and popMerge keep w.heap a four-way heap of merges: the rank of the pair in the high
// half, the position of its left symbol in the low one. Its paths are half as long as those of a
// binary heap; container/heap would box every element.
func pushMerge(w *work, order uint64) {
	w.heap = push(w.heap, order)
	h := w.heap
	i := len(h) - 1
	for i > 0 {
		parent := (i - 1) / 4
		if h[parent] <= order {
			break
		}
		h[i] = h[parent]
		i = parent
	}
	h[i] = order
}

func popMerge(w *work) uint64 {
	top := w.heap[0]
	n := len(w.heap) - 1
	moved := w.heap[n]
	h := w.heap[:n]
	w.heap = h
	if n == 0 {
		return top
	}
	i := 0
	for {
		best := 4*i + 1
		if best >= n {
			break
		}
		for c := best + 1; c < min(4*i+5, n); c++ {
			if h[c] < h[best] {
				best = c
			}
		}
		if h[best] >= moved {
			break
		}
		h[i] = h[best]
		i = best
	}
	h[i] = moved
	return top
}
