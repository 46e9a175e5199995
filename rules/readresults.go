package rules

import "signalbox/rules/internal/syntax"

const (
	// defaultEach is the number of tokens to which a tool result is shortened.
	defaultEach = 256
	leastEach   = 64
)

// readResults reads {budget, each}, of which budget is required.
func readResults(at syntax.Cursor) *Results {
	const expected = "{budget: TOKENS, each: TOKENS}"
	mark := at.Mark()
	entries, ok := at.Mapping(expected, "budget", "each")
	if !ok {
		return nil
	}
	r := &Results{Each: defaultEach}
	for _, e := range entries {
		switch e.Key {
		case "budget":
			r.Budget, _ = e.At.Integer(1)
		case "each":
			r.Each, _ = e.At.Integer(leastEach)
		}
	}
	if at.Mark() != mark {
		return nil
	}
	if r.Budget == 0 {
		at.Lacking(mark, "found no budget, expected %s: how many tokens the results of tools may take", expected)
		return nil
	}
	return r
}
