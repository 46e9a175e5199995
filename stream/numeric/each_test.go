package numeric_test

import (
	"testing"

	"signalbox/stream/numeric"
)

// TestWhatAnAmountIsForEachOf checks that a "per" unit can have several names, and that names which
// may mean the same do not contradict each other.
func TestWhatAnAmountIsForEachOf(t *testing.T) {
	t.Parallel()
	const (
		dinner = "Dinner is 30 euros per person."
		entry  = "Entry is 12 euros per head."
		seat   = "The plan costs $12 per seat."
		plans  = "Basic costs $12 per seat. // Pro costs $15 per user."
		ages   = "Tickets: 8 euros per child, 12 euros per adult."
		api    = "The API allows 100 requests per minute per key."
		both   = "The plan costs 14 euros per user and month."
		beide  = "Die Lizenz kostet 8 Euro pro Nutzer und Monat, zzgl. USt."
	)
	wantSaid(t, []said{
		{dinner, "Dinner is 30 euros per guest.", numeric.Supported},
		{dinner, "Dinner is 30 euros per head.", numeric.Supported},
		{dinner, "Dinner is 30 euros a head.", numeric.Supported},
		{dinner, "Dinner is 30 euros each.", numeric.Supported},
		{dinner, "Dinner is 30 euros for each guest.", numeric.Supported},
		{dinner, "Dinner is 40 euros per guest.", numeric.Contradicted},
		{dinner, "Dinner is 30 euros per table.", numeric.Unsupported},
		{entry, "Entry is 12 euros per person.", numeric.Supported},
		{entry, "Each guest pays 12 euros entry.", numeric.Supported},
		{entry, "Entry is 12 euros per family.", numeric.Unsupported},
		{entry, "Entry is 15 euros per person.", numeric.Contradicted},
		{"Das Essen kostet 30 Euro pro Person.", "Das Essen kostet 30 Euro pro Kopf.", numeric.Supported},
		{seat, "The plan costs $12 per user.", numeric.NotCheckable},
		{seat, "The plan costs $12 per license.", numeric.NotCheckable},
		{seat, "The plan costs $12 per seat.", numeric.Supported},
		{seat, "The plan costs $15 per user.", numeric.Contradicted},
		{seat, "The plan costs $12 per project.", numeric.Unsupported},
		{seat + " // A seat is one user.", "The plan costs $12 per user.", numeric.Supported},
		{"The plan costs $12 per seat (user).", "The plan costs $12 per user.", numeric.Supported},
		{seat + " // A seat is not a user.", "The plan costs $12 per user.", numeric.NotCheckable},
		{seat + " // Seats are users.", "The plan costs $12 per user.", numeric.Supported},
		{seat + " // A seat means an active user.", "The plan costs $12 per user.", numeric.Supported},
		{seat + " // A seat is valid for five users.", "The plan costs $12 per user.", numeric.NotCheckable},
		{seat + " // A seat is five users.", "The plan costs $12 per user.", numeric.NotCheckable},
		{seat + " // A seat is cheaper than a user.", "The plan costs $12 per user.", numeric.NotCheckable},
		{seat + " // Seats are shared by users.", "The plan costs $12 per user.", numeric.NotCheckable},
		{seat + " // It needs one seat per user.", "The plan costs $12 per user.", numeric.Supported},
		{seat + " // It needs 2 seats per user.", "The plan costs $12 per user.", numeric.NotCheckable},
		{plans, "Basic costs $12 per user.", numeric.NotCheckable},
		{plans, "Pro costs $12 per user.", numeric.Contradicted},
		{ages, "Tickets are 8 euros per child.", numeric.Supported},
		{ages, "Tickets are 12 euros per child.", numeric.Contradicted},
		{api, "The API allows 100 requests per minute for each key.", numeric.Supported},
		{api, "The API allows 100 requests per minute per team.", numeric.Unsupported},
		{both, "The plan costs 14 euros per month and user.", numeric.Supported},
		{both, "The plan costs 14 euros per user per month.", numeric.Supported},
		{both, "The plan costs 14 euros per user/month, billed monthly.", numeric.Supported},
		{both, "The plan costs 168 euros per user and year.", numeric.Supported},
		{both, "The plan costs 168 euros per user a year.", numeric.Supported},
		{both, "The plan costs 14 euros per user and year.", numeric.Contradicted},
		{both, "The plan costs 14 euros per team and month.", numeric.Unsupported},
		{both, "The plan costs 19 euros per user and month.", numeric.Contradicted},
		{beide, "Die Lizenz kostet 96 Euro pro Nutzer und Jahr.", numeric.Supported},
		{beide, "Die Lizenz kostet 8 Euro pro Monat und Nutzer.", numeric.Supported},
		{beide, "Die Lizenz kostet 9 Euro pro Nutzer und Monat.", numeric.Contradicted},
		{"Entry is 8 euros per child and day tickets are 20 euros.", "Entry is 8 euros per child.", numeric.Supported},
		{
			"Entry is 8 euros per child and day tickets are 20 euros.",
			"Entry is 56 euros per child per week.",
			numeric.Contradicted,
		},
	})
}

// TestWordsForALengthOfTime checks which noun a word such as "nightly" applies to: what a daily
// newsletter has is not an amount per day.
func TestWordsForALengthOfTime(t *testing.T) {
	t.Parallel()
	const (
		room   = "A room is 120 euros per night."
		fee    = "The fee is 40 euros monthly."
		news   = "Our daily newsletter has 5000 readers."
		limit  = "The daily limit is 100 requests."
		most   = "The liability is limited to EUR 250,000 per calendar year."
		budget = "Our annual budget is 120,000 euros."
	)
	wantSaid(t, []said{
		{room, "The nightly rate is 120 euros.", numeric.Supported},
		{room, "A room is 120 euros a night.", numeric.Supported},
		{room, "A room costs 120 euros nightly.", numeric.Supported},
		{room, "A room is 120 euros each night.", numeric.Supported},
		{room, "A room is 840 euros per week.", numeric.Supported},
		{room, "A room is 120 euros per week.", numeric.Unsupported},
		{room, "A room is 130 euros a night.", numeric.Contradicted},
		{fee, "The fee is 40 euros per month.", numeric.Supported},
		{fee, "The monthly fee is 40 euros.", numeric.Supported},
		{fee, "The fee is 40 euros a month.", numeric.Supported},
		{fee, "The fee is 40 euros every month.", numeric.Supported},
		{fee, "The fee is 40 euros a year.", numeric.Contradicted},
		{news, "The newsletter has 5000 readers.", numeric.Supported},
		{news, "5000 readers have our daily newsletter.", numeric.Supported},
		{news, "Our newsletter has 5000 readers a week.", numeric.Supported},
		{news, "Our daily newsletter has 6000 readers.", numeric.Contradicted},
		{"The newsletter has 5000 readers.", "Our daily newsletter has 5000 readers.", numeric.Supported},
		{"The newsletter has 5000 readers a month.", "Our daily newsletter has 5000 readers.", numeric.Supported},
		{"The newsletter has 5000 readers a month.", "The newsletter has 5000 readers a day.", numeric.Contradicted},
		{"Der tägliche Newsletter hat 5000 Leser.", "Der Newsletter hat 5000 Leser pro Woche.", numeric.Supported},
		{"The weekly market has 80 stalls.", "80 stalls stand at the market every day.", numeric.Supported},
		{limit, "The limit is 100 requests per day.", numeric.Supported},
		{limit, "The limit is 100 requests per hour.", numeric.Contradicted},
		{"The monthly plan allows 500 builds.", "The plan allows 500 builds per month.", numeric.Supported},
		{"The monthly plan allows 500 builds.", "The plan allows 500 builds per day.", numeric.Contradicted},
		{"The hotline takes 5000 daily calls.", "The hotline takes 5000 calls a week.", numeric.Contradicted},
		{"The hotline takes 5000 calls daily.", "The hotline takes 5000 calls a day.", numeric.Supported},
		{most, "The liability is limited to 250,000 euros per year.", numeric.Supported},
		{most, "The liability is limited to 250,000 euros a year.", numeric.Supported},
		{most, "The liability is limited to 500,000 euros per year.", numeric.Contradicted},
		{budget, "The budget is 10,000 euros a month.", numeric.Supported},
		{budget, "The budget is 120,000 euros a month.", numeric.Contradicted},
	})
}

// TestSignsAndUnitsOfRecords checks that a minus after the colon of a record belongs to the number,
// and that a single letter is a unit if the field name says what is measured.
func TestSignsAndUnitsOfRecords(t *testing.T) {
	t.Parallel()
	const (
		oslo   = `{"city":"Oslo","temp_c":-4.5}`
		backup = `{"job":"backup","duration_s":540,"retries":2}`
	)
	wantSaid(t, []said{
		{oslo, "In Oslo it is -4.5 °C.", numeric.Supported},
		{oslo, "In Oslo it is minus 4.5 °C.", numeric.Supported},
		{oslo, "In Oslo it is 4.5 °C.", numeric.Contradicted},
		{"balance=-20", "The balance is -20.", numeric.Supported},
		{"balance=-20", "The balance is 20.", numeric.Contradicted},
		{"Score:3-5", "The score is 3-5.", numeric.Supported},
		{backup, "The backup took 9 minutes.", numeric.Supported},
		{backup, "The backup took 540 seconds.", numeric.Supported},
		{backup, "The backup took 19 minutes.", numeric.Contradicted},
		{`{"size_s":540}`, "The size is 540.", numeric.Supported},
	})
}
