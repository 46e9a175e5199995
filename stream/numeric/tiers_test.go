package numeric_test

import (
	"strings"
	"testing"

	"signalbox/stream/numeric"
)

// TestTiersOfATable checks that a number of the claim selects the row whose first cell is a
// matching range or bound.
func TestTiersOfATable(t *testing.T) {
	t.Parallel()
	const (
		fees = "up to 10,000 euros | Fee 1.9 %\n10,001 to 50,000 euros | Fee 1.5 %\nover 50,000 euros | Fee 1.1 %"
		ship = "under 50 euros | Shipping 6.90 euros\n" +
			"50 to 99.99 euros | Shipping 3.90 euros\nfrom 100 euros | Shipping free"
		unit = "1 bis 9 Stück | Stückpreis 12,00 €\n10 bis 49 Stück | Stückpreis 10,50 €\nab 50 Stück | Stückpreis 9,00 €"
	)
	for _, c := range []struct {
		facts, claim string
		want         numeric.Verdict
	}{
		{fees, "Between 10,001 and 50,000 euros the fee is 1.5 %.", numeric.Supported},
		{fees, "Between 10,001 and 50,000 euros the fee is 1.1 %.", numeric.Contradicted},
		{fees, "Up to 10,000 euros the fee is 1.9 %.", numeric.Supported},
		{fees, "Up to 10,000 euros the fee is 1.5 %.", numeric.Contradicted},
		{fees, "Above 50,000 euros the fee is 1.1 %.", numeric.Supported},
		{fees, "Above 50,000 euros the fee is 1.9 %.", numeric.Contradicted},
		{ship, "Shipping an order of 70 euros costs 3.90 euros.", numeric.Supported},
		{ship, "Shipping an order of 70 euros costs 6.90 euros.", numeric.Contradicted},
		{ship, "Shipping an order of 70 euros costs 4.90 euros.", numeric.Contradicted},
		{ship, "Shipping an order of 20 euros costs 12 euros.", numeric.Contradicted},
		{ship, "Shipping costs 5.90 euros.", numeric.Contradicted},
		{ship, "Shipping an order of 120 euros is free.", numeric.NotCheckable},
		{fees, "For 20,000 euros a fee is taken.", numeric.NotCheckable},
		{fees, "For 20,000 euros the fee is 1.5 %.", numeric.Supported},
		{unit, "Ab 50 Stück kostet ein Stück 9,00 €.", numeric.Supported},
		{unit, "Ab 50 Stück kostet ein Stück 10,50 €.", numeric.Contradicted},
		{unit, "Bei 20 Stück kostet ein Stück 10,50 €.", numeric.Supported},
		{unit, "Bei 20 Stück kostet ein Stück 12,00 €.", numeric.Contradicted},
	} {
		var list []numeric.Sentence
		for row := range strings.SplitSeq(c.facts, "\n") {
			list = append(list, numeric.Sentence{Text: row})
		}
		x := numeric.NewIndex(t.Context(), list)
		if got, findings := x.Check(nil, c.claim, ""); got != c.want {
			t.Errorf("%q: %v, want %v: %+v", c.claim, got, c.want, findings)
		}
	}
}

// TestNumbersOfTwoDatesInTheSameWords checks that a number belongs to the date of its sentence if
// another sentence has the same words for another date, also if the claim writes the date
// differently.
func TestNumbersOfTwoDatesInTheSameWords(t *testing.T) {
	t.Parallel()
	x := numeric.NewIndex(t.Context(), []numeric.Sentence{
		{Text: "Revenue in Q3 2025 was 4.2 million euros."},
		{Text: "Revenue in Q2 2025 was 3.9 million euros."},
		{Text: "The team of Q2 2025 had 12 people."},
	})
	for claim, want := range map[string]numeric.Verdict{
		"In the third quarter of 2025 revenue was 4.2 million euros.":  numeric.Supported,
		"In the third quarter of 2025 revenue was 3.9 million euros.":  numeric.Contradicted,
		"In the second quarter of 2025 revenue was 3.9 million euros.": numeric.Supported,
		"Im 2. Quartal 2025 lag der Umsatz bei 4,2 Mio. Euro.":         numeric.Contradicted,
	} {
		if got, findings := x.Check(nil, claim, ""); got != want {
			t.Errorf("%q: %v, want %v: %+v", claim, got, want, findings)
		}
	}
}

// TestClausesThatGoOnAboutTheSameSubject checks that a clause which only says when something ends,
// or what holds then, continues the subject of the previous clause.
func TestClausesThatGoOnAboutTheSameSubject(t *testing.T) {
	t.Parallel()
	const (
		course = "La matrícula comienza el 1 de julio y termina el 12 de julio."
		notice = "In der Probezeit beträgt die Kündigungsfrist 2 Wochen, danach 3 Monate."
		sale   = "Registration begins on 1 July and ends on 12 July."
	)
	for _, c := range []struct {
		facts, claim string
		want         numeric.Verdict
	}{
		{course, "El plazo de matrícula acaba el 12 de julio.", numeric.Supported},
		{course, "La matrícula comienza el 12 de julio.", numeric.Contradicted},
		{notice, "Nach der Probezeit gilt eine Kündigungsfrist von 3 Monaten.", numeric.Supported},
		{notice, "Nach der Probezeit gilt eine Kündigungsfrist von 4 Monaten.", numeric.Contradicted},
		{sale, "The registration period is over on 12 July.", numeric.Supported},
		{sale, "Registration begins on 12 July.", numeric.Contradicted},
	} {
		x := numeric.NewIndex(t.Context(), []numeric.Sentence{{Text: c.facts}})
		if got, findings := x.Check(nil, c.claim, ""); got != c.want {
			t.Errorf("%q: %v, want %v: %+v", c.claim, got, c.want, findings)
		}
	}
}
