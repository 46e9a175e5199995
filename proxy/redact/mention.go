package redact

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// mentions finds the values of a vault in other texts, whatever their case and spacing.
type mentions struct {
	ascii  [utf8.RuneSelf]bool // first characters, in lower case
	wide   bool                // some value begins with another character
	byHead map[[2]rune][]mention
}

// mention is a value to look for.
type mention struct {
	value string
	exact bool // only as it is written
	*secret
}

// worth reports whether a value is looked for beyond the places where it was found. Ages, titles and
// short numbers are in every text and tell nothing by themselves.
func worth(kind, value string) bool {
	if kind == "AGE" || kind == "TITLE" {
		return false
	}
	letters, digits := 0, 0
	for _, r := range value {
		switch {
		case unicode.IsDigit(r):
			digits++
		case unicode.Is(unicode.Han, r), unicode.Is(unicode.Hangul, r):
			letters += 2
		case unicode.IsLetter(r):
			letters++
		}
	}
	return letters >= 3 || digits >= 5
}

// ambiguous are English words that are names, months or places too. As such they are capitalised, so
// these are looked for in the case in which they were found.
//
//nolint:gochecknoglobals // constant table
var ambiguous = func() map[string]bool {
	m := make(map[string]bool)
	for w := range strings.FieldsSeq("will mark may rose grace frank hope faith joy bill rob pat sue art ray jack grant chase chance hunter mason carter cooper dean drew guy gene jean " +
		"max miles rich rusty sonny stone wade ward april june august march dawn summer autumn violet iris ivy lily daisy olive ruby pearl jade crystal amber angel bell bush brown " +
		"green white black gray young long short king page price rice wood woods field hill lake bank cook baker banks best bond case cross day love mills moon moody nice noble park parks " +
		"post pope read reading reed rush sharp small snow steel strong swift weeks wise yes nancy china turkey jersey apple orange target shell gap visa amazon today tomorrow yesterday monday " +
		"tuesday wednesday thursday friday saturday sunday january february july september october november december mobile phoenix split cork lima male mesa orlando victoria darwin") {
		m[w] = true
	}
	return m
}()

func (m *mentions) add(s *secret, value string) {
	r1, n := utf8.DecodeRuneInString(value)
	r2, _ := utf8.DecodeRuneInString(value[n:])
	if m.byHead == nil {
		m.byHead = make(map[[2]rune][]mention)
	}
	head := [2]rune{unicode.ToLower(r1), foldSpace(r2)}
	lower := strings.ToLower(value)
	for _, known := range m.byHead[head] {
		if known.value == value {
			return
		}
	}
	if head[0] < utf8.RuneSelf {
		m.ascii[head[0]] = true
	} else {
		m.wide = true
	}
	m.byHead[head] = append(m.byHead[head], mention{value, ambiguous[lower], s})
}

// ready sorts what was added, so that the longest value is found first.
func (m *mentions) ready() {
	for _, list := range m.byHead {
		slices.SortStableFunc(list, func(a, b mention) int { return len(b.value) - len(a.value) })
	}
}

// find returns the first mention in text at or behind from, as a whole word; s is nil without one.
func (m *mentions) find(text string, from int) (start, end int, s *secret) {
	if m.byHead == nil {
		return 0, 0, nil
	}
	before, _ := utf8.DecodeLastRuneInString(text[:from])
	for i := from; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		lower := unicode.ToLower(r)
		if (lower < utf8.RuneSelf && m.ascii[lower] || lower >= utf8.RuneSelf && m.wide) && (!inWord(before) || !inWord(r)) {
			next, _ := utf8.DecodeRuneInString(text[i+size:])
			for _, c := range m.byHead[[2]rune{lower, foldSpace(next)}] {
				if n := c.match(text[i:]); n > 0 && wholeWord(text[:i+n], text[i+n:]) {
					return i, i + n, c.secret
				}
			}
		}
		before = r
		i += size
	}
	return 0, 0, nil
}

func wholeWord(text, after string) bool {
	last, _ := utf8.DecodeLastRuneInString(text)
	next, _ := utf8.DecodeRuneInString(after)
	return !inWord(last) || !inWord(next)
}

// inWord reports whether r is a letter or digit of a script that sets spaces between words.
func inWord(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'z'
	}
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)) && !unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai)
}

// foldSpace folds case, and all white space to a blank.
func foldSpace(r rune) rune {
	if unicode.IsSpace(r) {
		return ' '
	}
	return unicode.ToLower(r)
}

// match returns how many bytes at the front of text are the value, or 0. A run of white space matches
// any other.
func (c *mention) match(text string) int {
	if c.exact {
		if strings.HasPrefix(text, c.value) {
			return len(c.value)
		}
		return 0
	}
	i := 0
	for k := 0; k < len(c.value); {
		if i == len(text) {
			return 0
		}
		a, n := utf8.DecodeRuneInString(c.value[k:])
		b, m := utf8.DecodeRuneInString(text[i:])
		if foldSpace(a) != foldSpace(b) {
			return 0
		}
		k, i = k+n, i+m
		if unicode.IsSpace(a) {
			k += len(c.value[k:]) - len(strings.TrimLeftFunc(c.value[k:], unicode.IsSpace))
			i += len(text[i:]) - len(strings.TrimLeftFunc(text[i:], unicode.IsSpace))
		}
	}
	return i
}
