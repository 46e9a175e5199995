package decisionlog

import "signalbox/internal/signal"

// Verdict is what a signal said of the text of one origin. Where in the text is not told.
type Verdict struct {
	Origin  string  `json:"origin"` // any, instructions, user, model or data
	Score   float64 `json:"score"`  // probability of an attack, in [0,1]
	Windows int     `json:"windows,omitempty"`
	Read    int     `json:"read,omitempty"`
	Partial bool    `json:"partial,omitempty"` // some text of the origin could not be read
}

// verdictsOf writes verdicts down.
func verdictsOf(v *signal.Value) []Verdict {
	var out []Verdict
	for i := range v.Verdicts {
		o := &v.Verdicts[i]
		out = append(out, Verdict{o.Origin.String(), o.Score, o.Windows, o.Read, o.Partial})
	}
	return out
}

// verdicts are those of a logged signal as rules read them.
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

// originOf reads the name of an origin; OriginAny where it is none.
func originOf(name string) signal.Origin {
	o, _ := signal.ParseOrigin(name)
	return o
}

// isOrigin reports a name that String of an origin gives.
func isOrigin(name string) bool {
	_, ok := signal.ParseOrigin(name)
	return ok || name == signal.OriginAny.String()
}

// namesOf lists the origins of a set, in order; OriginAny, which is in every set, is not among
// them.
func namesOf(set signal.Origins) []string {
	var out []string
	for o := signal.OriginInstructions; o < signal.NumOrigins; o++ {
		if set.Has(o) {
			out = append(out, o.String())
		}
	}
	return out
}

// setOf is the inverse of namesOf; fallback where there is no name.
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

// noteOrigins adds to a line whose text a signal of kind k was read from, where that is not the
// default.
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

// covers reports whether a logged signal of kind k was read from all that the configuration reads;
// named are the origins that its rules ask about. A line without verdicts and with a score was
// written before there were any.
func (s *Signal) covers(id *Identity, k signal.Kind, named signal.Origins) bool {
	speaks := setOf(s.Origins, signal.DefaultOrigins(k))
	reads := speaks | setOf(s.Reads, 0)
	told := len(s.Verdicts) > 0 || s.Score == 0 || s.State == "unknown"
	return id.ReadsOf(k)&^reads == 0 && (told || named == 0 && id.OriginsOf(k) == speaks)
}

// speakFor makes the score of v, which was logged, that of the origins that the configuration wants
// it to speak for.
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
