package classify

import (
	"context"
	"fmt"
	"math"
	"slices"

	"signalbox/classify/language"
	"signalbox/internal/signal"
)

// foreignProbability is from which probability a text counts as one in another language. Of 4,818
// English prompts, documents, logs and pieces of code that takes in 15, most with foreign words. The
// source for all texts reads them as well.
const foreignProbability = 0.8

// foreignDoubt lowers the log-odds of an attack that the source for all texts gives a text in
// another language, where one that knows such languages reads it as well: what it does not know
// looks like an attack to it a little too often.
const foreignDoubt = 1.5

// foreignShare is how much the source for other languages counts when both tell the domain of a
// text in another language: the one for all texts is often sure of what it cannot read.
const foreignShare = 0.75

// leastProbability is what a label has at least when two engines are asked: less is noise, and
// nobody rules a label out alone.
const leastProbability = 1e-9

// tongue is whether a text is in another language than English, as far as that can be told.
type tongue uint8

const (
	tongueUntold tongue = iota // nobody asked
	tongueNative               // it is in English, or in no language that can be told
	// it is in another script than Latin in part: a page with an order in Chinese, or one in Arabic
	// with more code and addresses than text.
	tongueMixed
	tongueForeign
)

// tongueOf judges what is told of a text. Which of the other languages it is does not matter: a line
// may be Portuguese as well as Spanish, and then each has half of what both have.
func tongueOf(t language.Told) tongue {
	if t.Foreign >= foreignProbability {
		return tongueForeign
	}
	return tongueNative
}

// tongues is what tells the texts of a request in other languages: a memo of those that were asked
// about before. A nil memo says that nobody wants to know.
type tongues struct {
	memo    *memo
	entries int // that it holds at most, 0 for none
}

// askForeign makes the request tell languages, if a source for others can run and gives some of
// need.
func (c *Classifier) askForeign(r *request, need signal.Mask) {
	for i := range c.sources {
		if s := &c.sources[i]; s.Foreign && s.Signals&need != 0 && s.Engine.Ready() {
			r.tongues = tongues{s.Engine.memo, c.opts.Memo}
			return
		}
	}
}

// language tells the language of the last user message, once. It is for the caller's goroutine.
func (r *request) language() language.Told {
	if d := &r.detected; !d.told {
		d.Told, d.told = language.Tell(r.text.LastUser), true
	}
	return r.detected.Told
}

// tellLanguages marks the units in other languages. Its error is that of ctx.
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

// tellLanguage marks a unit. Of a text that was in an earlier request it costs a look-up by the
// digest, which engines need in any case. Its error is that of ctx.
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

// topicTongue tells that of the last user message, which mostly is a unit as well.
func (r *request) topicTongue() tongue {
	for i := len(r.units) - 1; i >= 0; i-- {
		if u := &r.units[i]; u.tongue != tongueUntold && u.text == r.text.LastUser {
			return u.tongue
		}
	}
	return tongueOf(r.language())
}

// foreignKinds returns the members of need that a source for other languages has something to say
// of.
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

// jointKinds are the signals that a source for other languages gives together with that for all
// texts.
const jointKinds = attackKinds | 1<<signal.Domain

// doubt is by how much the log-odds of an attack in a unit are lowered.
func (p *pass) doubt(k signal.Kind, u *unit) float64 {
	if !p.foreign && u.tongue == tongueForeign && p.g != nil && p.g.c.foreign.Has(k) {
		return foreignDoubt
	}
	return 0
}

// sameLabels checks that the engines that give the domain together know the same ones.
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

// merge returns what two engines say together. The source is the one that reads every text. Where
// one of them knows nothing the other counts alone: of an attack it speaks of a part then.
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

// alone returns a value of one of two engines; why says what the other one lacked.
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

// mean returns the geometric mean of two values with the same labels, in which b, that of the source
// for other languages, counts foreignShare: two models that were made apart are right more often
// together than either alone.
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

// worse returns what two engines say of attacks: the higher score of each origin and of all, by the
// labels and the threshold of t, the task of the first.
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
