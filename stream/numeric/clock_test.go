package numeric_test

import (
	"testing"

	"signalbox/stream/numeric"
)

// TestTimesOfDayBelongToWhatIsNamed checks that a time of day belongs to the day or row named in
// the claim, and that the time between two of them is a length of time.
func TestTimesOfDayBelongToWhatIsNamed(t *testing.T) {
	t.Parallel()
	const (
		quiet = "Quiet hours are from 22:00 to 7:00, on Sundays and public holidays also from 13:00 to 15:00."
		train = "Kassel Hbf | dep. 06:14 | platform 3 // Hann. Münden | arr. 06:33 | dep. 06:35 | platform 1 // " +
			"Göttingen | arr. 07:12 | platform 8 // The first train on Saturdays leaves Kassel at 07:14."
		late   = "Pupils who arrive after 8:40 must sign in at the office."
		wash   = "The laundry room may be used from 8:00 to 20:00."
		bus    = "Market Square | 1st run 9:10 | 2nd run 13:10 // On weekdays the first bus leaves Market Square at 5:50."
		hours  = "Opening hours: Fridays 10:00 to 18:00, Saturdays 10:00 to 14:00."
		pier   = "Cars must be at the pier by 7:30. // Check-in closes 30 minutes before departure."
		lauf   = "412 Läufer starteten um 10:15 Uhr. // Jonas Beck war um 10:47 Uhr im Ziel."
		race   = "The winner, Ines Roth, crossed the line at 10:21 after a start at 9:00."
		drop   = "The drop-off of dogs is between 8:00 and 10:00."
		ballet = "He joined the Northern Ballet in 1961 and left it in 1978 to direct the Opera School, which he led " +
			"until 1999."
		night = "The night train leaves Basel at 21:30 and reaches Hamburg at 6:45."
	)
	wantSaid(t, []said{
		{quiet, "On Sundays quiet hours also apply from 1 pm to 3 pm.", numeric.Supported},
		{quiet, "On Sundays quiet hours also apply from 1 pm to 4 pm.", numeric.Contradicted},
		{train, "The train leaves Kassel at 06:14.", numeric.Supported},
		{train, "The train leaves Kassel at 06:35.", numeric.Contradicted},
		{train, "On Saturdays the first train leaves Kassel at 6:14.", numeric.Contradicted},
		{train, "In Münden the train stops for two minutes.", numeric.Supported},
		{train, "In Münden the train stops for five minutes.", numeric.Unsupported},
		{train, "The journey from Kassel to Göttingen takes 58 minutes.", numeric.NotCheckable},
		{train, "The journey from Kassel to Göttingen takes 68 minutes.", numeric.Unsupported},
		{late, "A pupil who comes at 8:45 has to sign in at the office.", numeric.NotCheckable},
		{late, "A pupil who comes at 8:30 has to sign in at the office.", numeric.Contradicted},
		{late, "Pupils have to sign in at the office after 8:45.", numeric.Contradicted},
		{wash, "The laundry room may be used for 12 hours.", numeric.Supported},
		{wash, "The laundry room may be used for 10 hours.", numeric.Unsupported},
		{bus, "The first Sunday bus leaves Market Square at 9:10.", numeric.Supported},
		{bus, "On weekdays the first bus leaves Market Square at 9:10.", numeric.Contradicted},
		{hours, "On Saturdays it is open for four hours.", numeric.NotCheckable},
		{hours, "On Saturdays it is open for five hours.", numeric.Unsupported},
		{pier, "A car that arrives at 7:15 is in time at the pier.", numeric.NotCheckable},
		{pier, "A car that arrives at 7:45 is in time at the pier.", numeric.Contradicted},
		{pier, "Check-in closes half an hour before departure.", numeric.Supported},
		{pier, "Check-in closes an hour before departure.", numeric.Contradicted},
		{lauf, "Jonas Beck brauchte 32 Minuten.", numeric.NotCheckable},
		{lauf, "Jonas Beck brauchte 42 Minuten.", numeric.Unsupported},
		{race, "Ines Roth needed 81 minutes.", numeric.NotCheckable},
		{race, "Ines Roth needed 91 minutes.", numeric.Unsupported},
		{drop, "You can bring your dog to the drop-off at 9 am.", numeric.NotCheckable},
		{drop, "You can bring your dog to the drop-off at 11 am.", numeric.Contradicted},
		{ballet, "He led the Opera School for 21 years.", numeric.Supported},
		{ballet, "He led the Opera School for 17 years.", numeric.Unsupported},
		{ballet, "He was at the Northern Ballet for 17 years.", numeric.Supported},
		{night, "The night train takes 9 hours and 15 minutes.", numeric.Supported},
		{night, "The night train takes 8 hours and 15 minutes.", numeric.Unsupported},
	})
}

// TestTwoTimesOfDayAreOfOneThingWhereThatIsSaid checks that two times of day form a span if a word
// says so or if they share a subject, and that a time within the span is accepted as an example,
// also over midnight.
func TestTwoTimesOfDayAreOfOneThingWhereThatIsSaid(t *testing.T) {
	t.Parallel()
	const (
		tour     = "The museum opens at 10:00 and the tour starts at 11:30."
		meals    = "Breakfast is at 7:30 and dinner at 19:30."
		quiet    = "Quiet hours are from 22:00 to 7:00."
		wash     = "The laundry room may be used from 8:00 to 20:00."
		shuttle  = "The shuttle leaves the hotel at 8:15 and reaches the airport at 9:00."
		meetings = "Meetings are held at 9:00, 11:00 and 15:00."
		shop     = "The shop is open between 8 am and 6 pm."
	)
	wantSaid(t, []said{
		{tour, "The tour takes 90 minutes.", numeric.NotCheckable},
		{tour, "The tour takes 80 minutes.", numeric.Unsupported},
		{meals, "Breakfast lasts 12 hours.", numeric.NotCheckable},
		{shuttle, "The shuttle takes 45 minutes.", numeric.Supported},
		{shop, "The shop is open for ten hours.", numeric.Supported},
		{meetings, "A meeting is held at 11:00.", numeric.Supported},
		{meetings, "A meeting is held at 10:00.", numeric.Contradicted},
		{quiet, "The quiet hours last for nine hours.", numeric.Supported},
		{quiet, "A guest who plays music at 23:00 disturbs the quiet hours.", numeric.NotCheckable},
		{quiet, "A guest who plays music at 6:00 disturbs the quiet hours.", numeric.NotCheckable},
		{quiet, "A guest who plays music at 9:00 disturbs the quiet hours.", numeric.Contradicted},
		{wash, "You can use the laundry room at 19:30.", numeric.NotCheckable},
		{wash, "You can use the laundry room at 21:00.", numeric.Contradicted},
	})
}
