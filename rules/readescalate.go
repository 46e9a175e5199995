package rules

import (
	"math"
	"slices"
	"time"

	"signalbox/rules/internal/syntax"
)

// The limits of escalate.hold, and its default.
const (
	defaultHold = 10 * time.Second
	minHold     = 10 * time.Millisecond
	maxHold     = 10 * time.Minute
)

// readEscalate reads escalate, which may be absent. models are the candidates in the file.
func readEscalate(at, models syntax.Cursor, a *Action) *Escalate {
	if at.Node == nil {
		return nil
	}
	e := &Escalate{Hold: defaultHold}
	mark := at.Mark()
	entries, ok := at.Mapping("{when: [SIGN], min_logprob, hold}", "when", "min_logprob", "hold")
	if !ok {
		return nil
	}
	for _, x := range entries {
		switch x.Key {
		case "when":
			for _, word := range x.At.Words("sign", func(at syntax.Cursor, word string) {
				if !slices.Contains(Signs(), word) {
					at.Errorf("unknown value %q%s", syntax.Shorten(word), syntax.Suggestion(word, Signs()))
				}
			}) {
				e.When = append(e.When, Sign(word))
			}
		case "min_logprob":
			e.MinLogprob, e.Logprobs = readLogprob(x.At)
		case "hold":
			e.Hold = readHold(x.At)
		}
	}
	if len(e.When) == 0 && !e.Logprobs {
		at.Lacking(mark, "found neither when nor min_logprob, so nothing would be escalated")
	}
	switch {
	case a.By != "order" && a.By != "":
		at.Errorf("escalate needs `by: order`, the models from the first to ask to the last, found by: %s", a.By)
	case len(a.Models) < 2 && allRead(models, a):
		at.Lacking(mark, "escalate needs a second model to ask, found %d", len(a.Models))
	case slices.Contains(e.When, SignGuard) && a.Guard == "off":
		at.Errorf("escalate for guard needs the guard, found guard: off")
	}
	return e
}

// readLogprob reads a mean log-probability.
func readLogprob(at syntax.Cursor) (x float64, ok bool) {
	if !at.IsScalar("!!int") && !at.IsScalar("!!float") || at.Node.Decode(&x) != nil || !(x <= 0) || math.IsInf(x, 0) {
		at.Expected("a logarithm of a probability, such as -0.7: a number of at most 0")
		return 0, false
	}
	return x, true
}

// readHold reads the time for which a stream is held.
func readHold(at syntax.Cursor) time.Duration {
	what := "a time from " + minHold.String() + " to 10m, such as 5s"
	if !at.IsScalar("!!str") {
		at.Expected(what)
		return defaultHold
	}
	d, err := time.ParseDuration(at.Node.Value)
	if err != nil || d < minHold || d > maxHold {
		at.Expected(what)
		return defaultHold
	}
	return d
}
