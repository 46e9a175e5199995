package numeric_test

import (
	"testing"

	"signalbox/stream/numeric"
)

// TestNumbersKeepTheirPlaces checks that two swapped numbers are found, and that numbers which
// moved together with their words are not flagged.
func TestNumbersKeepTheirPlaces(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		facts, claim string
		want         numeric.Verdict
	}{
		{
			"Revenue was 12 million in 2020 and 14 million in 2021.",
			"Revenue was 14 million in 2020 and 12 million in 2021.", numeric.Contradicted,
		},
		{
			"Revenue was 12 million in 2020 and 14 million in 2021.",
			"Revenue was 12 million in 2020 and 14 million in 2021.", numeric.Supported,
		},
		{
			"Revenue was 14 million in 2021, up from 12 million in 2020.",
			"Revenue was 12 million in 2020 and 14 million in 2021.", numeric.Supported,
		},
		{
			"The village has a population of 7698 of which 4088 are men and 3610 are women.",
			"The village has a population of 7698 of which 3610 are men and 4088 are women.",
			numeric.Contradicted,
		},
		{
			"The album sold 310 copies in its first week and 420 copies in its second week.",
			"The album sold 420 copies in its first week.", numeric.Contradicted,
		},
		{
			"The album sold 310 copies in its first week and 420 copies in its second week.",
			"In its second week the album sold 420 copies.", numeric.Supported,
		},
		{
			"Logs are stored for 5 days on Basic, 15 days on Plus and 60 days on Pro and Ultra.",
			"Logs on Ultra are stored for 15 days.", numeric.Contradicted,
		},
		{
			"Logs are stored for 5 days on Basic, 15 days on Plus and 60 days on Pro and Ultra.",
			"Logs on Ultra are stored for 60 days.", numeric.Supported,
		},
		{
			"Logs are stored for 5 days on Basic, 15 days on Plus and 60 days on Pro and Ultra.",
			"On Plus, logs are stored for 60 days.", numeric.Contradicted,
		},
		{
			"Shipping takes 2 days to Austria, 4 days to Spain and 7 days to Norway and Iceland.",
			"Shipping to Iceland takes 4 days.", numeric.Contradicted,
		},
		{
			"Shipping takes 2 days to Austria, 4 days to Spain and 7 days to Norway and Iceland.",
			"Shipping to Norway takes 7 days.", numeric.Supported,
		},
		{
			"Adults pay 12 euros, students 8 euros and children and seniors 5 euros.",
			"Seniors pay 8 euros.", numeric.Contradicted,
		},
		{
			"Adults pay 12 euros, students 8 euros and children and seniors 5 euros.",
			"Children pay 5 euros.", numeric.Supported,
		},
		{
			"Adults pay 12 euros, students 8 euros and children and seniors 5 euros.",
			"Children pay 8 euros.", numeric.Contradicted,
		},
		{
			"Erwachsene zahlen 12 Euro, Studenten 8 Euro und Kinder und Rentner 5 Euro.",
			"Kinder zahlen 8 Euro.", numeric.Contradicted,
		},
		{
			"Erwachsene zahlen 12 Euro, Studenten 8 Euro und Kinder und Rentner 5 Euro.",
			"Kinder zahlen 5 Euro.", numeric.Supported,
		},
		{"Anna has 3 cats, Ben 5 cats and Carl and Dora 7 cats.", "Carl has 7 cats.", numeric.Supported},
		{"Anna has 3 cats, Ben 5 cats and Carl and Dora 7 cats.", "Carl has 5 cats.", numeric.Contradicted},
		{
			"Unemployment fell from 9.3 to 7.1 percent.",
			"Unemployment fell from 7.1 to 9.3 percent.", numeric.Contradicted,
		},
		{
			"Work began in 1874 and was finished in 1891.",
			"Work began in 1891 and was finished in 1874.", numeric.Contradicted,
		},
	} {
		x := numeric.NewIndex(t.Context(), []numeric.Sentence{{Text: c.facts}})
		if got, findings := x.Check(nil, c.claim, ""); got != c.want {
			t.Errorf("%q beside %q: %v, want %v: %+v", c.claim, c.facts, got, c.want, findings)
		}
	}
}

// TestTimesAndCodeAreRead checks times of day, lengths of time, and numbers in code.
func TestTimesAndCodeAreRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		facts, claim string
		want         numeric.Verdict
	}{
		{"The bakery opens at 6:00 in the morning.", "The bakery opens at 6 pm.", numeric.Contradicted},
		{"The bakery opens at 6:00 in the morning.", "The bakery opens at 6 am.", numeric.Supported},
		{"The bakery opens at 6 pm.", "The bakery opens at 6:00 in the morning.", numeric.Contradicted},
		{"The bakery closes at 18:00.", "The bakery closes at six in the evening.", numeric.Supported},
		{"The bakery closes at 18:00.", "The bakery closes at six in the morning.", numeric.Contradicted},
		{"The bakery closes at 18:00.", "The bakery closes at 6:00.", numeric.Supported},
		{"The shop closes at 21:00.", "The shop closes at 2100.", numeric.Supported},
		{"The shop closes at 21:00.", "The shop closes at 2200.", numeric.Unsupported},
		{"The cruise lasts 27 days.", "The cruise lasts one month.", numeric.Contradicted},
		{"The cruise lasts 30 days.", "The cruise lasts one month.", numeric.Supported},
		{"The server listens on `port 8080`.", "The server listens on port 8080.", numeric.Supported},
		{"The server listens on `port 8080`.", "The server listens on port 8081.", numeric.Contradicted},
		{"The server listens on port 8080.", "The server listens on `port 8081`.", numeric.Contradicted},
		{"The server listens on port 8080.", "Call `listen(9, 10)`.", numeric.NotCheckable},
	} {
		x := numeric.NewIndex(t.Context(), []numeric.Sentence{{Text: c.facts}})
		if got, findings := x.Check(nil, c.claim, ""); got != c.want {
			t.Errorf("%q beside %q: %v, want %v: %+v", c.claim, c.facts, got, c.want, findings)
		}
	}
}
