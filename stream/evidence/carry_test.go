package evidence_test

import (
	"strings"
	"testing"

	"signalbox/stream/evidence"
	"signalbox/stream/numeric"
)

// TestSubjectsWithinOneFact checks which number belongs to which subject if one fact has several
// sentences, clauses or subjects.
func TestSubjectsWithinOneFact(t *testing.T) {
	t.Parallel()
	firms := "Novarel employs 89,165 people. Tullis employs 67,456 people."
	for _, tt := range []struct {
		name         string
		facts        []string
		holds, fails []string
	}{
		{
			"sentences with subjects of their own",
			[]string{firms},
			[]string{"Novarel employs 89,165 people.", "Tullis employs 67,456 people.", "About 67,000 people work for Tullis."},
			[]string{"Novarel employs 67,456 people.", "Tullis employs 89,165 people."},
		},
		{
			"a name that the evidence is full of",
			[]string{firms, strings.Repeat("Novarel makes boats. Novarel sells sails. ", 12), "Novarel was founded in 1950."},
			[]string{"Novarel employs 89,165 people.", "Tullis employs 67,456 people."},
			[]string{"Novarel employs 67,456 people.", "Tullis employs 89,165 people."},
		},
		{
			"subjects before numbers of the same unit",
			[]string{"Karsten Tower is 120 m tall. Almira Spire is 241 m tall. Velder Mast is 310 m tall."},
			[]string{"Karsten Tower is 120 m tall.", "Almira Spire is 241 m tall.", "Velder Mast is 310 m tall."},
			[]string{"Karsten Tower is 241 m tall.", "Almira Spire is 310 m tall.", "Velder Mast is 120 m tall."},
		},
		{
			"clauses with subjects of their own",
			[]string{"Novarel employs 89,165 people; Tullis employs 67,456 people."},
			[]string{"Novarel employs 89,165 people.", "Tullis employs 67,456 people."},
			[]string{"Novarel employs 67,456 people.", "Tullis employs 89,165 people."},
		},
		{
			"clauses with subjects of their own after a time",
			[]string{"Novarel opens at 8:30 with 89,165 people; Tullis employs 67,456 people."},
			[]string{"Tullis employs 67,456 people."},
			[]string{"Tullis employs 89,165 people."},
		},
		{
			"a pronoun",
			[]string{"The Orrin Building is 241 m tall. It opened in 1883.", "The Tamsin Tower is 300 m tall. It opened in 1975."},
			[]string{"The Orrin Building opened in 1883.", "The Tamsin Tower opened in 1975.", "The Tamsin Tower opened 92 years after the Orrin Building."},
			[]string{"The Orrin Building opened in 1975.", "The Tamsin Tower opened in 1883.", "The Orrin Building opened in 1911."},
		},
		{
			"a pronoun before a date or a place",
			[]string{"The Orrin Building is tall. In 1883 it opened on 4 May.", "The Tamsin Tower is taller. It opened in Porto on 9 March 1975."},
			[]string{"The Orrin Building opened in 1883.", "The Tamsin Tower opened on 9 March 1975.", "The Tamsin Tower opened in Porto in 1975."},
			[]string{"The Orrin Building opened in 1975.", "The Tamsin Tower opened in 1883."},
		},
		{
			"a pronoun after a participle",
			[]string{"The Orrin Building stands in Graz. Completed in 1883, it has 148 floors.", "The Tamsin Tower stands in Oslo. Today it has 90 floors."},
			[]string{"The Orrin Building has 148 floors.", "The Tamsin Tower has 90 floors."},
			[]string{"The Orrin Building has 90 floors.", "The Tamsin Tower has 148 floors."},
		},
		{
			"a pronoun stands for the subject right before it",
			[]string{"Novarel employs 89,165 people. Tullis makes cars. It employs 67,456 people."},
			[]string{"Novarel employs 89,165 people.", "Tullis employs 67,456 people."},
			[]string{"Novarel employs 67,456 people.", "Tullis employs 89,165 people."},
		},
		{
			"a chain of pronouns",
			[]string{"The Orrin Building is in Graz. It is 241 m tall. It has 148 floors. Its lifts were built in 1931.", "The Tamsin Tower is 300 m tall. It has 90 floors."},
			[]string{"The Orrin Building has 148 floors.", "The lifts of the Orrin Building date from 1931.", "Together the Orrin Building and the Tamsin Tower have 238 floors."},
			[]string{"The Orrin Building has 90 floors.", "The Tamsin Tower has 148 floors."},
		},
		{
			"a list with semicolons",
			[]string{"Orrin Building: height 241 m; opened 1883; floors 148.", "Tamsin Tower: height 300 m; opened 1975; floors 90."},
			[]string{
				"The Orrin Building was completed in 1883.", "The Orrin Building has 148 floors.", "The Tamsin Tower is 300 m tall.",
				"The Tamsin Tower was completed 92 years after the Orrin Building.",
			},
			[]string{"The Orrin Building was completed in 1975.", "The Orrin Building has 90 floors.", "The Tamsin Tower has 148 floors.", "The Tamsin Tower was completed 71 years after the Orrin Building."},
		},
		{
			"a list with semicolons and capitals",
			[]string{"Orrin Building: Height 241 m; Opened 1883; by Jon Marlow 1880; Floors 148.", "Tamsin Tower: Height 300 m; Opened 1975; Floors 90."},
			[]string{"The Orrin Building opened in 1883.", "The Orrin Building has 148 floors.", "The Tamsin Tower was completed in 1975."},
			[]string{"The Orrin Building opened in 1975.", "The Orrin Building has 90 floors.", "The Tamsin Tower has 148 floors."},
		},
		{
			"a list with commas",
			[]string{"Orrin Building: height 241 m, opened 1883, floors 148.", "Tamsin Tower: height 300 m, opened 1975, floors 90."},
			[]string{"The Orrin Building was completed in 1883.", "The Orrin Building has 148 floors.", "The Tamsin Tower was completed 92 years after the Orrin Building."},
			[]string{"The Orrin Building was completed in 1975.", "The Orrin Building has 90 floors.", "The Tamsin Tower has 148 floors."},
		},
		{
			"a list of subjects",
			[]string{"Brixa: 120 people; Oltmann: 340 people; Tullis: 560 people."},
			[]string{"Brixa has 120 people.", "Oltmann has 340 people.", "Tullis has 560 people."},
			[]string{"Brixa has 340 people.", "Oltmann has 560 people.", "Tullis has 120 people."},
		},
		{
			"a German list",
			[]string{"Velm: Fläche 63 km²; Höhe 212 m; Einwohner 84.312.", "Salm: Fläche 91 km²; Höhe 388 m; Einwohner 51.207."},
			[]string{"Velm hat 84.312 Einwohner.", "Die Fläche von Salm beträgt 91 km².", "Salm liegt 388 m hoch."},
			[]string{"Velm hat 51.207 Einwohner.", "Die Fläche von Salm beträgt 63 km²."},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := build(t, evidence.Options{}, facts(tt.facts...)...)
			for _, text := range tt.holds {
				if v, found := judgeText(t, e, text); v != numeric.Supported {
					t.Errorf("%q is %v %+v, want supported", text, v, found)
				}
			}
			for _, text := range tt.fails {
				if v, found := judgeText(t, e, text); v < numeric.Unsupported {
					t.Errorf("%q is %v %+v, want it caught", text, v, found)
				}
			}
		})
	}
}
