package guardrail

import (
	"context"
	"slices"
	"testing"

	"signalbox/internal/signal"
	"signalbox/stream/check"
	"signalbox/stream/evidence"
)

func TestWhatAnOutputFinds(t *testing.T) {
	t.Parallel()
	personal := signal.Value{Labels: []string{"PERSON", "CREDIT_CARD"}, Probs: []float32{0.9, 0.5}}
	words := signal.Value{Labels: []string{"a", "b"}}
	topic := signal.Value{
		Label: "law", Score: 0.6, Labels: []string{"law", "math"}, Probs: []float32{0.6, 0.4},
	}
	card, maths := []string{"CREDIT_CARD"}, []string{"math"}
	pii := func(threshold, least float64, labels ...string) Output {
		return Output{Kind: signal.PII, Threshold: threshold, MinScore: least, Labels: labels}
	}
	attack := Output{Kind: signal.Injection, Threshold: 0.7}
	for name, c := range map[string]struct {
		o     Output
		v     signal.Value
		label string
	}{
		"any personal data, the surest": {pii(0.5, 0), personal, "PERSON"},
		"a type at the threshold":       {pii(0.5, 0, card...), personal, "CREDIT_CARD"},
		"a type below the threshold":    {pii(0.51, 0, card...), personal, ""},
		"min_score above the threshold": {pii(0.5, 0.95), personal, ""},
		"another type":                  {pii(0.5, 0, "US_SSN"), personal, ""},
		"a keyword, without a score":    {Output{Kind: signal.Keyword, Labels: []string{"b"}}, words, "b"},
		"no keyword":                    {Output{Kind: signal.Keyword}, signal.Value{}, ""},
		"an attack at the threshold":    {attack, signal.Value{Score: 0.7}, "attack"},
		"no attack":                     {attack, signal.Value{Score: 0.69}, ""},
		"the most probable domain":      {Output{Kind: signal.Domain, Labels: []string{"law"}}, topic, "law"},
		"a less probable domain":        {Output{Kind: signal.Domain, Labels: maths}, topic, ""},
		"a domain from a score on":      {Output{Kind: signal.Domain, Labels: maths, MinScore: 0.3}, topic, "math"},
		"a label of one's own": {
			Output{Kind: signal.Own, Labels: maths, Least: map[string]float64{"math": 0.4}}, topic, "math",
		},
	} {
		if got, _ := c.o.found(&c.v); got != c.label {
			t.Errorf("%s: found %q, want %q", name, got, c.label)
		}
	}
}

// reader is a Moderator that finds nothing and records its input.
type reader struct{ texts []string }

func (r *reader) Moderate(_ context.Context, k signal.Kind, also signal.Mask, x signal.Exchange, set *signal.Set) {
	r.texts = append(r.texts, x.Answer)
	for _, k := range (also | signal.MaskOf(k)).Kinds() {
		set.Put(k, signal.Value{State: signal.Known})
	}
}

func TestASentenceIsReadOnceForAllSignalsThatReadTheSame(t *testing.T) {
	t.Parallel()
	outputs := []Output{
		{Kind: signal.Jailbreak, Threshold: 0.5},
		{Kind: signal.PII},
		{Kind: signal.Keyword},
		{Kind: signal.Injection, Threshold: 0.5},
		{Kind: signal.Own},
	}
	for name, c := range map[string]struct {
		claim check.Claim
		want  []string
	}{
		"the first":          {check.Claim{Text: "One. "}, []string{"One."}},
		"one behind another": {check.Claim{Context: "One.", Text: "Two."}, []string{"One. Two.", "Two."}},
	} {
		r := &reader{}
		m := &moderation{outputs: outputs, asked: r}
		if m.Check(t.Context(), nil, "", []check.Claim{c.claim}); !slices.Equal(r.texts, c.want) {
			t.Errorf("%s: read %q, want %q", name, r.texts, c.want)
		}
	}
}

// contradicts is a guard.Checker that contradicts everything.
type contradicts struct{}

func (contradicts) Quick(*evidence.Evidence, check.Claim) (check.Result, bool) {
	return check.Result{Verdict: check.Contradicted}, true
}

func (contradicts) Check(_ context.Context, _ *evidence.Evidence, _ string, list []check.Claim) []check.Result {
	return slices.Repeat([]check.Result{{Verdict: check.Contradicted}}, len(list))
}

func TestHalfASentenceIsReadByClassifiersAlone(t *testing.T) {
	t.Parallel()
	var r reader
	m := &moderation{outputs: []Output{{Kind: signal.PII}}, asked: &r, facts: contradicts{}, acting: true}
	for unfinished, want := range map[bool]check.Verdict{true: check.Unchecked, false: check.Contradicted} {
		r.texts = nil
		c := check.Claim{Text: "The tower is", Unfinished: unfinished}
		quick, _ := m.Quick(nil, c)
		full := m.Check(t.Context(), nil, "", []check.Claim{c})
		if quick.Verdict != want || full[0].Verdict != want || !slices.Equal(r.texts, []string{c.Text}) {
			t.Errorf("unfinished %v: %v, %v, read %q", unfinished, quick.Verdict, full[0].Verdict, r.texts)
		}
	}
}
