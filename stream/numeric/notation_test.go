package numeric_test

import (
	"testing"

	"signalbox/stream/numeric"
)

// TestOtherNotationsOfTheSame checks that telephone and account numbers, quarters, and thousands of
// euros match in any notation, and that differences are found.
func TestOtherNotationsOfTheSame(t *testing.T) {
	t.Parallel()
	const (
		berlin  = "You can call us at +49 30 1234567."
		munich  = "Sie erreichen uns unter 089 / 44 55 66-0."
		paris   = "Appelez le 01 42 68 53 00."
		madrid  = "Llame al 91 456 78 90."
		boston  = "Our number is (617) 555-0132."
		iban    = "IBAN: DE89370400440532013000"
		quarter = "Der Umsatz lag im 3. Quartal 2025 bei 4 Mio. Euro."
		half    = "The plant opened in the first half of 2024."
		costs   = "Der Aufwand betrug 845 Tsd. EUR."
	)
	for _, c := range []struct {
		facts, claim string
		want         numeric.Verdict
	}{
		{berlin, "Call us at 030 1234567.", numeric.Supported},
		{berlin, "Call us at 030 / 123 45 67.", numeric.Supported},
		{berlin, "Call us at +49 (0) 30 123 45 67.", numeric.Supported},
		{berlin, "Call us at 0049 30 1234567.", numeric.Supported},
		{berlin, "Call us at +43 30 1234567.", numeric.Contradicted},
		{berlin, "Call us at 0043 30 1234567.", numeric.Contradicted},
		{berlin, "Call us at 030 1234576.", numeric.Contradicted},
		{berlin, "Call us at 030 1234560.", numeric.Contradicted},
		{munich, "Die Nummer ist +49 89 4455660.", numeric.Supported},
		{munich, "Die Nummer ist +49 89 4455680.", numeric.Unsupported},
		{paris, "Le numéro est le +33 1 42 68 53 00.", numeric.Supported},
		{paris, "Le numéro est le +33 1 42 68 35 00.", numeric.Unsupported},
		{madrid, "El teléfono es +34 914 567 890.", numeric.Supported},
		{boston, "Our number is +1 617-555-0132.", numeric.Supported},
		{boston, "Our number is 617-555-0132.", numeric.Supported},
		{boston, "Our number is 617-555-0123.", numeric.Contradicted},
		{"The sum rose by +1 234 567 euros.", "The sum rose by 1,234,567 euros.", numeric.Supported},
		{"It was on 01-02-2025 10:00.", "It was on 01-02-2025.", numeric.Supported},
		{"Das Büro hat 08.30-12.00 Uhr offen.", "Das Büro hat von 8:30 bis 12:00 Uhr offen.", numeric.Supported},
		{"Das Büro hat 08.30-12.00 Uhr offen.", "Das Büro hat von 8:30 bis 13:00 Uhr offen.", numeric.Unsupported},
		{"Es war am 05.06.24 14:30 Uhr.", "Es war um 14:30 Uhr.", numeric.Supported},
		{"The balance is +1234567890 EUR.", "The balance is 1,234,567,890 euros.", numeric.Supported},
		{"Call us at 02/123.45.67.", "Call us at +32 2 123 45 67.", numeric.Supported},
		{"The order is 0012345678.", "The order is 0072345678.", numeric.Contradicted},
		{iban, "The IBAN is DE89 3704 0044 0532 0130 00.", numeric.Supported},
		{iban, "The IBAN is DE89 3704 0044 0532 0310 00.", numeric.Contradicted},
		{"Account: GB29 NWBK 6016 1331 9268 19 until 2027", "GB29NWBK60161331926819 is the account.", numeric.Supported},
		{quarter, "Im dritten Quartal 2025 lag der Umsatz bei 4 Mio. Euro.", numeric.Supported},
		{quarter, "In Q3 2025 lag der Umsatz bei 4 Mio. Euro.", numeric.Supported},
		{quarter, "Au troisième trimestre de 2025, au T3 2025.", numeric.Supported},
		{quarter, "From July to September 2025 it was 4 million euros.", numeric.Supported},
		{quarter, "In the second quarter of 2025 it was 4 million euros.", numeric.Unsupported},
		{quarter, "Im 2. Quartal des Jahres 2025 lag der Umsatz bei 4 Mio. Euro.", numeric.Contradicted},
		{quarter, "From June to September 2025 it was 4 million euros.", numeric.Unsupported},
		{half, "It opened in H1 2024.", numeric.Supported},
		{half, "It opened in the second half of 2024.", numeric.Contradicted},
		{costs, "Der Aufwand betrug 845.000 Euro.", numeric.Supported},
		{costs, "Der Aufwand betrug 845 TEUR.", numeric.Supported},
		{costs, "Der Aufwand betrug 845 T€.", numeric.Supported},
		{costs, "Der Aufwand betrug 845 k€.", numeric.Supported},
		{costs, "Der Aufwand betrug 845 Euro.", numeric.Contradicted},
		{costs, "Der Aufwand betrug 854.000 Euro.", numeric.Contradicted},
	} {
		x := numeric.NewIndex(t.Context(), []numeric.Sentence{{Text: c.facts}})
		if got, findings := x.Check(nil, c.claim, ""); got != c.want {
			t.Errorf("%q beside %q: %v, want %v: %+v", c.claim, c.facts, got, c.want, findings)
		}
	}
}
