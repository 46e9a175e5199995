package numeric

import (
	"math"
	"slices"
	"strings"

	"signalbox/stream/numeric/quantity"
)

// lot is the total cost or weight of several things, if the evidence states their number and the
// amount of one: "2 x 89 EUR", "two chairs at 89 EUR each", "12 hours at 80 EUR per hour".
type lot struct {
	amount float64      // in the base unit, 0: none
	dim    quantity.Dim // of the amount, without its "per" period
	period float64      // seconds that the amount is for, 0: not stated
}

// mostThings is the maximum number of words between a number of things and the price of one; our
// choice.
const mostThings = 6

// lotsOf records, for each value of the reading, the lot whose single price it is.
func (r *reading) lotsOf(text string) {
	r.lots = append(r.lots[:0], make([]lot, len(r.values))...)
	for i := 1; i < len(r.values); i++ {
		n, v := &r.values[i-1], &r.values[i]
		if v.Kind != quantity.Count || relative(v) || v.Range() || v.Hedge != quantity.Exact || !howMany(n) ||
			!r.timesOne(text, n, v) || i > 1 && r.severalTimes(text, &r.values[i-2], n) {
			continue
		}
		amount := v.Lo
		if v.Dim != v.Dim.Top() {
			amount *= v.Period
		}
		switch {
		case v.Dim == quantity.Duration, v.Dim != v.Dim.Top() && v.Period == 0:
		case n.Dim == quantity.Duration && v.Period != 0:
			r.lots[i] = lot{amount * n.Lo / v.Period, v.Dim.Top(), 0}
		default:
			r.lots[i] = lot{amount * n.Raw, v.Dim.Top(), v.Period}
		}
	}
}

// severalTimes reports whether n is combined with another number before it, so that it is unclear
// which of them an amount is for: "3 rooms for 4 nights at 95 EUR".
func (r *reading) severalTimes(text string, other, n *quantity.Value) bool {
	return howMany(other) && other.End <= n.Start && r.wordsIn(other.End, n.Start) <= mostThings/2 &&
		hasAnySuffix(text[other.End:n.Start], " for ", " für ", " pour ", " por ", " à ")
}

// howMany reports whether a number may be the quantity that a price is multiplied by.
func howMany(n *quantity.Value) bool {
	switch n.Dim {
	case quantity.Plain, quantity.Multiple:
		return n.Kind == quantity.Count && !n.Range() && n.Raw >= 1 && n.Raw == math.Trunc(n.Raw)
	case quantity.Duration:
		return n.Kind == quantity.Count && !n.Range() && n.Raw > 0
	case quantity.Percent, quantity.Mass, quantity.Sterling, quantity.Hours, quantity.Days:
	}
	return false
}

// timesOne reports whether the text says that v is for one of n: by a multiplication sign between
// them, by a word before v ("at", "à", "je"), or by one after it ("each").
func (r *reading) timesOne(text string, n, v *quantity.Value) bool {
	between := strings.TrimSpace(text[n.End:v.Start])
	signed := n.Dim == quantity.Multiple
	switch between {
	case "x", "×", "*", "@":
		return n.Dim != quantity.Duration
	case "":
		return signed
	}
	if strings.ContainsAny(between, ".;:!?|\n") || r.wordsIn(n.End, v.Start) > mostThings {
		return false
	}
	return forOne(between) || forEach(text[v.End:])
}

// forOne reports whether a text ends in a word that introduces the price of one thing.
func forOne(text string) bool {
	last := text[strings.LastIndexAny(text, " \t")+1:]
	switch last {
	case "at", "@", "à", "je", "a", "x", "×", "*":
		return true
	}
	return false
}

// forEach reports whether a text begins with words that mark the preceding amount as per piece.
func forEach(text string) bool {
	return hasAnyPrefix(strings.TrimLeft(text, " ("), "each", "apiece", "a piece", "per piece", "per unit", "per item",
		"pro Stück", "je Stück", "das Stück", "/Stück", "l'unité", "la pièce", "chacun", "cada un", "por unidad")
}

// addLots records the lots, bill items and totals of a sentence. own are the terms of the sentence
// without its heading.
func (x *Index) addLots(in *indexed, r *reading, own []term) {
	items := r.items(own)
	for i := range r.values {
		e := &x.known[int(in.known)+i]
		if e.lot = r.lots[i]; items != nil {
			e.bill = items[e.clause]
		}
	}
	if in.row && len(r.values) <= maxOperands {
		x.lotOfRow(in, own)
	}
	for k := range x.known[in.known:] {
		if x.known[int(in.known)+k].lot.amount != 0 {
			x.lots++
		}
	}
}

// item is a bit set of the roles an amount can have in a bill.
type item uint8

// The roles.
const (
	billTotal item = 1 << iota // the total of several things
	billLess                   // subtracted
	billApart                  // part of another amount, or already paid: "including 28 EUR VAT"
)

// items returns, per clause, the roles of its amounts in a bill. A clause without a number passes
// its role on to the next one: "Total: 178 EUR". The result is nil if no clause has a role.
func (r *reading) items(own []term) []item {
	var out []item
	for _, w := range own {
		var is item
		switch {
		case sumNames[w.hash]:
			is = billTotal
		case takenOff[w.hash]:
			is = billLess
		case withinNames[w.hash]:
			is = billApart
		default:
			continue
		}
		if out == nil {
			out = make([]item, len(r.bounds)+2)
		}
		if out[w.clause] |= is; r.ends[w.clause] < 0 {
			out[w.clause+1] |= is
		}
	}
	return out
}

// lotOfRow records the lot of a row or record that has one number of things and one amount.
func (x *Index) lotOfRow(in *indexed, own []term) {
	count, price := int32(-1), int32(-1)
	for k := in.known; k < int32(len(x.known)); k++ {
		v := &x.known[k].value
		priced := hasName(own, x.known[k].clause, priceNames) // "unit price"
		counts := !priced && hasName(own, x.known[k].clause, countNames)
		switch {
		case v.Kind != quantity.Count || relative(v):
		case counts && count < 0 && howMany(v):
			count = k
		case counts || price >= 0 || v.Range() ||
			hasName(own, x.known[k].clause, lineNames) && !hasName(own, x.known[k].clause, oneNames):
			return
		case v.Dim != quantity.Plain || priced:
			price = k
		}
	}
	if count >= 0 && price >= 0 {
		p := &x.known[price]
		if p.value.Dim == p.value.Dim.Top() {
			p.lot = lot{p.value.Lo * x.known[count].value.Raw, p.value.Dim, p.value.Period}
		}
	}
}

// hasName reports whether a clause contains one of the words in names.
func hasName(own []term, clause int32, names map[uint64]bool) bool {
	return slices.ContainsFunc(own, func(w term) bool { return w.clause == clause && names[w.hash] })
}

// Words, by hash.
//
//nolint:gochecknoglobals // constant tables
var (
	// Names of the price of one thing.
	priceNames = hashSet("price prices cost costs rate fee EUR USD GBP CHF Preis Einzelpreis Stückpreis " +
		"Kosten prix tarif precio")
	// Names of an amount for one thing or for the whole row.
	lineNames = hashSet("amount Betrag montant importe")
	// Names of totals.
	sumNames = hashSet("total totals totalling sum subtotal altogether overall combined gesamt insgesamt zusammen " +
		"Summe Gesamtsumme Gesamtbetrag Gesamtpreis Zwischensumme Rechnungsbetrag total montant suma importe")
	// Words for amounts that are part of another amount, or already paid.
	withinNames = hashSet("including includes include included incl inclusive thereof paid inkl inklusive " +
		"einschließlich enthalten enthält darin davon bezahlt gezahlt angezahlt inclus compris dont payé incluye " +
		"incluido pagado")
	// Words for a single thing, about which a lot says nothing.
	oneNames = hashSet("each apiece single unit jeweils Einzelpreis Stückpreis chacun chaque cada")
)

// lots compares v with the total of several things, or of everything the evidence counts: "the
// total is 178 euros" for "2 x 89 EUR". If the evidence states a total itself, the claim refers to
// that one, and lots returns nobody. If amounts are subtracted, a claim that names nothing else
// refers to the remainder.
func (c *checker) lots(v *quantity.Value) candidate {
	if v.Kind != quantity.Count || relative(v) || v.Range() || c.unit != 0 || c.x.lots == 0 || !c.sums() {
		return nobody
	}
	best, most, ties := nobody, -1.0, 0.0
	b := bill{part: 1}
	for k := range c.x.known {
		e := &c.x.known[k]
		if c.left -= comparing; c.left < 0 ||
			e.bill&billTotal != 0 && (e.value.Dim == v.Dim || e.value.Dim == quantity.Plain) {
			return nobody
		}
		amount, ok := c.billed(v, e)
		if !b.add(e, amount, ok) {
			continue
		}
		switch score := c.affinity(int32(k)); {
		case best.sentence < 0 || score > most+c.limit.SwapMargin:
			best, most, ties = c.by(int32(k), score), score, amount
		case score >= most-c.limit.SwapMargin:
			ties += amount
		}
	}
	if b.cut && most == 0 {
		ties = b.all * b.part
	}
	if best.sentence < 0 || b.n > 2*maxOperands || !v.Says(ties) && !v.Says(b.all*b.part) {
		return nobody
	}
	return best
}

// bill adds up everything that the evidence counts.
type bill struct {
	all  float64
	part float64 // share that remains after percentage reductions
	cut  bool    // something is subtracted
	n    int     // number of amounts
}

// add adds number e to the bill, with the given amount if ok. It reports whether e is the price of
// a lot.
func (b *bill) add(e *known, amount float64, ok bool) (lot bool) {
	lot = ok && e.lot.amount != 0
	switch {
	case e.bill&billLess != 0 && e.value.Dim == quantity.Percent:
		b.part, b.cut = b.part*(1-e.value.Lo/100), true
		return false
	case !ok, e.bill&billApart != 0 && !lot:
		return false
	case e.bill&billLess != 0 && !lot:
		amount, b.cut = -amount, true
	}
	b.all, b.n = b.all+amount, b.n+1
	return lot
}

// billed returns what number e of the evidence contributes to a total in the unit of v: its lot or
// itself. ok is false if it does not fit.
func (*checker) billed(v *quantity.Value, e *known) (amount float64, ok bool) {
	l, dim := &e.lot, v.Dim.Top()
	switch {
	case l.amount == 0:
		o := &e.value
		return o.Lo, dim != quantity.Plain && o.Dim == v.Dim && o.Kind == quantity.Count && !o.Range() &&
			o.Side == quantity.NoSide
	case l.dim != dim && l.dim != quantity.Plain && dim != quantity.Plain, l.period == 0 && v.Period != 0:
		return 0, false
	case v.Period == 0:
		return l.amount, true
	case v.Dim != dim: // per second
		return l.amount / l.period, true
	}
	return l.amount * v.Period / l.period, true
}

// sums reports whether the claim has a word for a total and none for a single thing.
func (c *checker) sums() bool {
	sum := false
	for _, w := range c.words {
		if oneNames[w.Hash] {
			return false
		}
		sum = sum || sumNames[w.Hash] || billNames[w.Hash]
	}
	return sum
}

// billNames are words, by hash, of claims about what is to be paid.
//
//nolint:gochecknoglobals // constant table
var billNames = hashSet("amounts bill invoice invoiced due owe owed payable pay comes together both all entire " +
	"Rechnung zahlen fällig facture payer factura pagar")

// factored reports whether v, called a total, is the only amount of an evidence sentence multiplied
// by all its other numbers, of which there are at least two: "3 rooms, 4 nights, 95 EUR per room
// and night". Which number applies to which is not analysed.
func (c *checker) factored(v *quantity.Value) bool {
	if v.Kind != quantity.Count || v.Dim == quantity.Plain || relative(v) || v.Range() || c.unit != 0 || !c.sums() {
		return false
	}
	for s := range c.x.sentences {
		in := &c.x.sentences[s]
		if c.left -= comparing; c.left < 0 {
			return false
		}
		if n := in.knownEnd - in.known; n < 3 || n > maxOperands || in.row {
			continue
		}
		if all, ok := c.product(v, in); ok && v.Says(all) {
			return true
		}
	}
	return false
}

// percentOf reports whether v is an evidence percentage of an evidence amount. Both must be in one
// sentence, or the claim must state one of them. Example: 800 for "of 1,250 people 64 % said yes".
func (c *checker) percentOf(v *quantity.Value) bool {
	if v.Kind != quantity.Count || relative(v) || v.Range() {
		return false
	}
	ops := c.operands(func(e *quantity.Value) bool {
		return e.Kind == quantity.Count && !e.Range() && (e.Dim == quantity.Percent || e.Dim == v.Dim)
	})
	for _, a := range ops {
		share := &c.x.known[a.known].value
		if share.Dim != quantity.Percent {
			continue
		}
		for _, b := range ops {
			of := &c.x.known[b.known].value
			if of.Dim == v.Dim && v.Says(of.Lo*share.Raw/100) &&
				(a.sentence == b.sentence || c.statesNear(of) || c.statesNear(share)) {
				return true
			}
		}
	}
	return false
}

// product multiplies the only amount of a sentence with the unit of v by all its other numbers. ok
// is false if there is no single such amount or a number is not a factor.
func (c *checker) product(v *quantity.Value, in *indexed) (all float64, ok bool) {
	all = v.Factor
	amounts := 0
	for k := in.known; k < in.knownEnd; k++ {
		e := &c.x.known[k].value
		switch {
		case e.Kind == quantity.Count && e.Dim.Top() == v.Dim && !e.Range() && e.Hedge == quantity.Exact:
			all, amounts = all*e.Raw, amounts+1
		case howMany(e):
			all *= e.Raw
		default:
			return 0, false
		}
	}
	return all, amounts == 1
}
