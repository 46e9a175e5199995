package numeric_test

import (
	"testing"

	"signalbox/stream/numeric"
)

// TestDatesThatFollow checks dates that follow from a date and a length of time, and dates beyond a
// date that limits a rule.
func TestDatesThatFollow(t *testing.T) {
	t.Parallel()
	const (
		invoice = "Invoice date: 14 March 2025. // Payment is due within 30 days."
		lease   = "The lease begins on 1 July 2024 and runs for three years."
		trial   = "The trial starts on 3 May and lasts two weeks."
		visa    = "The visa was issued on 31 January 2025 and is valid for 6 months."
		cover   = "The warranty was extended from 24 to 36 months for devices bought after 1 January 2025."
		visit   = "Your appointment is on 19 March at 10:15. // Please arrive 20 minutes early."
		film    = "The film starts at 20:15 and lasts 90 minutes."
		notice  = "The lease ends on 30 June 2027. // Notice must be given three months before its end."
		turn    = "From 1 January 2025, the fee is 20 euros; before 1 January 2025 it was 15 euros."
		month   = "The trial starts on 31 January 2025 and lasts one month."
		rule    = "Until 30 June 2025 the fee is 20 euros."
		clause  = "The invoice is due within 30 days of 14 March 2025."
		dated   = "The invoice dated 14 March 2025 is due within 30 days."
	)
	wantSaid(t, []said{
		{invoice, "Payment is due by 13 April 2025.", numeric.Supported},
		{invoice, "Payment is due by 30 April 2025.", numeric.Unsupported},
		{invoice, "Payment is due by 14 April 2025.", numeric.Unsupported},
		{lease, "The first term ends on 30 June 2027.", numeric.Supported},
		{lease, "The first term ends on 1 July 2027.", numeric.Supported},
		{lease, "The first term ends on 30 June 2026.", numeric.Unsupported},
		{trial, "The trial ends on 17 May.", numeric.Supported},
		{trial, "The trial ends on 10 May.", numeric.Contradicted},
		{visa, "The visa expires on 31 July 2025.", numeric.Supported},
		{visa, "The visa expires on 31 August 2025.", numeric.Contradicted},
		{cover, "Devices bought in March 2025 have a three-year warranty.", numeric.Supported},
		{cover, "Devices bought in March 2024 have a three-year warranty.", numeric.Contradicted},
		{cover, "Devices bought after 1 March 2025 have a three-year warranty.", numeric.Contradicted},
		{visit, "Please be at the appointment at 9:55.", numeric.Supported},
		{visit, "Please be at the appointment at 10:35.", numeric.Contradicted},
		{film, "The film ends at 21:45.", numeric.Supported},
		{film, "The film ends at 21:15.", numeric.Contradicted},
		{notice, "Notice of the lease must be given by 30 March 2027.", numeric.Supported},
		{notice, "Notice of the lease must be given by 30 April 2027.", numeric.Unsupported},
		{lease, "The lease begins on 1 July 2027.", numeric.Contradicted},
		{lease, "The lease starts on 30 June 2027.", numeric.Contradicted},
		{lease, "The lease was signed on 1 July 2027.", numeric.Contradicted},
		{lease, "The next lease begins on 1 July 2027.", numeric.Supported},
		{invoice, "The invoice date is 13 April 2025.", numeric.Contradicted},
		{invoice, "The invoice was issued on 13 April 2025.", numeric.Contradicted},
		{visa, "The visa was issued on 31 July 2025.", numeric.Contradicted},
		{film, "The film starts at 21:45.", numeric.Contradicted},
		{notice, "The lease ends on 30 March 2027.", numeric.Contradicted},
		{notice, "Notice of the lease must be given by 31 March 2027.", numeric.Supported},
		{month, "The trial ends on 28 February 2025.", numeric.Supported},
		{month, "The trial ends on 3 March 2025.", numeric.Contradicted},
		{rule, "On 3 May 2025 the fee is 20 euros.", numeric.Supported},
		{turn, "On 3 March 2025 the fee is 20 euros.", numeric.Supported},
		{turn, "On 3 March 2025 the fee is 15 euros.", numeric.Contradicted},
		{turn, "On 3 March 2024 the fee was 15 euros.", numeric.Supported},
		{rule, "On 3 July 2025 the fee is 20 euros.", numeric.Contradicted},
		{clause, "The invoice is due by 13 April 2025.", numeric.Supported},
		{clause, "The invoice is due by 20 April 2025.", numeric.Contradicted},
		{dated, "The invoice is due by 13 April 2025.", numeric.Supported},
		{dated, "The invoice is dated 13 April 2025.", numeric.Contradicted},
	})
}

// TestMultiplesThatNoWordTells checks that a whole multiple of an amount by another number of the
// evidence is left open, and that other amounts are flagged.
func TestMultiplesThatNoWordTells(t *testing.T) {
	t.Parallel()
	const (
		deposit = "The deposit is two monthly rents. // The monthly rent is 950 euros, " +
			"of which 150 euros is for heating."
		penalty = "The penalty is 0.5 % per week of delay, at most 5 %. // The contract value is 80,000 euros."
		dose    = "Adults take one 400 mg tablet every 6 to 8 hours. // " +
			"Do not take more than three tablets in 24 hours."
	)
	const (
		flat    = "The monthly rent is 950 euros. // The flat has 2 rooms."
		seats   = "The Pro plan costs 10 euros per user. // The Pro plan covers 5 users."
		tickets = "A ticket costs 12 euros. // You booked 3 tickets."
	)
	wantSaid(t, []said{
		{flat, "The monthly rent is 1,900 euros.", numeric.Contradicted},
		{flat, "Both months together cost 1,900 euros.", numeric.NotCheckable},
		{seats, "The Pro plan costs 50 euros.", numeric.NotCheckable},
		{tickets, "Your tickets cost 36 euros.", numeric.NotCheckable},
		{tickets, "Your tickets cost 38 euros.", numeric.Contradicted},
		{deposit, "The deposit amounts to 1,900 euros.", numeric.NotCheckable},
		{deposit, "The deposit amounts to 1,600 euros.", numeric.Unsupported},
		{deposit, "The deposit amounts to 2,850 euros.", numeric.Unsupported},
		{penalty, "The penalty is limited to 4,000 euros.", numeric.NotCheckable},
		{penalty, "The penalty is limited to 8,000 euros.", numeric.Unsupported},
		{dose, "The maximum daily dose for adults is 1,200 mg.", numeric.NotCheckable},
		{dose, "The maximum daily dose for adults is 1,600 mg.", numeric.Contradicted},
	})
}

// TestRatesGrowthAndAmountsOfAList checks that machine rates are divided if the result is exact,
// that growth may be given as a fraction, and that the amounts of a list stay with their words if
// the claim has two of them.
func TestRatesGrowthAndAmountsOfAList(t *testing.T) {
	t.Parallel()
	const (
		limit  = "The rate limit is 600 requests per minute and key."
		visits = "The office had 90 visitors a year."
		north  = "In 2023 the North sold 120 units, in 2024 it sold 150 units."
		bill   = "Net amount 1,200.00 EUR, VAT 19 % 228.00 EUR, gross amount 1,428.00 EUR."
	)
	wantSaid(t, []said{
		{limit, "The rate limit is 10 requests per second.", numeric.Supported},
		{limit, "The rate limit is 60 requests per second.", numeric.Contradicted},
		{limit, "The rate limit is 36,000 requests per hour.", numeric.Supported},
		{visits, "The office had 30 visitors a month.", numeric.Contradicted},
		{north, "Sales of the North grew by a quarter.", numeric.Supported},
		{north, "Sales of the North fell by a quarter.", numeric.NotCheckable},
		{bill, "The gross amount is 1,428 EUR, of which 228 EUR is VAT.", numeric.Supported},
		{bill, "The gross amount is 1,200 EUR, of which 228 EUR is VAT.", numeric.Contradicted},
	})
}
