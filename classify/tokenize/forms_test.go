package tokenize

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/unicode/norm"
)

// ranges are blocks with composites, compatibility characters, marks and Hangul.
func ranges() []rune {
	blocks := [][2]rune{
		{' ', '~'},
		{0xC0, 0x24F},
		{0x300, 0x36F},
		{0x591, 0x5C7},
		{0x610, 0x65F},
		{0x900, 0x9FF},
		{0xB4B, 0xB57},
		{0xF71, 0xFBC},
		{0x1100, 0x11FF},
		{0x1E00, 0x1FFF},
		{0x3300, 0x33FF},
		{0xAC00, 0xAC80},
		{0xF900, 0xF920},
		{0xFB00, 0xFDFF},
		{0xFF00, 0xFFEF},
		{0x1D15E, 0x1D164},
	}
	var out []rune
	for _, b := range blocks {
		for r := b[0]; r <= b[1]; r++ {
			out = append(out, r)
		}
	}
	return out
}

func normalized(f step, text string) string {
	var w work
	w.text.load(text, 0)
	f(&w)
	return string(w.text.b)
}

func TestNormalFormsAgreeWithTheUnicodeTables(t *testing.T) {
	letters := ranges()
	random := rand.New(rand.NewPCG(5, 6))
	forms := map[string]norm.Form{"NFC": norm.NFC, "NFD": norm.NFD, "NFKC": norm.NFKC, "NFKD": norm.NFKD}
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			f := newNormalForm(form)
			for _, r := range letters {
				if got, want := normalized(f.step, string(r)), form.String(string(r)); got != want {
					t.Errorf("%U: got %+q, want %+q", r, got, want)
				}
			}
			for range 3000 {
				var b strings.Builder
				for range 1 + random.IntN(12) {
					b.WriteRune(letters[random.IntN(len(letters))])
				}
				if got, want := normalized(f.step, b.String()), form.String(b.String()); got != want {
					t.Errorf("%+q: got %+q, want %+q", b.String(), got, want)
				}
			}
		})
	}
}

func TestLongRunsOfMarksStayWhole(t *testing.T) {
	marks := strings.Repeat("\u0301\u0323", 40)
	want := "\u1ecd" + strings.Repeat("\u0323", 39) + strings.Repeat("\u0301", 40) + "b"
	if d := cmp.Diff(want, normalized(newNormalForm(norm.NFC).step, "o"+marks+"b")); d != "" {
		t.Errorf("NFC (-want +got):\n%s", d)
	}
}

func TestOriginsFollowEveryStep(t *testing.T) {
	type origin struct {
		Text     string
		From, To int32
	}
	tests := map[string]struct {
		text  string
		steps []step
		want  []origin
	}{
		"a copy":                  {"aé", nil, []origin{{"a", 0, 1}, {"é", 1, 3}}},
		"a byte that is no UTF-8": {"a\xffb", nil, []origin{{"a", 0, 1}, {"\ufffd", 1, 2}, {"b", 2, 3}}},
		"a composition takes the place of its first character": {
			"e\u0301x", []step{newNormalForm(norm.NFC).step}, []origin{{"é", 0, 1}, {"x", 3, 4}},
		},
		"a decomposition belongs to its character": {
			"éx", []step{newNormalForm(norm.NFD).step}, []origin{{"e", 0, 2}, {"\u0301", 0, 2}, {"x", 2, 3}},
		},
		"a replacement belongs to the last character replaced": {
			"a  b", []step{replaceSpaceRuns("_")}, []origin{{"a", 0, 1}, {"_", 2, 3}, {"b", 3, 4}},
		},
		"steps after one another": {
			"É x ",
			[]step{newNormalForm(norm.NFD).step, stripAccents, lower, replaceString(" ", "▁"), prepend("▁")},
			[]origin{{"▁", 0, 2}, {"e", 0, 2}, {"▁", 2, 3}, {"x", 3, 4}, {"▁", 4, 5}},
		},
		"white space at the ends": {
			" \tx\u00a0 ", []step{stripLeft, stripRight}, []origin{{"x", 2, 3}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var w work
			w.text.load(tc.text, 0)
			for _, f := range tc.steps {
				f(&w)
			}
			var got []origin
			var p place
			for i, r := range string(w.text.b) {
				from, to := w.text.origin(i, &p)
				got = append(got, origin{string(r), from, to})
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("origins (-want +got):\n%s", d)
			}
		})
	}
}

func TestCaselessBlocksHaveNoCase(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if caseless(r) && unicode.ToLower(r) != r {
			t.Errorf("%U has a lower case", r)
		}
	}
}

// TestScannersAgreeWithTheirPatterns compares the hand-written splitting with the expressions.
func TestScannersAgreeWithTheirPatterns(t *testing.T) {
	tests := map[string]func(w *work, s span){
		gpt2Pattern: splitGPT2, llama3Pattern: splitGPT4(3), qwenPattern: splitGPT4(1),
	}
	words := func(w *work, f step) (out []string) {
		f(w)
		for _, p := range w.words {
			out = append(out, string(w.text.b[p.from:p.to]))
		}
		return out
	}
	texts := layoutStrings(t)
	random := rand.New(rand.NewPCG(7, 8))
	pieces := []string{"a", "É", "東", "1", "½", "٣", " ", "  ", "\t", "\n", "\r", "\u00a0", "\u3000", "!", "'", "'s", "'LL", "'ſ", "'Re", "\u0301", "😀", "_", "\x00", "\u2028"}
	for range 5000 {
		var b strings.Builder
		for range 1 + random.IntN(10) {
			b.WriteString(pieces[random.IntN(len(pieces))])
		}
		texts = append(texts, b.String())
	}
	for source, scan := range tests {
		re, err := compile(source)
		if err != nil {
			t.Fatal(err)
		}
		search := splitPattern(re, cutter{behavior: isolated})
		for _, text := range texts {
			var a, b work
			for _, w := range []*work{&a, &b} {
				w.text.load(text, 0)
				w.words = []word{{0, int32(len(w.text.b))}}
			}
			if d := cmp.Diff(words(&a, each(search)), words(&b, each(scan))); d != "" {
				t.Errorf("%s: %+q: words (-pattern +scanner):\n%s", source, text, d)
			}
		}
	}
}
