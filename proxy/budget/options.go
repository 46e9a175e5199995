package budget

import (
	"cmp"

	"signalbox/internal/option"
)

// Options limits the cost of requests in a period, computed from the model's price.
type Options struct {
	// USD is the budget for one period, in US dollars. It applies to all replicas together with
	// memory.redis, else to each process. 0 is unlimited.
	USD float64 `yaml:"usd"`
	// Period is the calendar period of the budget, in UTC: day or month. Default month.
	Period string `yaml:"period" words:"day month"`
}

// Max is the largest amount, in USD, that accounts count exactly.
const Max = 1_000_000

// Check reports every bad option as a problem of a field of at.
func (o Options) Check(p *option.Problems, at string) {
	if !(o.USD >= 0 && o.USD <= Max) {
		p.Addf(at+".usd", "%v is not between 0 and %d", o.USD, Max)
	}
	switch Period(o.Period) {
	case "", Day, Month:
	default:
		p.Addf(at+".period", "%q is not one of %s, %s", o.Period, Day, Month)
	}
}

// Of returns the budget with a name.
func (o Options) Of(name string) Budget {
	return Budget{Name: name, USD: o.USD, Period: Period(cmp.Or(o.Period, string(Month)))}
}

// SoftOptions configures what happens to requests when their budget is nearly used up.
type SoftOptions struct {
	// At is the share of the budget, spent and reserved amounts together, from which requests are
	// made cheaper, in (0,1]. Default 0: never.
	At float64 `yaml:"at" json:"at,omitzero"`
	// Then selects how requests are made cheaper: cheaper sends them to the cheapest candidate of
	// their route, less_effort lowers the reasoning effort by one step, both does both. Default
	// cheaper.
	Then string `yaml:"then" json:"then,omitzero" words:"cheaper less_effort both"`
}

// The values of SoftOptions.Then.
const (
	thenCheaper    = "cheaper"
	thenLessEffort = "less_effort"
	thenBoth       = "both"
)

// Check reports every bad option as a problem of a field of at.
func (o SoftOptions) Check(p *option.Problems, at string) {
	option.Between(p, at+".at", o.At, 0, 1)
	switch o.Then {
	case "", thenCheaper, thenLessEffort, thenBoth:
	default:
		p.Addf(at+".then", "%q is not one of %s, %s, %s", o.Then, thenCheaper, thenLessEffort, thenBoth)
	}
	if o.Then != "" && o.At == 0 {
		p.Addf(at+".at", "required: without a share, then has no effect")
	}
}

// Saving is how requests are made cheaper.
type Saving struct {
	Cheaper    bool // they go to the cheapest candidate
	LessEffort bool // models reason with one step less effort
}

// And returns the combination of both.
func (t Saving) And(more Saving) Saving {
	return Saving{Cheaper: t.Cheaper || more.Cheaper, LessEffort: t.LessEffort || more.LessEffort}
}

// String lists the savings; empty if there are none.
func (t Saving) String() string {
	switch {
	case t.Cheaper && t.LessEffort:
		return thenCheaper + "," + thenLessEffort
	case t.Cheaper:
		return thenCheaper
	case t.LessEffort:
		return thenLessEffort
	}
	return ""
}

// Soft is the soft limit of a budget, from which on requests are made cheaper.
type Soft struct {
	At   float64 // share of the budget; 0 if there is none
	Then Saving
}

// reached reports whether the amount taken of room has reached the soft limit.
func (s *Soft) reached(taken, room int64) bool {
	return s.At > 0 && float64(taken) >= s.At*float64(room)
}

// Of converts valid options.
func (o SoftOptions) Of() Soft {
	return Soft{At: o.At, Then: Saving{
		Cheaper: o.Then != thenLessEffort, LessEffort: o.Then == thenLessEffort || o.Then == thenBoth,
	}}
}
