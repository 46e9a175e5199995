package numeric_test

import (
	"testing"

	"signalbox/stream/numeric"
)

// TestSidesOfANumber checks that a rule above a number is not accepted below it.
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
		want         numeric.Verdict
	}{
		{free, "Delivery is free up to 80 dollars.", numeric.Contradicted},
		{free, "Delivery is free below 80 dollars.", numeric.Contradicted},
		{free, "Delivery is free from 80 dollars.", numeric.Supported},
		{free, "Delivery is free for 80 dollars or more.", numeric.Supported},
		{free, "Delivery is free above 80 dollars.", numeric.Supported},
		{free, "Delivery is not free below 80 dollars.", numeric.Supported},
		{free, "Delivery costs extra up to 80 dollars.", numeric.Supported},
		{versand, "Der Versand ist bis 50 Euro kostenlos.", numeric.Contradicted},
		{versand, "Der Versand ist ab 50 Euro kostenlos.", numeric.Supported},
		{"Kinder ab 6 Jahren zahlen.", "Kinder bis 6 Jahre zahlen.", numeric.Contradicted},
		{"Kinder ab 6 Jahren zahlen.", "Kinder unter 6 Jahren zahlen.", numeric.Contradicted},
		{"Kinder ab 6 Jahren zahlen.", "Kinder unter 6 Jahren zahlen nicht.", numeric.Supported},
		{"Sie erreichen uns unter 116 116.", "Sie erreichen uns unter 116 117.", numeric.Contradicted},
		{"Sie erreichen uns unter 116 116.", "Sie erreichen uns unter 116 116.", numeric.Supported},
		{"Die Hotline ist unter 116 116 erreichbar.", "Sie ist unter 116 119 rund um die Uhr erreichbar.", numeric.Contradicted},
		{"Sie erreichen uns unter 116116.", "Die Nummer ist 116116.", numeric.Supported},
		{"Sie erreichen damit Kosten von 39 Euro.", "Sie erreichen damit Kosten unter 50 Euro.", numeric.Supported},
		{"Die Zahl der Kunden beträgt 150.000.", "Die Zahl der Kunden liegt unter 200.000.", numeric.Supported},
		{"Admission is free for children under 6.", "Admission is free for children from 6.", numeric.Contradicted},
		{luggage, "Luggage from 20 kg is free.", numeric.Contradicted},
		{luggage, "Luggage of at most 20 kg is free.", numeric.Supported},
		{"Entry is free from age 65.", "Entry is free up to age 65.", numeric.Contradicted},
		{discount, "The discount applies below 10 units.", numeric.Contradicted},
		{discount, "The discount applies from 10 units upwards.", numeric.Supported},
		{discount, "The discount applies to 10 units and more.", numeric.Supported},
		{"Prices range from 10 to 20 euros.", "Prices go from 10 euros up to 20 euros.", numeric.Supported},
		{"Die Fahrt dauert von 20 bis 30 Minuten.", "Die Fahrt dauert bis zu 30 Minuten.", numeric.Supported},
	} {
		x := numeric.NewIndex(t.Context(), []numeric.Sentence{{Text: c.facts}})
		if got, findings := x.Check(nil, c.claim, ""); got != c.want {
			t.Errorf("%q beside %q: %v, want %v: %+v", c.claim, c.facts, got, c.want, findings)
		}
	}
}
