package signals

import (
	"math"
	"unicode/utf8"

	"signalbox/internal/signal"
)

// OriginVerdict is what a signal about attacks says of the text of one origin, and where the
// sentence stands that speaks most for an attack. Start and End are code points in the text of its
// segment.
type OriginVerdict struct {
	Origin  string  `json:"origin"`            // any, instructions, user, model or data
	Score   float64 `json:"score"`             // probability of an attack, in [0,1]
	Windows int     `json:"windows"`           // that cover the text
	Read    int     `json:"read"`              // of them
	Partial bool    `json:"partial,omitempty"` // some text of the origin could not be read
	// the score is that of a stored context, whose text is not here
	Stored bool `json:"stored,omitempty"`
	// index of the text in the request; absent with stored
	Segment *int `json:"segment,omitempty"`
	Start   *int `json:"start,omitempty"`
	End     *int `json:"end,omitempty"`
	// of the sentence; only for those who ask what is decided, never in a log
	Text string `json:"text,omitempty"`
}

// originVerdicts tells the verdicts of a value, without the text of the sentences.
func originVerdicts(v *signal.Value, text *signal.Text) []OriginVerdict {
	var out []OriginVerdict
	for i := range v.Verdicts {
		o := &v.Verdicts[i]
		w := OriginVerdict{
			Origin: o.Origin.String(), Score: o.Score, Windows: o.Windows, Read: o.Read,
			Partial: o.Partial,
			Stored:  o.Segment == storedSegment,
		}
		if said, ok := segmentOf(o, text); ok {
			w.Segment = new(o.Segment)
			w.Start = new(utf8.RuneCountInString(said[:o.Start]))
			w.End = new(*w.Start + utf8.RuneCountInString(said[o.Start:o.End]))
		}
		out = append(out, w)
	}
	return out
}

// Quote adds the text of the sentences to what originVerdicts made of the same value and text.
func Quote(told []OriginVerdict, v *signal.Value, text *signal.Text) {
	for i := range told {
		if said, ok := segmentOf(&v.Verdicts[i], text); ok {
			told[i].Text = said[v.Verdicts[i].Start:v.Verdicts[i].End]
		}
	}
}

// segmentOf is the text that a verdict points into; ok is false when it points to nothing there.
func segmentOf(o *signal.Verdict, text *signal.Text) (said string, ok bool) {
	if o.Segment < 0 || o.Segment >= len(text.Segments) {
		return "", false
	}
	said = text.Segments[o.Segment].Text
	return said, 0 <= o.Start && o.Start < o.End && o.End <= len(said)
}

// notRead names the origins that a request has text of and that a signal about attacks does not
// look at; contexts are data.
//
//nolint:revive // whether there are contexts
func (r *Reader) notRead(k signal.Kind, text *signal.Text, contexts bool) []string {
	reads := r.Identity.ReadsOf(k)
	if reads == 0 {
		return nil
	}
	var has signal.Origins
	if contexts {
		has = signal.OriginsOf(signal.OriginData)
	}
	for i := range text.Segments {
		has |= signal.OriginsOf(text.Segments[i].Origin)
	}
	var out []string
	for o := signal.OriginInstructions; o < signal.NumOrigins; o++ {
		if has.Has(o) && !reads.Has(o) {
			out = append(out, o.String())
		}
	}
	return out
}

// leaning is how much of a value comes from the turns before, to two digits.
func leaning(v *signal.Value) float64 { return math.Round(float64(v.Leans)*100) / 100 }
