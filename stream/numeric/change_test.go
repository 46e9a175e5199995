package numeric_test

import (
	"testing"

	"signalbox/stream/numeric"
)

// TestValuesThatWereReplaced checks that a former value is not accepted for the present, and vice
// versa.
func TestValuesThatWereReplaced(t *testing.T) {
	t.Parallel()
	const upload = "The maximum upload size was raised from 2 GiB to 8 GiB."
	for _, c := range []struct {
		facts, claim string
		want         numeric.Verdict
	}{
		{upload, "The maximum upload size is 2 GiB.", numeric.Contradicted},
		{upload, "The maximum upload size is 8 GiB.", numeric.Supported},
		{upload, "The maximum upload size was 2 GiB before.", numeric.Supported},
		{upload, "The maximum upload size was raised from 2 GiB to 8 GiB.", numeric.Supported},
		{upload, "The maximum upload size was raised from 8 GiB to 2 GiB.", numeric.Contradicted},
		{"The upload size was raised to 8 GiB from 2 GiB.", "The upload size is 2 GiB.", numeric.Contradicted},
		{"The default port is now 9443 (was 8443).", "The default port is 8443.", numeric.Contradicted},
		{"The default port is now 9443 (was 8443).", "The default port is 9443.", numeric.Supported},
		{"The default port is now 9443 (was 8443).", "The default port changed from 9443 to 8443.", numeric.Contradicted},
		{"The default port is now 9443 (was 8443).", "The default port changed from 8443 to 9443.", numeric.Supported},
		{"The default is 30 s; it used to be 10 s.", "The default is 10 s.", numeric.Contradicted},
		{"The maximum order is 25 items (previously 10 items).", "The maximum order is 10 items.", numeric.Contradicted},
		{"Sales are 14 million, up from 12 million.", "Sales are 12 million.", numeric.Contradicted},
		{"Sales are 14 million, up from 12 million.", "Sales were 12 million the year before.", numeric.Supported},
		{"The ticket costs 20 euros instead of 30 euros.", "The ticket costs 30 euros.", numeric.Contradicted},
		{"The deadline was postponed from 3 May to 10 May.", "The deadline is 3 May.", numeric.Contradicted},
		{"The deadline was postponed from 3 May to 10 May.", "The deadline is 10 May.", numeric.Supported},
		{"The call was moved from 10:00 to 14:30.", "The call is at 10:00.", numeric.Contradicted},
		{"Der Preis wurde von 80 auf 60 Euro gesenkt.", "Der Preis beträgt 80 Euro.", numeric.Contradicted},
		{"Der Preis wurde von 80 auf 60 Euro gesenkt.", "Der Preis beträgt 60 Euro.", numeric.Supported},
		{"Der Preis wurde von 80 auf 60 Euro gesenkt.", "Der Preis betrug früher 80 Euro.", numeric.Supported},
		{"Der Beitrag beträgt 12 Euro (bisher 9 Euro).", "Der Beitrag beträgt 9 Euro.", numeric.Contradicted},
		// neither value is a former one
		{"The bus runs from 6:00 to 22:00.", "The bus runs until 22:00.", numeric.Supported},
		{"The bus runs from 6:00 to 22:00.", "The bus starts at 6:00.", numeric.Supported},
		{"Prices range from 10 to 20 euros.", "The lowest price is 10 euros.", numeric.Supported},
		{"The trail rises from 300 m to 900 m.", "The valley is at 300 m.", numeric.Supported},
		{"The bridge is 90 m long; the old bridge was 80 m long.", "The old bridge is 80 m long.", numeric.Supported},
		{"Revenue grew from 10 million in 2020 to 12 million in 2021.", "Revenue in 2020: 10 million.", numeric.Supported},
	} {
		x := numeric.NewIndex(t.Context(), []numeric.Sentence{{Text: c.facts}})
		if got, findings := x.Check(nil, c.claim, ""); got != c.want {
			t.Errorf("%q beside %q: %v, want %v: %+v", c.claim, c.facts, got, c.want, findings)
		}
	}
}

func TestMovesAreRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]string{
		"The office moved from Bonn to Cologne in May.":                    {" Bonn ", " Cologne"},
		"Der Termin wurde von Montag auf Mittwoch verlegt.":                {" Montag ", " Mittwoch"},
		"Das Amt ist von Bonn nach Köln umgezogen.":                        {" Bonn ", " Köln"},
		"The product was renamed from Blue Fox to Red Fox.":                {" Blue Fox ", " Red Fox"},
		"The train runs from Bonn to Cologne.":                             {},
		"Open from Monday to Friday.":                                      {},
		"The office moved to Cologne.":                                     {},
		"The lab was moved, and it is open from Monday to Friday.":         {},
		"The lab, which was moved, is open from Monday to Friday.":         {},
		"The call was moved, after all, from Monday to Friday.":            {" Monday ", " Friday"},
		"The call was moved for members and guests from Monday to Friday.": {" Monday ", " Friday"},
		"The train from Bonn to Cologne was moved to track 4.":             {},
	} {
		was, is, ok := numeric.Moved(text)
		got := [2]string{text[was.Start:was.End], text[is.Start:is.End]}
		if got != want || ok != (want != [2]string{}) {
			t.Errorf("%q: %q, %v, want %q", text, got, ok, want)
		}
	}
}
