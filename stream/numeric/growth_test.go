package numeric_test

import (
	"strconv"
	"strings"
	"testing"

	"signalbox/stream/numeric"
)

// longSentences are fragments that, when repeated, form one sentence that is expensive to read:
// with many numbers, words of change or clauses.
var longSentences = map[string]string{
	"numbers":  "12 34 kg 56 % 7:30 ",
	"from":     "from 3 euros up to 5 euros to 9 euros ",
	"changes":  "was raised from 10 to 20 users ",
	"moves":    "moved from Bonn to Cologne ",
	"replaced": "formerly 10 s in the a of was 12 s ",
	"now":      "the old price was 30; it is now 20; ",
	"commas":   "red, 5 blue, green, ",
	"brackets": "(7) [a] (was 8443) {b} ",
	"and":      "and Ann 5 and Bob 7 and ",
	"rates":    "a monthly fee of 5 euros per user each daily 7 ",
	"dates":    "on 3 May 2024 at 23:30 UTC and 00:30 CET ",
	"fields":   `"in_stock": false, "qty": 3, `,
	"quotes":   "`a` ``5 \"x\" '7' ",
	"names":    "Ann Bob Cid Dan ",
	"minus":    "- -5 – 4 — ",
	"listed":   "1, 2 and 3, ",
	"months":   "May 5 June 7 ",
	"trends":   "rose by 5 % and fell by 7 % ",
	"prices":   "£99.13 for 7 adults and 3 children and ",
	"words":    "seven of the two hundred and ",
}

// longSentence returns one sentence of n bytes or slightly more.
func longSentence(piece string, n int) string {
	return strings.TrimSpace(strings.Repeat(piece, n/len(piece)+1)) + "."
}

// BenchmarkLongSentence measures the time per byte to read one sentence as evidence and as a claim.
// It should not grow with the length of the sentence.
func BenchmarkLongSentence(b *testing.B) {
	for name, piece := range longSentences {
		for _, size := range [...]int{8 << 10, 16 << 10, 32 << 10, 64 << 10} {
			text := longSentence(piece, size)
			x := numeric.NewIndex(b.Context(), []numeric.Sentence{{Text: "The fee is 5 euros."}})
			for _, way := range [...]struct {
				name string
				read func()
			}{
				{"index", func() { numeric.NewIndex(b.Context(), []numeric.Sentence{{Text: text}}) }},
				{"claim", func() {
					steps := 1 << 20
					_, _, _ = x.CheckFrom(b.Context(), nil, text, "", &steps)
				}},
				{"moved", func() { numeric.Moved(text); numeric.Present(text) }},
				{"look", func() { numeric.Look(text) }},
			} {
				b.Run(name+"/"+way.name+"/"+strconv.Itoa(size>>10)+"K", func(b *testing.B) {
					for b.Loop() {
						way.read()
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(text)), "ns/B")
				})
			}
		}
	}
}
