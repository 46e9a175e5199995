package numeric_test

import (
	"testing"

	"signalbox/stream/numeric"
)

func TestNumbersThatAnswersCount(t *testing.T) {
	t.Parallel()
	list := numeric.NewIndex(t.Context(), []numeric.Sentence{
		{Text: "The handbook has these sections:"},
		{Text: "Benefits", Items: 5},
		{Text: "Rituals"},
		{Text: "Devices"},
		{Text: "Titles"},
		{Text: "Leave"},
		{Text: "Each office has 12 desks.", Group: 1},
	})
	pins := index("A worker alone makes 20 pins in a day, but a business of 10 workers, some of whom do " +
		"two or three of the 18 tasks, makes 48,000 pins in a day.")
	address := index("The paper implements it in https://example.com/paper/pull/710 since May.")
	war := numeric.NewIndex(t.Context(), []numeric.Sentence{
		{Text: "He became a prisoner on May 12, 1780."}, {Text: "He was exchanged in November 1780."},
	})
	hall := index("The hall has 40 lamps and 100 chairs.")
	spans := index("It gains most for batches (e.g. 100 and 1000 spans per batch).")
	bills := index("Roads cost 40 euros, schools 30 euros.")
	keeps := index("Backups are kept for 14 days and are made at the end of each month.")
	work := index("The author estimates that a week of work is required.")
	warm := index("It is up to 29 ºC in January and down to 24º C in June.")
	range3 := index("The overhead was addressed in possibilities 1 through 3.", "The key has no 0x in front.")
	born := index("He was born on 31 March 1635 in Scotland.", "In 1655 he enlisted at Hamburg.")
	river := index("The River Trent is long and calm.", "A lamp by Osram costs 61 euros.", "Three of the men of Derby are tall.")
	stand := index("The budget for the stand is 6,500 euros, and it costs 7,200 euros by the door.")
	cups := index("Ruth won the cup in 1975.", "Lind won the bowl in 1981.")
	record := index(`{"hotel":"Aurora","stars":4}`, `{"hotel":"Borea","stars":2}`)
	for _, tt := range []struct {
		x     *numeric.Index
		claim string
		want  numeric.Verdict
		why   numeric.Reason
	}{
		{river, "The River Trent has 60 arms.", numeric.Unsupported, numeric.NoSuchNumber},
		{river, "The River Trent has 61 arms.", numeric.NotCheckable, numeric.Elsewhere},
		{river, "The River Trent has nine arms.", numeric.Unsupported, numeric.NoSuchNumber},
		{river, "The River Trent has nine men.", numeric.NotCheckable, numeric.NoFact},
		{river, "The River Trent has 9 men.", numeric.Unsupported, numeric.NoSuchNumber},
		{stand, "The stand costs 7,200 euros, which is 700 euros over the budget.", numeric.Supported, numeric.SameValue},
		{stand, "The stand costs 7,200 euros, which is 900 euros over the budget.", numeric.Contradicted, numeric.OtherValue},
		{cups, "Ruth won the cup in 1981.", numeric.Contradicted, numeric.OtherSubject},
		{record, "The Aurora has two stars.", numeric.Contradicted, numeric.OtherSubject},
		{list, "There are five sections in the handbook.", numeric.NotCheckable, numeric.Listed},
		{list, "Three of the sections are about leave.", numeric.NotCheckable, numeric.NoFact},
		{list, "It has 4 other sections.", numeric.NotCheckable, numeric.Listed},
		{list, "There are 7 sections in the handbook.", numeric.Unsupported, numeric.NoSuchNumber},
		{list, "The handbook was written by five people.", numeric.Unsupported, numeric.NoSuchNumber},
		{list, "The handbook was written by 5 people.", numeric.Unsupported, numeric.NoSuchNumber},
		{list, "Each office has 5 desks: a, b, c, d and e.", numeric.Contradicted, numeric.OtherValue},
		{list, "Each office has 5 desks.", numeric.Contradicted, numeric.OtherValue},
		{list, "The body has four fields: a, b, c and d.", numeric.NotCheckable, numeric.NoFact},
		{list, "The body has eight fields: a, b, c and d.", numeric.Unsupported, numeric.NoSuchNumber},
		{list, "The body has 8 fields: a, b, c and d.", numeric.Unsupported, numeric.NoSuchNumber},
		{pins, "Some workers do two or three of them.", numeric.NotCheckable, numeric.NoFact},
		{pins, "They do 30 or 40 tasks.", numeric.Contradicted, numeric.OtherValue},
		{hall, "The hall has 40 to 100 chairs.", numeric.Contradicted, numeric.OtherValue},
		{spans, "It gains most for batches of 100 to 1000 spans.", numeric.NotCheckable, numeric.Difference},
		{pins, "That is 4,800 pins per worker.", numeric.NotCheckable, numeric.Difference},
		{pins, "That is 4,800 pins per worker, or 240 times as many.", numeric.Supported, numeric.Derived},
		{pins, "That is 4,800 pins per worker, or 250 times as many.", numeric.Unsupported, numeric.NoSuchNumber},
		{pins, "That is 5,200 pins per worker.", numeric.Contradicted, numeric.OtherValue},
		{address, "It is implemented in pull request 710.", numeric.NotCheckable, numeric.Named},
		{address, "The library holds 710 books.", numeric.Unsupported, numeric.NoSuchNumber},
		{address, "It is implemented in pull request 170.", numeric.Unsupported, numeric.NoSuchNumber},
		{war, "He was exchanged about six months later.", numeric.NotCheckable, numeric.Difference},
		{war, "He was exchanged about nine months later.", numeric.Unsupported, numeric.NoSuchNumber},
		{bills, "Roads cost 40 euros and schools 30 euros, 70 euros in total.", numeric.Supported, numeric.Derived},
		{bills, "Roads cost 40 euros and schools 30 euros, 80 euros in total.", numeric.Contradicted, numeric.OtherValue},
		{keeps, "Backups are kept for one month.", numeric.Contradicted, numeric.OtherValue},
		{work, "The author estimates one week.", numeric.NotCheckable, numeric.NoFact},
		{work, "The author estimates one month.", numeric.Unsupported, numeric.NoSuchNumber},
		{warm, "It is about 24 ºC in June.", numeric.Supported, numeric.SameValue},
		{warm, "It is about 14 ºC in June.", numeric.Contradicted, numeric.OtherValue},
		{range3, "Possibilities 1 to 3 address the overhead.", numeric.Supported, numeric.SameValue},
		{range3, "The key begins without the leading 0x.", numeric.NotCheckable, ""},
		{born, "In 1655, aged about 20, he enlisted at Hamburg.", numeric.Supported, numeric.SameValue},
		{born, "In 1655, aged about 30, he enlisted at Hamburg.", numeric.Unsupported, numeric.NoSuchNumber},
	} {
		verdict, findings := tt.x.Check(nil, tt.claim, "")
		why := numeric.Reason("")
		for _, f := range findings {
			if f.Verdict == verdict && (f.Reason == tt.why || why == "") {
				why = f.Reason
			}
		}
		if verdict != tt.want || why != tt.why {
			t.Errorf("%q: %v for %q, want %v for %q: %+v", tt.claim, verdict, why, tt.want, tt.why, findings)
		}
	}
}
