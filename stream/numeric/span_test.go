package numeric_test

import (
	"strings"
	"testing"

	"signalbox/stream/numeric"
)

// said is a claim with the sentences of one fact, separated by " // ", and the expected verdict.
type said struct {
	facts, claim string
	want         numeric.Verdict
}

func wantSaid(t *testing.T, list []said) {
	t.Helper()
	for _, c := range list {
		var facts []numeric.Sentence
		for s := range strings.SplitSeq(c.facts, " // ") {
			facts = append(facts, numeric.Sentence{Text: s})
		}
		x := numeric.NewIndex(t.Context(), facts)
		if got, findings := x.Check(nil, c.claim, ""); got != c.want {
			t.Errorf("%q beside %q: %v, want %v: %+v", c.claim, c.facts, got, c.want, findings)
		}
	}
}

// TestSpansOfOtherSentences checks that a sentence about one side of a number, or about one step of
// a change, does not contradict a claim about something else or about another step.
func TestSpansOfOtherSentences(t *testing.T) {
	t.Parallel()
	const (
		delivery = "Delivery is free from 80 dollars. // Otherwise delivery costs 5 dollars."
		one      = "Delivery is free from 80 dollars, otherwise it costs 5 dollars."
		luggage  = "Luggage up to 20 kg is free. // Above that luggage costs 30 euros."
		fee      = "The fee was raised from 10 to 12 euros in 2022. // It was raised from 12 to 15 euros in 2024."
		sales    = "Sales rose from 10 million in 2020 to 12 million in 2021. // " +
			"Sales rose from 10 million in 2020 to 15 million in 2023."
		years = "In 2022 sales rose from 10 to 12 million. // In 2023 sales fell from 12 to 9 million."
		rooms = "Rooms cost from 50 euros in winter to 90 euros in summer."
		park  = "The limit was moved to the park, and it is from 8 to 20 users."
	)
	wantSaid(t, []said{
		{delivery, "Delivery costs 5 dollars up to 80 dollars.", numeric.Supported},
		{delivery, "Up to 80 dollars delivery costs 5 dollars.", numeric.Supported},
		{delivery, "Delivery is free from 80 dollars.", numeric.Supported},
		{delivery, "Delivery is free up to 80 dollars.", numeric.Contradicted},
		{one, "Delivery costs 5 dollars up to 80 dollars.", numeric.Supported},
		{one, "Delivery is free up to 80 dollars.", numeric.Contradicted},
		{luggage, "Luggage from 20 kg costs 30 euros.", numeric.Supported},
		{luggage, "Luggage from 20 kg is free.", numeric.Contradicted},
		{luggage, "Luggage up to 20 kg is free.", numeric.Supported},
		{fee, "The fee is 15 euros.", numeric.Supported},
		{fee, "The fee was raised from 10 to 15 euros.", numeric.Supported},
		{fee, "The fee rose from 12 to 15 euros in 2024.", numeric.Supported},
		{fee, "The fee was raised from 10 to 12 euros in 2022.", numeric.Supported},
		{fee, "The fee is 12 euros.", numeric.Contradicted},
		{fee, "The fee is 10 euros.", numeric.Contradicted},
		{fee, "The fee was raised from 10 to 15 euros in 2022.", numeric.Contradicted},
		{fee, "The fee was raised from 10 to 12 euros in 2024.", numeric.Contradicted},
		{sales, "Sales rose from 12 million in 2021 to 15 million in 2023.", numeric.Supported},
		{sales, "Sales rose from 12 million in 2020 to 10 million in 2021.", numeric.Contradicted},
		{years, "In 2022 sales rose by 2 million.", numeric.Supported},
		{years, "In 2023 sales fell by 3 million.", numeric.Supported},
		{years, "In 2023 sales rose by 3 million.", numeric.Contradicted},
		{rooms, "In winter rooms cost up to 50 euros.", numeric.Supported},
		{rooms, "In summer rooms cost 90 euros.", numeric.Supported},
		{rooms, "In summer rooms cost 80 euros.", numeric.Contradicted},
		{park, "The limit is 8 users.", numeric.Supported},
		{park, "The limit is 9 users.", numeric.Contradicted},
		{"The limit was raised for members and guests from 10 to 20.", "The limit is 10.", numeric.Contradicted},
		{"The price was cut, after long talks, from 30 to 20 euros.", "The price is 30 euros.", numeric.Contradicted},
		// a sentence with a pronoun adds something about the same subject
		{"The museum is 40 m high. // It is 90 m long.", "The museum is 90 m high.", numeric.Contradicted},
		{"The museum is 40 m high. // It is 90 m long.", "The museum is 40 m high.", numeric.Supported},
	})
}

// TestWhatIsNow checks that a former value is not accepted for the present if the next clause or
// sentence states the present one.
func TestWhatIsNow(t *testing.T) {
	t.Parallel()
	const (
		price  = "The old price was 30; it is now 20."
		two    = "The old price was 30 euros. // It is now 20 euros."
		was    = "The price was 30 euros; it is now 20 euros."
		limit  = "The former limit was 500 requests, the limit is now 800 requests."
		used   = "The fee used to be 10 euros but is 12 euros now."
		preis  = "Der alte Preis war 30 Euro, jetzt sind es 20 Euro."
		server = "The old server had 16 GB; the new server now has 64 GB."
		other  = "The price was 30 euros; shipping is now 20 euros."
	)
	wantSaid(t, []said{
		{price, "The price is 20.", numeric.Supported},
		{price, "The price is 30.", numeric.Contradicted},
		{price, "The old price was 30.", numeric.Supported},
		{price, "The price was 30.", numeric.Supported},
		{price, "The price is 25.", numeric.Contradicted},
		{two, "The price is 20 euros.", numeric.Supported},
		{two, "The price is 30 euros.", numeric.Contradicted},
		{two, "The price was 30 euros.", numeric.Supported},
		{was, "The price is 20 euros.", numeric.Supported},
		{was, "The price is 30 euros.", numeric.Contradicted},
		{limit, "The limit is 800 requests.", numeric.Supported},
		{limit, "The limit is 500 requests.", numeric.Contradicted},
		{used, "The fee is 12 euros.", numeric.Supported},
		{used, "The fee is 10 euros.", numeric.Contradicted},
		{preis, "Der Preis beträgt 20 Euro.", numeric.Supported},
		{preis, "Der Preis beträgt 30 Euro.", numeric.Contradicted},
		{"The team was 12 people. // It is now 20 people.", "The team has 20 people.", numeric.Supported},
		{"The team was 12 people. // It is now 20 people.", "The team has 12 people.", numeric.Contradicted},
		{"The score was 3 at half-time and is now 5.", "The score is 5.", numeric.Supported},
		{"The score was 3 at half-time and is now 5.", "The score is 3.", numeric.Contradicted},
		// about the past, with verbs that do not end in -ed
		{"The trip was 5 hours; it is now 3 hours.", "The trip took 5 hours.", numeric.Supported},
		{"The trip was 5 hours; it is now 3 hours.", "The trip takes 5 hours.", numeric.Contradicted},
		{"The trip was cut from 5 hours to 3 hours.", "The trip took 5 hours.", numeric.Supported},
		{"The stake was 30 percent; it is now 20 percent.", "The stake stood at 30 percent.", numeric.Supported},
		{"The stake was 30 percent; it is now 20 percent.", "The stake stands at 30 percent.", numeric.Contradicted},
		{was, "Members paid 30 euros.", numeric.Supported},
		{"Die Fahrt war 5 Stunden lang; sie dauert jetzt 3 Stunden.", "Die Fahrt dauerte 5 Stunden.", numeric.Supported},
		// about something else
		{server, "The old server had 16 GB.", numeric.Supported},
		{server, "The old server has 16 GB.", numeric.Supported},
		{server, "The new server has 64 GB.", numeric.Supported},
		{other, "The price was 30 euros.", numeric.Supported},
		{other, "Shipping is 20 euros.", numeric.Supported},
		{other, "The price is 20 euros.", numeric.Contradicted},
		{"The deposit was 300 euros. // The rent is now 900 euros.", "The deposit is 300 euros.", numeric.Supported},
		{"There were 30 people; there are now 20 seats.", "There are 30 people.", numeric.Supported},
		{"There were 30 people; there are now 20.", "There are 30 people.", numeric.Contradicted},
		{"There were 30 people. // They now have 20 seats.", "There are 30 people.", numeric.Supported},
		{"The price was 30 euros; it is not 20 euros now.", "The price was 30 euros.", numeric.Supported},
	})
}

// TestTimeZonesOverMidnight checks that a time of day in another time zone may fall on the day
// before or after.
func TestTimeZonesOverMidnight(t *testing.T) {
	t.Parallel()
	const (
		call   = "The call starts at 23:30 UTC on 3 December."
		stamp  = `{"starts":"2026-12-31T23:30:00Z"}`
		deploy = "The deploy is at 20:00 PST on 5 May."
		launch = "The launch is on Thursday, 3 December 2026 at 23:30 UTC."
		both   = "The call is at 23:30 UTC on 3 December, which is 00:30 CET on 4 December."
	)
	wantSaid(t, []said{
		{"The call starts at 23:30 UTC.", "The call starts at 00:30 CET the next day.", numeric.Supported},
		{"The call starts at 23:30 UTC.", "The call starts at 01:30 CET the next day.", numeric.Contradicted},
		{call, "The call starts at 00:30 CET on 4 December.", numeric.Supported},
		{call, "On 4 December at 00:30 CET the call starts.", numeric.Supported},
		{call, "The call starts at 23:30 UTC on 3 December.", numeric.Supported},
		{call, "The call starts at 00:30 CET on 3 December.", numeric.Contradicted},
		{call, "The call starts at 00:30 CET on 5 December.", numeric.Contradicted},
		{call, "The call starts at 01:30 CET on 4 December.", numeric.Contradicted},
		{stamp, "It starts on 1 January 2027 at 00:30 CET.", numeric.Supported},
		{stamp, "It starts on January 1, 2027 at 0:30 CET.", numeric.Supported},
		{stamp, "It starts on 31 December 2026 at 23:30 UTC.", numeric.Supported},
		{stamp, "It starts on 31 December 2026 at 00:30 CET.", numeric.Contradicted},
		{stamp, "It starts on 2 January 2027 at 00:30 CET.", numeric.Contradicted},
		{`{"starts":"2027-01-01T00:30:00+01:00"}`, "It starts on 31 December 2026 at 23:30 UTC.", numeric.Supported},
		{`{"starts":"2027-01-01T00:30:00+01:00"}`, "It starts on 31 December 2026 at 22:30 UTC.", numeric.Contradicted},
		{deploy, "The deploy is at 04:00 UTC on 6 May.", numeric.Supported},
		{deploy, "The deploy is at 05:00 UTC on 6 May.", numeric.Contradicted},
		{deploy, "The deploy is at 04:00 UTC on 5 May.", numeric.Contradicted},
		{"Support is available from 08:00 to 20:00 CET.", "Support starts at 7:00 UTC.", numeric.Supported},
		{"Support is available from 08:00 to 20:00 CET.", "Support starts at 8:00 UTC.", numeric.Contradicted},
		{"Support is available from 08:00 to 20:00 CET.", "Support starts at 8:00 CET.", numeric.Supported},
		{"Support: 08:00-20:00 CET", "Support ends at 19:00 UTC.", numeric.Supported},
		{launch, "The launch is on Friday, 4 December 2026 at 00:30 CET.", numeric.Supported},
		{launch, "The launch is on Saturday, 4 December 2026 at 00:30 CET.", numeric.Contradicted},
		{both, "The call starts at 00:30 CET on 4 December.", numeric.Supported},
		{both, "The call starts at 23:30 UTC on 3 December.", numeric.Supported},
		{
			"Der Anruf ist am 28. Februar 2028 um 23:30 UTC.",
			"Der Anruf ist am 29. Februar 2028 um 00:30 MEZ.",
			numeric.Supported,
		},
	})
}
