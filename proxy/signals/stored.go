package signals

import (
	"context"
	"slices"
	"strings"

	"signalbox/internal/signal"
	"signalbox/proxy/contexts"
	"signalbox/proxy/resolve"
)

// askedSignals are computed from the question alone: the intent, and the language of the response,
// are the client's and not a document's.
const askedSignals = 1<<signal.Language | 1<<signal.Embedding | 1<<signal.Intent

// topicSignals are computed from the question and the skeletons of the contexts.
const topicSignals = 1<<signal.Domain | 1<<signal.Complexity | 1<<signal.FactCheck

// AddStored adds what was found in a request's contexts when they were stored to the signals in
// need, which were computed before. The text of contexts is not read again.
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

// Attacks returns the attack signals, which distinguish origins.
func Attacks() [2]signal.Kind { return [...]signal.Kind{signal.Jailbreak, signal.Injection} }

// addAttack adds the stored verdicts of the contexts, whose origin is data, to the value v of
// attack signal k. Without a stored verdict, v becomes partial. A signal that does not read data is
// unchanged.
func (r *Reader) addAttack(of *resolve.Contexts, k signal.Kind, v *signal.Value) {
	stored, id := of.Verdicts.Attack(k), &r.Identity
	switch {
	case v.State == signal.NotExtracted, !id.ReadsOf(k).Has(signal.OriginData):
		return
	case v.State == signal.Unknown && stored == nil:
		return
	case v.State == signal.Unknown: // the rest may score higher
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

// addVerdict raises the verdict of v for data to the stored score if that is higher, and returns
// the result. stored is nil if unknown. The position in the text is not known.
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

// storedSegment is the segment index of a verdict about the text of a context.
const storedSegment = -1

// addPII adds the types of personal data stored for the contexts. Without a stored verdict, v
// becomes partial.
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

// addKeywords adds the keyword sets that occur in the contexts. Contexts must be included, since a
// route may block a set.
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

// Read computes the signals in need of a request from its text, as long as still returns them.
// still is called as in Interruptible, or never. For a request with contexts, topic signals are
// computed from its question and the skeletons of the contexts.
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
