package numeric_test

import (
	"testing"

	"signalbox/stream/numeric"
)

// TestRisesAreToldFromFalls checks that a rise is not accepted as a fall if the evidence shows
// which number came first.
func TestRisesAreToldFromFalls(t *testing.T) {
	t.Parallel()
	const (
		revenue    = "Revenue was EUR 12 million in 2024 and EUR 10 million in 2023."
		attendance = "Attendance was 300 in May and 360 in June."
		turn       = "Output was 80 tonnes in December 2022 and 100 tonnes in 2023."
		stock      = "The share went from 80 dollars to 100 dollars."
	)
	for _, c := range []struct {
		facts, claim string
		want         numeric.Verdict
	}{
		{revenue, "Revenue fell by 20% in 2024.", numeric.Unsupported},
		{revenue, "Revenue rose by 20% in 2024.", numeric.Supported},
		{revenue, "Revenue grew by EUR 2 million.", numeric.Supported},
		{revenue, "Revenue fell by EUR 2 million.", numeric.Contradicted},
		{revenue, "Revenue in 2023 was 83% of that in 2024.", numeric.Supported},
		{attendance, "Attendance fell by 20% in June.", numeric.Unsupported},
		{attendance, "Attendance rose by 20% in June.", numeric.Supported},
		{attendance, "Attendance dropped by 60 in June.", numeric.Contradicted},
		{stock, "The share lost 25%.", numeric.Unsupported},
		{stock, "The share lost 20%.", numeric.Unsupported},
		{stock, "The share gained 25%.", numeric.Supported},
		{turn, "In December 2022 output was 20 tonnes less than in 2023.", numeric.Supported},
		{turn, "In December 2022 output was 20 tonnes more than in 2023.", numeric.Contradicted},
		{"Output rose by 15%.", "Output fell by 15%.", numeric.Contradicted},
		{"Output rose by 15%.", "Output increased by 15%.", numeric.Supported},
		{"Output fell by 15%, while costs rose by 3%.", "Output fell by 15%.", numeric.Supported},
		// The number is right; the direction is left to a model.
		{"Output fell to 85 tonnes.", "Output rose to 85 tonnes.", numeric.Supported},
		{"Der Umsatz stieg von 200 auf 250 Euro.", "Der Umsatz stieg um 25 Prozent.", numeric.Supported},
		{"Der Umsatz stieg von 200 auf 250 Euro.", "Der Umsatz sank um 25 Prozent.", numeric.Unsupported},
		{"Der Umsatz fiel von 250 auf 200 Euro.", "Der Umsatz ging um 20 Prozent zurück.", numeric.Supported},
		// the order is unknown
		{"Plan A costs 20 euros and plan B costs 30 euros.", "Plan B is 50% more expensive than plan A.", numeric.Supported},
		{"The old pump used 500 W, the new one uses 400 W.", "The new pump uses 20% less power.", numeric.Supported},
	} {
		x := numeric.NewIndex(t.Context(), []numeric.Sentence{{Text: c.facts}})
		if got, findings := x.Check(nil, c.claim, ""); got != c.want {
			t.Errorf("%q beside %q: %v, want %v: %+v", c.claim, c.facts, got, c.want, findings)
		}
	}
}
