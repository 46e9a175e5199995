package pii

import (
	"strings"
	"testing"
)

// prose is a paragraph without personal data, with the capitals, figures and stops that prose has.
const prose = `The water cycle describes how water moves above, on and below the surface of a planet. In the first
stage, heat from the sun lifts about 505,000 cubic kilometres of it into the air each year; most of that, some 86 %,
comes from the oceans. Clouds form when the vapour cools, and rain returns what was lost. Scientists such as those of
the Institute have measured this since 1961, with errors of 3.5 to 5 percent. What follows is a short list: rivers,
lakes, soil. Nothing in it (see section 2.4) is new, but the numbers were revised in 2019, when a better model became
available. Why does it matter? Because farms, cities and forests depend on it: one bad year is enough.
`

func BenchmarkPatterns(b *testing.B) {
	text := strings.Repeat(prose, 1500)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if got := Patterns(text, nil); len(got) != 0 {
			b.Fatalf("found %v", got[0])
		}
	}
}

func BenchmarkPatternsInLowerCase(b *testing.B) {
	text := strings.Repeat("words without a sign of anything in them and nothing to look at ", 15000)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		Patterns(text, nil)
	}
}

func BenchmarkNominate(b *testing.B) {
	text := strings.Repeat(prose, 1500)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	var dst []Range
	for b.Loop() {
		dst = nominated(text, dst[:0])
	}
}
