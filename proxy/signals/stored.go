package signals

import (
	"context"
	"slices"
	"strings"

	"signalbox/internal/signal"
	"signalbox/proxy/contexts"
	"signalbox/proxy/resolve"
)

// askedSignals are signals of what a request is about that are read from its question alone: an
// intent, and the language of the response, are the client's and not those of a document.
const askedSignals = 1<<signal.Language | 1<<signal.Embedding | 1<<signal.Intent

// topicSignals are read from the question and what the contexts say in short.
const topicSignals = 1<<signal.Domain | 1<<signal.Complexity | 1<<signal.FactCheck

// AddStored adds to the signals of need, which were read, what was found in the contexts of a
// request when they were stored: their text is not read again.
func (r *Reader) AddStored(ctx context.Context, of *resolve.Contexts, need signal.Mask, set *signal.Set) {
	for _, k := range Attacks() {
		if need.Has(k) {
			v := *set.Value(k)
			r.addAttack(of, k, &v)
			set.Put(k, v)
		}
	}
	if need.Has(signal.PII) {
		v := *set.Value(signal.PII)
		addPII(of.Verdicts, &v)
		set.Put(signal.PII, v)
	}
	if need.Has(signal.Keyword) {
		r.addKeywords(ctx, of, set)
	}
}

// sourceStored is the source of a value that stored verdicts decided.
const sourceStored = "stored context"

// Attacks are the kinds of signals about attacks, which tell origins apart.
func Attacks() [2]signal.Kind { return [...]signal.Kind{signal.Jailbreak, signal.Injection} }

// addAttack adds to v, of a kind of signals about attacks, what is stored of the contexts: they are
// data. Without a stored verdict v speaks of a part only. Of a signal that reads no data nothing
// changes.
func (r *Reader) addAttack(of *resolve.Contexts, k signal.Kind, v *signal.Value) {
	stored, id := of.Verdicts.Attack(k), &r.Identity
	switch {
	case v.State == signal.NotExtracted, !id.ReadsOf(k).Has(signal.OriginData):
		return
	case v.State == signal.Unknown && stored == nil:
		return
	case v.State == signal.Unknown: // the rest may be worse
		*v = signal.Value{
			State: signal.Known, Source: v.Source, Provider: v.Provider, Elapsed: v.Elapsed,
			Partial: true, Reason: v.Reason,
		}
		for o := signal.OriginInstructions; o < signal.NumOrigins; o++ {
			if id.ReadsOf(k).Has(o) {
				v.Verdicts = append(v.Verdicts, signal.Verdict{Origin: o, Partial: true})
			}
		}
	}
	score := addVerdict(v, stored)
	if !id.OriginsOf(k).Has(signal.OriginData) {
		return
	}
	if v.Partial = v.Partial || stored == nil; score <= v.Score {
		return
	}
	p := float32(score)
	v.Score, v.Source = score, sourceStored
	v.Labels, v.Probs, v.Label = []string{benign, k.String()}, []float32{1 - p, p}, benign
	if score >= r.threshold(k) {
		v.Label = k.String()
	}
}

// benign is the label of a text that is no attack.
const benign = "benign"

// addVerdict makes the verdict of v about data the higher one of what is there and what is stored,
// which is nil when that is unknown, and returns its score. Where the text was, nobody knows.
func addVerdict(v *signal.Value, stored *float64) float64 {
	v.Verdicts = slices.Clone(v.Verdicts)
	at := slices.IndexFunc(v.Verdicts,
		func(o signal.Verdict) bool { return o.Origin == signal.OriginData })
	if at < 0 {
		at = len(v.Verdicts)
		v.Verdicts = append(v.Verdicts, signal.Verdict{
			Origin:  signal.OriginData,
			Segment: storedSegment,
		})
	}
	data := &v.Verdicts[at]
	switch {
	case stored == nil:
		data.Partial = true
	case *stored >= data.Score:
		data.Score, data.Segment, data.Start, data.End = *stored, storedSegment, 0, 0
	}
	return data.Score
}

// storedSegment stands for the index of a segment where a verdict is about a text of a context.
const storedSegment = -1

// addPII adds the types of personal data that are stored of the contexts. Without a stored verdict
// v speaks of a part only.
func addPII(stored contexts.Verdicts, v *signal.Value) {
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

// addKeywords adds the keyword sets that occur in the contexts. A set may be what a route blocks,
// so contexts must not hide it.
func (r *Reader) addKeywords(ctx context.Context, of *resolve.Contexts, set *signal.Set) {
	v := *set.Value(signal.Keyword)
	if v.State != signal.Known {
		return
	}
	labels := slices.Clone(v.Labels)
	for _, s := range of.Snaps {
		found, ok := r.keywords.of(ctx, r.Classifier, s)
		v.Partial = v.Partial || !ok
		for _, name := range found {
			if !slices.Contains(labels, name) {
				labels = append(labels, name)
			}
		}
	}
	v.Labels = labels
	set.Put(signal.Keyword, v)
}

// Read fills in the signals of need of a request from its text, as long as still names them: it is
// called as Interruptible has it, or never. What a request is about that names contexts is read from
// its question and what they say in short.
func (r *Reader) Read(
	ctx context.Context, of *resolve.Contexts, text *signal.Text, need signal.Mask, set *signal.Set, how Extent,
	still func() signal.Mask,
) {
	in := ""
	if of.Named() {
		in = of.Skeleton()
	}
	if in == "" || need&topicSignals == 0 {
		r.read(ctx, text, need, set, how, still)
		return
	}
	own := need & askedSignals
	if own != 0 {
		r.read(ctx, text, own, set, how, func() signal.Mask { return still() & own })
	}
	rest, both := need&^own, *text
	both.LastUser = strings.TrimSpace(both.LastUser + "\n\n" + in)
	r.read(ctx, &both, rest, set, how, func() signal.Mask { return still() & rest })
}
