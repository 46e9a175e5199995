package classify

import (
	"context"
	"crypto/sha256"

	"signalbox/classify/pii"
	"signalbox/internal/signal"
)

// digest is the SHA-256 of a text. It is collision-resistant, so that a text sent by one tenant
// cannot change the verdict on a text of another.
type digest [sha256.Size]byte

// hashBytes is the amount of text hashed between two checks of the context.
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

// memoKey identifies a text and the way it was read. The engine is that of the memo.
type memoKey struct {
	text digest
	kind signal.Kind // what is told
	// for PII the signals that shared its windows, because they determine which are read
	kinds signal.Mask
	all   bool // every window was read
}

// topWindows is the number of windows of a text whose log-odds are remembered and used for the
// probability of a document.
const topWindows = 3

// memory is the verdict of one signal on one text, or, for Language, whether the text is in another
// one. It contains nothing about the sender.
type memory struct {
	top        [topWindows]float64 // the greatest log-odds of an attack, in descending order
	tops       int                 // number of entries in top
	scan       float64             // what the scan adds to the log-odds of the text
	probs      []float32           // of the labels, in the highest window
	start, end int                 // bytes of the sentence with the most weight
	spans      []pii.Span          // personal data found
	windows    int                 // that cover the text and its twin
	covering   int                 // those of them that cover the text
	read       int                 // number of windows read
	tongue     tongue              // for Language: whether the text is in another one
}

// Sizes that limit a memo.
const (
	memoryBytes = 400 // with its key, its list entry and its table entry
	spanBytes   = 64
	// maxMemoryShare limits one memory to 1/maxMemoryShare of a memo.
	maxMemoryShare = 64
)

func (m *memory) bytes() int { return memoryBytes + 4*len(m.probs) + spanBytes*len(m.spans) }

// memo remembers verdicts. The zero value is ready to use. It is safe for concurrent use.
type memo struct {
	whole lru[memoKey, *memory]
	parts lru[partKey, *part] // of texts that were not read completely
}

// get returns the memory for key. Its slices are shared and must not be modified.
func (m *memo) get(key *memoKey) (memory, bool) {
	v, ok := m.whole.get(*key)
	if !ok {
		return memory{}, false
	}
	return *v, true
}

// put remembers v, which must not be changed afterwards, and evicts the least recently used
// memories until no more than entries of the usual size are left.
func (m *memo) put(key *memoKey, v *memory, entries int) {
	room := entries * memoryBytes
	if size := v.bytes(); size > max(room/maxMemoryShare, memoryBytes+spanBytes) || entries <= 0 {
		return
	}
	kept := *v
	m.whole.put(*key, &kept, entries, room+room/2)
}
