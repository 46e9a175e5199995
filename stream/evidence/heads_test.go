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

// TestNumbersOfTablesHaveTheirUnits checks that a number in a table belongs to its row, its column
// head, and the unit in that head.
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

// TestColumnsOfPeriodsHaveTheUnitOfTheTable checks that the unit of a whole table can be above the
// names of its rows.
func TestColumnsOfPeriodsHaveTheUnitOfTheTable(t *testing.T) {
	t.Parallel()
	const rows = " | 2022 | Q1 2023 | Staff |\n| --- | --- | --- | --- |\n" +
		"| Industrial | 310 | 334 | 90 |\n| Medical | 120 | 118 | 41 |\n"
	for _, head := range []string{"Segment (EUR million)", "EUR million", "Segment (in €m)", "(million euros)"} {
		e, err := evidence.New(t.Context(), []evidence.Source{{Text: "| " + head + rows}}, evidence.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for claim, want := range map[string]numeric.Verdict{
			"In 2022 Medical made 120 million euros.":    numeric.Supported,
			"In 2022 Medical made EUR 310 million.":      numeric.Contradicted,
			"In 2022 Industrial made 310 thousand euros": numeric.Contradicted,
			"Industrial had 90 staff.":                   numeric.Supported,
		} {
			if got, findings := e.Numbers().Check(nil, claim, ""); got != want {
				t.Errorf("%s, %q: %s, want %s: %+v", head, claim, got, want, findings)
			}
		}
	}
	e, err := evidence.New(t.Context(), []evidence.Source{{Text: "| Plan (EU) | 2022 |\n| --- | --- |\n| Pro | 12 |\n"}},
		evidence.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := e.Numbers().Check(nil, "Pro was 12 in 2022.", ""); got != numeric.Supported {
		t.Errorf("a head without a unit: %s", got)
	}
}

// TestMultiplesOfCells checks that the ratio of two cells is not looked up as a cell of its own.
func TestMultiplesOfCells(t *testing.T) {
	t.Parallel()
	e, err := evidence.New(t.Context(), []evidence.Source{{Text: "| Plan | Requests | Burst |\n| --- | --- | --- |\n" +
		"| Free | 60 | 10 |\n| Team | 600 | 100 |\n| Enterprise | 6,000 | 1,000 |\n"}}, evidence.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const claim = "Enterprise allows ten times as many requests as Team."
	if got, findings := e.Numbers().Check(nil, claim, ""); got != numeric.Supported {
		t.Errorf("%s: %+v", got, findings)
	}
}
