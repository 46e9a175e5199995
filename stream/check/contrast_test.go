package check_test

import (
	"testing"

	"signalbox/stream/check"
)

// One word that excludes the one in its place, or a negation, tells a claim from the sentence it was
// taken from, whatever a judge says of it.
func TestContrasts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fact, claim string
		want        check.Verdict
	}{
		{"Turn left at the church.", "Turn right at the church.", check.Contradicted},
		{"Reports are reviewed weekly by the board.", "Reports are reviewed monthly by the board.", check.Contradicted},
		{"It is the second largest city of the region.", "It is the largest city of the region.", check.Contradicted},
		{"Die Miete wird monatlich gezahlt.", "Die Miete wird jährlich gezahlt.", check.Contradicted},
		{"Le parking est à gauche du portail.", "Le parking est à droite du portail.", check.Contradicted},
		{
			"On Tuesday evenings the sauna is reserved for women.",
			"The sauna is reserved for men on Tuesday evenings.", check.Contradicted,
		},
		{"Guests are not admitted to the cellar.", "Guests are admitted to the cellar.", check.Contradicted},
		{"The fee is due once a trip, not once a claim.", "The fee is due once a trip.", check.Unchecked},
		// The other way round twice is the same.
		{"Madrid is larger than Seville.", "Seville is smaller than Madrid.", check.Unchecked},
		{"Anna sold the house to Ben.", "Ben bought the house from Anna.", check.Unchecked},
		// Another sentence says so.
		{
			"The front door is locked at night. The back door of the house is open at night.",
			"The back door is open at night.", check.Supported,
		},
		{"The shop is open from Monday to Friday.", "The shop is open on Tuesday.", check.Supported},
		{"The shop does not open until 9 am.", "The shop opens at 9 am.", check.Unchecked},
		{"The card is not only valid for buses but also for trains.", "The card is valid for buses and trains.", check.Unchecked},
		{"The old plan is no longer on sale.", "The old plan is on sale.", check.Contradicted},
		{"If it rains, the feast is held inside the hall.", "The feast is held outside the hall.", check.Unchecked},
	} {
		wantVerdict(t, entails, c.fact, c.claim, c.want)
	}
}
