package contexts

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"signalbox/internal/signal"
)

// Verdicts is what is known about the safety of a context's text. It is stored with the version, as
// memory.Derived.Verdicts, in the form
//
//	{"jailbreak": 0.03, "injection": 0.01, "pii": {"EMAIL_ADDRESS": 0.99}}
//
// An absent member was not computed: it is unknown, which does not mean clean. Texts of contexts
// have the origin data: jailbreak is present only if that signal reads data. Old versions have no
// injection.
type Verdicts struct {
	// Jailbreak is the probability of a jailbreak, in [0,1]; absent if unknown.
	Jailbreak *float64 `json:"jailbreak,omitempty"`
	// Injection is the probability of an injection, in [0,1]; absent if unknown.
	Injection *float64 `json:"injection,omitempty"`
	// PII is the highest score of each type of personal data found; empty if there is none, nil if
	// unknown.
	PII map[string]float64 `json:"pii,omitzero"`
}

// VerdictsOf returns the verdicts in a set. A partially read text is unknown here, because a
// request that names the context has nothing else to rely on.
func VerdictsOf(set *signal.Set) Verdicts { return verdictsOf(set, whole) }

// VerdictsOfSelection is VerdictsOf for texts that are read like prompts: a scan of the whole text
// selects the windows to read, and their result counts for the whole text.
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

// Attack returns the verdict for a kind of attack; nil if it is unknown, and for other kinds.
func (v Verdicts) Attack(k signal.Kind) *float64 {
	switch k { //nolint:exhaustive // only two kinds are attacks
	case signal.Jailbreak:
		return v.Jailbreak
	case signal.Injection:
		return v.Injection
	}
	return nil
}

// attackIn returns the score of a value for data; if the value does not distinguish origins, its
// score.
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

// whole reports whether a value covers the whole text.
func whole(v *signal.Value) bool { return v.State == signal.Known && v.Read >= v.Windows }

// Encode returns the stored form.
func (v Verdicts) Encode() (json.RawMessage, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode verdicts: %w", err)
	}
	return b, nil
}

// ParseVerdicts parses the result of Encode. Empty or invalid input gives unknown verdicts; the
// error explains what is invalid.
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

// Merge returns the verdicts for both texts together: the higher scores and all types; unknown if
// either is unknown.
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

// worse returns the higher of two scores; nil if either is unknown.
func worse(a, b *float64) *float64 {
	if a == nil || b == nil {
		return nil
	}
	return new(max(*a, *b))
}

// Types returns the types of personal data, sorted.
func (v Verdicts) Types() []string { return slices.Sorted(maps.Keys(v.PII)) }
