package words_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/stream/evidence/words"
)

// shown is the words of a text with a letter for each bit of their class.
func shown(text string) []string {
	var out []string
	for _, w := range words.Scan(nil, text) {
		s := text[w.Start:w.End] + "/"
		for _, c := range []struct {
			bit  words.Class
			name string
		}{{words.Stop, "s"}, {words.Name, "n"}, {words.Capital, "c"}, {words.Number, "d"}, {words.Negation, "-"}, {words.Uncased, "u"}} {
			if w.Has(c.bit) {
				s += c.name
			}
		}
		out = append(out, s)
	}
	return out
}

func TestScan(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"the first word of a sentence is no name", "The Eiffel Tower. Paris is big", []string{"The/sc", "Eiffel/nc", "Tower/nc", "Paris/c", "is/s", "big/"}},
		{"separators inside numbers belong to them", "costs 1,234.5, or 7.", []string{"costs/", "1,234.5/d", "or/s", "7/d"}},
		{"apostrophes belong to words", "it's Paris' don’t", []string{"it's/s", "Paris/nc", "don’t/-"}},
		{"shortened articles are words", "L'eau n’est pas à C's d'Arcy, jusqu'ici", []string{"L/sc", "eau/", "n/s", "est/s", "pas/s-", "à/", "C's/nc", "d/s", "Arcy/nc", "jusqu/s", "ici/"}},
		{"negations of several languages", "kein jamais nunca", []string{"kein/-", "jamais/-", "nunca/-"}},
		{"a month is no negation", "am 12. Mai, le 12 mai, non è mai", []string{"am/s", "12/d", "Mai/c", "le/s", "12/d", "mai/", "non/-", "è/", "mai/-"}},
		{"where it begins a sentence it is one", "Mai più. Nel 2020 mai.", []string{"Mai/c-", "più/", "Nel/c", "2020/d", "mai/-"}},
		{"scripts without spaces give pairs", "他不来 塔", []string{"他不/-u", "不来/-u", "塔/u"}},
		{"letters without case are marked", "برج كبير", []string{"برج/u", "كبير/u"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, shown(tt.text)); diff != "" {
				t.Errorf("words of %q (-want +got):\n%s", tt.text, diff)
			}
		})
	}
}

func TestFormsOfAWordMeet(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]string{
		{"Office", "offices"}, {"city", "cities"}, {"measured", "measures"}, {"tower's", "TOWER"}, {"built", "Built"}, {"opening", "opened"}, {"Über", "über"},
	} {
		a, b := words.Scan(nil, pair[0]), words.Scan(nil, pair[1])
		if len(a) != 1 || len(b) != 1 || a[0].Hash != b[0].Hash {
			t.Errorf("%q and %q do not meet", pair[0], pair[1])
		}
	}
	for _, pair := range [][2]string{{"tower", "power"}, {"2022", "2023"}, {"is", "its"}, {"bus", "bu"}} {
		if words.Scan(nil, pair[0])[0].Hash == words.Scan(nil, pair[1])[0].Hash {
			t.Errorf("%q and %q meet", pair[0], pair[1])
		}
	}
}

func FuzzScan(f *testing.F) {
	for _, s := range []string{"The Eiffel Tower's 1,234.5 m", "他不来ー", "\xff'a’", "a'''b", "ßİǅ", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		at := 0
		for _, w := range words.Scan(nil, text) {
			if w.Start < at || w.End <= w.Start || w.End > len(text) {
				t.Fatalf("word at [%d, %d) after %d in %d bytes", w.Start, w.End, at, len(text))
			}
			at = w.Start
		}
	})
}

func TestScanDoesNotAllocate(t *testing.T) {
	dst := make([]words.Word, 0, 32)
	if n := testing.AllocsPerRun(100, func() { dst = words.Scan(dst[:0], "The tower wasn't built in Paris, 他不来 but elsewhere.") }); n > 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
