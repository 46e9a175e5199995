package numeric_test

import (
	"strings"
	"testing"

	"signalbox/stream/numeric"
)

// TestWhichOfTwoDatesIsMeant checks that a claim may mean either of two dates of one subject,
// unless one of its words occurs with one of them. A word of the other date contradicts. Month
// names do not count.
func TestWhichOfTwoDatesIsMeant(t *testing.T) {
	t.Parallel()
	const (
		tariff  = "The new tariff was approved on 12 November and takes effect on 1 December."
		deal    = "The contract was signed on 3 March 2025. // It starts on 1 April 2025 and ends on 31 March 2027."
		invoice = "The invoice was issued on 4 May and is due on 18 May."
		apply   = "Applications open on 1 September and close on 15 October."
		event   = "The conference opens on 9 June; registration closes on 20 May."
		patch   = "The patch was announced on 2 July and released on 16 July."
		library = "The library was founded in 1887 and rebuilt in 1951."
		lab     = "The clinic opens at 8:00 and the laboratory opens at 9:30."
		beta    = "Version 7 entered beta in August 2024 and reached general availability in November 2024."
		comma   = "The law was approved on 3 May, but takes effect on 1 June."
		stages  = "The bill was approved on 3 May, signed on 5 May, and it takes effect on 1 June."
		tarif   = "Der Tarif wurde am 12. November beschlossen und tritt am 1. Dezember in Kraft."
	)
	const grant = "Apply by 15 August. // Studies begin on 1 September."
	for _, c := range []struct {
		facts, claim string
		want         numeric.Verdict
		untold       bool
	}{
		{grant, "The deadline for applications is 15 August.", numeric.Supported, false},
		{grant, "The deadline for applications is 1 September.", numeric.Supported, true},
		{grant, "Studies start on 1 September.", numeric.Supported, false},
		{tariff, "The new tariff takes effect on 1 December.", numeric.Supported, false},
		{tariff, "The new tariff takes effect on 12 November.", numeric.Contradicted, false},
		{tariff, "The tariff was approved on 12 November.", numeric.Supported, false},
		{tariff, "The tariff was approved on 1 December.", numeric.Contradicted, false},
		{tariff, "The tariff comes into force on 1 December.", numeric.Supported, false},
		{tariff, "The tariff comes into force on 12 November.", numeric.Supported, true},
		{tariff, "On 1 December the tariff takes effect.", numeric.Supported, false},
		{tariff, "It happened on 12 November.", numeric.Supported, true},
		{deal, "The contract begins on 1 April 2025.", numeric.Supported, false},
		{deal, "The contract begins on 3 March 2025.", numeric.Supported, true},
		{deal, "The contract expires on 31 March 2027.", numeric.Supported, false},
		{deal, "The contract expires on 1 April 2025.", numeric.Supported, true},
		{invoice, "The invoice is due on 18 May.", numeric.Supported, false},
		{invoice, "The invoice is due on 4 May.", numeric.Contradicted, false},
		{apply, "The deadline for applications is 15 October.", numeric.Supported, false},
		{event, "You can register until 20 May.", numeric.Supported, false},
		{event, "The conference starts on 9 June.", numeric.Supported, false},
		{event, "The conference starts on 20 May.", numeric.Contradicted, false},
		{patch, "The patch became available on 16 July.", numeric.Supported, true},
		{patch, "The patch became available on 2 July.", numeric.Supported, true},
		{library, "The library was established in 1887.", numeric.Supported, false},
		{library, "The library was reconstructed in 1951.", numeric.Supported, true},
		{lab, "The laboratory opens at 9:30.", numeric.Supported, false},
		{lab, "The laboratory opens at 8:00.", numeric.Contradicted, false},
		{beta, "Version 7 entered beta in August 2024.", numeric.Supported, false},
		{beta, "Version 7 became generally available in November 2024.", numeric.Supported, true},
		{beta, "Version 7 entered beta in November 2024.", numeric.Contradicted, false},
		{comma, "The law comes into force on 1 June.", numeric.Supported, false},
		{comma, "The law takes effect on 3 May.", numeric.Contradicted, false},
		{comma, "The law was approved on 1 June.", numeric.Contradicted, false},
		{stages, "The bill comes into force on 1 June.", numeric.Supported, false},
		{stages, "The bill was signed on 1 June.", numeric.Contradicted, false},
		{stages, "The bill was signed on 5 May.", numeric.Supported, false},
		{stages, "The bill takes effect on 5 May.", numeric.Contradicted, false},
		{tarif, "Der Tarif tritt am 1. Dezember in Kraft.", numeric.Supported, false},
		{tarif, "Der Tarif tritt am 12. November in Kraft.", numeric.Contradicted, false},
	} {
		var facts []numeric.Sentence
		for s := range strings.SplitSeq(c.facts, " // ") {
			facts = append(facts, numeric.Sentence{Text: s})
		}
		got, findings := numeric.NewIndex(t.Context(), facts).Check(nil, c.claim, "")
		if got != c.want || len(findings) != 1 || findings[0].Untold != c.untold {
			t.Errorf("%q beside %q: %v, want %v: %+v", c.claim, c.facts, got, c.want, findings)
		}
	}
}

// TestFiguresOfAYearAreNotThoseOfItsParts checks that an amount for a year is not accepted for a
// quarter or a half-year, while one for days of the year may be.
func TestFiguresOfAYearAreNotThoseOfItsParts(t *testing.T) {
	t.Parallel()
	const (
		revenue = "Revenue in 2025 was 4.2 million euros."
		umsatz  = "Im Jahr 2025 lag der Umsatz bei 4,2 Mio. Euro."
		row     = "Year: 2025 | Revenue: 4.2 million euros"
		tour    = "2006 tour dates: 3 August Oslo, 5 August Bergen // The tour had 14 shows."
	)
	wantSaid(t, []said{
		{revenue, "In 2025 revenue was 4.2 million euros.", numeric.Supported},
		{revenue, "In the third quarter of 2025 revenue was 4.2 million euros.", numeric.Contradicted},
		{revenue, "Revenue in the first half of 2025 was 4.2 million euros.", numeric.Contradicted},
		{umsatz, "Im dritten Quartal 2025 lag der Umsatz bei 4,2 Mio. Euro.", numeric.Contradicted},
		{row, "Revenue in 2025 was 4.2 million euros.", numeric.Supported},
		{row, "Revenue in Q3 2025 was 4.2 million euros.", numeric.Contradicted},
		{tour, "In the third quarter of 2006 the tour had 14 shows.", numeric.Supported},
	})
}
