package syntax

import (
	"cmp"
	"fmt"
	"slices"
)

// Problem is one finding. Errors prevent the program from being made, warnings do not.
type Problem struct {
	Line, Col int    // of the YAML node, from 1; 0 if the node does not exist
	Path      string // such as routes[2].when.all[1].domain.min_score
	Msg       string // what was found, what was expected, the nearest known word
	Warning   bool
}

// String formats the problem as line:col: path: message.
func (p Problem) String() string {
	msg := p.Msg
	if p.Warning {
		msg = "warning: " + msg
	}
	return fmt.Sprintf("%d:%d: %s: %s", p.Line, p.Col, p.Path, msg)
}

// Errors counts the problems that are not warnings.
func Errors(problems []Problem) int {
	n := 0
	for _, p := range problems {
		if !p.Warning {
			n++
		}
	}
	return n
}

// Sort orders problems by their position in the file.
func Sort(problems []Problem) {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
}
