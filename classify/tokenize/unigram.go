package tokenize

import (
	"bytes"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// unknownPenalty is the penalty of an unknown character compared with the rarest token
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

// node is the best path to one byte position of a word.
type node struct {
	score float64
	from  int32 // start of its last token; -1 if the position cannot be reached
	id    int32
}

func newUnigram(f *modelFile, hidden map[int32]bool) (*unigram, error) {
	u := &unigram{unknown: -1, byteFallback: f.ByteFallback}
	tokens, scores, err := scoredTokens(f.Vocab)
	if err != nil {
		return nil, err
	}
	u.scores = scores
	entries := make([]entry, 0, len(tokens))
	ids := make(map[string]int32, len(tokens))
	lowest := math.Inf(1)
	for i, token := range tokens {
		if !hidden[int32(i)] {
			entries = append(entries, entry{token, int32(i)})
		}
		ids[token] = int32(i)
		lowest = min(lowest, scores[i])
	}
	if len(tokens) == 0 {
		return nil, fmt.Errorf("model.vocab: empty")
	}
	if f.UnkID != nil {
		if *f.UnkID < 0 || *f.UnkID >= len(tokens) {
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

// scoredTokens decodes the rows [token, score] of a vocabulary one by one, because there are some
// hundred thousand of them and they delay the start of the program.
func scoredTokens(vocab []byte) (tokens []string, scores []float64, err error) {
	dec := jsontext.NewDecoder(bytes.NewReader(vocab), jsontext.AllowInvalidUTF8(true))
	next := func(want jsontext.Kind) (t jsontext.Token) {
		if err == nil {
			if t, err = dec.ReadToken(); err == nil && t.Kind() != want {
				err = fmt.Errorf("%v where %v should be", t.Kind(), want)
			}
		}
		return t
	}
	next(jsontext.KindBeginArray)
	if err != nil {
		return nil, nil, fmt.Errorf("model.vocab: %w", err)
	}
	for dec.PeekKind() != jsontext.KindEndArray {
		next(jsontext.KindBeginArray)
		token := next(jsontext.KindString).String()
		number, score := next(jsontext.KindNumber), 0.0
		if err == nil {
			score, err = number.Float()
		}
		next(jsontext.KindEndArray)
		if err != nil {
			return nil, nil, fmt.Errorf("model.vocab[%d]: want [token, score]: %w", len(scores), err)
		}
		tokens, scores = append(tokens, token), append(scores, score)
	}
	return tokens, scores, nil
}

func (u *unigram) split(w *work, s span) { u.cache.split(w, s, u.viterbi) }

// viterbi appends the tokens of word, which starts at byte base.
func (u *unigram) viterbi(w *work, word []byte, base int32) {
	if cap(w.lattice) <= len(word) {
		w.lattice = make([]node, max(len(word)+1, 2*cap(w.lattice)))
	}
	best := w.lattice[:len(word)+1]
	for i := range best {
		best[i] = node{from: -1}
	}
	for i := 0; i < len(word); {
		_, size := utf8.DecodeRune(word[i:])
		w.steps += u.extend(best, word, i, size)
		i += size
	}
	u.trace(w, word, base, best)
}

// extend tries every token that starts at byte i, where there is a character of size bytes, and
// returns the number of bytes examined.
func (u *unigram) extend(best []node, word []byte, i, size int) int {
	score, single := best[i].score, false
	n, k := int32(0), i
	for ; k < len(word); k++ {
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
	return k - i + 1
}

func (n *node) offer(o node) {
	if n.from < 0 || o.score > n.score {
		*n = o
	}
}

// trace appends the best path, with neighbouring unknown characters fused into one token.
func (u *unigram) trace(w *work, word []byte, base int32, best []node) {
	n := 0
	for end := len(word); end > 0; {
		p := u.tokenBefore(best, end)
		n += u.count(p, word)
		end = int(p.from)
	}
	w.pieces = atLeast(w.pieces, n)
	at := len(w.pieces) + n
	w.pieces = w.pieces[:at]
	for end := len(word); end > 0; {
		p := u.tokenBefore(best, end)
		end = int(p.from)
		k := u.count(p, word)
		at -= k
		if p.id == u.unknown && k > 0 && u.spelled(word[p.from:p.to]) {
			for i, c := range word[p.from:p.to] {
				w.pieces[at+i] = piece{u.byteIDs[c], base + p.from, base + p.to}
			}
		} else if k > 0 {
			w.pieces[at] = piece{p.id, base + p.from, base + p.to}
		}
	}
}

// tokenBefore returns the token of the best path that ends at end.
func (u *unigram) tokenBefore(best []node, end int) piece {
	p := piece{best[end].id, best[end].from, int32(end)}
	for p.id == u.unknown && p.from > 0 && best[p.from].id == u.unknown {
		p.from = best[p.from].from
	}
	return p
}

// count returns the number of tokens that p becomes: an unknown one may be spelled in bytes, or
// dropped.
func (u *unigram) count(p piece, word []byte) int {
	switch {
	case p.id != u.unknown:
		return 1
	case u.spelled(word[p.from:p.to]):
		return int(p.to - p.from)
	case u.unknown < 0:
		return 0
	}
	return 1
}

func (u *unigram) spelled(text []byte) bool { return u.byteFallback && allKnown(&u.byteIDs, text) }
