package classify

import (
	"context"
	"crypto/sha256"

	"signalbox/classify/pii"
	"signalbox/internal/signal"
)

// digest is the SHA-256 of a text. Nobody can make two texts with one digest, so that what one
// tenant sends cannot change what is said of the text of another.
type digest [sha256.Size]byte

// hashBytes is how much text is hashed between two looks at the context.
const hashBytes = 64 << 10

// digestOf hashes a text. Its error is that of ctx.
func digestOf(ctx context.Context, text string) (digest, error) {
	if len(text) <= hashBytes {
		return sha256.Sum256([]byte(text)), ctx.Err()
	}
	h := sha256.New()
	buf := make([]byte, hashBytes)
	for len(text) > 0 {
		if err := ctx.Err(); err != nil {
			return digest{}, err
		}
		n := copy(buf, text)
		h.Write(buf[:n])
		text = text[n:]
	}
	var d digest
	h.Sum(d[:0])
	return d, nil
}

// memoKey is a text and how it was read. The engine is that of the memo.
type memoKey struct {
	text  digest
	kind  signal.Kind // what is told
	kinds signal.Mask // of PII the signals that shared its windows, as they decide which are read
	all   bool        // every window was read
}

// topWindows is how many of the windows of a text are remembered, and count for a document at most.
const topWindows = 3

// memory is what one signal says of one text, or of Language whether it is in another one. It holds
// nothing of who sent it.
type memory struct {
	top        [topWindows]float64 // the greatest log-odds of an attack, the greatest first
	tops       int                 // how many there are
	scan       float64             // what the scan adds to the log-odds of the text
	probs      []float32           // of the labels, in the first of them
	start, end int                 // bytes of the sentence that weighs most
	spans      []pii.Span          // personal data
	windows    int                 // that cover the text and its twin
	covering   int                 // of them, those of the text
	read       int                 // of windows
	tongue     tongue              // of Language: whether the text is in another one
}

// The size of a memory, for the bound of a memo.
const (
	memoryBytes = 400 // with its key, its place in the list and in the table
	spanBytes   = 64
	// maxMemoryShare is the part of a memo that one memory may take: 1/maxMemoryShare.
	maxMemoryShare = 64
)

func (m *memory) bytes() int { return memoryBytes + 4*len(m.probs) + spanBytes*len(m.spans) }

// memo remembers what was read. The zero value is ready. It is safe for concurrent use.
type memo struct {
	whole lru[memoKey, *memory]
	parts lru[partKey, *part] // of texts that were not read to their end
}

// get returns what is remembered for key. Its slices are shared and must not be modified.
func (m *memo) get(key *memoKey) (memory, bool) {
	v, ok := m.whole.get(*key)
	if !ok {
		return memory{}, false
	}
	return *v, true
}

// put remembers v, which is not changed afterwards, and forgets what was not used for longest until
// no more than entries of usual size are left.
func (m *memo) put(key *memoKey, v *memory, entries int) {
	room := entries * memoryBytes
	if size := v.bytes(); size > max(room/maxMemoryShare, memoryBytes+spanBytes) || entries <= 0 {
		return
	}
	kept := *v
	m.whole.put(*key, &kept, entries, room+room/2)
}
