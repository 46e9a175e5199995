package numeric_test

import (
	"testing"

	"signalbox/stream/numeric"
)

// TestTimesInOtherNotations checks times of day in timestamps and opening hours, and weekdays next
// to dates.
func TestTimesInOtherNotations(t *testing.T) {
	t.Parallel()
	const (
		stamp = `{"opened_at":"2026-11-25T09:30:00Z"}`
		zoned = "started: 2024-12-31T23:59:10.250+01:00"
		day   = `{"delivery_date":"2026-12-04"}`
		hours = "Die Hotline ist von 8 bis 18 Uhr erreichbar."
		shop  = "The shop is open from 9:00 to 17:00."
	)
	for _, c := range []struct {
		facts, claim string
		want         numeric.Verdict
	}{
		{stamp, "It was opened on November 25, 2026 at 9:30 UTC.", numeric.Supported},
		{stamp, "It was opened at 10:30 CET.", numeric.Supported},
		{stamp, "It was opened at 9:30 CET.", numeric.Contradicted},
		{stamp, "It was opened at 9:30 pm.", numeric.Contradicted},
		{stamp, "It was opened on November 26, 2026 at 9:30.", numeric.Contradicted},
		{zoned, "It started on 31 December 2024 at 11:59 pm.", numeric.Supported},
		{zoned, "It started at 22:59 UTC.", numeric.Supported},
		{"last_login: 2024-07-09 06:45:12", "The last login was at 6:45.", numeric.Supported},
		{"Erstellt: 2025-02-03T14:05Z", "Erstellt um 14:05 Uhr.", numeric.Supported},
		{day, "The delivery date is Friday, December 4, 2026.", numeric.Supported},
		{day, "It is delivered on Fri 4 December.", numeric.Supported},
		{day, "Die Lieferung kommt am Freitag, dem 4. Dezember 2026.", numeric.Supported},
		{day, "The delivery date is Thursday, December 4, 2026.", numeric.Contradicted},
		{day, "Die Lieferung kommt am Montag, den 4. Dezember.", numeric.Unsupported},
		{"The party is on Saturday, 5 December.", "The party is on Sunday, 5 December.", numeric.Contradicted},
		{"The party is on Saturday, 5 December.", "The party is on Saturday, 5 December.", numeric.Supported},
		{hours, "Die Hotline ist von 8:00 bis 18:00 Uhr besetzt.", numeric.Supported},
		{hours, "The hotline is open from 8 a.m. to 6 p.m.", numeric.Supported},
		{hours, "The hotline is open from 8 a.m. to 8 p.m.", numeric.Contradicted},
		{hours, "Die Hotline ist von 9:00 bis 18:00 Uhr besetzt.", numeric.Contradicted},
		{"Sprechstunde: 14-16 Uhr", "Office hours are from 2 pm to 4 pm.", numeric.Supported},
		{"The delivery comes between 10:00 and 12:00.", "Die Lieferung kommt zwischen 10 und 12 Uhr.", numeric.Supported},
		{"The delivery comes between 10:00 and 12:00.", "The delivery comes between 10 and 11 am.", numeric.Contradicted},
		{"The bar opens from 8 to 10 pm.", "The bar opens at 20:00.", numeric.Supported},
		{"The office is open 9 to 5 pm.", "The office opens at 9:00.", numeric.Supported},
		{shop, "The shop is open from 9 to 5.", numeric.Supported},
		{shop, "The shop is open from 9 to 6.", numeric.Contradicted},
		{"The count fell from 9 to 5 people.", "The count fell by 4 people.", numeric.Supported},
		{"Children from 6 to 14 years pay half.", "Children from 6 to 14 years pay half.", numeric.Supported},
	} {
		x := numeric.NewIndex(t.Context(), []numeric.Sentence{{Text: c.facts}})
		if got, findings := x.Check(nil, c.claim, ""); got != c.want {
			t.Errorf("%q beside %q: %v, want %v: %+v", c.claim, c.facts, got, c.want, findings)
		}
	}
}

// TestLengthsAndFields checks that a field name may carry the unit of its number, and that "a week"
// is seven days.
func TestLengthsAndFields(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		facts, claim string
		want         numeric.Verdict
	}{
		{`{"duration_ms": 90000}`, "It took 90 seconds.", numeric.Supported},
		{`{"duration_ms": 90000}`, "It took 90 minutes.", numeric.Unsupported},
		{`{"size_bytes": 1048576}`, "The size is 1 MiB.", numeric.Supported},
		{`{"weight_g": 1500}`, "The weight is 1.5 kg.", numeric.Supported},
		{`{"total_cents": 1999}`, "The total is 19.99 EUR.", numeric.Supported},
		{`{"total_cents": 1999}`, "The total is 29.99 EUR.", numeric.Unsupported},
		{`{"distance_km": 12.5}`, "The distance is 12.5 miles.", numeric.Contradicted},
		{"TIMEOUT_SECONDS = 120", "The timeout is two minutes.", numeric.Supported},
		{`{"founded_year": 1999}`, "It was founded in 1999.", numeric.Supported},
		{"Backups are kept for 7 days.", "Backups are kept for a week.", numeric.Supported},
		{"Backups are kept for a week.", "Backups are kept for 7 days.", numeric.Supported},
		{"Backups are kept for a week.", "Backups are kept for 9 days.", numeric.Contradicted},
		{"Backups are kept for 30 days.", "Backups are kept for about a month.", numeric.Supported},
		{"Die Probezeit beträgt 7 Tage.", "Die Probezeit dauert eine Woche.", numeric.Supported},
		{"Backups are kept for 9 days.", "Backups are kept for a week.", numeric.NotCheckable},
		{"The walk takes 90 minutes.", "The walk takes an hour and 30 minutes.", numeric.Supported},
		{"The rent is 800 euros.", "The rent is 800 euros a month.", numeric.Supported},
	} {
		x := numeric.NewIndex(t.Context(), []numeric.Sentence{{Text: c.facts}})
		if got, findings := x.Check(nil, c.claim, ""); got != c.want {
			t.Errorf("%q beside %q: %v, want %v: %+v", c.claim, c.facts, got, c.want, findings)
		}
	}
}
