package classify

import (
	"context"
	"slices"

	"signalbox/classify/language"
	"signalbox/internal/signal"
)

// foreignProbability is from which probability a text counts as one in another language. Where it
// was another one, the source for all texts has read it as well.
const foreignProbability = 0.8

// isForeign reports whether a text is in another language than English, as far as that can be told.
func isForeign(text string) bool {
	code, p, ok := language.Detect(text)
	return ok && code != "en" && p >= foreignProbability
}

// tellLanguages marks the units in other languages.
func (r *request) tellLanguages(ctx context.Context) error {
	for i := range r.units {
		if i&63 == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		if u := &r.units[i]; u.kinds&attackKinds != 0 {
			u.foreign = isForeign(u.text)
		}
	}
	return nil
}

// foreignKinds returns the signals that a source for other languages has something to say of.
func (r *request) foreignKinds() signal.Mask {
	var m signal.Mask
	if isForeign(r.text.LastUser) {
		m = ForeignTopics
	}
	for i := range r.units {
		if u := &r.units[i]; u.foreign {
			m |= u.kinds & attackKinds
		}
	}
	return m
}

// merge returns what two engines say of attacks together: the higher score of each origin and of
// all, by the labels and the threshold of the one that reads every text. Both values are known.
func (c *Classifier) merge(k signal.Kind, a, b *signal.Value) signal.Value {
	at := slices.IndexFunc(c.sources, func(s Source) bool { return !s.Foreign && s.Signals.Has(k) })
	e := c.sources[at].Engine
	if b.Source == e.name {
		a, b = b, a
	}
	out := *a
	out.Elapsed = max(a.Elapsed, b.Elapsed)
	if b.Score > a.Score {
		out.Probs = make([]float32, len(a.Probs))
		t := &e.tasks[slices.IndexFunc(e.tasks, func(t task) bool { return t.kind == k })]
		t.conclude(b.Score, a.Probs, &out)
	}
	out.Verdicts = slices.Clone(a.Verdicts)
	for _, v := range b.Verdicts {
		at := slices.IndexFunc(out.Verdicts, func(o signal.Verdict) bool { return o.Origin == v.Origin })
		if at < 0 {
			out.Verdicts = append(out.Verdicts, v)
		} else if have := &out.Verdicts[at]; v.Score > have.Score {
			v.Windows, v.Read = have.Windows, have.Read
			*have = v
		}
	}
	return out
}
