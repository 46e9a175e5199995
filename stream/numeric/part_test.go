package numeric_test

import (
	"testing"

	"signalbox/stream/numeric"
)

// TestNumbersOfOtherParts checks that two numbers of one sentence stay with their parts of it and
// with their dates.
func TestNumbersOfOtherParts(t *testing.T) {
	t.Parallel()
	const (
		account = "If a payment fails, the account is suspended after 10 days and deleted after 60 days."
		checkIn = "Check-in opens 24 hours before departure and closes 45 minutes before departure."
		career  = "Sarah Chen joined the company in 2015 as an engineer and became CTO in 2021."
		regions = "Europe contributed $1.1 billion, Asia $900 million."
		tickets = "Tickets cost 14 euros, reduced 7 euros; children under 6 are free."
		turnout = "Turnout was 61% in 2018 and 67% in 2022."
		rose    = "Turnout rose from 61% in 2018 to 67% in 2022, while the number of stations fell from 410 to 380."
		limits  = "max_connections defaults to 100 and may be raised to 5000."
		prizes  = "She won the prize in 2011 and again in 2019."
		tablets = "Do not take more than 4 tablets in 24 hours."
		silk    = "Do not iron silk above 110 degrees."
		parcels = "We do not ship parcels over 50 kg."
		bags    = "You may not bring bags over 20 kg."
		hotel   = "The hotel is not cheap at over 100 euros."
		orders  = "Orders are not refunded after more than 30 days."
		plan    = "The plan costs 12 euros."
	)
	for _, c := range []struct {
		fact, claim string
		wrong       bool
	}{
		{account, "The account is deleted after 10 days if a payment fails.", true},
		{account, "The account is suspended after 60 days if a payment fails.", true},
		{account, "The account is deleted after 60 days if a payment fails.", false},
		{checkIn, "Check-in closes 24 hours before departure.", true},
		{checkIn, "Check-in closes 45 minutes before departure.", false},
		{checkIn, "Check-in opens 24 hours before departure.", false},
		{career, "Sarah Chen became CTO in 2015.", true},
		{career, "Sarah Chen joined in 2021.", true},
		{career, "Sarah Chen became CTO in 2021.", false},
		{regions, "Europe contributed $900 million.", true},
		{regions, "Asia contributed $900 million.", false},
		{tickets, "Reduced tickets cost 14 euros.", true},
		{tickets, "Tickets cost 14 euros.", false},
		{tickets, "Reduced tickets cost 7 euros.", false},
		{turnout, "Turnout was 61% in 2022.", true},
		{turnout, "Turnout was 67% in 2022.", false},
		{rose, "Turnout was 61% in 2022.", true},
		{rose, "Turnout was 61% in 2018.", false},
		{rose, "From 2018 to 2022, turnout rose from 61% to 67%.", false},
		{limits, "max_connections defaults to 5000.", true},
		{limits, "max_connections can be set up to 5000.", false},
		{prizes, "She won the prize in 2019.", false},
		{tablets, "At most 4 tablets may be taken in a day.", false},
		{tablets, "You must take more than 6 tablets in 24 hours.", true},
		{silk, "Silk may be ironed at up to 110 degrees.", false},
		{silk, "Silk is ironed at 150 degrees.", true},
		{parcels, "Parcels over 50 kg are not shipped.", false},
		{parcels, "Parcels over 80 kg are not shipped.", true},
		{bags, "Bags over 20 kg are forbidden.", false},
		{bags, "A bag may weigh at most 20 kg.", false},
		{hotel, "The hotel costs over 100 euros.", false},
		{hotel, "The hotel costs at most 100 euros.", true},
		{orders, "Orders are not refunded if more than 30 days have passed.", false},
		{plan, "The plan costs 0 euros for 2 years.", true},
	} {
		x := numeric.NewIndex(t.Context(), []numeric.Sentence{{Text: c.fact}})
		if got, findings := x.Check(nil, c.claim, ""); (got >= numeric.Unsupported) != c.wrong {
			t.Errorf("%q beside %q: %v: %+v", c.claim, c.fact, got, findings)
		}
	}
}

// TestNumbersOfOtherKinds checks that a small number in words is not compared with a number that
// has a unit or counts something else.
func TestNumbersOfOtherKinds(t *testing.T) {
	t.Parallel()
	x := numeric.NewIndex(t.Context(), []numeric.Sentence{
		{Text: "Take one 500 mg tablet every 6 hours with food."}, {Text: "Do not take more than 4 tablets in 24 hours."},
	})
	for claim, wrong := range map[string]bool{
		"Take one tablet every 4 hours.":           true,
		"Take one tablet every 6 hours.":           false,
		"At most 4 tablets may be taken in a day.": false,
	} {
		if got, findings := x.Check(nil, claim, ""); (got >= numeric.Unsupported) != wrong {
			t.Errorf("%q: %v: %+v", claim, got, findings)
		}
	}
}

// TestNumbersOfProgramsOutput checks claims that combine numbers of several sentences or count
// rows.
func TestNumbersOfProgramsOutput(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		facts []string
		claim string
		wrong bool
	}{
		{[]string{"collected 128 items", "2 failed, 126 passed in 14.32s"}, "126 of 128 tests passed.", false},
		{[]string{"tests/test_api.py", "2 failed, 126 passed in 14.32s"}, "The tests took 14.32 seconds.", false},
		{[]string{"2 failed, 126 passed in 14.32s"}, "The tests took 24.3 seconds.", true},
		{[]string{"-rw-r--r-- 1 dev staff  1204 Nov 12 10:01 main.go"}, "main.go is 1204 bytes.", false},
		{
			[]string{`pulls: {"number":412,"additions":120,"deletions":8,"state":"open"}`, `{"total":2}`},
			"There are 2 open pulls.", false,
		},
		{
			[]string{`pulls: {"number":412,"additions":120,"deletions":8,"state":"open"}`, `{"total":2}`},
			"There are 2 additions.", true,
		},
	} {
		var list []numeric.Sentence
		for _, s := range c.facts {
			list = append(list, numeric.Sentence{Text: s})
		}
		if got, findings := numeric.NewIndex(t.Context(), list).Check(nil, c.claim, ""); (got >= numeric.Unsupported) != c.wrong {
			t.Errorf("%q beside %q: %v: %+v", c.claim, c.facts, got, findings)
		}
	}
}
