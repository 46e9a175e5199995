package tokenize

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"
)

// unknownPenalty is how much less likely than the rarest token an unknown character is
// (SentencePiece, src/unigram_model.cc, kUnkPenalty).
const unknownPenalty = 10

// unigram splits a word into the tokens with the highest sum of log probabilities.
type unigram struct {
	trie         *trie
	scores       []float64
	unknown      int32 // -1 when the model has none
	unknownScore float64
	byteIDs      [256]int32
	byteFallback bool
	cache        wordCache
}

// node is the best way to reach one byte position of a word.
type node struct {
	score float64
	from  int32 // where its last token starts; -1 when the position cannot be reached
	id    int32
}

func newUnigram(f *modelFile) (*unigram, error) {
	var rows []json.RawMessage
	if err := json.Unmarshal(f.Vocab, &rows); err != nil {
		return nil, fmt.Errorf("model.vocab: %w", err)
	}
	u := &unigram{scores: make([]float64, len(rows)), unknown: -1, byteFallback: f.ByteFallback}
	entries := make([]entry, len(rows))
	ids := make(map[string]int32, len(rows))
	lowest := math.Inf(1)
	for i, raw := range rows {
		var token string
		row := [2]any{&token, &u.scores[i]}
		if err := json.Unmarshal(raw, &row); err != nil {
			return nil, fmt.Errorf("model.vocab[%d]: want [token, score]: %w", i, err)
		}
		entries[i] = entry{token, int32(i)}
		ids[token] = int32(i)
		lowest = min(lowest, u.scores[i])
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("model.vocab: empty")
	}
	if f.UnkID != nil {
		if *f.UnkID < 0 || *f.UnkID >= len(rows) {
			return nil, fmt.Errorf("model.unk_id: %d is not in the vocabulary", *f.UnkID)
		}
		u.unknown = int32(*f.UnkID)
	}
	u.trie = newTrie(entries)
	u.unknownScore = lowest - unknownPenalty
	u.byteIDs = byteTokens(ids)
	u.cache.init()
	return u, nil
}

func (u *unigram) split(w *work, s span) {
	word := w.text.b[s.from:s.to]
	if len(word) > cachedWord {
		u.viterbi(w, word, int32(s.from))
		return
	}
	known, slot := u.cache.get(word)
	if known == nil {
		start := len(w.pieces)
		u.viterbi(w, word, 0)
		known = slot.put(word, w.pieces[start:])
		w.pieces = w.pieces[:start]
	}
	for _, p := range known.pieces {
		w.pieces = append(w.pieces, piece{p.id, p.from + int32(s.from), p.to + int32(s.from)})
	}
}

// viterbi appends the tokens of word, which starts at byte base.
func (u *unigram) viterbi(w *work, word []byte, base int32) {
	if cap(w.lattice) <= len(word) {
		w.lattice = make([]node, len(word)+1)
	}
	best := w.lattice[:len(word)+1]
	for i := range best {
		best[i] = node{from: -1}
	}
	for i := 0; i < len(word); {
		_, size := utf8.DecodeRune(word[i:])
		u.extend(best, word, i, size)
		i += size
	}
	u.trace(w, word, base, best)
}

// extend offers every token that starts at byte i, where a character of size bytes stands.
func (u *unigram) extend(best []node, word []byte, i, size int) {
	score, single := best[i].score, false
	n := int32(0)
	for k := i; k < len(word); k++ {
		if n = u.trie.child(n, word[k]); n == 0 {
			break
		}
		id := u.trie.value[n]
		if id < 0 {
			continue
		}
		best[k+1].offer(node{score + u.scores[id], int32(i), id})
		single = single || k+1-i == size
	}
	if !single {
		best[i+size].offer(node{score + u.unknownScore, int32(i), u.unknown})
	}
}

func (n *node) offer(o node) {
	if n.from < 0 || o.score > n.score {
		*n = o
	}
}

// trace appends the best path, neighbouring unknown characters fused into one token.
func (u *unigram) trace(w *work, word []byte, base int32, best []node) {
	start := len(w.pieces)
	for end := len(word); end > 0; {
		n := best[end]
		last := len(w.pieces) - 1
		if n.id == u.unknown && last >= start && w.pieces[last].id == u.unknown {
			w.pieces[last].from = n.from
		} else {
			w.pieces = append(w.pieces, piece{n.id, n.from, int32(end)})
		}
		end = int(n.from)
	}
	path := w.pieces[start:]
	w.spelled = w.spelled[:0]
	for _, p := range slices.Backward(path) {
		text := word[p.from:p.to]
		p.from, p.to = p.from+base, p.to+base
		switch {
		case p.id != u.unknown:
			w.spelled = append(w.spelled, p)
		case u.byteFallback && allKnown(&u.byteIDs, text):
			for _, c := range text {
				w.spelled = append(w.spelled, piece{u.byteIDs[c], p.from, p.to})
			}
		case u.unknown >= 0:
			w.spelled = append(w.spelled, p)
		}
	}
	w.pieces = append(w.pieces[:start], w.spelled...)
}
