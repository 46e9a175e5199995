package numeric_test

import (
	"testing"

	"signalbox/stream/numeric"
)

// TestRatesHaveAPeriod checks that an amount per month is not accepted per year, in any wording,
// nor one per user for one per team.
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
		want         numeric.Verdict
	}{
		{interest, "Late payments bear interest of 8% per month.", numeric.Contradicted},
		{interest, "Late payments bear interest of 8% monthly.", numeric.Contradicted},
		{interest, "Late payments bear interest of 8% a year.", numeric.Supported},
		{interest, "Late payments bear 8% annual interest.", numeric.Supported},
		{interest, "Late payments bear interest of 8%.", numeric.Supported},
		{"Interest is 8% annually.", "Interest is 8% a month.", numeric.Contradicted},
		{requests, "The API limit is 100 requests per hour.", numeric.Contradicted},
		{requests, "The API limit is 100 requests per minute per user.", numeric.Unsupported},
		{requests, "The API limit is 100 requests per minute for each key.", numeric.Supported},
		{requests, "The API limit is 100 requests/minute.", numeric.Supported},
		{requests, "The API limit is 6000 requests per hour.", numeric.Supported},
		{rent, "The rent is 800 euros a week.", numeric.Contradicted},
		{rent, "The weekly rent is 800 euros.", numeric.Contradicted},
		{rent, "The rent is 800 euros per month.", numeric.Supported},
		{rent, "The monthly rent is 800 euros.", numeric.Supported},
		{rent, "The annual rent is 9,600 euros.", numeric.Supported},
		{rent, "The annual rent is 9,800 euros.", numeric.Contradicted},
		{"Die Miete kostet 800 Euro im Monat.", "Die Monatsmiete kostet 800 Euro.", numeric.Supported},
		{"Die Inflation beträgt 3 Prozent pro Jahr.", "Die Inflation beträgt 3 Prozent pro Monat.", numeric.Contradicted},
		{"Die Inflation beträgt 3 Prozent pro Jahr.", "Die jährliche Inflation beträgt 3 Prozent.", numeric.Supported},
		{"Das Konto kostet 4,90 Euro im Monat.", "Das Konto kostet 4,90 € p. a.", numeric.Contradicted},
		{"Das Konto kostet 4,90 Euro im Monat.", "Das Konto kostet 4,90 Euro p.a. und mehr.", numeric.Contradicted},
		{"Das Konto kostet 4,90 Euro im Monat.", "Das Konto kostet 58,80 Euro p. a.", numeric.Supported},
		{"Das Konto kostet 4,90 Euro im Monat.", "Das Konto kostet 4,90 Euro mtl.", numeric.Supported},
		{"Das Konto kostet 4,90 Euro im Monat.", "Das Konto kostet 4,90 Euro jährl.", numeric.Contradicted},
		{"The account costs 4.90 euros a month.", "The account costs 58.80 euros p.a.", numeric.Supported},
		{"Der Sollzins beträgt 3,6 % p. a.", "Der Sollzins beträgt 3,6 % pro Monat.", numeric.Contradicted},
		{"Der Sollzins beträgt 3,6 % p. a.", "Der Sollzins beträgt 3,6 % im Jahr.", numeric.Supported},
		{"Der Sollzins ist 3,6 % p. a., die Gebühr 5 € im Monat.", "Die Gebühr ist 5 € im Monat.", numeric.Supported},
		{repairs, "Repairs take up to 10 days.", numeric.Unsupported},
		{repairs, "Repairs take up to 10 working days.", numeric.Supported},
		{"Reparaturen dauern bis zu 10 Werktage.", "Reparaturen dauern bis zu 10 Tage.", numeric.Unsupported},
		{"Reparaturen dauern bis zu 10 Werktage.", "Repairs take up to 10 business days.", numeric.Supported},
		{"Reparaturen dauern bis zu 10 Tage.", "Reparaturen dauern bis zu 10 Kalendertage.", numeric.Supported},
		{"Reparaturen dauern bis zu 10 Werktage.", "Reparaturen dauern bis zu 10 Kalendertage.", numeric.Unsupported},
		{"Die Gebühr beträgt 0,25 Prozent.", "Die Gebühr beträgt 25 Basispunkte.", numeric.Supported},
		{"Die Gebühr beträgt 0,25 Prozent.", "Die Gebühr beträgt 35 Basispunkte.", numeric.Contradicted},
		{"Die Gebühr beträgt 0,15 Prozent.", "Die Gebühr beträgt 1,5 Promille.", numeric.Supported},
		{table, "The Starter plan costs $9 per month.", numeric.Supported},
		{table, "The Starter plan costs $9 per year.", numeric.Unsupported},
		{table, "The Starter plan costs $12 per month.", numeric.Contradicted},
		{table, "The Starter plan costs $108 a year.", numeric.Supported},
		{"Tariff L | Cost per year 240 €", "Tariff L costs 20 € per month.", numeric.Supported},
		{"Tariff L | Cost per year 240 €", "Tariff L costs 240 € per month.", numeric.Unsupported},
	} {
		x := numeric.NewIndex(t.Context(), []numeric.Sentence{{Text: c.facts}})
		if got, findings := x.Check(nil, c.claim, ""); got != c.want {
			t.Errorf("%q beside %q: %v, want %v: %+v", c.claim, c.facts, got, c.want, findings)
		}
	}
	x := numeric.NewIndex(t.Context(), []numeric.Sentence{{Text: table}, {Text: "Plan Team | Price per month $49"}})
	if got, findings := x.Check(nil, "The Starter plan costs $49 per month.", ""); got != numeric.Contradicted {
		t.Errorf("the price of another plan: %v: %+v", got, findings)
	}
}
