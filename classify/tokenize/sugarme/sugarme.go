// Package sugarme is a tokenizer engine for WordPiece files whose words are split by the model of
// github.com/sugarme/tokenizer. Normalisation, pre-tokenisation, added tokens, rows and offsets are
// those of classify/tokenize: of the library only the WordPiece model agrees with the reference
// implementation; its other models and normalizers return other ids, panic, or take quadratic time.
//
// It exists as a second opinion on the native engine; a test compares both. It is slower, it
// allocates for every word, and it reads no more than MaxBytes of a text.
//
// Its dependencies: the library (Apache-2.0, v0.3.0 of September 2025) imports net/http and a
// progress bar for its downloader, requires golang.org/x/text v0.25, which is vulnerable (this
// module's own requirement of v0.39 or later overrides it), and regexpset of 2020. None of that is
// called here: New takes bytes, and no environment variable, file or network is accessed. A program
// that does not import this package links none of it.
//
// An Engine is immutable and safe for concurrent use. The package starts no goroutines.
package sugarme

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/sugarme/tokenizer"
	"github.com/sugarme/tokenizer/model"
	"github.com/sugarme/tokenizer/model/wordpiece"

	"signalbox/classify/tokenize"
)

// Name is the engine's name in a bundle.
const Name = "sugarme"

// MaxBytes is the maximum number of bytes of a text that Encode reads; it cuts before a character.
const MaxBytes = tokenize.ChunkBytes

// ErrModel reports a file whose model is not WordPiece.
var ErrModel = errors.New("only WordPiece models are supported")

// Engine is a tokenizer with the library's WordPiece model.
type Engine struct{ *tokenize.Tokenizer }

var _ tokenize.Engine = (*Engine)(nil)

// Alternative returns the engine for tokenize.Open.
func Alternative() tokenize.Alternative {
	return tokenize.Alternative{Name: Name, New: func(file []byte) (tokenize.Engine, error) { return New(file, tokenize.Options{}) }}
}

// New reads a tokenizer.json. Its errors name the unusable part; ErrModel is one of them. The
// Splitter of o is ignored.
func New(file []byte, o tokenize.Options) (*Engine, error) {
	var config tokenizer.Config
	if err := json.Unmarshal(file, &config); err != nil {
		return nil, fmt.Errorf("sugarme: %w", err)
	}
	words, err := newWords(config.Model)
	if err != nil {
		return nil, fmt.Errorf("sugarme: model: %w", err)
	}
	o.Splitter = words
	t, err := tokenize.NewWith(file, o)
	if err != nil {
		return nil, err
	}
	return &Engine{t}, nil
}

// Encode replaces the contents of e by the tokens of the first MaxBytes of text.
func (n *Engine) Encode(text string, e *tokenize.Encoding) {
	if len(text) > MaxBytes {
		end := MaxBytes
		for end > MaxBytes-utf8.UTFMax && !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end]
	}
	n.Tokenizer.Encode(text, e)
}

// words is the library's model.
type words struct {
	model   wordpiece.WordPiece
	unknown int32
}

// newWords builds the model from the model section of the file.
func newWords(section map[string]any) (*words, error) {
	if kind, _ := section["type"].(string); kind != "WordPiece" {
		return nil, fmt.Errorf("type %q: %w", kind, ErrModel)
	}
	vocab := model.Vocab{}
	entries, _ := section["vocab"].(map[string]any)
	for token, id := range entries {
		n, ok := id.(float64)
		if !ok || n < 0 || n > 1<<24 || n != float64(int(n)) {
			return nil, fmt.Errorf("vocab: token %q has id %v", token, id)
		}
		vocab[token] = int(n)
	}
	unknown, _ := section["unk_token"].(string)
	id, ok := vocab[unknown]
	if !ok {
		return nil, fmt.Errorf("unk_token: %q is not in the vocabulary", unknown)
	}
	b := wordpiece.NewWordPieceBuilder().Vocab(&vocab).UnkToken(unknown)
	if prefix, ok := section["continuing_subword_prefix"].(string); ok {
		b = b.ContinuingSubwordPrefix(prefix)
	}
	if limit, ok := section["max_input_chars_per_word"].(float64); ok {
		b = b.MaxInputCharsPerWord(int(limit))
	}
	return &words{b.Build(), int32(id)}, nil
}

// Split implements tokenize.Splitter. The library counts code points; offsets here are bytes.
func (s *words) Split(word string, dst []tokenize.WordToken) []tokenize.WordToken {
	tokens, err := s.model.Tokenize(word)
	if err != nil { // only without an unknown token, which newWords rules out
		return append(dst, tokenize.WordToken{ID: s.unknown, End: len(word)})
	}
	at, count := 0, 0 // bytes and code points passed
	for _, t := range tokens {
		from := at
		for ; count < t.Offsets[1]; count++ {
			_, n := utf8.DecodeRuneInString(word[at:])
			at += n
		}
		dst = append(dst, tokenize.WordToken{ID: int32(t.Id), Start: from, End: at})
	}
	return dst
}
