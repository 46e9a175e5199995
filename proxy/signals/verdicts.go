package signals

import (
	"math"
	"unicode/utf8"

	"signalbox/internal/signal"
)

// OriginVerdict is the result of an attack signal for the text of one origin, with the position of
// the sentence with the highest score. Start and End are code points in the text of its segment.
type OriginVerdict struct {
	Origin  string  `json:"origin"`            // any, instructions, user, model or data
	Score   float64 `json:"score"`             // probability of an attack, in [0,1]
	Windows int     `json:"windows"`           // number of windows in the text
	Read    int     `json:"read"`              // number of windows read
	Partial bool    `json:"partial,omitempty"` // some text of the origin could not be read
	// the score is that of a stored context, whose text is not available here
	Stored bool `json:"stored,omitempty"`
	// index of the text in the request; absent with stored
	Segment *int `json:"segment,omitempty"`
	Start   *int `json:"start,omitempty"`
	End     *int `json:"end,omitempty"`
	// of the sentence; only in explanations, never in a log
	Text string `json:"text,omitempty"`
}

// originVerdicts converts the verdicts of a value, without the text of the sentences.
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

// Quote adds the text of the sentences to the result of originVerdicts for the same value and text.
func Quote(told []OriginVerdict, v *signal.Value, text *signal.Text) {
	for i := range told {
		if said, ok := segmentOf(&v.Verdicts[i], text); ok {
			told[i].Text = said[v.Verdicts[i].Start:v.Verdicts[i].End]
		}
	}
}

// segmentOf returns the text that a verdict refers to; ok is false if it is not there.
func segmentOf(o *signal.Verdict, text *signal.Text) (said string, ok bool) {
	if o.Segment < 0 || o.Segment >= len(text.Segments) {
		return "", false
	}
	said = text.Segments[o.Segment].Text
	return said, 0 <= o.Start && o.Start < o.End && o.End <= len(said)
}

// notRead lists the origins of text in a request that an attack signal does not read; contexts are
// data.
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

// leaning returns the share of a value that comes from earlier turns, rounded to two digits.
func leaning(v *signal.Value) float64 { return math.Round(float64(v.Leans)*100) / 100 }
