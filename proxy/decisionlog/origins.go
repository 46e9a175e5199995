package decisionlog

import "signalbox/internal/signal"

// Verdict is the result of a signal for the text of one origin. It does not contain the position in
// the text.
type Verdict struct {
	Origin  string  `json:"origin"` // any, instructions, user, model or data
	Score   float64 `json:"score"`  // probability of an attack, in [0,1]
	Windows int     `json:"windows,omitempty"`
	Read    int     `json:"read,omitempty"`
	Partial bool    `json:"partial,omitempty"` // some text of the origin could not be read
}

// verdictsOf converts verdicts for the log.
func verdictsOf(v *signal.Value) []Verdict {
	var out []Verdict
	for i := range v.Verdicts {
		o := &v.Verdicts[i]
		out = append(out, Verdict{o.Origin.String(), o.Score, o.Windows, o.Read, o.Partial})
	}
	return out
}

// verdicts returns the verdicts of a logged signal in the form that rules read.
func (s *Signal) verdicts() []signal.Verdict {
	var out []signal.Verdict
	for _, v := range s.Verdicts {
		out = append(out, signal.Verdict{
			Origin: originOf(v.Origin), Score: v.Score, Windows: v.Windows, Read: v.Read,
			Partial: v.Partial,
		})
	}
	return out
}

// originOf parses the name of an origin; OriginAny if it is invalid.
func originOf(name string) signal.Origin {
	o, _ := signal.ParseOrigin(name)
	return o
}

// isOrigin reports whether a name is that of an origin.
func isOrigin(name string) bool {
	_, ok := signal.ParseOrigin(name)
	return ok || name == signal.OriginAny.String()
}

// namesOf lists the origins in a set, in order, except OriginAny, which every set contains.
func namesOf(set signal.Origins) []string {
	var out []string
	for o := signal.OriginInstructions; o < signal.NumOrigins; o++ {
		if set.Has(o) {
			out = append(out, o.String())
		}
	}
	return out
}

// setOf is the inverse of namesOf; it returns fallback if there are no names.
func setOf(names []string, fallback signal.Origins) signal.Origins {
	if len(names) == 0 {
		return fallback
	}
	var set signal.Origins
	for _, n := range names {
		set |= signal.OriginsOf(originOf(n))
	}
	return set
}

// noteOrigins records which origins a signal of kind k was computed from, if not the default.
func (s *Signal) noteOrigins(id *Identity, k signal.Kind, v *signal.Value) {
	speaks, reads := id.OriginsOf(k), id.ReadsOf(k)
	if speaks != signal.DefaultOrigins(k) {
		s.Origins = namesOf(speaks)
	}
	if reads != speaks {
		s.Reads = namesOf(reads)
	}
	s.Verdicts = verdictsOf(v)
}

// covers reports whether a logged signal of kind k was computed from everything that the
// configuration reads; named holds the origins that its rules ask about. A line with a score and no
// verdicts was written before verdicts existed.
func (s *Signal) covers(id *Identity, k signal.Kind, named signal.Origins) bool {
	speaks := setOf(s.Origins, signal.DefaultOrigins(k))
	reads := speaks | setOf(s.Reads, 0)
	told := len(s.Verdicts) > 0 || s.Score == 0 || s.State == "unknown"
	return id.ReadsOf(k)&^reads == 0 && (told || named == 0 && id.OriginsOf(k) == speaks)
}

// speakFor sets the score of the logged value v to that of the origins that the configuration uses.
func (s *Signal) speakFor(id *Identity, k signal.Kind, v *signal.Value) {
	wanted := id.OriginsOf(k)
	if wanted == setOf(s.Origins, signal.DefaultOrigins(k)) {
		return
	}
	v.Score, v.Partial, v.Label, v.Labels, v.Probs = 0, false, "", nil, nil
	for _, o := range v.Verdicts {
		if wanted.Has(o.Origin) {
			v.Score, v.Partial = max(v.Score, o.Score), v.Partial || o.Partial
		}
	}
}
