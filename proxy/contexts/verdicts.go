package contexts

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"signalbox/internal/signal"
)

// Verdicts is what reading the text of a context told of its safety. It is kept with the version,
// as memory.Derived.Verdicts, in the form
//
//	{"jailbreak": 0.03, "injection": 0.01, "pii": {"EMAIL_ADDRESS": 0.99}}
//
// A member that is absent was not computed: it is unknown, which is not clean. Texts of contexts
// are data: jailbreak is there only where that signal reads data, injection since there is such a
// signal.
type Verdicts struct {
	// Jailbreak is P(jailbreak), in [0,1]; nil when it is unknown.
	Jailbreak *float64 `json:"jailbreak,omitempty"`
	// Injection is P(injection), in [0,1]; nil when it is unknown.
	Injection *float64 `json:"injection,omitempty"`
	// PII is the best score of each type of personal data that was found; empty when there is none,
	// nil when it is unknown.
	PII map[string]float64 `json:"pii,omitzero"`
}

// VerdictsOf takes the verdicts of a set. What was read in part only is unknown here: a request
// that names the context has nothing else to go by.
func VerdictsOf(set *signal.Set) Verdicts { return verdictsOf(set, whole) }

// VerdictsOfSelection is VerdictsOf for texts that are read as prompts are: what was read in part,
// because a scan of the whole chose the windows that are worth reading, speaks for all of it.
func VerdictsOfSelection(set *signal.Set) Verdicts {
	return verdictsOf(set, func(v *signal.Value) bool { return v.State == signal.Known })
}

func verdictsOf(set *signal.Set, counts func(*signal.Value) bool) Verdicts {
	var v Verdicts
	v.Jailbreak = attackIn(set.Value(signal.Jailbreak), counts)
	v.Injection = attackIn(set.Value(signal.Injection), counts)
	if p := set.Value(signal.PII); counts(p) {
		v.PII = make(map[string]float64, len(p.Labels))
		for i, label := range p.Labels {
			v.PII[label] = float64(p.Probs[i])
		}
	}
	return v
}

// Attack returns the verdict of a kind of attack; nil when it is unknown, and for other kinds.
func (v Verdicts) Attack(k signal.Kind) *float64 {
	switch k { //nolint:exhaustive // two kinds are about attacks
	case signal.Jailbreak:
		return v.Jailbreak
	case signal.Injection:
		return v.Injection
	}
	return nil
}

// attackIn is what a value says of data; of a value that tells no origins apart, its score.
func attackIn(v *signal.Value, counts func(*signal.Value) bool) *float64 {
	if !counts(v) {
		return nil
	}
	score := v.Score
	if len(v.Verdicts) > 0 {
		score = 0
	}
	data := signal.OriginsOf(signal.OriginData)
	for i := range v.Verdicts {
		if o := &v.Verdicts[i]; data.Has(o.Origin) {
			if !counts(&signal.Value{State: v.State, Windows: o.Windows, Read: o.Read}) {
				return nil
			}
			score = max(score, o.Score)
		}
	}
	return &score
}

// whole reports whether a value speaks for all of the text.
func whole(v *signal.Value) bool { return v.State == signal.Known && v.Read >= v.Windows }

// Encode is the form that is kept.
func (v Verdicts) Encode() (json.RawMessage, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode verdicts: %w", err)
	}
	return b, nil
}

// ParseVerdicts reads what Encode wrote. Nothing, and what cannot be read, is unknown throughout;
// the error says why it cannot.
func ParseVerdicts(b json.RawMessage) (Verdicts, error) {
	if len(b) == 0 {
		return Verdicts{}, nil
	}
	var v Verdicts
	if err := json.Unmarshal(b, &v); err != nil {
		return Verdicts{}, fmt.Errorf("read verdicts: %w", err)
	}
	for _, k := range []signal.Kind{signal.Jailbreak, signal.Injection} {
		if score := v.Attack(k); score != nil && !inUnit(*score) {
			return Verdicts{}, fmt.Errorf("read verdicts: %s %v is not in [0,1]", k, *score)
		}
	}
	for kind, score := range v.PII {
		if !inUnit(score) {
			return Verdicts{}, fmt.Errorf("read verdicts: pii %s %v is not in [0,1]", kind, score)
		}
	}
	return v, nil
}

func inUnit(x float64) bool { return x >= 0 && x <= 1 }

// Merge is what can be said of both texts together: the higher of two scores, all types, and
// unknown where one of them is.
func (v Verdicts) Merge(o Verdicts) Verdicts {
	out := Verdicts{
		Jailbreak: worse(v.Jailbreak, o.Jailbreak),
		Injection: worse(v.Injection, o.Injection),
	}
	if v.PII != nil && o.PII != nil {
		out.PII = make(map[string]float64, len(v.PII)+len(o.PII))
		for _, m := range []map[string]float64{v.PII, o.PII} {
			for kind, score := range m {
				out.PII[kind] = max(out.PII[kind], score)
			}
		}
	}
	return out
}

// worse is the higher of two scores, nil when one is unknown.
func worse(a, b *float64) *float64 {
	if a == nil || b == nil {
		return nil
	}
	return new(max(*a, *b))
}

// Types lists the types of personal data, in order.
func (v Verdicts) Types() []string { return slices.Sorted(maps.Keys(v.PII)) }
