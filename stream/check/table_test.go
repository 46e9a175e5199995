package check_test

import (
	"testing"

	"signalbox/stream/check"
)

// cellClaim is a claim about a cell, and whether it is false.
type cellClaim struct {
	text  string
	false bool
}

// wantCells checks claims with a model that finds all of them entailed, so that only their numbers
// can fail.
func wantCells(t *testing.T, list []cellClaim, texts ...string) {
	t.Helper()
	c, e := checker(t, check.Options{Judge: always(entails)}), facts(t, texts...)
	for _, claim := range list {
		r, err := c.Text(t.Context(), e, "", claim.text)
		if err != nil {
			t.Fatal(err)
		}
		failed := r.Verdict == check.Contradicted || r.Verdict == check.Unsupported
		if failed != claim.false {
			t.Errorf("%q: %v: %+v", claim.text, r.Verdict, r.Claims)
		}
	}
}

// TestANumberBelongsToItsCell checks that a number in a table belongs to its row and column, even
// if most words of the claim are elsewhere in the facts.
func TestANumberBelongsToItsCell(t *testing.T) {
	t.Parallel()
	const plans = `# Northwind plans

| Plan | Download (Mbit/s) | Upload (Mbit/s) | Price per month | Minimum term |
| --- | --- | --- | --- | --- |
| Basic | 50 | 10 | 24.99 EUR | 24 months |
| Family | 250 | 40 | 34.99 EUR | 12 months |
| Pro | 1,000 | 200 | 59.99 EUR | none |

- Installation takes about two hours.
- Students get 20 % off the Basic and Family plans.
- Orders from abroad pay a surcharge of 5 %.
`
	const terms = "If the promised speed is not reached on three days, customers may cancel. Upload of documents is free."
	wantCells(t, []cellClaim{
		{text: "Family has an upload speed of 40 Mbit/s."},
		{text: "The Family plan uploads at 40 Mbit/s and downloads at 250 Mbit/s."},
		{text: "Pro uploads at 200 Mbit/s, Family at 40 Mbit/s."},
		{text: "Unlike Family, Pro uploads at 200 Mbit/s."},
		{text: "Family has an upload speed of 200 Mbit/s.", false: true},
		{text: "Family has an upload speed of 250 Mbit/s.", false: true},
		{text: "The download speed of Basic is 10 Mbit/s.", false: true},
		{text: "Pro downloads at 250 Mbit/s.", false: true},
		{text: "Over two years Basic costs 599.76 EUR."},
		{text: "Over 36 months Pro costs 2,159.64 EUR."},
		{text: "Over two years Basic costs 609.76 EUR.", false: true},
		{text: "Over two years Basic costs 299.88 EUR.", false: true},
		{text: "Students pay 27.99 EUR a month for Family."},
		{text: "From abroad Pro costs 62.99 EUR."},
		{text: "Students pay 28.99 EUR a month for Family.", false: true},
		{text: "Family costs 27.99 EUR a month.", false: true},
		{text: "From abroad Pro costs 56.99 EUR.", false: true},
		{text: "Two months of Pro cost 69.98 EUR.", false: true},
	}, plans, terms)
}

// TestANumberBelongsToItsRecord checks that a number in a record belongs to its field and to the
// subject of its own record.
func TestANumberBelongsToItsRecord(t *testing.T) {
	t.Parallel()
	const order = `{"order":{"id":"A-10442","status":"shipped","placed":"2026-10-03T08:15:00Z","items":[
		{"sku":"LMP-2","name":"Desk lamp","qty":2,"unit_price":39.5},
		{"sku":"BLB-9","name":"LED bulb","qty":6,"unit_price":4.25}],
		"shipping":{"carrier":"DHL","eta":"2026-10-09","cost":5.9},"total":110.4,"currency":"EUR","paid":true}}`
	wantCells(t, []cellClaim{
		{text: "Order A-10442 has been shipped with DHL."},
		{text: "The order was placed on October 3, 2026."},
		{text: "You ordered two desk lamps and six LED bulbs."},
		{text: "The desk lamps cost 79 EUR together."},
		{text: "The bulbs come to 25.50 EUR."},
		{text: "Shipping costs 5.90 EUR."},
		{text: "You ordered six desk lamps and two LED bulbs.", false: true},
		{text: "The desk lamp costs 4.25 EUR.", false: true},
		{text: "The order was placed on 9 October 2026.", false: true},
		{text: "Shipping costs 39.50 EUR.", false: true},
		{text: "The bulbs come to 27.50 EUR.", false: true},
	}, order)
	const hotels = `{"hotel":"Aurora","stars":4,"price":{"amount":1290,"currency":"NOK","per":"night"},"rooms_left":3,
		"distance_km":0.8,"review":"Guests praise the quiet rooms and the roof terrace. ` +
		`Several write that the bar closes at 22:00, which they found far too early. The lift is slow."}
		{"hotel":"Fjord Inn","stars":3,"price":{"amount":890,"currency":"NOK","per":"night"},"rooms_left":12,
		"distance_km":2.4,"tags":["harbour","parking"]}`
	wantCells(t, []cellClaim{
		{text: "The Aurora has four stars."},
		{text: "The Fjord Inn has 12 rooms left."},
		{text: "Three nights at the Fjord Inn cost 2,670 NOK."},
		{text: "A night at the Aurora costs 1,290 NOK."},
		{text: "The Aurora is 800 metres away."},
		{text: "The bar of the Aurora closes at 22:00."},
		{text: "The Aurora has three stars.", false: true},
		{text: "A night at the Fjord Inn costs 1,290 NOK.", false: true},
		{text: "The Aurora is 2.4 km away.", false: true},
		{text: "The bar of the Aurora closes at 23:00.", false: true},
	}, hotels)
	const invoice = `{"invoice":"2026-0713","issued":"2026-07-02","due":"2026-07-16","lines":[
		{"description":"Consulting","hours":12,"rate":140,"amount":1680},
		{"description":"Travel","km":420,"rate":0.3,"amount":126},
		{"description":"Licences","quantity":5,"unit_price":49,"amount":245}],
		"net":2051,"vat":389.69,"gross":2440.69,"currency":"EUR"}`
	wantCells(t, []cellClaim{
		{text: "Consulting was charged at 140 EUR an hour."},
		{text: "Twelve hours of consulting cost 1,680 EUR."},
		{text: "Travel costs 126 EUR."},
		{text: "Five licences were bought."},
		{text: "A licence costs 49 EUR."},
		{text: "The net amount is 2,051 EUR."},
		{text: "Travel costs 245 EUR.", false: true},
		{text: "Five hours of consulting were charged.", false: true},
		{text: "The gross amount is 2,051 EUR.", false: true},
		{text: "The invoice is due on 2 July 2026.", false: true},
	}, invoice)
}

// TestANumberBelongsToItsSectionAndItsName checks that the heading above a text decides whose
// numbers it has, that rows, records and sentences may be named by a number, and that a number with
// a unit does not match one without.
func TestANumberBelongsToItsSectionAndItsName(t *testing.T) {
	t.Parallel()
	wantCells(t, []cellClaim{
		{text: "For international orders, delivery takes 9 business days."},
		{text: "For domestic orders, shipping costs 5 euros."},
		{text: "Delivery takes 3 business days."},
		{text: "For international orders, delivery takes 3 business days.", false: true},
		{text: "For domestic orders, shipping costs 19 euros.", false: true},
		{text: "International orders: shipping costs 5 euros.", false: true},
	}, "## Domestic orders\nDelivery takes 3 business days. Shipping costs 5 euros.\n\n"+
		"## International orders\nDelivery takes 9 business days. Shipping costs 19 euros.")
	articles := []cellClaim{
		{text: "Article 4472 costs 219 EUR."},
		{text: "Article 4471 ships in 5 days."},
		{text: "Article 4472 costs 213 EUR.", false: true},
		{text: "Article 4472 ships in 5 days.", false: true},
	}
	wantCells(t, articles,
		"| Article | Price | Ships in |\n|---|---|---|\n| 4471 | 213 EUR | 5 days |\n| 4472 | 219 EUR | 6 days |")
	wantCells(t, articles,
		"Article 4471 costs 213 EUR and ships in 5 days.", "Article 4472 costs 219 EUR and ships in 6 days.")
	wantCells(t, []cellClaim{articles[0], articles[2]},
		`[{"article":4471,"price_eur":213},{"article":4472,"price_eur":219}]`)
	wantCells(t, []cellClaim{
		{text: "The Basic plan has 20 GB of storage and 5 users."},
		{text: "The Basic plan has 5 GB of storage and 20 users.", false: true},
	}, "The Basic plan has 5 users and 20 GB of storage.")
	wantCells(t, []cellClaim{
		{text: "Returns take _30 days_."},
		{text: "Returns take _20 days_.", false: true},
		{text: "Returns take __20__ days.", false: true},
	}, "Returns take 30 days.")
}
