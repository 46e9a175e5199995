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

// A claim that tells a clause again, or denies the opposite of one, is not flagged for what a judge
// makes of the rest of the sentence.
func TestRetoldClauses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fact, claim string
		want        check.Verdict
	}{
		{
			"The Veltra is a bicycle for cities. Child trailers are permitted, child seats are not.",
			"Child trailers are permitted on the Veltra.", check.Unchecked,
		},
		{
			"The Veltra is a bicycle for cities. Child trailers are permitted, child seats are not.",
			"Child trailers are not permitted on the Veltra.", check.Contradicted,
		},
		{"The museum of Lund is closed on Mondays.", "The museum of Lund is not open on Mondays.", check.Unchecked},
		{"Photography is allowed everywhere except in the chart room.", "Photography is not allowed in the chart room.", check.Unchecked},
	} {
		wantVerdict(t, contradicts, c.fact, c.claim, c.want)
	}
	wantVerdict(t, entails, "Photography is allowed everywhere except in the chart room.",
		"Photography is allowed in the chart room.", check.Contradicted)
}

// Of a claim that a judge finds neutral its own words tell how much that says.
func TestOwnWords(t *testing.T) {
	t.Parallel()
	const fact = "The lift of Harbour House is out of service while Liftec replaces its cables."
	for claim, want := range map[string]check.Verdict{
		"Residents of Harbour House must climb the stairs while Liftec replaces the cables of the lift.":    check.Unchecked,
		"The doors of the lift of Harbour House are out of service while Liftec replaces its cables.":       check.Unsupported,
		"Residents of Harbour House must climb the stairs while Ostberg replaces the cables of the lift.":   check.Unsupported,
		"Harbour House hosts concerts, readings, exhibitions and a popular flea market in summer weekends.": check.Unsupported,
	} {
		wantVerdict(t, isNeutral, fact, claim, want)
	}
}
