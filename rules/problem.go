package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// Problem is one finding of Compile. Errors keep the program from being made, warnings do not.
type Problem struct {
	Line, Col int    // of the YAML node, from 1; 0 when the node does not exist
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

// HasErrors reports whether one of the problems is not a warning.
func HasErrors(problems []Problem) bool {
	return slices.ContainsFunc(problems, func(p Problem) bool { return !p.Warning })
}

func sortProblems(problems []Problem) {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
}

// maxWord bounds the words that are compared with known ones: edit distance is quadratic.
const maxWord = 64

// nearest returns the known word closest to word when it is close enough to be a typing error: at
// most one edit for every three characters.
func nearest(word string, known []string) (string, bool) {
	if len(word) > maxWord {
		return "", false
	}
	best, bestDistance := "", (len([]rune(word))+2)/3+1
	for _, k := range known {
		if len(k) > maxWord {
			continue
		}
		d := levenshtein.ComputeDistance(strings.ToLower(word), strings.ToLower(k))
		if d < bestDistance {
			best, bestDistance = k, d
		}
	}
	return best, best != ""
}

// maxListed is how many known words a message lists.
const maxListed = 24

// suggestion ends a message about an unknown word.
func suggestion(word string, known []string) string {
	if len(known) == 0 {
		return "; none is defined"
	}
	if s := hint(word, known); s != "" {
		return s
	}
	if k, ok := nearest(word, known); ok {
		return fmt.Sprintf("; did you mean %q?", k)
	}
	if len(known) > maxListed {
		return fmt.Sprintf("; expected one of %s and %d more", strings.Join(known[:maxListed], ", "), len(known)-maxListed)
	}
	return "; expected " + oneOf(known)
}

// keySuggestion is suggestion for a key, which may have an explanation instead of a near word, or be
// right in another place.
func keySuggestion(key string, known []string) string {
	at := func(word string) bool { return slices.Contains(known, word) }
	switch {
	case at("use") && slices.Contains(useWords(), key):
		return "; it belongs under use"
	case at("use") && slices.Contains(conditionWords(), key):
		return "; it belongs under when"
	case (at("models") || at("all")) && slices.Contains(routeWords(), key):
		return "; it is a key of a route"
	case at("all") && slices.Contains(boundWords(), key):
		return "; it belongs under a signal, as in {domain: {in: [math], " + key + ": ...}}"
	case at("block") && (key == "message" || key == "text"):
		return "; it belongs under block or answer"
	case at("gte") && (key == "==" || key == "eq" || key == "equals"):
		return "; write {gte: NUMBER, lte: NUMBER}"
	case at("use") && hint(key, known) == "" && hint(key, useWords()) != "":
		return strings.TrimSuffix(hint(key, useWords()), "?") + ", under use?"
	}
	if note, ok := notes[strings.ToLower(key)]; ok {
		return "; " + note
	}
	return suggestion(key, known)
}

func oneOf(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	return "one of " + strings.Join(words, ", ")
}
