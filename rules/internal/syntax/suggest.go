package syntax

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// maxWord is the maximum length of words that are compared with known ones: edit distance is
// quadratic.
const maxWord = 64

// nearest returns the known word closest to word if it is close enough for a typing error, at most
// one edit per three characters, or the only known word that contains it, as EMAIL_ADDRESS contains
// EMAIL.
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
	if best == "" {
		best = holder(word, known)
	}
	return best, best != ""
}

// leastHeld is the minimum length of a word that is searched for in other words.
const leastHeld = 3

// holder returns the only known word that contains word; empty if there are several, or none.
func holder(word string, known []string) string {
	best := ""
	for _, k := range known {
		if len(word) < leastHeld || !strings.Contains(strings.ToLower(k), strings.ToLower(word)) {
			continue
		}
		if best != "" {
			return ""
		}
		best = k
	}
	return best
}

// maxListed is the maximum number of known words listed in a message.
const maxListed = 24

// Suggestion returns the end of a message about an unknown word: the word that was probably meant,
// or the known words.
func Suggestion(word string, known []string) string {
	if len(known) == 0 {
		return "; none is defined"
	}
	if s := hint(word, known); s != "" {
		return s
	}
	if k, ok := nearest(word, known); ok {
		return fmt.Sprintf("; did you mean %q?", k)
	}
	return expected(known)
}

// expected returns the end of a message with the known words.
func expected(known []string) string {
	if len(known) > maxListed {
		return fmt.Sprintf("; expected one of %s and %d more", strings.Join(known[:maxListed], ", "), len(known)-maxListed)
	}
	return "; expected " + OneOf(known)
}

// keySuggestion is Suggestion for a key, for which there may be an explanation instead, or which
// may be valid in another place.
func keySuggestion(key string, known []string) string {
	at := func(word string) bool { return slices.Contains(known, word) }
	switch {
	case at("use") && slices.Contains(UseKeys(), key):
		return "; it belongs under use"
	case at("use") && slices.Contains(ConditionKeys(), key):
		return "; it belongs under when"
	case (at("models") || at("all")) && slices.Contains(RouteKeys(), key):
		return "; it is a key of a route"
	case at("all") && slices.Contains(BoundKeys(), key):
		return "; it belongs under a signal, as in {domain: {in: [math], " + key + ": ...}}"
	case at("block") && (key == "message" || key == "text"):
		return "; it belongs under block or answer"
	case at("gte") && (key == "==" || key == "eq" || key == "equals"):
		return "; write {gte: NUMBER, lte: NUMBER}"
	case at("use") && hint(key, known) == "" && hint(key, UseKeys()) != "":
		return strings.TrimSuffix(hint(key, UseKeys()), "?") + ", under use?"
	}
	if note, ok := notes[strings.ToLower(key)]; ok {
		return "; " + note
	}
	return Suggestion(key, known)
}

// OneOf lists words for a message that expects one of them.
func OneOf(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	return "one of " + strings.Join(words, ", ")
}

// hint returns the end of a message about a word that users know from other routers.
func hint(word string, known []string) string {
	word = strings.ToLower(word)
	for _, s := range synonyms[word] {
		if slices.Contains(known, s) {
			return "; did you mean \"" + s + "\"?"
		}
	}
	return ""
}
