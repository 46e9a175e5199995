package replay

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"signalbox/proxy/decisionlog"
)

// Report lists the changes that a new configuration would cause.
type Report struct {
	Decisions    int `json:"decisions"` // lines that were read and decided again
	Unchanged    int `json:"unchanged"`
	Route        int `json:"route_changed"`
	Parameters   int `json:"parameters_changed"`
	Undetermined int `json:"undetermined"`
	Unreadable   int `json:"unreadable"`

	Moves   []Move    `json:"moves"`   // between routes, the most frequent first
	Fields  []Count   `json:"fields"`  // changed fields if the route is the same, the most frequent first; a request may change several
	Missing []Count   `json:"missing"` // data missing in the log, the most frequent first; a request may lack several
	Samples []Example `json:"examples"`
	Bad     []string  `json:"unreadable_lines"` // FILE:LINE: reason; only the first ones

	Value *Value `json:"value,omitempty"` // from ratings; nil without any
}

// Same reports whether every line was read and all decisions stay the same.
func (r *Report) Same() bool { return r.Unchanged == r.Decisions && r.Unreadable == 0 }

// Move counts the requests that move from one route to another.
type Move struct {
	From string `json:"from"`
	To   string `json:"to"`
	N    int    `json:"n"`
}

// Count counts occurrences of a name.
type Count struct {
	Name string `json:"name"`
	N    int    `json:"n"`
}

// Example is one changed request.
type Example struct {
	ID      string   `json:"id"`
	Line    string   `json:"line"` // FILE:LINE
	Change  Change   `json:"change"`
	From    string   `json:"from"`              // route in the log
	To      string   `json:"to,omitempty"`      // route now; empty when undetermined
	Model   string   `json:"model,omitempty"`   // chosen in the log
	Now     string   `json:"now,omitempty"`     // chosen now; empty if unknown
	Fields  []string `json:"fields,omitempty"`  // changed fields, for parameters
	Missing []string `json:"missing,omitempty"` // for undetermined
}

// The limits for the single requests in a report.
const (
	examplesPerKind = 3
	maxExamples     = 50
	maxBad          = 20
)

// tally counts lines.
type tally struct {
	Report
	moves   map[Move]int
	fields  map[string]int
	missing map[string]int
	shown   map[string]int // number of examples by kind
}

func newTally() *tally {
	return &tally{moves: map[Move]int{}, fields: map[string]int{}, missing: map[string]int{}, shown: map[string]int{}}
}

func (t *tally) unreadable(place string, why error) {
	t.Unreadable++
	if len(t.Bad) < maxBad {
		t.Bad = append(t.Bad, fmt.Sprintf("%s: %v", place, why))
	}
}

func (t *tally) count(place string, before *decisionlog.Entry, now *decisionlog.Redecision) {
	t.Decisions++
	change, fields := Compare(before, now)
	kind := string(change)
	switch change {
	case Unchanged:
		t.Unchanged++
		return
	case Route:
		t.Route++
		t.moves[Move{From: before.Route, To: now.Route}]++
		kind += " " + before.Route + " " + now.Route
	case Parameters:
		t.Parameters++
		for _, f := range fields {
			t.fields[f]++
		}
		kind += " " + before.Route + " " + strings.Join(fields, " ")
	case Undetermined:
		t.Undetermined++
		for _, m := range now.Missing {
			t.missing[m]++
		}
		kind += " " + strings.Join(now.Missing, " ")
	}
	if t.shown[kind]++; t.shown[kind] <= examplesPerKind && len(t.Samples) < maxExamples {
		t.Samples = append(t.Samples, Example{
			ID: before.ID, Line: place, Change: change, From: before.Route, To: now.Route,
			Model: before.Tried(), Now: now.Chosen,
			Fields: fields, Missing: now.Missing,
		})
	}
}

func (t *tally) report() *Report {
	r := t.Report
	r.Moves = make([]Move, 0, len(t.moves))
	for m, n := range t.moves {
		m.N = n
		r.Moves = append(r.Moves, m)
	}
	slices.SortFunc(r.Moves, func(a, b Move) int {
		return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	r.Fields, r.Missing = counts(t.fields), counts(t.missing)
	if r.Samples == nil {
		r.Samples = []Example{}
	}
	if r.Bad == nil {
		r.Bad = []string{}
	}
	slices.SortStableFunc(r.Samples, func(a, b Example) int { return cmp.Compare(order(a.Change), order(b.Change)) })
	return &r
}

// order sorts the most important changes first.
func order(c Change) int {
	return slices.Index([]Change{Route, Parameters, Undetermined, Unchanged}, c)
}

func counts(m map[string]int) []Count {
	out := make([]Count, 0, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out = append(out, Count{name, m[name]})
	}
	slices.SortStableFunc(out, func(a, b Count) int { return cmp.Compare(b.N, a.N) })
	return out
}
