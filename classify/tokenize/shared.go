package tokenize

import (
	"crypto/sha256"
	"sync"
	"weak"
)

// inUse holds the tokenizers of Open that somebody uses, by the digest of their file, as weak
// pointers: bundles often have the vocabulary of another one, and one that is opened again has its
// own.
//
//nolint:gochecknoglobals // what is equal is kept once in the process
var inUse sync.Map

// shared is New, except that equal files share one Tokenizer while it is in use.
func shared(file []byte) (*Tokenizer, error) {
	key := sha256.Sum256(file)
	if p, ok := inUse.Load(key); ok {
		if t := p.(weak.Pointer[Tokenizer]).Value(); t != nil { //nolint:forcetypeassert,errcheck // the map holds nothing else
			return t, nil
		}
	}
	t, err := New(file)
	if err != nil {
		return nil, err
	}
	inUse.Store(key, weak.Make(t))
	return t, nil
}
