package quantity

import (
	_ "embed" // of the units
	"strconv"
	"strings"
)

// Dim is a dimension: what a unit measures. Only values of the same dimension are comparable. The
// low byte is the dimension of the numerator, the high byte that of the denominator: metres per
// second is length over time.
type Dim uint16

// Dimensions that arithmetic treats specially. Each currency has its own as well, because there are
// no exchange rates.
const (
	Plain    Dim = 0 // no unit
	Percent  Dim = 1
	Duration Dim = 6
	Multiple Dim = 18 // 3 times, threefold
)

// The other dimensions.
const (
	_ Dim = iota // Plain
	_            // Percent
	length
	area
	volume
	mass
	_ // Duration
	temperature
	degree
	storage
	energy
	power
	pressure
	frequency
	voltage
	current
	force
	pixels
	_        // Multiple
	calendar // Date
	clock
	rank
	usd
	eur
	gbp
	jpy
	cny
	inr
	chf
	cad
	aud
	krw
	brl
	rub
	mxn
	sek
	nok
	dkk
	pln
	czk
	huf
	nzd
	sgd
	hkd
	zar
	ils
	aed
	thb
	workdays
	telephone
	account
	firstCurrency = usd
	lastCurrency  = thb
)

func (d Dim) per(below Dim) Dim { return d | below<<8 }

// Dimensions used outside the package: Mass is that of kilograms and pounds, Sterling of pounds as
// money, Hours of times of day, Days of dates.
const (
	Mass     = mass
	Sterling = gbp
	Hours    = clock
	Days     = calendar
)

// Pounds reports whether v is written in pounds, which may be money: "3,632 pounds".
func (v *Value) Pounds() bool {
	return v.Kind == Count && v.Dim == mass && v.Factor == unitNames["pounds"].factor
}

// Of reports whether d is dimension top per dimension below, such as mass per volume.
func (d Dim) Of(top, below Dim) bool {
	return below != Plain && top == top.Top() && below == below.Top() && d == top.per(below)
}

// Top returns the dimension of the numerator: mass for grams per day. Lists often state the "per"
// unit only once.
func (d Dim) Top() Dim { return d & 0xff }

// IsCurrency reports whether d is an amount of money, with or without a "per" unit.
func (d Dim) IsCurrency() bool { return d.currency() }

func (d Dim) currency() bool { d &= 0xff; return d >= firstCurrency && d <= lastCurrency }

type unit struct {
	dim    Dim
	factor float64 // base units per unit
	offset float64
}

// Lengths of time in seconds.
const (
	minute = 60.0
	hour   = 3600.0
	day    = 86400.0
	month  = year / 12
	year   = Year
)

// Year is the length of the Julian year in seconds. Seconds are the base unit of Duration.
const Year = 365.25 * day

//go:embed units.txt
var unitLists string

// dimensions are the names of the dimensions in units.txt, in the order of the constants.
const dimensions = `plain percent length area volume mass duration temperature degree storage energy power pressure
	frequency voltage current force pixels multiple calendar clock rank
	usd eur gbp jpy cny inr chf cad aud krw brl rub mxn sek
	nok dkk pln czk huf nzd sgd hkd zar ils aed thb workdays`

type namedUnit struct {
	name string
	unit
}

// units returns the units of a section of units.txt.
func units(section string) (list []namedUnit) {
	dims := map[string]Dim{}
	for i, name := range strings.Fields(dimensions) {
		dims[name] = Dim(i)
	}
	_, text, _ := strings.Cut(unitLists, "\n= "+section+"\n")
	text, _, _ = strings.Cut(text, "\n=")
	for line := range strings.Lines(text) {
		what, names, _ := strings.Cut(line, ": ")
		parts := strings.Fields(what)
		if len(parts) < 2 {
			continue
		}
		top, below, _ := strings.Cut(parts[0], "/")
		u := unit{dim: dims[top].per(dims[below]), factor: number(parts[1])}
		if len(parts) > 2 {
			u.offset = number(parts[2])
		}
		for name := range strings.FieldsSeq(names) {
			list = append(list, namedUnit{name, u})
		}
	}
	return list
}

func number(s string) float64 {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		panic("quantity: units.txt: " + err.Error())
	}
	return f
}

// symbols are units as written after a number, case-sensitive; unitNames are units in words, in
// lower case; hanUnits are units in ideographs.
//
//nolint:gochecknoglobals // constant tables
var symbols, unitNames, hanUnits = byName(units("symbols")), byName(units("words")), units("han")

func byName(list []namedUnit) map[string]unit {
	m := make(map[string]unit, len(list))
	for _, u := range list {
		m[u.name] = u.unit
	}
	return m
}

// powered returns the unit of area (n = 2) or volume (n = 3) for a unit of length.
func (u unit) powered(n int) (unit, bool) {
	switch {
	case u.dim != length:
		return u, false
	case n == 2:
		return unit{area, u.factor * u.factor, 0}, true
	default:
		return unit{volume, u.factor * u.factor * u.factor * 1000, 0}, true // litres
	}
}
