package question

import "bytes"

// sameForm reports whether two words are forms of one word: equal up to an English ending of
// inflection ("merge", "merging") or derivation ("found", "founder").
func sameForm(a, b []byte) bool {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	if n == len(a) && n == len(b) {
		return true
	}
	if n < 3 {
		return false
	}
	x, y := a[n:], b[n:]
	if tails(a[:n], x, y) {
		return true
	}
	// A doubled consonant: stop, stopping.
	last := a[n-1]
	switch {
	case len(x) > 1 && x[0] == last && len(y) == 0:
		return tails(a[:n], x[1:], y)
	case len(y) > 1 && y[0] == last && len(x) == 0:
		return tails(a[:n], x, y[1:])
	}
	return false
}

// tails reports whether two endings may follow the same stem.
func tails(stem, x, y []byte) bool {
	p, ok := ending(x)
	q, also := ending(y)
	if !ok || !also {
		return false
	}
	switch {
	case p == 'e' && q == '0' || p == '0' && q == 'e': // plan, plane
		return false
	case p == 'i' && q == 'i', p == 'i' && q == '0', p == '0' && q == 'i', p == 'e' && q == 'i', p == 'i' && q == 'e':
		return true
	}
	return len(stem) >= derivedStem
}

// derivedStem is the minimum length of a stem with a derivational ending: "state" is not a form of
// "station".
const derivedStem = 5

// ending classifies an ending: 0 none, e the letter, i inflection, d derivation.
func ending(t []byte) (kind byte, ok bool) {
	switch string(t) {
	case "":
		return '0', true
	case "e", "y":
		return 'e', true
	case "s", "es", "ed", "d", "ing", "ies", "ied":
		return 'i', true
	case "er", "ers", "or", "ors", "r", "ion", "ions", "ation", "ations", "ment", "ments", "ly", "al", "ally", "ive",
		"able", "ness", "ity", "ance", "ence", "ic", "ical", "en", "n", "t":
		return 'd', true
	}
	return 0, false
}

// cutSuffix is bytes.CutSuffix for a string.
func cutSuffix(b []byte, end string) ([]byte, bool) {
	if len(b) < len(end) || string(b[len(b)-len(end):]) != end {
		return b, false
	}
	return b[:len(b)-len(end)], true
}

// equal reports whether two words are identical.
func equal(a, b []byte) bool { return bytes.Equal(a, b) }
