package classify

import (
	"context"
	"fmt"
	"math"
	"slices"

	"signalbox/classify/language"
	"signalbox/internal/signal"
)

// foreignProbability is the probability from which a text counts as one in another language. Among
// 4,818 English prompts, documents, logs and pieces of code it selects 15, most of them with
// foreign words. The source for all texts reads such texts as well.
const foreignProbability = 0.8

// foreignDoubt is subtracted from the log-odds of an attack that the source for all texts assigns
// to a text in another language if a source for such languages reads it as well: unfamiliar text
// resembles an attack to it slightly too often.
const foreignDoubt = 1.5

// foreignShare is the weight of the source for other languages if both sources classify the domain
// of a text in another language: the source for all texts is often confident about text that it
// cannot read.
const foreignShare = 0.75

// leastProbability is the minimum probability of a label when two engines are combined: less is
// noise, and neither engine may rule out a label alone.
const leastProbability = 1e-9

// tongue is whether a text is in another language than English, if that can be determined.
type tongue uint8

const (
	tongueUntold tongue = iota // not determined
	tongueNative               // the text is in English, or in no recognisable language
	// tongueMixed: the text is partly in another script than Latin, such as a page with an order in
	// Chinese, or one in Arabic with more code and addresses than text.
	tongueMixed
	tongueForeign
)

// tongueOf judges the detected languages of a text. It does not matter which of the other languages
// the text is in: a line may be Portuguese as well as Spanish, and then each has half the
// probability.
func tongueOf(t language.Told) tongue {
	if t.Foreign >= foreignProbability {
		return tongueForeign
	}
	return tongueNative
}

// tongues finds the texts of a request that are in other languages, with a memo of earlier results.
// If memo is nil, languages are not needed.
type tongues struct {
	memo    *memo
	entries int // maximum number of entries in memo; 0 disables it
}

// askForeign makes the request detect languages if a source for other languages can run and
// provides some of need.
func (c *Classifier) askForeign(r *request, need signal.Mask) {
	for i := range c.sources {
		if s := &c.sources[i]; s.Foreign && s.Signals&need != 0 && s.Engine.Ready() {
			r.tongues = tongues{s.Engine.memo, c.opts.Memo}
			return
		}
	}
}

// language returns the detected languages of the last user message, computed once. It must be
// called on the caller's goroutine.
func (r *request) language() language.Told {
	if d := &r.detected; !d.told {
		d.Told, d.told = language.Tell(r.text.LastUser), true
	}
	return r.detected.Told
}

// tellLanguages marks the units that are in other languages. Its error is that of ctx.
func (r *request) tellLanguages(ctx context.Context) error {
	for i := range r.units {
		if i&63 == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		if u := &r.units[i]; u.kinds&attackKinds != 0 {
			if err := r.tellLanguage(ctx, u); err != nil {
				return err
			}
		}
	}
	return nil
}

// tellLanguage marks one unit. For a text of an earlier request it only costs a look-up by the
// digest, which engines need anyway. Its error is that of ctx.
func (r *request) tellLanguage(ctx context.Context, u *unit) error {
	if r.tongues.entries <= 0 {
		u.tongue = r.detect(u.text)
		return nil
	}
	sum, err := u.digest(ctx)
	if err != nil {
		return err
	}
	key := memoKey{text: sum, kind: signal.Language}
	m, ok := r.tongues.memo.get(&key)
	if !ok {
		m.tongue = r.detect(u.text)
		r.tongues.memo.put(&key, &m, r.tongues.entries)
	}
	u.tongue = m.tongue
	return nil
}

func (r *request) detect(text string) tongue {
	var told language.Told
	if text == r.text.LastUser {
		told = r.language()
	} else {
		told = language.Tell(text)
	}
	t := tongueOf(told)
	if t == tongueNative && language.HoldsOtherScript(text) {
		return tongueMixed
	}
	return t
}

// topicTongue returns the tongue of the last user message, which usually is a unit as well.
func (r *request) topicTongue() tongue {
	for i := len(r.units) - 1; i >= 0; i-- {
		if u := &r.units[i]; u.tongue != tongueUntold && u.text == r.text.LastUser {
			return u.tongue
		}
	}
	return tongueOf(r.language())
}

// foreignKinds returns the members of need for which a source for other languages has text to read.
func (r *request) foreignKinds(need signal.Mask) signal.Mask {
	m := need & (1 << turnVector)
	if need&ForeignTopics != 0 && r.topicTongue() == tongueForeign {
		m |= need & ForeignTopics
	}
	for i := range r.units {
		if u := &r.units[i]; u.tongue >= tongueMixed {
			m |= need & u.kinds & attackKinds
		}
	}
	return m
}

// jointKinds are the signals that a source for other languages computes together with the source
// for all texts.
const jointKinds = attackKinds | 1<<signal.Domain

// doubt returns the amount by which the log-odds of an attack in a unit are lowered.
func (p *pass) doubt(k signal.Kind, u *unit) float64 {
	if !p.foreign && u.tongue == tongueForeign && p.g != nil && p.g.c.foreign.Has(k) {
		return foreignDoubt
	}
	return 0
}

// sameLabels checks that the engines that compute the domain together have the same labels.
func (c *Classifier) sameLabels() error {
	var have []string
	for i := range c.sources {
		s := &c.sources[i]
		if !s.Signals.Has(signal.Domain) {
			continue
		}
		t := s.Engine.taskOf(signal.Domain)
		switch {
		case t == nil: // the bundle is missing
		case have == nil:
			have = t.Labels
		case !slices.Equal(have, t.Labels):
			return fmt.Errorf("bundle %q: its labels of domain are not those of the bundle for all languages", s.Engine.name)
		}
	}
	return nil
}

// merge returns the combined value of two engines. Its source is the engine that reads every text.
// If only one of the values is known, it is used alone, and for an attack marked as covering only a
// part.
func (c *Classifier) merge(k signal.Kind, a, b *signal.Value) signal.Value {
	switch {
	case a.State != signal.Known && b.State != signal.Known:
		return *a
	case a.State != signal.Known:
		return alone(k, b, a.Reason)
	case b.State != signal.Known:
		return alone(k, a, b.Reason)
	}
	at := slices.IndexFunc(c.sources, func(s Source) bool { return !s.Foreign && s.Signals.Has(k) })
	e := c.sources[at].Engine
	if b.Source == e.name {
		a, b = b, a
	}
	var out signal.Value
	if k == signal.Domain {
		out = mean(a, b)
	} else {
		out = worse(e.taskOf(k), a, b)
	}
	out.Elapsed = max(a.Elapsed, b.Elapsed)
	return out
}

// alone returns the value of one of two engines; why is what the other one lacked.
func alone(k signal.Kind, v *signal.Value, why signal.Reason) signal.Value {
	out := *v
	if !attackKinds.Has(k) {
		return out
	}
	out.Partial, out.Reason, out.Verdicts = true, why, slices.Clone(v.Verdicts)
	for i := range out.Verdicts {
		out.Verdicts[i].Partial = true
	}
	return out
}

// mean returns the geometric mean of two values with the same labels. The weight of b, the value of
// the source for other languages, is foreignShare. Two independently trained models together are
// right more often than either alone.
func mean(a, b *signal.Value) signal.Value {
	out := *a
	probs, sum, best := make([]float64, len(a.Probs)), 0.0, 0
	for i := range probs {
		p, q := max(float64(a.Probs[i]), leastProbability), max(float64(b.Probs[i]), leastProbability)
		probs[i] = math.Pow(p, 1-foreignShare) * math.Pow(q, foreignShare)
		sum += probs[i]
		if probs[i] > probs[best] {
			best = i
		}
	}
	out.Probs = make([]float32, len(probs))
	for i, p := range probs {
		out.Probs[i] = float32(p / sum)
	}
	out.Label, out.Score = a.Labels[best], min(probs[best]/sum, 1)
	return out
}

// worse returns the combined value of two engines for attacks: the higher score per origin and
// overall, using the labels and the threshold of t, the task of the first engine.
func worse(t *task, a, b *signal.Value) signal.Value {
	out := *a
	if b.Score > a.Score {
		out.Probs = make([]float32, len(a.Probs))
		t.conclude(b.Score, a.Probs, &out)
	}
	out.Verdicts = slices.Clone(a.Verdicts)
	for _, v := range b.Verdicts {
		at := slices.IndexFunc(out.Verdicts,
			func(o signal.Verdict) bool { return o.Origin == v.Origin })
		if at < 0 {
			out.Verdicts = append(out.Verdicts, v)
		} else if have := &out.Verdicts[at]; v.Score > have.Score {
			v.Windows, v.Read = have.Windows, have.Read
			*have = v
		}
	}
	return out
}
