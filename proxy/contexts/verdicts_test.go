package contexts

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/signal"
)

func TestVerdictsKeepWhatIsUnknownApartFromWhatIsClean(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		v    Verdicts
		wire string
	}{
		"unknown": {Verdicts{}, `{}`},
		"clean": {
			Verdicts{Jailbreak: new(0.0), PII: map[string]float64{}},
			`{"jailbreak":0,"pii":{}}`,
		},
		"before there were injections": {Verdicts{Jailbreak: new(0.5)}, `{"jailbreak":0.5}`},
		"an injection": {
			Verdicts{Injection: new(0.9), PII: map[string]float64{}},
			`{"injection":0.9,"pii":{}}`,
		},
		"findings": {
			Verdicts{
				Jailbreak: new(0.03),
				PII:       map[string]float64{"EMAIL_ADDRESS": 0.99},
			},
			`{"jailbreak":0.03,"pii":{"EMAIL_ADDRESS":0.99}}`,
		},
	} {
		b, err := c.v.Encode()
		if err != nil || string(b) != c.wire {
			t.Errorf("%s: %s, %v; want %s", name, b, err, c.wire)
		}
		back, err := ParseVerdicts(b)
		if diff := cmp.Diff(c.v, back); err != nil || diff != "" {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
}

func TestVerdictsThatCannotBeReadAreUnknown(t *testing.T) {
	t.Parallel()
	for _, wire := range []string{
		`{"jailbreak":`, `[]`, `{"jailbreak":"low"}`, `{"jailbreak":1.5}`,
		`{"injection":-1}`, `{"pii":{"US_SSN":-1},"jailbreak":0}`,
	} {
		if v, err := ParseVerdicts([]byte(wire)); err == nil || v.Jailbreak != nil || v.PII != nil {
			t.Errorf("%s: %+v, %v", wire, v, err)
		}
	}
	if v, err := ParseVerdicts(nil); err != nil || v.Jailbreak != nil || v.PII != nil {
		t.Errorf("nothing: %+v, %v", v, err)
	}
}

func TestVerdictsOfASelectionAreUnknown(t *testing.T) {
	t.Parallel()
	var set signal.Set
	set.Put(signal.Jailbreak, signal.Value{State: signal.Known, Score: 0.1, Windows: 9, Read: 4})
	set.Put(signal.PII, signal.Value{
		State: signal.Known, Labels: []string{"US_SSN"}, Probs: []float32{1}, Windows: 9, Read: 9,
	})
	if diff := cmp.Diff(Verdicts{PII: map[string]float64{"US_SSN": 1}}, VerdictsOf(&set)); diff != "" {
		t.Error(diff)
	}
}

func TestMergedVerdictsAreTheWorseOfBoth(t *testing.T) {
	t.Parallel()
	a := Verdicts{
		Jailbreak: new(0.2), Injection: new(0.6),
		PII: map[string]float64{"US_SSN": 0.4, "PERSON": 0.9},
	}
	b := Verdicts{Jailbreak: new(0.7), Injection: new(0.3), PII: map[string]float64{"US_SSN": 0.8}}
	want := Verdicts{
		Jailbreak: new(0.7), Injection: new(0.6),
		PII: map[string]float64{"US_SSN": 0.8, "PERSON": 0.9},
	}
	if diff := cmp.Diff(want, a.Merge(b)); diff != "" {
		t.Error(diff)
	}
	if got := a.Merge(Verdicts{}); got.Jailbreak != nil || got.PII != nil {
		t.Errorf("with an unknown one: %+v", got)
	}
}
