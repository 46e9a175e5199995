package pii

import (
	"context"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// checkRanges fails when ranges are not what every caller relies on.
func checkRanges(tb testing.TB, text string, ranges []Range) {
	tb.Helper()
	end := 0
	for _, r := range ranges {
		if r.Start < end || r.End <= r.Start || r.End > len(text) || r.Weight < 1 {
			tb.Fatalf("%q: ranges %+v", text, ranges)
		}
		if !utf8.RuneStart(text[r.Start]) || r.End < len(text) && !utf8.RuneStart(text[r.End]) {
			tb.Fatalf("%q: %+v cuts a code point", text, r)
		}
		end = r.End
	}
}

// nominated is Nominate without an end.
func nominated(text string, dst []Range) []Range {
	dst, err := Nominate(context.Background(), text, dst)
	if err != nil {
		panic(err)
	}
	return dst
}

func TestNobodyWaitsForNominationsInVain(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := Nominate(ctx, strings.Repeat("we met Ann there. ", 1<<16), nil); !errors.Is(err, context.Canceled) || len(got) > 1<<12 {
		t.Errorf("%d ranges and error %v, want few and a cancellation", len(got), err)
	}
}

func TestACueInALongRunOfLettersIsFound(t *testing.T) {
	for _, at := range []int{0, 100, 10_000, 40_000} {
		text := strings.Repeat("\u0628", at) + "\u0627\u0644\u0633\u064a\u062f" + strings.Repeat("\u0628", 40_000-at)
		if got := nominated(text, nil); len(got) == 0 {
			t.Errorf("a title at letter %d of a run is not nominated", at)
		}
	}
}

func TestNominate(t *testing.T) {
	dull := strings.Repeat("nothing of note is written here at all. ", 20)
	tests := []struct {
		name, sign string
		want       bool
	}{
		{"a name inside a sentence", "we asked Marten about it", true},
		{"a name in Cyrillic", "вчера Иван пришёл", true},
		{"a word that announces a name", "hello, my name is kremer", true},
		{"a name in Chinese that is announced", "我叫王丹", true},
		{"a Japanese suffix", "田中さんが来た", true},
		{"an Arabic word that announces a name", "اسمي كريم", true},
		{"a house number", "go to calle mayor 12 at once", true},
		{"the first word of a sentence", "Nothing. Nobody. Then what?", false},
		{"weekdays and acronyms", "on Monday the UN met", false},
		{"a number alone", "it took 12 of them", false},
		{"a name in Chinese that nothing announces", "昨天王丹来了", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := dull + tt.sign + ". " + dull
			got := nominated(text, nil)
			checkRanges(t, text, got)
			if !tt.want {
				if len(got) > 0 {
					t.Errorf("nominated %q", text[got[0].Start:got[0].End])
				}
				return
			}
			if len(got) != 1 || !strings.Contains(text[got[0].Start:got[0].End], tt.sign) || got[0].End-got[0].Start > len(tt.sign)+2*reach+2 {
				t.Errorf("nominated %+v of %d bytes", got, len(text))
			}
		})
	}
}

func TestNominateMergesWhatIsNearAndWeighsIt(t *testing.T) {
	far := strings.Repeat("x ", 3*reach)
	text := "we met Ana there and Ben Orth too " + far + "and dear carl " + far
	got := nominated(text, []Range{{7, 8, 9}})
	var weights []int
	for _, r := range got {
		weights = append(weights, r.Weight)
	}
	if diff := cmp.Diff([]int{9, 2*weightCapital + weightPair, weightCue}, weights); diff != "" {
		t.Errorf("weights (-want +got):\n%s", diff)
	}
	checkRanges(t, text, got[1:])
}

func TestNominateTouchesNothingInDullText(t *testing.T) {
	text := strings.Repeat("words and 12 numbers, in lower case. ", 1000)
	if n := testing.AllocsPerRun(10, func() {
		if got := nominated(text, nil); len(got) > 0 {
			t.Fatalf("nominated %q", text[got[0].Start:got[0].End])
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
