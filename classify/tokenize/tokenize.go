// Package tokenize turns text into the token ids of a model, from the model's tokenizer.json.
//
// It is an engine of its own for the four model types that encoders and embedding models use:
// WordPiece, byte-level BPE, BPE over metaspace-marked text (SentencePiece BPE) and Unigram. The
// aim is id-for-id agreement with the reference implementation that wrote the file; the golden
// vectors under testdata are made with it. It does not decode, train, or encode pairs.
//
// Encode gives the tokens of the text alone. Special tokens such as [CLS] belong to a row that a
// model reads, not to the text, so Row adds them and Windows says which rows cover a long text.
// The truncation and padding sections of the file are ignored: the caller decides both.
//
// A file that cannot be used is an error from New, never a panic, and Encode cannot fail: what
// the vocabulary does not know becomes the unknown token, where the model has one. Time and memory
// are linear in the text up to a logarithm. Special tokens that appear literally in the text are
// recognised, as in the reference implementation.
//
// Known differences: a run of more than thirty combining marks is broken up as the Unicode
// Stream-Safe Text Format asks (UAX 15, section 13), and code points that were assigned after
// the Unicode version of either implementation may be classified differently.
//
// A Tokenizer is immutable and safe for concurrent use. The package starts no goroutines.
package tokenize

import (
	"slices"
	"sync"
	"unicode/utf8"
)

// maxText keeps offsets inside int32 even when normalisation makes the text longer.
const maxText = 1 << 27

// maxRetained is the most bytes of text for which scratch buffers stay in the pool.
const maxRetained = 1 << 20

// Encoding holds the tokens of one text: token i has id IDs[i] and stands for
// text[Start[i]:End[i]] (byte offsets). The slices have equal length. Start never decreases.
// The zero value is ready; Encode reuses the capacity of the slices.
type Encoding struct {
	IDs   []int32
	Start []int32
	End   []int32
}

// Len is the number of tokens.
func (e *Encoding) Len() int { return len(e.IDs) }

// Reset empties e and keeps its capacity.
func (e *Encoding) Reset() { e.IDs, e.Start, e.End = e.IDs[:0], e.Start[:0], e.End[:0] }

func (e *Encoding) add(id, start, end int32) {
	e.IDs, e.Start, e.End = append(e.IDs, id), append(e.Start, start), append(e.End, end)
}

// Tokenizer encodes text for one model. Make it with New.
type Tokenizer struct {
	normalizers []step
	splitters   []step
	model       model
	trim        bool // spaces at the ends of a token do not belong to its offsets
	prefix      []int32
	suffix      []int32
	literal     *addedTokens // looked for in the text as it came
	folded      *addedTokens // looked for after normalisation
	vocab       int
	pool        sync.Pool // of *work
}

// step transforms the text or the words of w.
type step func(w *work)

// model splits w.text.b[s.from:s.to] and appends to w.pieces, with offsets in w.text.b.
type model interface {
	split(w *work, s span)
}

// span is a half-open range of bytes.
type span struct{ from, to int }

// piece is one token of the normalised text.
type piece struct{ id, from, to int32 }

// work is the scratch space of one Encode.
type work struct {
	text, spare  aligned
	whole        aligned // the normalised text while parts of it are encoded
	words, parts []span
	pieces       []piece
	spelled      []piece
	symbols      []symbol
	heap         []merge
	lattice      []node
}

// emit adds the word [from,to) to the result of a splitting step, unless it is empty.
func (w *work) emit(from, to int) {
	if to > from {
		w.parts = append(w.parts, span{from, to})
	}
}

// VocabSize is one more than the highest id that Encode or Row can return.
func (t *Tokenizer) VocabSize() int { return t.vocab }

// Specials is the number of special tokens that Row adds.
func (t *Tokenizer) Specials() int { return len(t.prefix) + len(t.suffix) }

// Encode replaces the contents of e by the tokens of text, without special tokens.
// Bytes that are not UTF-8 count as U+FFFD. Text past the first 128 MiB is not read.
func (t *Tokenizer) Encode(text string, e *Encoding) {
	e.Reset()
	text = text[:min(len(text), maxText)]
	w, ok := t.pool.Get().(*work)
	if !ok {
		w = new(work)
	}
	last := 0
	for at := 0; ; {
		m, found := t.literal.next(text, last, at)
		if !found {
			break
		}
		t.encodePart(w, text[last:m.from], last, e)
		e.add(m.id, int32(m.from), int32(m.to))
		last, at = m.to, m.to
	}
	t.encodePart(w, text[last:], last, e)
	if len(text) <= maxRetained {
		t.pool.Put(w)
	}
}

// encodePart encodes text, which holds no literal added token and starts at byte base of the input.
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
	for at := 0; ; {
		m, found := t.folded.next(normal, last, at)
		if !found {
			break
		}
		w.text.set(&w.whole, last, m.from)
		t.encodeWords(w, text, base, e)
		e.add(m.id, w.whole.from[m.from], w.whole.to[m.to-1])
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
	w.words = append(w.words[:0], span{0, len(w.text.b)})
	for _, f := range t.splitters {
		f(w)
	}
	w.pieces = w.pieces[:0]
	for _, s := range w.words {
		t.model.split(w, s)
	}
	for _, p := range w.pieces {
		from, to := w.text.from[p.from], w.text.to[p.to-1]
		if t.trim {
			for from < to && text[int(from)-base] == ' ' {
				from++
			}
			for from < to && text[int(to)-base-1] == ' ' {
				to--
			}
		}
		e.add(p.id, from, to)
	}
}

// AppendRow appends one model row to dst: the leading special tokens, ids, the trailing special tokens.
func (t *Tokenizer) AppendRow(dst []int64, ids []int32) []int64 {
	for _, part := range [...][]int32{t.prefix, ids, t.suffix} {
		for _, id := range part {
			dst = append(dst, int64(id))
		}
	}
	return dst
}

// Windows returns the ranges [from,to) of n text tokens that rows of at most size tokens, special
// tokens included, have to hold to cover them all; each starts stride tokens after the one before
// it, and the last is the first that reaches the end. There is always at least one, empty when n
// is 0. A size too small for one text token counts as Specials()+1, and a stride outside
// [1, size-Specials()] as the widest without a gap. Truncation is the first window.
func (t *Tokenizer) Windows(n, size, stride int) Windows {
	room := max(size-t.Specials(), 1)
	if stride < 1 || stride > room {
		stride = room
	}
	return Windows{n: n, room: room, stride: stride}
}

// Windows describes how rows cover a text. See Tokenizer.Windows.
type Windows struct{ n, room, stride int }

// Len is the number of windows.
func (w Windows) Len() int {
	if w.n <= w.room {
		return 1
	}
	return 1 + (w.n-w.room+w.stride-1)/w.stride
}

// At returns the token range of window i, with 0 <= i < Len().
func (w Windows) At(i int) (from, to int) {
	from = i * w.stride
	return from, min(from+w.room, w.n)
}

// aligned is text in which every byte knows the input range [from,to) that it came from.
type aligned struct {
	b        []byte
	from, to []int32
}

func (a *aligned) reset() { a.b, a.from, a.to = a.b[:0], a.from[:0], a.to[:0] }

// prepare empties a and makes room for a text as long as src.
func (a *aligned) prepare(src *aligned) {
	a.reset()
	a.grow(len(src.b))
}

func (a *aligned) grow(n int) {
	a.b, a.from, a.to = slices.Grow(a.b, n), slices.Grow(a.from, n), slices.Grow(a.to, n)
}

// load replaces a by text, which starts at byte base of the input.
func (a *aligned) load(text string, base int) {
	a.reset()
	a.grow(len(text))
	for i := 0; i < len(text); {
		if c := text[i]; c < utf8.RuneSelf {
			a.byte(c, int32(base+i), int32(base+i+1))
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		a.rune(r, int32(base+i), int32(base+i+n))
		i += n
	}
}

// set replaces a by src[from:to].
func (a *aligned) set(src *aligned, from, to int) {
	a.reset()
	a.copy(src, from, to)
}

func (a *aligned) copy(src *aligned, from, to int) {
	a.b = append(a.b, src.b[from:to]...)
	a.from = append(a.from, src.from[from:to]...)
	a.to = append(a.to, src.to[from:to]...)
}

func (a *aligned) byte(c byte, from, to int32) {
	a.b, a.from, a.to = append(a.b, c), append(a.from, from), append(a.to, to)
}

func (a *aligned) rune(r rune, from, to int32) {
	n := len(a.b)
	a.b = utf8.AppendRune(a.b, r)
	for range len(a.b) - n {
		a.from, a.to = append(a.from, from), append(a.to, to)
	}
}

func (a *aligned) string(s string, from, to int32) {
	a.b = append(a.b, s...)
	for range len(s) {
		a.from, a.to = append(a.from, from), append(a.to, to)
	}
}

// flip makes what a step wrote to w.spare the text.
func (w *work) flip() { w.text, w.spare = w.spare, w.text }
