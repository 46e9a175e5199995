// Package tokenize converts text to the token ids of a model, from the model's tokenizer.json.
//
// It implements the four model types that encoders and embedding models use: WordPiece, byte-level
// BPE, BPE over metaspace-marked text (SentencePiece BPE) and Unigram. The goal is identical ids to
// the reference implementation that wrote the file; the golden vectors under testdata are made with
// it. It does not decode or train.
//
// Encode returns the tokens of the text alone. Special tokens such as [CLS] belong to a row of a
// model, not to the text, so AppendRow and AppendPair add them according to the file's
// post-processor, and Windows returns the rows that cover a long text. The truncation and padding
// sections of the file are ignored: the caller decides both.
//
// Text is untrusted, so special tokens spelled out in it are treated as text: see Options. The
// reference recognises them by default.
//
// An unusable file is an error from New, never a panic, and Encode cannot fail: text that is not in
// the vocabulary becomes the unknown token, if the model has one. Time and memory are linear in the
// text up to a logarithm; tests count steps and bytes for the worst texts for each model.
//
// Internally, a text passes through normalizers, splitters and the model in turn. Each normalizer
// rewrites an aligned text, which records the origin of its bytes in the input, so that a token's
// offsets are known at the end whatever the steps did.
//
// Known differences from the reference: code points assigned after the Unicode version of either
// implementation may be classified differently, and if the charsmap step of the reference loses
// characters at the start of a text, its offsets are too small, whereas those of this package are
// correct.
//
// A Tokenizer is immutable and safe for concurrent use. The package starts no goroutines.
package tokenize

import (
	"sync"
)

// maxText keeps offsets within int32 even if normalisation makes the text longer.
const maxText = 1 << 27

// maxRetained is the maximum size of a text, in bytes, for which scratch buffers return to the
// pool.
const maxRetained = 1 << 18

// flushAt is the number of tokens that are collected before their offsets are looked up.
const flushAt = 1 << 12

// Encoding holds the tokens of one text: token i has id IDs[i] and represents text[Start[i]:End[i]]
// (byte offsets). The slices have equal length. Start never decreases. The zero value is ready to
// use; Encode reuses the capacity of the slices.
type Encoding struct {
	IDs   []int32
	Start []int32
	End   []int32

	total int // bytes of the text that is being encoded
	steps int // of the model's inner loops: what tests count to see that work is linear
}

// Len returns the number of tokens.
func (e *Encoding) Len() int { return len(e.IDs) }

// Reset empties e and keeps its capacity.
func (e *Encoding) Reset() { e.IDs, e.Start, e.End = e.IDs[:0], e.Start[:0], e.End[:0] }

// Tokenizer encodes text for one model. Make it with New.
type Tokenizer struct {
	normalizers []step
	splitters   []step
	model       model
	// spaces at the ends of a token are excluded from its offsets
	trim                         bool
	single                       template // the row of one text
	pair                         template // the row of two texts
	singleSpecials, pairSpecials int
	options                      Options
	literal                      *addedTokens // searched for in the original text
	folded                       *addedTokens // searched for after normalisation
	vocab                        int
	pool                         sync.Pool // of *work
}

// step transforms the text or the words of w.
type step func(w *work)

// model splits w.text.b[s.from:s.to] and appends to w.pieces, with offsets in w.text.b.
type model interface {
	split(w *work, s span)
}

// span is a half-open range of bytes.
type span struct{ from, to int }

// word is the part [from,to) of work.text.
type word struct{ from, to int32 }

// piece is one token of the normalised text.
type piece struct{ id, from, to int32 }

// work is the scratch space of one Encode.
type work struct {
	text, spare  aligned
	whole        aligned // the normalised text while parts of it are encoded
	words, parts []word
	pieces       []piece
	symbols      []symbol
	heap         []uint64
	lattice      []node
	tokens       []WordToken
	steps        int // see Encoding
	points       []point
	marks        []point
}

// emit adds the word [from,to) to the result of a splitting step, unless it is empty.
func (w *work) emit(from, to int) {
	if to > from {
		if len(w.parts) == cap(w.parts) {
			w.parts = room(w.parts, forecast(len(w.parts), to, max(len(w.text.b), to)))
		}
		w.parts = append(w.parts, word{int32(from), int32(to)})
	}
}

// VocabSize returns one more than the highest id that Encode, AppendRow or AppendPair can return.
func (t *Tokenizer) VocabSize() int { return t.vocab }

// Encode replaces the contents of e by the tokens of text, without special tokens. Invalid UTF-8
// counts as U+FFFD. Text beyond the first 128 MiB is ignored.
func (t *Tokenizer) Encode(text string, e *Encoding) {
	e.Reset()
	text = text[:min(len(text), maxText)]
	e.total = len(text)
	w, ok := t.pool.Get().(*work)
	if !ok {
		w = new(work)
	}
	w.steps = 0
	last := 0
	for at := 0; ; {
		m, found := t.literal.next(text, last, at)
		if !found {
			break
		}
		t.encodePart(w, text[last:m.from], last, e)
		t.add(e, piece{m.id, int32(m.from), int32(m.to)}, text, 0)
		last, at = m.to, m.to
	}
	t.encodePart(w, text[last:], last, e)
	e.steps = w.steps
	if len(text) <= maxRetained {
		t.pool.Put(w)
	}
}

// encodePart encodes text, which contains no literal added token and starts at byte base of the
// input.
func (t *Tokenizer) encodePart(w *work, text string, base int, e *Encoding) {
	if text == "" {
		return
	}
	w.text.load(text, base)
	for _, f := range t.normalizers {
		f(w)
	}
	if t.folded.empty() {
		t.encodeWords(w, text, base, e)
		return
	}
	w.whole, w.text = w.text, w.whole
	last, normal := 0, string(w.whole.b)
	var p place
	for at := 0; ; {
		m, found := t.folded.next(normal, last, at)
		if !found {
			break
		}
		w.text.set(&w.whole, last, m.from)
		t.encodeWords(w, text, base, e)
		from, _ := w.whole.origin(m.from, &p)
		_, to := w.whole.origin(m.to-1, &p)
		t.add(e, piece{m.id, from, to}, text, base)
		last, at = m.to, m.to
	}
	w.text.set(&w.whole, last, len(w.whole.b))
	t.encodeWords(w, text, base, e)
}

// encodeWords encodes w.text, the normalised form of (part of) text.
func (t *Tokenizer) encodeWords(w *work, text string, base int, e *Encoding) {
	if len(w.text.b) == 0 {
		return
	}
	w.words = append(w.words[:0], word{0, int32(len(w.text.b))})
	for _, f := range t.splitters {
		f(w)
	}
	w.pieces = w.pieces[:0]
	var start, end place
	for i, s := range w.words {
		t.model.split(w, span{int(s.from), int(s.to)})
		if len(w.pieces) < flushAt && i < len(w.words)-1 {
			continue
		}
		for _, p := range w.pieces {
			from, _ := w.text.origin(int(p.from), &start)
			_, to := w.text.origin(int(p.to-1), &end)
			t.add(e, piece{p.id, from, to}, text, base)
		}
		w.pieces = w.pieces[:0]
	}
}

// add appends a token of text, which starts at byte base of the input.
func (t *Tokenizer) add(e *Encoding, p piece, text string, base int) {
	if t.trim {
		for p.from < p.to && text[int(p.from)-base] == ' ' {
			p.from++
		}
		for p.from < p.to && text[int(p.to)-base-1] == ' ' {
			p.to--
		}
	}
	if len(e.IDs) == cap(e.IDs) {
		n := forecast(len(e.IDs), int(p.from), max(e.total, int(p.from)))
		e.IDs, e.Start, e.End = room(e.IDs, n), room(e.Start, n), room(e.End, n)
	}
	e.IDs, e.Start, e.End = append(e.IDs, p.id), append(e.Start, p.from), append(e.End, p.to)
}
