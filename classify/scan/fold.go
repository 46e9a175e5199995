package scan

// skip is the symbol of ignored characters: combining accents and zero-width characters.
const skip = -1

// asciiSymbols folds ASCII: small letters, one digit for all, white space and control characters
// as spaces.
//
//nolint:gochecknoglobals // constant table
var asciiSymbols = func() (t [128]byte) {
	for c := range t {
		switch {
		case c <= ' ' || c == 127:
			t[c] = ' '
		case c >= 'A' && c <= 'Z':
			t[c] = byte(c) + 'a' - 'A'
		case c >= '0' && c <= '9':
			t[c] = '0'
		default:
			t[c] = byte(c)
		}
	}
	return t
}()

// latin holds the base letters of U+00C0 to U+017F.
const latin = "aaaaaaaceeeeiiiidnooooo*ouuuuytsaaaaaaaceeeeiiiidnooooo/ouuuuyty" +
	"aaaaaaccccccccddddeeeeeeeeeegggggggghhhhiiiiiiiiiiiijjkkklllllll" +
	"lllnnnnnnnnnoooooooorrrrrrssssssssttttttuuuuuuuuuuuuwwyyyzzzzzzs"

// symbol folds a character beyond ASCII: case, accents of Latin letters, width, typographic
// quotation marks and dashes. The rules are few and simple because the training uses the same ones.
func symbol(r rune) rune {
	switch {
	case r < 0xC0:
		switch r {
		case 0xA0:
			return ' '
		case 0xAD:
			return skip
		}
		return r
	case r < 0x180:
		return rune(latin[r-0xC0])
	case r >= 0x300 && r < 0x370:
		return skip
	case r >= 0x391 && r <= 0x3A9, r >= 0x410 && r <= 0x42F:
		return r + 0x20
	case r >= 0x400 && r <= 0x40F:
		return r + 0x50
	case r == 0x451:
		return 0x435
	case r == 0x640 || r >= 0x64B && r <= 0x652:
		return skip
	case r >= 0x1EA0 && r <= 0x1EFF:
		return r | 1
	case r >= 0x2000 && r <= 0x2064:
		return punctuation(r)
	case r == 0x3000:
		return ' '
	case r == 0xFEFF || r >= 0xFE00 && r <= 0xFE0F:
		return skip
	case r >= 0xFF01 && r <= 0xFF5E:
		return rune(asciiSymbols[r-0xFEE0])
	}
	return r
}

// punctuation folds U+2000 to U+2064.
func punctuation(r rune) rune {
	switch {
	case r <= 0x200A || r == 0x2028 || r == 0x2029 || r == 0x202F || r == 0x205F:
		return ' '
	case r <= 0x200F || r >= 0x202A && r <= 0x202E || r >= 0x2060:
		return skip
	case r <= 0x2015:
		return '-'
	case r >= 0x2018 && r <= 0x201B:
		return '\''
	case r >= 0x201C && r <= 0x201F:
		return '"'
	}
	return r
}

// ideograph reports whether a symbol is a word by itself: Han and the Japanese syllables, scripts
// without spaces.
func ideograph(c uint64) bool {
	return c >= 0x3040 && c <= 0x30FF || c >= 0x3400 && c <= 0x9FFF || c >= 0xF900 && c <= 0xFAFF || c >= 0x20000 && c <= 0x3FFFF
}

// inWord reports whether a folded symbol is part of a word.
func inWord(c uint64) bool {
	if c < 0x80 {
		return c >= 'a' && c <= 'z' || c == '0' || c == '\'' || c == '_'
	}
	switch {
	case c < 0x180, c >= 0x2000 && c <= 0x2BFF, c >= 0x3000 && c <= 0x303F, c >= 0xFE00 && c <= 0xFFFF, c >= 0x1F000:
		return false
	}
	return true
}
