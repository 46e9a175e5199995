package numeric_test

import (
	"testing"

	"signalbox/stream/numeric"
)

// An amount for a month is none for a year, however it is put, and one for each user none for each
// team.
func TestRatesHaveAPeriod(t *testing.T) {
	t.Parallel()
	const (
		interest = "Late payments bear interest of 8% per year."
		requests = "The API limit is 100 requests per minute per key."
		rent     = "The rent is 800 euros a month."
		repairs  = "Repairs take up to 10 business days."
		table    = "Plan Starter | Price per month $9"
	)
	for _, c := range []struct {
		facts, claim string
		caught       bool
	}{
		{interest, "Late payments bear interest of 8% per month.", true},
		{interest, "Late payments bear interest of 8% monthly.", true},
		{interest, "Late payments bear interest of 8% a year.", false},
		{interest, "Late payments bear 8% annual interest.", false},
		{interest, "Late payments bear interest of 8%.", false},
		{"Interest is 8% annually.", "Interest is 8% a month.", true},
		{requests, "The API limit is 100 requests per hour.", true},
		{requests, "The API limit is 100 requests per minute per user.", true},
		{requests, "The API limit is 100 requests per minute for each key.", false},
		{requests, "The API limit is 100 requests/minute.", false},
		{requests, "The API limit is 6000 requests per hour.", false},
		{rent, "The rent is 800 euros a week.", true},
		{rent, "The weekly rent is 800 euros.", true},
		{rent, "The rent is 800 euros per month.", false},
		{rent, "The monthly rent is 800 euros.", false},
		{rent, "The annual rent is 9,600 euros.", false},
		{rent, "The annual rent is 9,800 euros.", true},
		{"Die Miete kostet 800 Euro im Monat.", "Die Monatsmiete kostet 800 Euro.", false},
		{"Die Inflation beträgt 3 Prozent pro Jahr.", "Die Inflation beträgt 3 Prozent pro Monat.", true},
		{"Die Inflation beträgt 3 Prozent pro Jahr.", "Die jährliche Inflation beträgt 3 Prozent.", false},
		{repairs, "Repairs take up to 10 days.", true},
		{repairs, "Repairs take up to 10 working days.", false},
		{"Reparaturen dauern bis zu 10 Werktage.", "Reparaturen dauern bis zu 10 Tage.", true},
		{"Reparaturen dauern bis zu 10 Werktage.", "Repairs take up to 10 business days.", false},
		{table, "The Starter plan costs $9 per month.", false},
		{table, "The Starter plan costs $9 per year.", true},
		{table, "The Starter plan costs $12 per month.", true},
		{table, "The Starter plan costs $108 a year.", false},
		{"Tariff L | Cost per year 240 €", "Tariff L costs 20 € per month.", false},
		{"Tariff L | Cost per year 240 €", "Tariff L costs 240 € per month.", true},
	} {
		x := numeric.NewIndex(t.Context(), []numeric.Sentence{{Text: c.facts}})
		if got, findings := x.Check(nil, c.claim, ""); got >= numeric.Unsupported != c.caught {
			t.Errorf("%q beside %q: %v: %+v", c.claim, c.facts, got, findings)
		}
	}
	x := numeric.NewIndex(t.Context(), []numeric.Sentence{{Text: table}, {Text: "Plan Team | Price per month $49"}})
	if got, findings := x.Check(nil, "The Starter plan costs $49 per month.", ""); got != numeric.Contradicted {
		t.Errorf("the price of another plan: %v: %+v", got, findings)
	}
}
