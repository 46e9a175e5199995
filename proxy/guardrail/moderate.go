package guardrail

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"signalbox/internal/option"
	"signalbox/internal/signal"
	"signalbox/stream/check"
	"signalbox/stream/evidence"
	"signalbox/stream/guard"
)

// Output applies a signal to responses, sentence by sentence.
type Output struct {
	// Classifier is the name of an entry of classify.classifiers, or one of pii, jailbreak,
	// injection, keyword, domain and language. Required.
	Classifier string `yaml:"classifier"`
	// Labels lists the labels that a response must not have: labels of the classifier, types of
	// personal data, names of signals.keywords, domains or languages. Default: for a classifier
	// with two labels its positive one, for a guard model unsafe, for pii and keyword any.
	// Reloadable.
	Labels []string `yaml:"labels"`
	// MinScore is the probability from which a label counts, in (0,1]. Default: the threshold of
	// the classifier or signal. Reloadable.
	MinScore float64 `yaml:"min_score"`
	// Action is what happens at a sentence with one of the labels: observe, annotate, terminate or
	// hold, with the meanings of guard.mode. Default terminate. Reloadable.
	Action string `yaml:"action"`

	// Kind is the signal of the classifier. Least is the probability from which each of its labels
	// counts, Threshold that of a signal which is no classifier of one's own; where both are missing
	// the most probable label counts. Whoever reads the configuration sets them.
	Kind      signal.Kind        `yaml:"-"`
	Least     map[string]float64 `yaml:"-"`
	Threshold float64            `yaml:"-"`
}

// Signals returns the signals, apart from the operator's own classifiers, that can read responses.
// All others are about a request, or give no verdict.
func Signals() []signal.Kind {
	return []signal.Kind{
		signal.PII, signal.Jailbreak, signal.Injection, signal.Keyword, signal.Domain, signal.Language,
	}
}

// mode returns the guard mode of the action.
func (o *Output) mode() guard.Mode {
	if o.Action == "" {
		return guard.Terminate
	}
	m, _ := guard.ParseMode(o.Action)
	return m
}

// validate reports problems of an output.
func (o *Output) validate(p *option.Problems, at string) {
	if o.Classifier == "" {
		p.Addf(at+".classifier", "a name is required")
	}
	option.Between(p, at+".min_score", o.MinScore, 0, 1)
	if modes := Modes()[1:]; o.Action != "" && !slices.Contains(modes, o.Action) {
		p.Addf(at+".action", "%q is not one of %s", o.Action, strings.Join(modes, ", "))
	}
}

// readsAlone reports whether a sentence is read without the previous one, so that findings in that
// one are not repeated.
func (o *Output) readsAlone() bool {
	switch o.Kind { //nolint:exhaustive // attacks, and the operator's classifiers, need the text before
	case signal.PII, signal.Keyword, signal.Domain, signal.Language:
		return true
	}
	return false
}

// found returns the label that makes a value fail; empty if there is none.
func (o *Output) found(v *signal.Value) (label string, score float64) {
	least := cmp.Or(o.MinScore, o.Threshold)
	switch o.Kind { //nolint:exhaustive // the others have exclusive labels, or thresholds
	case signal.Jailbreak, signal.Injection: // Score is the probability of an attack
		if v.Score >= least {
			return "attack", v.Score
		}
		return "", 0
	case signal.PII, signal.Keyword:
		return o.foundAny(v, least)
	}
	for _, l := range o.Labels {
		p, known := v.Prob(l)
		if !known && v.Label == l {
			p = v.Score
		}
		least := cmp.Or(o.MinScore, o.Least[l])
		if least == 0 && v.Label != l || float32(p) < float32(least) {
			continue
		}
		if p >= score {
			label, score = l, p
		}
	}
	return label, score
}

// foundAny is found for a value whose Labels are findings, such as types of personal data. Findings
// without a probability, such as keywords, are certain.
func (o *Output) foundAny(v *signal.Value, least float64) (label string, score float64) {
	for i, l := range v.Labels {
		p := 1.0
		if i < len(v.Probs) {
			p = float64(v.Probs[i])
		}
		wanted := len(o.Labels) == 0 || slices.Contains(o.Labels, l)
		if wanted && float32(p) >= float32(least) && p > score {
			label, score = l, p
		}
	}
	return label, score
}

// Moderator classifies pieces of responses. A Classifier may implement it.
type Moderator interface {
	// Moderate computes signal k for a response, or a piece of one, and its prompt, and those
	// signals in also that need no further reading. It returns soon after ctx ends.
	Moderate(ctx context.Context, k signal.Kind, also signal.Mask, x signal.Exchange, set *signal.Set)
}

// moderation checks the sentences of one response with classifiers and, if there is evidence,
// against the evidence.
type moderation struct {
	outputs []Output
	asked   Moderator
	facts   guard.Checker // nil without evidence
	// acting means that unsupported claims count as failed. Otherwise only classifiers decide.
	acting bool
}

var _ guard.Checker = (*moderation)(nil)

// askedAtOnce is the number of sentences of a response that classifiers read at a time.
const askedAtOnce = 4

// Quick implements guard.Checker. It never decides, since classifiers must read every sentence.
func (m *moderation) Quick(e *evidence.Evidence, c check.Claim) (r check.Result, final bool) {
	if m.facts != nil && !c.Unfinished {
		r, _ = m.facts.Quick(e, c)
		return m.mild(r), false
	}
	return check.Result{Verdict: check.Unchecked, Score: 0.5, Source: -1}, false
}

// mild returns the verdict on facts when these are only observed.
func (m *moderation) mild(r check.Result) check.Result {
	if !m.acting && (r.Verdict == check.Unsupported || r.Verdict == check.Contradicted) {
		r.Verdict = check.Unchecked
	}
	return r
}

// Check implements guard.Checker.
func (m *moderation) Check(ctx context.Context, e *evidence.Evidence, question string, list []check.Claim) []check.Result {
	out := make([]check.Result, len(list))
	var whole []check.Claim // claims to compare with facts
	var at []int
	for i := range list {
		switch {
		case m.facts == nil:
			out[i] = check.Result{Verdict: check.NotCheckable, Score: 1, Source: -1}
		case list[i].Unfinished:
			out[i] = check.Result{Verdict: check.Unchecked, Score: 0.5, Source: -1}
		default:
			whole, at = append(whole, list[i]), append(at, i)
		}
	}
	if len(whole) > 0 {
		for i, r := range m.facts.Check(ctx, e, question, whole) {
			out[at[i]] = m.mild(r)
		}
	}
	var work errgroup.Group
	work.SetLimit(askedAtOnce)
	for i := range list {
		work.Go(func() error {
			m.moderate(ctx, question, &list[i], &out[i])
			return nil
		})
	}
	_ = work.Wait() // no function returns an error
	return out
}

// errModeration is why a sentence is unchecked.
var errModeration = errors.New("no classifier could read it")

// moderate lets every classifier read a sentence. It sets the verdict if one objects or could not
// read it.
func (m *moderation) moderate(ctx context.Context, question string, c *check.Claim, r *check.Result) {
	defer func() {
		if fault := recover(); fault != nil { // one failed check of many must not end the process
			r.Verdict, r.Err = check.Unchecked, fmt.Errorf("%w: panic: %v", errModeration, fault)
		}
	}()
	alone, behind := m.readings(question, c)
	for i := range m.outputs {
		o, in := &m.outputs[i], behind
		if o.readsAlone() {
			in = alone
		}
		v := in.value(ctx, m.asked, o.Kind)
		if v.State == signal.Unknown && (v.Reason == signal.ReasonUndecided || v.Reason == signal.ReasonNoText) {
			continue // it was read, but has nothing to decide by
		}
		if v.State != signal.Known {
			if r.Err == nil && r.Verdict != check.Unsupported && r.Verdict != check.Contradicted {
				r.Verdict = check.Unchecked
				r.Err = fmt.Errorf("%w: %s (%s)", errModeration, o.Classifier, v.Reason)
			}
			continue
		}
		if label, p := o.found(v); label != "" {
			*r = check.Result{
				Verdict: check.Unsupported, Score: 1 - p, Source: -1, By: check.Moderation,
				Reason: o.Classifier + ": " + label,
			}
			return
		}
	}
}

// reading is a piece of a response, the signals that read it, and the results so far.
type reading struct {
	x     signal.Exchange
	kinds signal.Mask
	set   signal.Set
}

// readings returns a sentence alone and with the previous one; both are the same if there is none.
func (m *moderation) readings(question string, c *check.Claim) (alone, behind *reading) {
	of := func(text string) *reading {
		return &reading{x: signal.Exchange{Prompt: question, Answer: strings.TrimSpace(text)}}
	}
	alone, behind = of(c.Text), of(c.Context+" "+c.Text)
	if behind.x == alone.x {
		behind = alone
	}
	for i := range m.outputs {
		in := behind
		if m.outputs[i].readsAlone() {
			in = alone
		}
		in.kinds |= signal.MaskOf(m.outputs[i].Kind)
	}
	return alone, behind
}

// value returns signal k. The text is read once for all signals that are available.
func (r *reading) value(ctx context.Context, asked Moderator, k signal.Kind) *signal.Value {
	if r.set.Value(k).State == signal.NotExtracted {
		asked.Moderate(ctx, k, r.kinds, r.x, &r.set)
	}
	return r.set.Value(k)
}

// outputMode returns the strictest action of the outputs; off if there are none.
func (w *Guard) outputMode() guard.Mode {
	mode := guard.Off
	for i := range w.opts.Outputs {
		mode = guard.Stricter(mode, w.opts.Outputs[i].mode())
	}
	return mode
}
