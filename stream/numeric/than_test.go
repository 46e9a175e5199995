package numeric_test

import (
	"testing"

	"signalbox/stream/numeric"
)

// TestWhatIsMoreThanAtAnotherTime checks that a comparison of two dates depends on the dates and on
// which amount is larger.
func TestWhatIsMoreThanAtAnotherTime(t *testing.T) {
	t.Parallel()
	const (
		revenue = "Revenue was 12.4 million euros in 2023 and 15.5 million euros in 2024."
		staff   = "The firm had 80 employees in 2021. // In 2023 the firm had 95 employees."
	)
	wantSaid(t, []said{
		{revenue, "Revenue in 2024 was 3.1 million euros more than in 2023.", numeric.Supported},
		{revenue, "In 2024 revenue was 3.1 million higher than in 2023.", numeric.Supported},
		{revenue, "Revenue in 2024 was 25 % higher than in 2023.", numeric.Supported},
		{revenue, "Revenue in 2024 was 3.1 million euros less than in 2023.", numeric.Contradicted},
		{revenue, "Revenue in 2023 was 3.1 million euros more than in 2024.", numeric.Contradicted},
		{revenue, "In 2024 revenue was 4.1 million higher than in 2023.", numeric.Unsupported},
		{staff, "In 2023 the firm had 15 employees more than in 2021.", numeric.Supported},
		{staff, "In 2023 the firm had 15 employees fewer than in 2021.", numeric.Contradicted},
	})
}

// TestUnitsAndHalvesInOtherPlaces checks units that are stated before the value, and a half written
// in one word with its number.
func TestUnitsAndHalvesInOtherPlaces(t *testing.T) {
	t.Parallel()
	const (
		timeout = "`timeout`: how long to wait, in milliseconds; default 1500."
		keep    = "Retention in days (default: 90)."
		course  = "Das Training dauert 18 Monate."
		years   = "The plan is told in weeks by 2030."
	)
	wantSaid(t, []said{
		{timeout, "The default timeout is 1.5 seconds.", numeric.Supported},
		{timeout, "The timeout defaults to 1500 ms.", numeric.Supported},
		{timeout, "The default timeout is 1500.", numeric.Supported},
		{timeout, "The default timeout is 15 seconds.", numeric.Contradicted},
		{keep, "The default retention is 90 days.", numeric.Supported},
		{keep, "The default retention is 90 hours.", numeric.Contradicted},
		{course, "Das Training dauert anderthalb Jahre.", numeric.Supported},
		{course, "Das Training dauert zweieinhalb Jahre.", numeric.Contradicted},
		{years, "The plan is for 2030.", numeric.Supported},
	})
}

// TestTotalsOfMoreThanTwoFactors checks that a total may be the only amount of a sentence
// multiplied by all its other numbers.
func TestTotalsOfMoreThanTwoFactors(t *testing.T) {
	t.Parallel()
	const (
		rooms   = "3 rooms, 4 nights, 95 EUR per room and night."
		cleaner = "2 cleaners work 5 hours at 18 EUR an hour."
	)
	wantSaid(t, []said{
		{rooms, "The total is 1,140 EUR.", numeric.NotCheckable},
		{rooms, "The total is 1,410 EUR.", numeric.Unsupported},
		{rooms, "A room is 1,140 EUR.", numeric.Contradicted},
		{cleaner, "The cleaning costs 180 EUR in total.", numeric.NotCheckable},
		{cleaner, "The cleaning costs 190 EUR in total.", numeric.Unsupported},
	})
}
