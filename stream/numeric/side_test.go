package numeric_test

import (
	"testing"

	"signalbox/stream/numeric"
)

// The same is not said of what lies above a number and of what lies below it.
func TestSidesOfANumber(t *testing.T) {
	t.Parallel()
	const (
		free     = "Delivery is free from 80 dollars."
		versand  = "Der Versand ist ab 50 Euro kostenlos."
		luggage  = "Luggage up to 20 kg is free."
		discount = "The discount applies from 10 units."
	)
	for _, c := range []struct {
		facts, claim string
		caught       bool
	}{
		{free, "Delivery is free up to 80 dollars.", true},
		{free, "Delivery is free below 80 dollars.", true},
		{free, "Delivery is free from 80 dollars.", false},
		{free, "Delivery is free for 80 dollars or more.", false},
		{free, "Delivery is free above 80 dollars.", false},
		{free, "Delivery is not free below 80 dollars.", false},
		{free, "Delivery costs extra up to 80 dollars.", false},
		{versand, "Der Versand ist bis 50 Euro kostenlos.", true},
		{versand, "Der Versand ist ab 50 Euro kostenlos.", false},
		{"Kinder ab 6 Jahren zahlen.", "Kinder bis 6 Jahre zahlen.", true},
		{"Kinder ab 6 Jahren zahlen.", "Kinder unter 6 Jahren zahlen.", true},
		{"Kinder ab 6 Jahren zahlen.", "Kinder unter 6 Jahren zahlen nicht.", false},
		{"Admission is free for children under 6.", "Admission is free for children from 6.", true},
		{luggage, "Luggage from 20 kg is free.", true},
		{luggage, "Luggage of at most 20 kg is free.", false},
		{"Entry is free from age 65.", "Entry is free up to age 65.", true},
		{discount, "The discount applies below 10 units.", true},
		{discount, "The discount applies from 10 units upwards.", false},
		{discount, "The discount applies to 10 units and more.", false},
		{"Prices range from 10 to 20 euros.", "Prices go from 10 euros up to 20 euros.", false},
		{"Die Fahrt dauert von 20 bis 30 Minuten.", "Die Fahrt dauert bis zu 30 Minuten.", false},
	} {
		x := numeric.NewIndex(t.Context(), []numeric.Sentence{{Text: c.facts}})
		if got, findings := x.Check(nil, c.claim, ""); got >= numeric.Unsupported != c.caught {
			t.Errorf("%q beside %q: %v: %+v", c.claim, c.facts, got, findings)
		}
	}
}
