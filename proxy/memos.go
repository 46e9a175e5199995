package proxy

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"

	"github.com/maypok86/otter/v2"

	"signalbox/internal/signal"
	"signalbox/memory"
	"signalbox/memory/blob"
	"signalbox/proxy/tools"
)

// keywordMemo remembers which keyword sets of one configuration occur in which contexts, so that
// each is read once.
type keywordMemo struct {
	mu   sync.Mutex // guards sets
	sets map[blob.Sum][]string
}

// maxKeywordMemo bounds the memo; a full one starts anew.
const maxKeywordMemo = 4096

// of returns the keyword sets in a context; ok is false when they could not be looked for.
func (m *keywordMemo) of(ctx context.Context, c Classifier, s *memory.Snapshot) (sets []string, ok bool) {
	m.mu.Lock()
	sets, ok = m.sets[s.Sum]
	m.mu.Unlock()
	if ok {
		return sets, true
	}
	text, err := s.Text()
	if err != nil {
		return nil, false
	}
	var found signal.Set
	c.Extract(ctx, &signal.Text{LastUser: text, Segments: []signal.Segment{{
		Role: "user",
		Text: text, Origin: signal.OriginData,
	}}}, signal.MaskOf(signal.Keyword), &found)
	v := &found.Values[signal.Keyword]
	if v.State != signal.Known {
		return nil, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sets == nil || len(m.sets) >= maxKeywordMemo {
		m.sets = make(map[blob.Sum][]string)
	}
	m.sets[s.Sum] = v.Labels
	return v.Labels, true
}

// resultMemo remembers short forms of results by the digest of their text, holder and size.
type resultMemo = otter.Cache[[sha256.Size]byte, shortResult]

func newResultMemo() *resultMemo {
	return otter.Must(&otter.Options[[sha256.Size]byte, shortResult]{MaximumSize: shortResults})
}

// shortResult is a result of a tool as the model gets it.
type shortResult struct {
	text string
	kept time.Time // when the store was last asked to keep the whole one
}

// toolMemo remembers lists of tools and embeddings by the digest of their text.
type toolMemo struct {
	lists   *otter.Cache[[sha256.Size]byte, *tools.List]
	vectors *otter.Cache[[sha256.Size]byte, []float32]
}

func newToolMemo() *toolMemo {
	return &toolMemo{
		lists: otter.Must(&otter.Options[[sha256.Size]byte, *tools.List]{MaximumSize: toolLists}),
		vectors: otter.Must(&otter.Options[[sha256.Size]byte, []float32]{
			MaximumSize: toolVectors,
		}),
	}
}

// toolLists and toolVectors are how many lists and embeddings are remembered: 512 lists of some
// 60 KiB and 6 MiB.
const (
	toolLists   = 512
	toolVectors = 4096
)
