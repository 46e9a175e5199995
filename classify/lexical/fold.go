package lexical

import (
	"context"
	"slices"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"signalbox/internal/script"
)

// folding is the normalisation of text and phrases before they are compared.
type folding uint8

const (
	foldCase folding = iota
	keepCase
	foldings
)

// fold returns text composed, with white space runs as one space and none at the ends, and with
// foldCase every letter in the form that its case variants share.
func fold(text string, mode folding) []byte {
	f := folder{mode: mode}
	f.add(text)
	return f.dst
}

// foldAll appends the folded form of a text of any size to dst. Its error is that of ctx.
func foldAll(ctx context.Context, dst []byte, text string, mode folding) ([]byte, error) {
	f := folder{dst: slices.Grow(dst, len(text)), start: len(dst), mode: mode}
	for text != "" {
		if err := ctx.Err(); err != nil {
			return f.dst, err
		}
		n := partEnd(text)
		f.add(text[:n])
		text = text[n:]
	}
	return f.dst, nil
}

// partEnd returns the length of the next part of text: about bytesPerLook, up to a character that
// does not compose with preceding ones.
func partEnd(text string) int {
	if len(text) <= bytesPerLook {
		return len(text)
	}
	for n := bytesPerLook; n < len(text) && n < 2*bytesPerLook; {
		if utf8.RuneStart(text[n]) && norm.NFC.PropertiesString(text[n:]).BoundaryBefore() {
			return n
		}
		n++
	}
	return min(len(text), 2*bytesPerLook)
}

// folder folds a text part by part.
type folder struct {
	dst   []byte
	start int // where the text begins in dst
	mode  folding
	space bool // white space came last
}

func (f *folder) add(text string) {
	if !norm.NFC.IsNormalString(text) {
		text = norm.NFC.String(text)
	}
	table := &asciiFolds[f.mode]
	dst, space := slices.Grow(f.dst, len(text)+1), f.space
	for i := 0; i < len(text); {
		c := table[text[i]]
		if c < foreign {
			if space {
				dst = append(dst, ' ')
				space = false
			}
			dst = append(dst, byte(c))
			i++
			continue
		}
		r, n := ' ', 1
		if c == foreign {
			r, n = utf8.DecodeRuneInString(text[i:])
		}
		i += n
		if r == ' ' || c == foreign && unicode.IsSpace(r) {
			space = len(dst) > f.start
			continue
		}
		if space {
			dst = append(dst, ' ')
			space = false
		}
		if f.mode == foldCase {
			r = foldRune(r)
		}
		dst = utf8.AppendRune(dst, r)
	}
	f.dst, f.space = dst, space
}

// Classes of bytes for a folder other than characters to write.
const (
	foreign uint16 = 256 + iota // part of a character beyond ASCII
	white                       // white space
)

// asciiFolds holds what becomes of each byte.
//
//nolint:gochecknoglobals // constant table
var asciiFolds = func() (t [foldings][256]uint16) {
	for mode := range t {
		for c := range t[mode] {
			switch {
			case c >= utf8.RuneSelf:
				t[mode][c] = foreign
			case c == ' ' || c >= '\t' && c <= '\r':
				t[mode][c] = white
			case folding(mode) == foldCase && c >= 'A' && c <= 'Z':
				t[mode][c] = uint16(c + 'a' - 'A')
			default:
				t[mode][c] = uint16(c)
			}
		}
	}
	return t
}()

// foldRune maps via the upper case, because some lower-case variants (final sigma, long s) differ
// from the lower case of their own upper case.
func foldRune(r rune) rune {
	switch {
	case r >= 0 && r < lowRunes:
		return lowFolds[r]
	case r >= 0x2E80 && r < 0xA640, r >= 0xAC00 && r < 0xD800: // Chinese, Japanese and Korean have no case
		return r
	}
	return foldSlowly(r)
}

func foldSlowly(r rune) rune { return unicode.ToLower(unicode.ToUpper(r)) }

// lowRunes is the end of the range for which a table holds the folded letters: Latin, Greek,
// Cyrillic and Armenian.
const lowRunes = 0x590

// lowFolds is that table.
//
//nolint:gochecknoglobals // constant table
var lowFolds = func() (t [lowRunes]rune) {
	for r := range t {
		t[r] = foldSlowly(rune(r))
	}
	return t
}()

// boundary reports whether a phrase may start or end before byte i of text.
func boundary(text []byte, i int) bool {
	before, n := utf8.DecodeLastRune(text[:i])
	if n == 0 || !isWord(before) {
		return true
	}
	after, n := utf8.DecodeRune(text[i:])
	return n == 0 || !isWord(after) || script.IsHangul(before) != script.IsHangul(after) && !unicode.Is(unicode.M, after)
}

// isWord reports which characters make up words in scripts that separate words. A combining mark
// belongs to the word of its letter.
func isWord(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_'
	}
	if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.Is(unicode.M, r) {
		return false
	}
	return !script.IsUnspaced(r)
}
