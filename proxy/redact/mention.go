package redact

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"signalbox/internal/script"
)

// mentions finds the values of a vault in other texts, regardless of case and spacing. The time of
// a search does not depend on how many values share a beginning.
type mentions struct {
	ascii [utf8.RuneSelf]bool // first characters, in lower case
	wide  bool                // some value begins with another character
	list  []mention           // sorted by folded, after ready
}

// mention is a value to search for.
type mention struct {
	folded string // value in lower case, with each run of white space as one blank
	value  string
	exact  bool // match the exact case only
	*secret
}

// worth reports whether a value is searched for beyond the places where it was found. Ages, titles
// and short numbers occur in every text and identify nobody on their own.
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

// ambiguous lists English words that are also names, months or places. As names they are
// capitalised, so they are searched for in the case in which they were found.
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
	folded := fold(value)
	if first, _ := utf8.DecodeRuneInString(folded); first < utf8.RuneSelf {
		m.ascii[first] = true
	} else {
		m.wide = true
	}
	m.list = append(m.list, mention{folded, value, ambiguous[folded], s})
}

// addSpellings adds a value as it is and as it appears inside a JSON string, as in the arguments of
// calls and in tool results, where many programs escape all non-ASCII characters.
func (m *mentions) addSpellings(s *secret, value string) {
	inside := string(quote(value))
	m.add(s, value)
	m.add(s, inside)
	if a := ascii(inside); a != inside {
		m.add(s, a)
	}
}

// ascii escapes the non-ASCII characters of the inside of a JSON string.
func ascii(inside string) string {
	var out []byte
	for _, r := range inside {
		switch {
		case r < utf8.RuneSelf:
			out = append(out, byte(r))
		case r > math.MaxUint16:
			first, second := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, first, second)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return string(out)
}

// ready sorts the list and removes duplicates.
func (m *mentions) ready() {
	slices.SortStableFunc(m.list, func(a, b mention) int {
		if c := strings.Compare(a.folded, b.folded); c != 0 || !a.exact {
			return c
		}
		return strings.Compare(a.value, b.value)
	})
	m.list = slices.CompactFunc(m.list, func(a, b mention) bool {
		return a.folded == b.folded && (!a.exact || a.value == b.value)
	})
}

// bytesPerLook is the number of bytes searched between two checks of the context.
const bytesPerLook = 64 << 10

// find returns the first mention in text at or after from, as a whole word. s is nil when there is
// none, or when ctx has ended.
func (m *mentions) find(ctx context.Context, text string, from int) (start, end int, s *secret) {
	if len(m.list) == 0 {
		return 0, 0, nil
	}
	before, _ := utf8.DecodeLastRuneInString(text[:from])
	for i, look := from, from+bytesPerLook; i < len(text); {
		if i >= look {
			if ctx.Err() != nil {
				return 0, 0, nil
			}
			look = i + bytesPerLook
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		first := foldSpace(r)
		if (first < utf8.RuneSelf && m.ascii[first] || first >= utf8.RuneSelf && m.wide) && (!inWord(before) || !inWord(r)) {
			if end, s = m.longest(text, i); s != nil {
				return i, end, s
			}
		}
		before = r
		i += size
	}
	return 0, 0, nil
}

// longest returns the longest mention that begins at i; s is nil when there is none.
func (m *mentions) longest(text string, i int) (end int, s *secret) {
	left, depth := m.list, 0 // the values that match so far, and the length of the match
	for at := i; at < len(text) && len(left) > 0; {
		r, size := utf8.DecodeRuneInString(text[at:])
		at += size
		if unicode.IsSpace(r) {
			at += len(text[at:]) - len(strings.TrimLeftFunc(text[at:], unicode.IsSpace))
		}
		var buf [utf8.UTFMax]byte
		for _, b := range utf8.AppendRune(buf[:0], foldSpace(r)) {
			left = narrow(left, depth, b)
			depth++
		}
		for k := 0; k < len(left) && len(left[k].folded) == depth; k++ {
			if c := &left[k]; (!c.exact || text[i:at] == c.value) && wholeWord(text[:at], text[at:]) {
				end, s = at, c.secret
			}
		}
	}
	return end, s
}

// narrow returns the part of a sorted list whose values have b after their first depth bytes, which
// are equal in all of them.
func narrow(list []mention, depth int, b byte) []mention {
	from := sort.Search(len(list), func(k int) bool { f := list[k].folded; return len(f) > depth && f[depth] >= b })
	list = list[from:]
	return list[:sort.Search(len(list), func(k int) bool { return list[k].folded[depth] > b })]
}

func wholeWord(text, after string) bool {
	last, _ := utf8.DecodeLastRuneInString(text)
	next, _ := utf8.DecodeRuneInString(after)
	return !inWord(last) || !inWord(next)
}

// inWord reports whether r is a letter or digit of a script that separates words by spaces.
func inWord(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'z'
	}
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)) &&
		!script.IsUnspaced(r) && !script.IsHangul(r)
}

// foldSpace folds case, and any white space to a blank.
func foldSpace(r rune) rune {
	if unicode.IsSpace(r) {
		return ' '
	}
	return unicode.ToLower(r)
}

// fold folds the case of a value, and each run of white space to a blank.
func fold(value string) string {
	var b strings.Builder
	space := false
	for _, r := range value {
		if f := foldSpace(r); f != ' ' || !space {
			b.WriteRune(f)
		}
		space = unicode.IsSpace(r)
	}
	return b.String()
}
