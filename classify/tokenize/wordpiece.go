package tokenize

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// wordPiece splits a word greedily into the longest vocabulary entries, all but the first marked
// with a continuation prefix. A word that cannot be split, or is too long, is one unknown token.
type wordPiece struct {
	words    map[string]int32
	trie     *trie
	inside   int32 // node of trie after the continuation prefix, -1 if no entry continues a word
	unknown  int32
	maxRunes int
}

func newWordPiece(f *modelFile, hidden map[int32]bool) (*wordPiece, error) {
	vocab, err := f.vocabMap()
	if err != nil {
		return nil, err
	}
	if f.UnkToken == nil {
		return nil, errors.New("model.unk_token: missing")
	}
	unknown, ok := vocab[*f.UnkToken]
	if !ok {
		return nil, fmt.Errorf("model.unk_token: %q is not in the vocabulary", *f.UnkToken)
	}
	prefix := "##"
	if f.Prefix != nil {
		prefix = *f.Prefix
	}
	m := &wordPiece{words: vocab, unknown: unknown, maxRunes: 100}
	if f.MaxWordRunes != nil {
		m.maxRunes = *f.MaxWordRunes
	}
	dropHidden(vocab, hidden)
	entries := make([]entry, 0, len(vocab))
	for k, id := range vocab {
		entries = append(entries, entry{k, id})
	}
	m.trie = newTrie(entries)
	m.inside = m.trie.find(prefix)
	return m, nil
}

func (m *wordPiece) split(w *work, s span) {
	word := w.text.b[s.from:s.to]
	if len(word) > m.maxRunes && utf8.RuneCount(word) > m.maxRunes {
		w.pieces = append(w.pieces, piece{m.unknown, int32(s.from), int32(s.to)})
		return
	}
	if id, ok := m.words[string(word)]; ok { // most words of English text
		w.pieces = append(w.pieces, piece{id, int32(s.from), int32(s.to)})
		return
	}
	kept := len(w.pieces)
	node := int32(0)
	for i := 0; i < len(word); {
		id, n := int32(-1), 0
		if node >= 0 {
			id, n = m.trie.longest(node, word[i:])
		}
		if id < 0 {
			w.pieces = append(w.pieces[:kept], piece{m.unknown, int32(s.from), int32(s.to)})
			return
		}
		w.pieces = append(w.pieces, piece{id, int32(s.from + i), int32(s.from + i + n)})
		w.steps += n + 1
		i += n
		node = m.inside
	}
}
