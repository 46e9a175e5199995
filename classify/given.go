package classify

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"signalbox/internal/signal"
)

// GivenKinds are the signals that a remote model can provide by labelling a text. The others are
// vectors or places in a text.
const GivenKinds signal.Mask = ForeignTopics | attackKinds

// Given is a signal provided by one of Options.Own, a remote model, instead of a local model.
type Given struct {
	Own int // index in Options.Own
	// Labels are the labels of Domain and Complexity, in the order of signal.Value.Labels. Other
	// labels of the model are ignored.
	Labels []string
	// Positive is the label of the model that means the presence of what Jailbreak, Injection or
	// FactCheck looks for. Threshold is the probability from which it applies, in (0,1].
	Positive  string
	Threshold float64
}

// given returns the kinds of Options.Given.
func (o Options) given() (m signal.Mask) {
	for k := range o.Given {
		m |= signal.MaskOf(k)
	}
	return m
}

func (o Options) checkGiven() error {
	for k, g := range o.Given {
		switch {
		case !GivenKinds.Has(k):
			return fmt.Errorf("%s cannot come from a model elsewhere that says what a text is", k)
		case g.Own < 0 || g.Own >= len(o.Own) || o.Own[g.Own].Judge == nil:
			return fmt.Errorf("%s comes from a classifier that is no model elsewhere", k)
		case len(g.Labels) == 0 && g.Positive == "":
			return fmt.Errorf("%s has no labels", k)
		}
	}
	return nil
}

// elsewhere returns the classifier of k if a remote model provides it, else nil.
func (c *Classifier) elsewhere(k signal.Kind) *Own {
	at := int(k) - int(signal.Own)
	if g, ok := c.opts.Given[k]; ok {
		at = g.Own
	}
	if at < 0 || at >= len(c.opts.Own) || c.opts.Own[at].Judge == nil {
		return nil
	}
	return &c.opts.Own[at]
}

// judge returns the judgement of the remote model of k on an exchange.
func (c *Classifier) judge(ctx context.Context, k signal.Kind, x signal.Exchange) signal.Value {
	own := c.elsewhere(k)
	v := signal.Value{Source: own.Name, Provider: "remote"}
	start := time.Now()
	j, err := own.Judge.Judge(ctx, x)
	v.Elapsed = time.Since(start)
	if err != nil {
		why := reasonOf(ctx, err)
		if c.opts.Logger != nil && (why == signal.ReasonInternal || why == signal.ReasonInvalid) {
			c.opts.Logger.ErrorContext(ctx, "a classifier is unknown",
				slog.String("classifier", own.Name), slog.String("reason", string(why)),
				slog.String("error", err.Error()))
		}
		return unknown(&v, why)
	}
	v.State, v.Label, v.Score, v.Labels, v.Probs = signal.Known, j.Label, j.Score, j.Labels, j.Probs
	if j.Cut {
		v.Coverage = signal.Compressed
	}
	if g, ok := c.opts.Given[k]; ok {
		g.shape(k, &v)
	}
	return v
}

// probOf returns the probability in v of a label of the model.
func probOf(v *signal.Value, label string) float64 {
	p, known := v.Prob(label)
	if !known && v.Label == label {
		p = v.Score
	}
	return p
}

// shape turns the judgement of a remote model on a text into the value of signal k.
func (g *Given) shape(k signal.Kind, v *signal.Value) {
	if _, known := v.Prob(g.Positive); g.Positive != "" && !known && v.Label != g.Positive {
		*v = unknown(v, signal.ReasonInvalid) // the model has other labels
		return
	}
	if g.Positive != "" {
		g.decide(k, probOf(v, g.Positive), v)
		return
	}
	probs, best := make([]float32, len(g.Labels)), 0
	for i, l := range g.Labels {
		if probs[i] = float32(probOf(v, l)); probs[i] > probs[best] {
			best = i
		}
	}
	if probs[best] == 0 { // the model has other labels
		*v = unknown(v, signal.ReasonInvalid)
		return
	}
	v.Labels, v.Probs, v.Label, v.Score = g.Labels, probs, g.Labels[best], float64(probs[best])
}

// decide sets v according to p, the probability that the text contains what k looks for.
func (g *Given) decide(k signal.Kind, p float64, v *signal.Value) {
	no, yes := "benign", k.String()
	if k == signal.FactCheck {
		no, yes = "no", "needs"
	}
	v.Labels, v.Probs, v.Label = []string{no, yes}, []float32{float32(1 - p), float32(p)}, no
	if float32(p) >= float32(g.Threshold) {
		v.Label = yes
	}
	if v.Score = p; k == signal.FactCheck && v.Label == no {
		v.Score = 1 - p
	}
}

// ask settles a kind that a remote model provides.
func (c *Classifier) ask(ctx context.Context, g *gather, k signal.Kind) {
	ctx, leave := g.enter(ctx, signal.MaskOf(k))
	var v signal.Value
	switch {
	case attackKinds.Has(k):
		v = c.judgeTexts(ctx, g.req, k)
	case strings.TrimSpace(g.req.text.LastUser) == "":
		v = signal.Value{State: signal.Unknown, Reason: signal.ReasonNoText, Source: c.elsewhere(k).Name}
	default:
		v = c.judge(ctx, k, signal.Exchange{Prompt: g.req.text.LastUser})
	}
	leave()
	g.put(k, v)
	g.narrow()
}

const (
	// textsAtOnce is the maximum number of concurrent questions to a remote model about the texts
	// of one request, per signal.
	textsAtOnce = 4
	// mostTexts limits the number of texts asked about if everything is to be read. If texts are
	// left out, the signal is partial.
	mostTexts = 256
)

// judgeTexts asks a remote model about attacks in the texts of the origins that k reads. It asks
// about each text separately, as written and with disguises removed, so that the answer can be
// remembered and is the same in every turn.
func (c *Classifier) judgeTexts(ctx context.Context, r *request, k signal.Kind) signal.Value {
	start := time.Now()
	v := signal.Value{State: signal.Known, Source: c.elsewhere(k).Name, Provider: "remote"}
	texts := &request{text: r.text, extent: r.extent, origins: r.origins}
	if err := texts.layUnits(ctx, signal.MaskOf(k)); err != nil {
		return unknown(&v, reasonOf(ctx, err))
	}
	var units []*unit
	for i := range texts.units {
		if u := &texts.units[i]; strings.TrimSpace(u.text) != "" {
			units = append(units, u)
		}
	}
	most := mostTexts
	if r.extent != everyWindow {
		most = c.opts.Windows
	}
	said := make([]*signal.Value, len(units))
	var work errgroup.Group
	work.SetLimit(textsAtOnce)
	for _, i := range newestTexts(units, r.origins.score[k], most) {
		work.Go(func() error {
			said[i] = c.judgeText(ctx, k, units[i])
			return nil
		})
	}
	_ = work.Wait() // the functions return no errors
	v.Elapsed = time.Since(start)
	c.concludeTexts(k, units, said, &v)
	switch whole := r.extent == everyWindow; {
	case v.State != signal.Known:
	case !whole:
		v.Reason = signal.ReasonNone // not everything was asked about; the rest may help
	case v.Read < v.Windows:
		v.Partial, v.Reason = true, cmp.Or(v.Reason, signal.ReasonOverload)
	}
	return v
}

// newestTexts returns the indices of no more than most units to ask about: the newest of the origins
// that the signal covers, then the newest of all.
func newestTexts(units []*unit, speaks signal.Origins, most int) []int {
	var out []int
	for i := len(units) - 1; i >= 0 && len(out) == 0; i-- {
		if speaks.Has(units[i].origin) {
			out = append(out, i)
		}
	}
	for i := len(units) - 1; i >= 0 && len(out) < most; i-- {
		if !slices.Contains(out[:min(len(out), 1)], i) {
			out = append(out, i)
		}
	}
	return out
}

// judgeText asks about a text and its normalised twin. The higher probability of an attack counts.
func (c *Classifier) judgeText(ctx context.Context, k signal.Kind, u *unit) *signal.Value {
	v := c.judge(ctx, k, signal.Exchange{Prompt: u.text})
	twin, err := u.normalised(ctx)
	if err != nil || v.State != signal.Known {
		return &v
	}
	if strings.TrimSpace(twin) != "" {
		other := c.judge(ctx, k, signal.Exchange{Prompt: twin})
		if other.State != signal.Known || other.Score > v.Score {
			return &other
		}
	}
	return &v
}

// concludeTexts sets v to the greatest score among the texts of the origins that k covers, and to
// the verdicts per origin. said is parallel to units, nil for texts that were not asked about.
// Failed or truncated texts make v partial; if nothing was read, v is unknown.
func (c *Classifier) concludeTexts(k signal.Kind, units []*unit, said []*signal.Value, v *signal.Value) {
	speaks, given := c.opts.origins().score[k], c.opts.Given[k]
	var by [signal.NumOrigins]signal.Verdict
	for i := range units {
		o := &by[units[i].origin]
		o.Windows++
		if x := said[i]; x != nil {
			addText(o, units[i], x)
			if x.State != signal.Known && speaks.Has(units[i].origin) {
				v.Reason = x.Reason
			}
		}
	}
	score, read := 0.0, 0
	for i := range by {
		o := &by[i]
		if o.Windows == 0 {
			continue
		}
		o.Origin, o.Partial = signal.Origin(i), o.Partial || o.Read == 0
		v.Verdicts, read = append(v.Verdicts, *o), read+o.Read
		if speaks.Has(o.Origin) {
			v.Windows, v.Read, v.Partial = v.Windows+o.Windows, v.Read+o.Read, v.Partial || o.Partial
			score = max(score, o.Score)
		}
	}
	if v.Partial && read == 0 {
		*v = unknown(v, v.Reason)
		return
	}
	if v.Windows > 1 {
		v.Coverage = signal.Windowed
	}
	given.decide(k, score, v)
}

// addText adds the judgement on a text to the verdict on its origin.
func addText(o *signal.Verdict, u *unit, x *signal.Value) {
	if x.State != signal.Known {
		o.Partial = true
		return
	}
	o.Partial = o.Partial || x.Coverage == signal.Compressed // the middle was left out
	if o.Read++; x.Score > o.Score || o.Read == 1 {
		o.Score, o.Segment = x.Score, u.segment
		o.Start, o.End = u.place(0, len(u.text))
	}
}

// onlyGiven reports signals that a source provides as well.
func (c *Classifier) onlyGiven() error {
	if twice := c.opts.given() & c.neural; twice != 0 {
		return fmt.Errorf("%v come from a bundle and from a classifier", twice.Kinds())
	}
	return nil
}
