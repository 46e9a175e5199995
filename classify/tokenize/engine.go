package tokenize

import "fmt"

// Engine is the interface of a tokenizer for classification. *Tokenizer is the native one. The
// methods are safe for concurrent use and documented at those of Tokenizer.
type Engine interface {
	Rows
	// Encode replaces the contents of e by the tokens of text, without special tokens.
	Encode(text string, e *Encoding)
	// Windows returns the rows that cover a long text.
	Windows(n, size, stride int) Windows
	// VocabSize is one more than the highest id.
	VocabSize() int
}

// Rows lays out the input rows of a model.
type Rows interface {
	// AppendRow appends the row of one text.
	AppendRow(dst []int64, ids []int32) []int64
	// Specials is the number of special tokens that AppendRow adds.
	Specials() int
	// AppendPair appends the row of two texts and its segment ids.
	AppendPair(ids, types []int64, a, b []int32) (rowIDs, rowTypes []int64)
	// PairSpecials is the number of special tokens that AppendPair adds.
	PairSpecials() int
}

var _ Engine = (*Tokenizer)(nil)

// Native is the name of the engine of this package.
const Native = "native"

// ChunkBytes is the minimum number of bytes of a text that every engine reads at once.
const ChunkBytes = 64 << 10

// Alternative is an engine of another package, such as classify/tokenize/sugarme. This package does
// not import them: a caller that uses one passes it to Open.
type Alternative struct {
	Name string
	New  func(file []byte) (Engine, error)
}

// Open reads a tokenizer.json with the named engine: "native" or "" for the one of this package, or
// the name of one of the alternatives. The native engine for equal files is shared while it is in
// use.
func Open(engine string, file []byte, others ...Alternative) (Engine, error) {
	if engine == "" || engine == Native {
		return shared(file)
	}
	for _, o := range others {
		if o.Name == engine {
			return o.New(file)
		}
	}
	return nil, fmt.Errorf("tokenizer: engine %q is not available", engine)
}

// WordToken is a token of a word: bytes [Start,End) of it.
type WordToken struct {
	ID         int32
	Start, End int
}

// Splitter splits words instead of the file's model. Split appends the tokens of word, which is
// normalised and not empty, to dst, in order and without gaps that lose text. It must be safe for
// concurrent use and must not retain either argument.
type Splitter interface {
	Split(word string, dst []WordToken) []WordToken
}

// foreign is a model that uses a Splitter. Hidden tokens become the unknown one.
type foreign struct {
	splitter Splitter
	hidden   map[int32]bool
	unknown  int32
}

func (f *foreign) split(w *work, s span) {
	w.tokens = f.splitter.Split(string(w.text.b[s.from:s.to]), w.tokens[:0])
	for _, t := range w.tokens {
		if t.Start < 0 || t.End <= t.Start || t.End > s.to-s.from {
			continue
		}
		if f.hidden[t.ID] {
			t.ID = f.unknown
		}
		w.pieces = append(w.pieces, piece{t.ID, int32(s.from + t.Start), int32(s.from + t.End)})
	}
}
