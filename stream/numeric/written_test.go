package numeric_test

import (
	"testing"

	"signalbox/stream/numeric"
)

// TestWrittenOtherwise checks version, leave and invoice rules in different wordings.
func TestWrittenOtherwise(t *testing.T) {
	t.Parallel()
	const db = "Supported databases: PostgreSQL 12 or later, MySQL 8.0 or later, and SQLite 3.35 or later."
	const leave = "Requests for more than 10 consecutive days must be approved at least 6 weeks in advance. " +
		"Sick leave of more than 3 days requires a medical certificate."
	const returns = "Return shipping is free for orders over $50; otherwise a fee of $4.95 is deducted from the refund."
	for _, c := range []struct {
		facts, claim string
		want         numeric.Verdict
	}{
		{"The limit is 20 days per year.", "The limit is 20 days a year.", numeric.Supported},
		{"The limit is 20 days a year.", "The limit is 20 days per year.", numeric.Supported},
		{"The limit is 20 days per year.", "The limit is 20 days a month.", numeric.Contradicted},
		{"The limit is 20 days per year.", "The limit is 25 days a year.", numeric.Contradicted},
		{"Employees have 20 days of annual leave.", "Employees have 20 days of leave a year.", numeric.Supported},
		{"Der Anspruch beträgt 30 Tage pro Jahr.", "Der Anspruch beträgt 30 Tage im Jahr.", numeric.Supported},
		{db, "PostgreSQL 14 is among the supported databases.", numeric.NotCheckable},
		{db, "PostgreSQL 11 is among the supported databases.", numeric.Contradicted},
		{db, "SQLite 3.40 is among the supported databases.", numeric.NotCheckable},
		{"Requires Python 3.9 or newer.", "It runs on Python 3.11.", numeric.NotCheckable},
		{"Requires Python 3.9 or newer.", "It requires Python 3.8.", numeric.Contradicted},
		{"The app needs iOS 16 and later.", "The app runs on iOS 17.", numeric.NotCheckable},
		{"The app needs Android 11+.", "The app runs on Android 13.", numeric.NotCheckable},
		{"The app needs Android 11+.", "The app runs on Android 9.", numeric.Contradicted},
		{"A doctor's note is needed for illness of more than 3 days.", "If you are ill for four days, you need a doctor's note.", numeric.NotCheckable},
		{"A doctor's note is needed for illness of more than 3 days.", "If you are ill for two days, you need a doctor's note.", numeric.Contradicted},
		{"The invoice total is £3,632.40.", "The total is 3,632.40 pounds.", numeric.Supported},
		{"The invoice total is £3,632.40.", "The total is 3,362.40 pounds.", numeric.Contradicted},
		{"The crate holds 500 pounds of meat.", "The crate of meat costs £500.", numeric.Unsupported},
		{"The parcel weighs 12 pounds.", "The parcel weighs 12 pounds.", numeric.Supported},
		{"The parcel weighs 12 pounds and costs £9 to send.", "The parcel weighs 9 pounds.", numeric.Contradicted},
		{"The commission is 8% of the net price. The net price is 54,000 euros.", "The commission is 4,320 euros.", numeric.NotCheckable},
		{"The commission is 8% of the net price. The net price is 54,000 euros.", "The commission is 4,230 euros.", numeric.Contradicted},
		{"Of 1,250 people asked, 64% said yes and 12% had no opinion.", "800 of the 1,250 people asked said yes.", numeric.Supported},
		{"Of 1,250 people asked, 64% said yes and 12% had no opinion.", "820 of the 1,250 people asked said yes.", numeric.Contradicted},
		{"The release upgrades Node.js from 18 to 20.", "The release ships with Node.js 20.", numeric.Supported},
		{"The release upgrades Node.js from 18 to 20.", "The release ships with Node.js 18.", numeric.Contradicted},
		{"Der Preis sank von 34,2 auf 31,8 Cent.", "Der Strom ist um 2,4 Cent günstiger.", numeric.Supported},
		{"Der Preis sank von 34,2 auf 31,8 Cent.", "Der Strom ist um 3,4 Cent günstiger.", numeric.Unsupported},
		{"Der Fonds steigt auf 250.000 Euro (bisher 200.000 Euro).", "Der Fonds wird um 50.000 Euro aufgestockt.", numeric.Supported},
		{"Subtotal 2,333.00 EUR, VAT 19 % 443.27 EUR, total 2,776.27 EUR.", "Including VAT the invoice comes to 2,776.27 euros.", numeric.Supported},
		{"Subtotal 2,333.00 EUR, VAT 19 % 443.27 EUR, total 2,776.27 EUR.", "The VAT comes to 2,333 euros.", numeric.Contradicted},
		{"Operating margin improved from 14.2% to 16.0%.", "The operating margin rose by 12.7%.", numeric.Supported},
		{"Operating margin improved from 14.2% to 16.0%.", "The operating margin rose by 1.8 percentage points.", numeric.Supported},
		{"Operating margin improved from 14.2% to 16.0%.", "The operating margin rose by 2.7%.", numeric.Contradicted},
		{"Une fois ouvert, le flacon se conserve 28 jours.", "Une fois ouvert, le flacon se conserve quatre semaines.", numeric.Supported},
		{"Prenez 5 ml une fois par jour.", "Prenez 5 ml deux fois par jour.", numeric.Contradicted},
		{"The filter must be replaced every 3 months.", "The filter is changed four times a year.", numeric.Supported},
		{"The filter must be replaced every 3 months.", "The filter is changed five times a year.", numeric.Unsupported},
		{"Der Filter wird alle 3 Monate gewechselt.", "Der Filter wird vier Mal im Jahr gewechselt.", numeric.Supported},
		{"So far 62,000 of the 80,000 euros have been spent.", "18,000 euros are left.", numeric.Supported},
		{"So far 62,000 of the 80,000 euros have been spent.", "28,000 euros are left.", numeric.Unsupported},
		{"So far 62,000 of the 80,000 euros have been spent.", "62,000 euros have been spent.", numeric.Supported},
		{leave, "If you are ill for four days, you need a doctor's note.", numeric.NotCheckable},
		{returns, "For an order of $60, return shipping is free.", numeric.NotCheckable},
	} {
		x := numeric.NewIndex(t.Context(), []numeric.Sentence{{Text: c.facts}})
		if got, findings := x.Check(nil, c.claim, ""); got != c.want {
			t.Errorf("%q beside %q: %v, want %v: %+v", c.claim, c.facts, got, c.want, findings)
		}
	}
}

// TestOneStepOfArithmetic checks that numbers which follow by one step of arithmetic are not
// flagged and others are.
func TestOneStepOfArithmetic(t *testing.T) {
	t.Parallel()
	const (
		meal    = "The daily meal allowance is EUR 45, reduced by EUR 10 if breakfast is included."
		syrup   = "One millilitre contains 2 mg of the substance. The bottle holds 120 ml."
		volumes = "3 volumes queued: /home 420 GB, /srv 910 GB, /mail 170 GB"
		course  = "Eight sessions of two and a half hours, on Wednesdays."
		outage  = "Started: 14 October 2025, 21:35 UTC. Resolved: 15 October 2025, 01:20 UTC."
		term    = "This Agreement starts on 1 September 2023 and runs for an initial term of 36 months."
		closed  = "The bridge will be closed from 2 March 2026 for six weeks."
		plan    = "The Family plan is $11.90 a month."
		tickets = "Adults pay £5.40 and children £3.20."
		python  = "fluxgrid works with Python 3.9 up to and including 3.12."
	)
	for _, c := range []struct {
		facts, claim string
		flagged      bool
	}{
		{meal, "With breakfast the allowance drops to EUR 35.", false},
		{meal, "With breakfast the allowance drops to EUR 37.", true},
		{syrup, "A full bottle contains 240 mg of the substance.", false},
		{syrup, "A full bottle contains 270 mg of the substance.", true},
		{volumes, "The volumes amount to 1,500 GB.", false},
		{volumes, "The volumes amount to 1,600 GB.", true},
		{course, "The course comprises 20 hours of teaching.", false},
		{course, "The course comprises 30 hours of teaching.", true},
		{outage, "The incident lasted three hours and 45 minutes.", false},
		{outage, "The incident lasted two hours and 45 minutes.", true},
		{term, "The initial term ends at the end of August 2026.", false},
		{term, "The initial term ends at the end of October 2026.", true},
		{closed, "The closure lasts until mid-April 2026.", false},
		{closed, "The closure lasts until mid-June 2026.", true},
		{plan, "A year of the Family plan costs $142.80.", false},
		{plan, "A year of the Family plan costs $152.80.", true},
		{tickets, "Two adults and one child pay £14.00 in total.", false},
		{tickets, "Two adults and one child pay £15.00 in total.", true},
		{python, "It runs on Python 3.11.", false},
		{python, "It runs on Python 3.13.", true},
		{"Compatible avec iOS 15 et versions ultérieures.", "L'application fonctionne avec iOS 16.", false},
		{"Compatible avec iOS 15 et versions ultérieures.", "L'application exige au moins iOS 16.", true},
		{python, "It runs on Python 3.8.", true},
		{"It works with Python 3.9–3.12.", "It runs on Python 3.11.", false},
		{"It works with Python 3.9-3.12.", "It runs on Python 3.11.", false},
		{"It works with Node 18.17 up to 22.x.", "It runs on Node 20.", false},
		{"In the vote 55 % agreed and 45 % disagreed.", "In the vote 60 % agreed and 40 % disagreed.", true},
		{"The offer ran in 1990 and in 2000.", "The offer took 10 minutes.", true},
		{"The pump delivers 20 l/min. It has 3 outlets.", "The pump delivers 60 l/min.", true},
		{"The exam is from 19:00 to 20:25.", "The exam takes 85 minutes.", false},
		{"The exam is from 19:00 to 20:25.", "The exam takes 95 minutes.", true},
		{"Quiet hours are from 10 pm to 6 am.", "Quiet hours take eight hours.", false},
		{"The shop opened on 12 May 2024. Cancel within 30 days.", "The shop opened on 9 May 2024, not on 20 May 2024.", true},
		{"The trial starts on 31 August 2024 and lasts 6 months.", "The trial ends in February 2025.", false},
		{"Keeps for 4 days in a tin.", "A cake made on 2 June keeps until 6 June.", false},
		{"Keeps for 4 days in a tin.", "A cake made on 2 June keeps until 16 June.", true},
	} {
		x := numeric.NewIndex(t.Context(), []numeric.Sentence{{Text: c.facts}})
		got, findings := x.Check(nil, c.claim, "")
		if flagged := got == numeric.Contradicted || got == numeric.Unsupported; flagged != c.flagged {
			t.Errorf("%q beside %q: %v: %+v", c.claim, c.facts, got, findings)
		}
	}
}
