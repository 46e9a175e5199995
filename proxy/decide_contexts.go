package proxy

import (
	"context"
	"slices"
	"strings"
	"sync"

	"signalbox/internal/signal"
	"signalbox/memory"
	"signalbox/memory/blob"
)

// asked are signals of what a request is about that are read from its question alone: an intent, and the language of
// the answer, are the client's and not those of a document.
const askedSignals = 1<<signal.Language | 1<<signal.Embedding | 1<<signal.Intent

// topicSignals are read from the question and what the contexts say in short.
const topicSignals = 1<<signal.Domain | 1<<signal.Complexity | 1<<signal.FactCheck

// maxSkeleton is how much of the contexts stands behind the question where topics are read, in bytes: it is to tell a
// question about a contract from one about a proof, and not to outweigh the question.
const maxSkeleton = 1 << 10

// skeleton is what the contexts say in short; empty when none does.
func (r *resolved) skeleton() string {
	if !r.named() {
		return ""
	}
	var b strings.Builder
	for _, s := range r.snaps {
		if s.Derived.Skeleton != "" && b.Len() < maxSkeleton {
			b.WriteString(s.Derived.Skeleton)
			b.WriteByte('\n')
		}
	}
	return head(strings.TrimSpace(b.String()), maxSkeleton)
}

// head is the front of s, whole characters of at most n bytes.
func head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}

// classifyWith is classify for a request that names contexts: what it is about is read from its question and what
// the contexts say in short.
func (d *decision) classifyWith(ctx context.Context, need signal.Mask, how extent, still func() signal.Mask) {
	in := d.contexts.skeleton()
	if in == "" || need&topicSignals == 0 {
		d.classify(ctx, &d.text, need, how, still)
		return
	}
	own := need & askedSignals
	if own != 0 {
		d.classify(ctx, &d.text, own, how, func() signal.Mask { return still() & own })
	}
	rest, both := need&^own, d.text
	both.LastUser = strings.TrimSpace(both.LastUser + "\n\n" + in)
	d.classify(ctx, &both, rest, how, func() signal.Mask { return still() & rest })
}

// addStored adds to the signals of need what was found in the contexts when they were stored: their text is not read
// again.
func (d *decision) addStored(ctx context.Context, need signal.Mask) {
	if need.Has(signal.Jailbreak) {
		d.contexts.addJailbreak(&d.set.Values[signal.Jailbreak])
	}
	if need.Has(signal.PII) {
		d.contexts.addPII(&d.set.Values[signal.PII])
	}
	if need.Has(signal.Keyword) {
		d.addKeywords(ctx)
	}
}

// sourceStored is the source of a value that stored verdicts decided.
const sourceStored = "stored context"

// addJailbreak makes v the higher one of what was read of the request and what is stored of its contexts. Without a
// stored verdict v speaks of a part only.
func (r *resolved) addJailbreak(v *signal.Value) {
	stored := r.verdicts.Jailbreak
	switch {
	case v.State == signal.NotExtracted:
	case stored == nil:
		v.Partial = v.State == signal.Known
	case v.State == signal.Known && v.Score >= *stored, v.State == signal.Unknown && *stored < 0.5:
	default:
		p := float32(*stored)
		v.Partial = v.State == signal.Unknown // the rest may be worse
		v.State, v.Reason, v.Score, v.Source = signal.Known, signal.ReasonNone, *stored, sourceStored
		v.Labels, v.Probs, v.Label = []string{"benign", "jailbreak"}, []float32{1 - p, p}, "benign"
		if p >= 0.5 {
			v.Label = "jailbreak"
		}
	}
}

// addPII adds the types of personal data that are stored of the contexts. Without a stored verdict v speaks of a part
// only.
func (r *resolved) addPII(v *signal.Value) {
	stored := r.verdicts
	switch {
	case v.State == signal.NotExtracted, v.State == signal.Unknown && len(stored.PII) == 0:
		return
	case stored.PII == nil:
		v.Partial = true
		return
	case v.State == signal.Unknown:
		*v = signal.Value{State: signal.Known, Partial: true, Source: sourceStored, Elapsed: v.Elapsed}
	}
	labels, probs := slices.Clone(v.Labels), slices.Clone(v.Probs)
	for len(probs) < len(labels) {
		probs = append(probs, 1) // found by a pattern
	}
	for _, kind := range stored.Types() {
		score := float32(stored.PII[kind])
		if i := slices.Index(labels, kind); i >= 0 {
			probs[i] = max(probs[i], score)
			continue
		}
		labels, probs = append(labels, kind), append(probs, score)
	}
	v.Labels, v.Probs = labels, probs
	for i, p := range probs {
		if v.Label == "" || float64(p) > v.Score {
			v.Label, v.Score = labels[i], float64(p)
		}
	}
}

// addKeywords adds the keyword sets that occur in the contexts. A set may be what a route blocks, so contexts must not
// hide it.
func (d *decision) addKeywords(ctx context.Context) {
	v := &d.set.Values[signal.Keyword]
	if v.State != signal.Known {
		return
	}
	labels := slices.Clone(v.Labels)
	for _, s := range d.contexts.snaps {
		found, ok := d.state.keywords.of(ctx, d.state.classifier, s)
		v.Partial = v.Partial || !ok
		for _, name := range found {
			if !slices.Contains(labels, name) {
				labels = append(labels, name)
			}
		}
	}
	v.Labels = labels
}

// keywordMemo remembers which keyword sets of one configuration occur in which contexts, so that each is read once.
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
	c.Extract(ctx, &signal.Text{LastUser: text, Segments: []signal.Segment{{Role: "user", Text: text}}}, signal.MaskOf(signal.Keyword), &found)
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
