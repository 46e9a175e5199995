package evidence_test

import (
	"testing"

	"signalbox/stream/evidence"
	"signalbox/stream/numeric"
)

const accounts = `| Year | Revenue (EUR million) | Profit (€m) | Weight (kg) | Wall (m) | Staff |
| --- | --- | --- | --- | --- | --- |
| 2020 | 12 | 1.5 | 2,100 | 70 | 310 |
| 2021 | **14** | 2.5 | 2,300 | 80 | 340 |
`

// A number of a table belongs to its row, to the head of its column, and to the unit that stands
// there.
func TestNumbersOfTablesHaveTheirUnits(t *testing.T) {
	t.Parallel()
	e, err := evidence.New(t.Context(), []evidence.Source{{Text: accounts}}, evidence.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for claim, want := range map[string]numeric.Verdict{
		"Revenue in 2021 was EUR 14 million.":     numeric.Supported,
		"Revenue in 2021 was 14,000,000 euros.":   numeric.Supported,
		"Revenue in 2021 was EUR 12 million.":     numeric.Contradicted,
		"Profit was €1.5 million in 2020.":        numeric.Supported,
		"Profit was €2.5 million in 2020.":        numeric.Contradicted,
		"The weight in 2021 was 2.3 tonnes.":      numeric.Supported,
		"The wall was 80 metres in 2021.":         numeric.Supported,
		"Staff was 310 in 2020 and 340 in 2021.":  numeric.Supported,
		"Staff was 340 in 2020 and 310 in 2021.":  numeric.Contradicted,
		"In 2020 there were 340 people on staff.": numeric.Contradicted,
	} {
		if got, findings := e.Numbers().Check(nil, claim, ""); got != want {
			t.Errorf("%q: %s, want %s: %+v", claim, got, want, findings)
		}
	}
}
