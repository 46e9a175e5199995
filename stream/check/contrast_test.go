package check_test

import (
	"testing"

	"signalbox/stream/check"
)

// TestContrasts checks that a word that excludes the one in its position, or a negation,
// distinguishes a claim from its sentence, whatever a judge says.
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
		{"The points jersey passed from Colby to Vos.", "The points jersey passed from Vos to Colby.", check.Contradicted},
		{
			"The bonfire is cancelled this year; the seed swap goes ahead as usual.",
			"The seed swap is cancelled this year, while the bonfire goes ahead as usual.", check.Contradicted,
		},
		// A phrase that moved as a whole, or a passive, is not a swap.
		{"Ab Montag bleibt der Haupteingang geschlossen.", "Der Haupteingang bleibt ab Montag geschlossen.", check.Unchecked},
		{"The singer left without thanking the band.", "The band was not thanked when the singer left.", check.Unchecked},
		{"Anna married Ben in the town of Lund.", "Ben married Anna in the town of Lund.", check.Unchecked},
		// Reversing it twice gives the same meaning.
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

// TestRetoldClauses checks that a claim that repeats a clause, or denies the opposite of one, is
// not flagged because of a judge's opinion on the whole sentence.
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
			"Child trailers are not permitted on the Veltra.", check.Unchecked,
		},
		{"The museum of Lund is closed on Mondays.", "The museum of Lund is not open on Mondays.", check.Unchecked},
		{"Photography is allowed everywhere except in the chart room.", "Photography is not allowed in the chart room.", check.Unchecked},
	} {
		wantVerdict(t, contradicts, c.fact, c.claim, c.want)
	}
	wantVerdict(t, entails, "Photography is allowed everywhere except in the chart room.",
		"Photography is allowed in the chart room.", check.Contradicted)
}

// TestDenials checks that a denial that the judge finds neutral is left open, unless it has a name
// of its own or many words.
func TestDenials(t *testing.T) {
	t.Parallel()
	const fact = "The lift of Harbour House is out of service while Liftec replaces its cables."
	for claim, want := range map[string]check.Verdict{
		"Residents of Harbour House cannot ride up.": check.Unchecked,
		"Residents of Harbour House must climb.":     check.Unsupported,
		"Residents of Ostberg House cannot ride up.": check.Unsupported,
		"Residents of Harbour House have not been told by the manager when workers from other firms will paint the walls, the " +
			"doors, the windows and the roof.": check.Unsupported,
	} {
		wantVerdict(t, isNeutral, fact, claim, want)
	}
}

// TestNoContrasts checks claims that only look different: symmetric relations, the same fact from
// the other side, and statements beyond a bound.
func TestNoContrasts(t *testing.T) {
	t.Parallel()
	for _, c := range [...][2]string{
		{"Kim danced with Lee at the ball.", "Lee danced with Kim at the ball."},
		{"Line A connects Oslo with Malmo by rail.", "Line A connects Malmo with Oslo by rail."},
		{"Oslo is as large as Malmo by area.", "Malmo is as large as Oslo by area."},
		{"Mr Ford sits next to Ms Gray in the hall.", "Ms Gray sits next to Mr Ford in the hall."},
		{"Anna competed against Bella in the final.", "Bella competed against Anna in the final."},
		{"The distance from Rome to Milan by rail is short.", "The distance from Milan to Rome by rail is short."},
		{"Tickets are sold at the kiosk in the hall.", "Tickets can be bought at the kiosk in the hall."},
		{"Books are lent for three weeks.", "Books can be borrowed for three weeks."},
		{"Members are sent a code by email after registration.", "Members receive a code by email after registration."},
		{"The museum stands on a hill above the town.", "The museum sits on a hill above the town."},
		{"The trail goes down to the lake.", "The trail comes down to the lake."},
		{"The bar is open until ten in the evening.", "The bar is open until ten at night."},
		{"Fill out the form at the front desk.", "Fill in the form at the front desk."},
		{"The dog is vaccinated against rabies.", "The dog is vaccinated for rabies."},
		{"The new menu is different from the old one.", "The new menu is different to the old one."},
		{"La tienda abre hasta las 20 horas.", "La tienda cierra a las 20 horas."},
		{"Every shop is open except the bakery, which is closed on Monday.", "The bakery is closed on Monday."},
		{"The firm has 260 workers.", "The firm has at least 200 workers."},
		{"The town has 12,400 inhabitants.", "The town has at least 10,000 inhabitants."},
		{"The fee is 40 euros.", "The fee is at most 50 euros."},
		{"Bookings open up to 60 days before the trip.", "Bookings open at most 60 days before the trip."},
		{"Cancelling is free up to 14 days before the trip.", "Cancelling is free at least 14 days before the trip."},
		{"You need a minimum of 60 points and a maximum of 90 points.", "You need at most 90 points."},
		{"You need a minimum of 60 points and a maximum of 90 points.", "You need at least 60 points."},
		{"Not more than 3 guests may stay.", "At most 3 guests may stay."},
		{"No fewer than 3 guests must stay.", "At least 3 guests must stay."},
		{"Der Rabatt gilt für alle außer Neukunden.", "Der Rabatt gilt nicht für Neukunden."},
		{"Alle Züge fahren außer am Sonntag.", "Am Sonntag fahren keine Züge."},
		{"The filter is changed monthly.", "The filter is changed every month."},
		{
			"5. Conseil syndical. M. Aubry ne se représente pas. Mme Diallo est élue à sa place.",
			"M. Aubry ne se représente pas au conseil syndical.",
		},
	} {
		e := facts(t, c[0])
		o := check.Options{Judge: always(entails), English: true}
		got := checker(t, o).Check(t.Context(), e, "", []check.Claim{{Text: c[1]}})[0]
		if got.Verdict >= check.Unsupported {
			t.Errorf("%q of %q: %s (%s)", c[1], c[0], got.Verdict, got.Reason)
		}
	}
}
