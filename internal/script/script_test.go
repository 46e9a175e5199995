package script

import (
	"testing"
	"unicode"
)

func TestScriptsThatPartNoWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]bool{
		"a7ß_é": {false, false}, "жחعदதക": {false, false}, "한글": {false, false},
		"漢字": {true, true}, "ひら": {true, true}, "カナ": {true, true}, "⺀": {true, true},
		"ไทย": {true, false}, "ລາວ": {true, false}, "ខ្មែរ": {true, false}, "မြန်မာ": {true, false},
		"。!、": {false, false},
	} {
		for _, r := range text {
			if IsUnspaced(r) != want[0] || IsIdeograph(r) != want[1] {
				t.Errorf("%q: %t, %t; want %v", r, IsUnspaced(r), IsIdeograph(r), want)
			}
		}
	}
}

func TestHangul(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"한글ㄱᄀ": true, "漢かカaé7": false} {
		for _, r := range text {
			if IsHangul(r) != want {
				t.Errorf("%q: %t", r, IsHangul(r))
			}
		}
	}
}

func TestTheFirstCodePointsLeaveNothingOut(t *testing.T) {
	t.Parallel()
	for r := range rune(ideographs) {
		if unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) ||
			r < hangul && unicode.Is(unicode.Hangul, r) ||
			r < first && unicode.In(r, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) {
			t.Fatalf("%U lies before the first", r)
		}
	}
}
