package numeric_test

import (
	"slices"
	"testing"

	"signalbox/stream/numeric"
)

func verdict(t *testing.T, fact, claim string) numeric.Verdict {
	t.Helper()
	got, _ := numeric.NewIndex(t.Context(), []numeric.Sentence{{Text: fact}}).Check(nil, claim, "")
	return got
}

// TestBounds checks that a bound is not accepted for the other side of the same number, in various
// wordings.
func TestBounds(t *testing.T) {
	t.Parallel()
	for _, lang := range []struct {
		sentence func(string) string
		up, down []string
	}{
		{
			func(bound string) string { return "The course takes " + bound + "." },
			[]string{
				"at least 48 students", "a minimum of 48 students", "no fewer than 48 students", "48 students or more",
				"48 or more students", "not less than 48 students", "48 students and up", "a min. of 48 students",
			},
			[]string{
				"at most 48 students", "a maximum of 48 students", "no more than 48 students", "48 students or fewer",
				"48 or fewer students", "up to 48 students", "not more than 48 students", "max. 48 students",
				"a limit of 48 students",
			},
		},
		{
			func(bound string) string { return "Der Kurs nimmt " + bound + " auf." },
			[]string{"mindestens 48 Schüler", "nicht weniger als 48 Schüler", "48 Schüler oder mehr"},
			[]string{"höchstens 48 Schüler", "maximal 48 Schüler", "nicht mehr als 48 Schüler", "bis zu 48 Schüler"},
		},
		{
			func(bound string) string { return "Le cours accueille " + bound + "." },
			[]string{"au moins 48 élèves", "un minimum de 48 élèves", "pas moins de 48 élèves", "48 élèves ou plus"},
			[]string{
				"au plus 48 élèves", "un maximum de 48 élèves", "pas plus de 48 élèves", "jusqu'à 48 élèves",
				"48 élèves au maximum",
			},
		},
		{
			func(bound string) string { return "El curso admite " + bound + "." },
			[]string{"al menos 48 alumnos", "un mínimo de 48 alumnos", "como mínimo 48 alumnos", "48 alumnos o más"},
			[]string{"como máximo 48 alumnos", "no más de 48 alumnos", "hasta 48 alumnos", "a lo sumo 48 alumnos"},
		},
	} {
		for _, told := range append(slices.Clone(lang.up), lang.down...) {
			for _, said := range append(slices.Clone(lang.up), lang.down...) {
				want := numeric.Supported
				if slices.Contains(lang.up, told) != slices.Contains(lang.up, said) {
					want = numeric.Contradicted
				}
				if got := verdict(t, lang.sentence(told), lang.sentence(said)); got != want {
					t.Errorf("%q beside %q: %v, want %v", said, told, got, want)
				}
			}
		}
	}
}

// TestOtherSideOfABound checks claims about what lies beyond a bound.
func TestOtherSideOfABound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fact, claim string
		want        numeric.Verdict
	}{
		{"A password must have at least 12 characters.", "Fewer than 12 characters are rejected.", numeric.NotCheckable},
		{"A password must have at least 12 characters.", "A password has fewer than 12 characters.", numeric.Contradicted},
		{"A password must have at least 12 characters.", "A password may have at most 12 characters.", numeric.Contradicted},
		{"Orders of 50 euros or more ship free.", "Orders below 50 euros do not ship free.", numeric.NotCheckable},
		{"Files larger than 2 GB are skipped.", "Files of up to 2 GB are not skipped.", numeric.NotCheckable},
		{"You must be at least 18 years old to register.", "Anyone under 18 cannot register.", numeric.NotCheckable},
		{"The tank holds at most 60 litres.", "The tank holds more than 60 litres.", numeric.Contradicted},
		{"Speed must not exceed 50 km/h.", "The speed is at least 50 km/h.", numeric.Contradicted},
		{"Guests must be no older than 30 years.", "Guests must be at least 30 years old.", numeric.Contradicted},
		// What is allowed up to two weeks before is also allowed earlier.
		{"Cancelling is free up to 14 days before arrival.", "Cancelling is free at least 14 days before arrival.", numeric.Supported},
		// A looser limit is not supported just because it would hold as well.
		{"The plan allows 25 devices.", "The plan allows up to 50 devices.", numeric.Contradicted},
		{"Delivery takes 3 days.", "Delivery takes up to 10 days.", numeric.Contradicted},
		{"The hall has 312 seats.", "The hall has at least 300 seats.", numeric.Supported},
		{"The hall has 128 seats.", "The hall has over 100 seats.", numeric.Supported},
		{"A night costs up to 160 euros.", "Three nights cost up to 480 euros.", numeric.NotCheckable},
		{"A night costs up to 160 euros.", "Three nights cost up to 490 euros.", numeric.Contradicted},
		{"It boils for 30 min 48 s.", "It boils for 30 minutes and 48 seconds.", numeric.Supported},
	} {
		if got := verdict(t, c.fact, c.claim); got != c.want {
			t.Errorf("%q beside %q: %v, want %v", c.claim, c.fact, got, c.want)
		}
	}
}
