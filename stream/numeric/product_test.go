package numeric_test

import (
	"testing"

	"signalbox/stream/numeric"
)

// TestTotalsOfSeveralThings checks that a total is supported if the evidence states the number of
// things and the price of one. It is flagged if the sum is wrong, belongs to something else, or is
// claimed for a single thing.
func TestTotalsOfSeveralThings(t *testing.T) {
	t.Parallel()
	const (
		lamps   = "Desk lamps: 2 x 89 EUR."
		each    = "You ordered two chairs at 89 EUR each."
		stuhl   = "Sie bestellten 2 Stühle à 89 EUR."
		both    = "Desk lamps: 2 x 89 EUR. // Office chairs: 3 × 50 EUR."
		hours   = "Consulting: 12 hours at 80 EUR per hour. // Travel: 45 EUR."
		rooms   = "We booked 3 rooms for the night, 120 EUR each."
		row     = "Item: Desk lamp | Qty: 2 | Price (EUR): 89"
		rows    = row + " // Item: Chair | Qty: 3 | Price (EUR): 50"
		record  = `{"name": "Desk lamp", "qty": 2, "price": 89} // {"name": "Chair", "qty": 3, "price": 50}`
		stated  = "Desk lamps: 2 x 89 EUR. // Discount: 5 %. // Total: 169.10 EUR."
		amount  = "Item: Desk lamp | Qty: 2 | Amount (EUR): 178"
		unit    = "Item: Desk lamp | Qty: 2 | Unit amount (EUR): 89"
		less    = "Desk lamps: 2 x 89 EUR. // Discount: 8 EUR."
		share   = "Desk lamps: 2 x 89 EUR. // A discount of 10 % applies."
		within  = "Desk lamps: 2 x 89 EUR, including VAT of 28 EUR. // You have paid 50 EUR."
		tablets = "Take 2 x 500 mg a day."
		seats   = "The contract covers 5 licences at 12 EUR per month."
	)
	wantSaid(t, []said{
		{lamps, "The total is 178 EUR.", numeric.Supported},
		{lamps, "The total is 188 EUR.", numeric.Unsupported},
		{lamps, "The desk lamps come to 178 EUR in total.", numeric.Supported},
		{lamps, "The desk lamps come to 267 EUR in total.", numeric.Contradicted},
		{lamps, "Each desk lamp is 178 EUR.", numeric.Contradicted},
		{each, "The chairs total 178 EUR.", numeric.Supported},
		{each, "The chairs total 179 EUR.", numeric.Contradicted},
		{each, "The invoice amounts to 178 euros.", numeric.Supported},
		{stuhl, "Der Gesamtbetrag ist 178 EUR.", numeric.Supported},
		{stuhl, "Der Gesamtbetrag ist 198 EUR.", numeric.Unsupported},
		{both, "The total is 328 EUR.", numeric.Supported},
		{both, "The total is 178 EUR.", numeric.Unsupported},
		{both, "The office chairs total 150 EUR.", numeric.Supported},
		{both, "The office chairs total 178 EUR.", numeric.Contradicted},
		{hours, "The consulting totals 960 EUR.", numeric.Supported},
		{hours, "The total is 1,005 EUR.", numeric.Supported},
		{hours, "The total is 1,050 EUR.", numeric.Unsupported},
		{rooms, "The rooms cost 360 EUR altogether.", numeric.Supported},
		{rooms, "The rooms cost 340 EUR altogether.", numeric.Contradicted},
		{rows, "The total is 328 EUR.", numeric.Supported},
		{rows, "The total is 318 EUR.", numeric.Unsupported},
		{record, "The total is 328 EUR.", numeric.Supported},
		{record + ` // {"name": "Mat", "qty": 1, "price": 15}`, "The total is 343 EUR.", numeric.Supported},
		{record, "The total is 139 EUR.", numeric.Unsupported},
		{amount, "The total is 178 EUR.", numeric.Supported},
		{unit, "The total is 178 EUR.", numeric.Supported},
		{amount, "The total is 356 EUR.", numeric.Unsupported},
		{less, "The total is 170 EUR.", numeric.Supported},
		{less, "The total is 186 EUR.", numeric.Unsupported},
		{less, "The total is 178 EUR.", numeric.Unsupported},
		{less, "The desk lamps come to 178 EUR in total.", numeric.Supported},
		{share, "The total is 160.20 EUR.", numeric.Supported},
		{share, "The total is 178 EUR.", numeric.Unsupported},
		{within, "The total is 178 EUR.", numeric.Supported},
		{within, "The total is 206 EUR.", numeric.Unsupported},
		{within, "The total is 228 EUR.", numeric.Unsupported},
		{stated, "The total is 169.10 EUR.", numeric.Supported},
		{stated, "The total is 178 EUR.", numeric.Contradicted},
		{tablets, "That is 1000 mg a day in total.", numeric.Supported},
		{tablets, "That is 1500 mg a day in total.", numeric.Contradicted},
		{seats, "The total is 60 EUR per month.", numeric.Supported},
		{seats, "The total is 720 EUR a year.", numeric.Supported},
		{seats, "The total is 72 EUR per month.", numeric.Unsupported},
	})
}

// TestThePriceOfOneOfSeveralIsNoPartOfATotal checks that the price of one of several things is not
// added to a total, and that an amount after two numbers of things is not multiplied by one of
// them.
func TestThePriceOfOneOfSeveralIsNoPartOfATotal(t *testing.T) {
	t.Parallel()
	const (
		rows = "Item: chair | Qty: 4 | Unit price: 25 EUR // Item: desk | Qty: 1 | Unit price: 120 EUR"
		plan = "3 rooms for 4 nights at 95 EUR each."
	)
	wantSaid(t, []said{
		{rows, "The total is 220 euros.", numeric.Supported},
		{rows, "The total is 145 euros.", numeric.Unsupported},
		{plan, "The total is 1140 euros.", numeric.NotCheckable},
		{plan, "The total is 380 euros.", numeric.NotCheckable},
		{plan, "The total is 480 euros.", numeric.Unsupported},
	})
}
