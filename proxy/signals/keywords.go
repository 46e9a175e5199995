package signals

import (
	"context"
	"sync"

	"signalbox/internal/signal"
	"signalbox/memory"
	"signalbox/memory/blob"
)

// keywordMemo remembers which keyword sets of one configuration occur in which contexts, so that
// each context is searched once.
type keywordMemo struct {
	mu   sync.Mutex // guards sets
	sets map[blob.Sum][]string
}

// maxKeywordMemo is the maximum size of the memo; a full one is cleared.
const maxKeywordMemo = 4096

// of returns the keyword sets in a context; ok is false if they could not be searched.
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
	v := found.Value(signal.Keyword)
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
