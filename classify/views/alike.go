package views

import "unicode"

// kind classifies characters by how normalise treats them.
type kind uint8

const (
	kindPlain kind = iota // unchanged: other scripts, punctuation, symbols
	kindASCII             // ASCII letters and digits within a word
	kindLatin             // further Latin letters
	kindAlike             // letters of scripts with look-alikes of Latin letters
	// variants of letters and digits: mathematical, full width, enclosed, small capitals.
	kindCompat
	kindMark      // combining marks
	kindIgnorable // characters without a shape
)

// kindOf classifies a character. The cases are in the order of code points.
func kindOf(c rune) kind {
	switch {
	case c < 0x80:
		if classOf[c]&(isLetter|isDigit) != 0 {
			return kindASCII
		}
		return kindPlain
	case c < 0x370:
		return lowKind(c)
	case c < 0x590:
		if c == 0x37E || c == 0x387 || c >= 0x483 && c <= 0x489 || c >= 0x55A && c <= 0x55F || c >= 0x589 {
			return kindPlain
		}
		return kindAlike
	case c < 0x1D00:
		return middleKind(c)
	case c < 0x2000:
		return extendedKind(c)
	case c < 0x2E80:
		return symbolKind(c)
	case c < 0xA640:
		if c == 0x3164 {
			return kindIgnorable
		}
		return kindPlain
	}
	return highKind(c)
}

func lowKind(c rune) kind {
	switch {
	case c == 0xAD || c == 0x34F:
		return kindIgnorable
	case c == 0xAA || c == 0xBA:
		return kindPlain // Spanish ordinals
	case c < 0xC0 || c == 0xD7 || c == 0xF7:
		return kindPlain
	case c < 0x250:
		return kindLatin
	case c < 0x2B0:
		return latinKind(c)
	case raised(c):
		return kindCompat
	case c < 0x300:
		return kindPlain
	}
	return kindMark
}

// latinKind distinguishes letters of phonetic alphabets from variants of Latin letters.
func latinKind(c rune) kind {
	if _, ok := smallCapitals[c]; ok || raised(c) {
		return kindCompat
	}
	return kindLatin
}

func middleKind(c rune) kind {
	switch {
	case c == 0x61C || c == 0x115F || c == 0x1160 || c >= 0x17B4 && c <= 0x17B5 || c >= 0x180B && c <= 0x180F:
		return kindIgnorable
	case c >= 0x13A0 && c <= 0x13FF:
		return kindAlike
	case c >= 0x1AB0 && c <= 0x1AFF:
		return kindMark
	}
	return kindPlain
}

func extendedKind(c rune) kind {
	switch {
	case c < 0x1DC0:
		return latinKind(c)
	case c < 0x1E00:
		return kindMark
	case c < 0x1F00:
		return kindLatin
	}
	return kindAlike // Greek with historic accents
}

func symbolKind(c rune) kind {
	switch {
	case c >= 0x200B && c <= 0x200F || c >= 0x202A && c <= 0x202E || c >= 0x2060 && c <= 0x206F:
		return kindIgnorable
	case raised(c):
		return kindCompat
	case c >= 0x20D0 && c <= 0x20F0:
		return kindMark
	case c >= 0x2100 && c <= 0x214F:
		if unicode.IsLetter(c) && c != 0x2126 && c != 0x212E {
			return kindCompat
		}
		return kindPlain
	case c >= 0x2160 && c <= 0x217F:
		return kindCompat // Roman numerals
	case c >= 0x249C && c <= 0x24E9:
		return kindCompat // letters in brackets and circles
	case c >= 0x2C60 && c <= 0x2C7F:
		return kindLatin
	case c >= 0x2C80 && c <= 0x2CFF:
		return kindAlike
	}
	return kindPlain
}

func highKind(c rune) kind {
	switch {
	case c >= 0xA640 && c <= 0xA69F:
		return kindAlike
	case c >= 0xA720 && c <= 0xA7FF:
		return latinKind(c)
	case c >= 0xAB70 && c <= 0xABBF:
		return kindAlike
	case c >= 0xFB00 && c <= 0xFB06:
		return kindCompat
	case c >= 0xFE20 && c <= 0xFE2F:
		return kindMark
	case variation(c) || c == 0xFEFF || c == 0xFFA0 || c >= 0xFFF0 && c <= 0xFFF8 || c >= 0xE0000 && c <= 0xE0FFF:
		return kindIgnorable
	case c >= 0xFF10 && c <= 0xFF19 || c >= 0xFF21 && c <= 0xFF3A || c >= 0xFF41 && c <= 0xFF5A:
		return kindCompat
	case c >= 0x1D400 && c <= 0x1D7FF:
		return kindCompat
	}
	if _, ok := enclosed(c); ok {
		return kindCompat
	}
	return kindPlain
}

// raised reports whether a character is a superscript or subscript letter.
func raised(c rune) bool {
	return c >= 0x2B0 && c <= 0x2B8 || c >= 0x2E0 && c <= 0x2E4 || c >= 0x1D2C && c <= 0x1D6A || c >= 0x1D9C && c <= 0x1DBF ||
		c == 0x2071 || c == 0x207F || c >= 0x2090 && c <= 0x209C
}

// enclosed returns the letter in a box or disc that has no compatibility decomposition. Pairs of
// regional indicators are flags and are not changed.
func enclosed(c rune) (letter byte, ok bool) {
	switch {
	case c >= 0x1F110 && c <= 0x1F129: // in brackets
		return byte(c-0x1F110) + 'a', true
	case c >= 0x1F130 && c <= 0x1F149: // in a square
		return byte(c-0x1F130) + 'a', true
	case c >= 0x1F150 && c <= 0x1F169: // on a disc
		return byte(c-0x1F150) + 'a', true
	case c >= 0x1F170 && c <= 0x1F189: // on a square
		return byte(c-0x1F170) + 'a', true
	case c >= 0x249C && c <= 0x24B5: // in brackets
		return byte(c-0x249C) + 'a', true
	}
	return 0, false
}

// logographic reports whether a character is a word or a syllable, so that single ones are not a
// disguise.
func logographic(c rune) bool {
	return c >= 0x2E80 && c <= 0xA4CF || c >= 0xAC00 && c <= 0xD7FF || c >= 0xF900 && c <= 0xFAFF || c >= 0x20000 && c <= 0x3FFFF
}

// smallCapitals holds capitals of the height of small letters, which have no compatibility
// decomposition.
//
//nolint:gochecknoglobals // constant table
var smallCapitals = map[rune]byte{
	'ᴀ': 'a', 'ʙ': 'b', 'ᴄ': 'c', 'ᴅ': 'd', 'ᴇ': 'e', 'ꜰ': 'f', 'ɢ': 'g', 'ʜ': 'h', 'ɪ': 'i', 'ᴊ': 'j', 'ᴋ': 'k', 'ʟ': 'l', 'ᴍ': 'm', 'ɴ': 'n',
	'ᴏ': 'o', 'ᴘ': 'p', 'ʀ': 'r', 'ꜱ': 's', 'ᴛ': 't', 'ᴜ': 'u', 'ᴠ': 'v', 'ᴡ': 'w', 'ʏ': 'y', 'ᴢ': 'z', 'ꞯ': 'q', 'ᴃ': 'b', 'ᴌ': 'l',
}

// lookOf returns the Latin letter that a letter of another script looks like, 0 if there is none,
// and whether it looks identical or is only used for it. Sources: the shapes themselves, in
// addition to the confusables of https://www.unicode.org/reports/tr39/.
func lookOf(c rune) (look byte, exact bool) {
	if c >= firstLook && c < lastLook {
		l := looks[c-firstLook]
		return l & 0x7f, l&0x80 != 0
	}
	if look, ok := sameLook[c]; ok {
		return look, true
	}
	return nearLook[c], false
}

// firstLook and lastLook are the limits of Greek, Cyrillic and Armenian.
const firstLook, lastLook = 0x370, 0x590

// looks holds what sameLook (with the top bit set) and nearLook say about Greek, Cyrillic and
// Armenian.
//
//nolint:gochecknoglobals // constant table
var looks = func() (t [lastLook - firstLook]byte) {
	for c := range rune(lastLook - firstLook) {
		if look, ok := sameLook[c+firstLook]; ok {
			t[c] = look | 0x80
			continue
		}
		t[c] = nearLook[c+firstLook]
	}
	return t
}()

// sameLook holds letters that no reader can tell from Latin ones.
//
//nolint:gochecknoglobals // constant table
var sameLook = map[rune]byte{
	'а': 'a', 'е': 'e', 'о': 'o', 'р': 'p', 'с': 'c', 'у': 'y', 'х': 'x', 'ѕ': 's', 'і': 'i', 'ј': 'j', 'ԁ': 'd', 'һ': 'h', 'ԛ': 'q', 'ԝ': 'w',
	'ӏ': 'l', 'ѵ': 'v', 'ү': 'y', 'ԍ': 'G', 'ѐ': 'e', 'ё': 'e', 'ї': 'i', 'ӓ': 'a', 'ӧ': 'o', 'ӕ': 'a', 'А': 'A', 'В': 'B', 'Е': 'E', 'К': 'K',
	'М': 'M', 'Н': 'H', 'О': 'O', 'Р': 'P', 'С': 'C', 'Т': 'T', 'У': 'Y', 'Х': 'X', 'Ѕ': 'S', 'І': 'I', 'Ј': 'J', 'Ԁ': 'D', 'Ԛ': 'Q', 'Ԝ': 'W',
	'Ӏ': 'I', 'Ѵ': 'V', 'Ү': 'Y', 'Ё': 'E', 'Ї': 'I', 'Ԍ': 'G',
	'Α': 'A', 'Β': 'B', 'Ε': 'E', 'Ζ': 'Z', 'Η': 'H', 'Ι': 'I', 'Κ': 'K', 'Μ': 'M', 'Ν': 'N', 'Ο': 'O', 'Ρ': 'P', 'Τ': 'T', 'Υ': 'Y', 'Χ': 'X',
	'ο': 'o', 'ϲ': 'c', 'ϳ': 'j', 'Ϲ': 'C', 'α': 'a', 'ν': 'v', 'ι': 'i', 'ρ': 'p', 'υ': 'u', 'κ': 'k', 'γ': 'y',
	'օ': 'o', 'ս': 'u', 'ո': 'n', 'հ': 'h', 'ց': 'g', 'զ': 'q', 'յ': 'j', 'Օ': 'O', 'Ս': 'U', 'Տ': 'S', 'Լ': 'L', 'ք': 'p',
	'Ꭰ': 'D', 'Ꭱ': 'R', 'Ꭲ': 'T', 'Ꭵ': 'i', 'Ꭺ': 'A', 'Ꭻ': 'J', 'Ꭼ': 'E', 'Ꮃ': 'W', 'Ꮇ': 'M', 'Ꮋ': 'H', 'Ꮍ': 'Y', 'Ꮐ': 'G', 'Ꮓ': 'Z', 'Ꮞ': '4',
	'Ꮟ': 'b', 'Ꮢ': 'R', 'Ꮥ': 'S', 'Ꮩ': 'V', 'Ꮪ': 'S', 'Ꮮ': 'L', 'Ꮯ': 'C', 'Ꮲ': 'P', 'Ꮶ': 'K', 'Ᏼ': 'B', 'Ꮷ': 'd', 'Ꭹ': 'y', 'Ꮒ': 'h', 'Ꮎ': 'O',
	'Ꮻ': 'O', 'Ꭴ': 'O', 'Ᏻ': 'G', 'Ꮤ': 'W',
	'ⲟ': 'o', 'ⲣ': 'p', 'ⲥ': 'c', 'ⲭ': 'x', 'ⲩ': 'y', 'ⲕ': 'k', 'ⲓ': 'i', 'ⲛ': 'n', 'ⲧ': 't', 'ⲏ': 'h', 'ⲁ': 'a', 'ⲉ': 'e', 'Ⲟ': 'O', 'Ⲣ': 'P',
	'Ⲥ': 'C', 'Ⲧ': 'T', 'Ⲏ': 'H', 'Ⲁ': 'A', 'Ⲉ': 'E', 'Ⲛ': 'N', 'Ⲙ': 'M', 'Ⲓ': 'I',
}

// nearLook holds letters that are drawn in the place of Latin ones.
//
//nolint:gochecknoglobals // constant table
var nearLook = map[rune]byte{
	'в': 'b', 'к': 'k', 'м': 'm', 'н': 'h', 'т': 't', 'г': 'r', 'п': 'n', 'и': 'u', 'ш': 'w', 'ь': 'b', 'я': 'r', 'Я': 'R', 'И': 'N', 'Ш': 'W',
	'Г': 'r', 'П': 'n', 'Д': 'A', 'й': 'u', 'Й': 'N', 'ц': 'u', 'Ц': 'U', 'ғ': 'f', 'ԃ': 'd', 'ѡ': 'w', 'щ': 'w', 'ъ': 'b', 'З': 'E', 'з': 'e',
	'б': 'b', 'Ь': 'b',
	'β': 'b', 'ε': 'e', 'η': 'n', 'τ': 't', 'χ': 'x', 'ω': 'w', 'σ': 'o', 'ζ': 'z', 'ϵ': 'e', 'ϱ': 'p', 'μ': 'u', 'Σ': 'E', 'Λ': 'A', 'ά': 'a',
	'έ': 'e', 'ή': 'n', 'ί': 'i', 'ό': 'o', 'ύ': 'u', 'ώ': 'w', 'δ': 'd', 'ϊ': 'i', 'ϋ': 'u',
	'ա': 'w', 'ե': 't', 'ռ': 'n', 'գ': 'q', 'կ': 'u', 'պ': 'w', 'լ': 'l', 'ւ': 'i', 'ի': 'h', 'ր': 'r', 'խ': 'h', 'Բ': 'F', 'Ո': 'n', 'Հ': 'Z',
	'Ա': 'U', 'Մ': 'U', 'Կ': 'Y',
}
