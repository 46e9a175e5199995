package check_test

import (
	"slices"
	"strings"
	"testing"

	"signalbox/stream/check"
)

func TestPremisesAreFilledUpFromTheStartOfTheSources(t *testing.T) {
	t.Parallel()
	page := "A lighthouse guards the bay. " + strings.Repeat("It has a lamp that turns all night and shines out over the cold water. ", 3) +
		strings.Repeat("Its keeper left long ago and nobody has climbed its many stairs since. ", 5)
	for _, tt := range []struct {
		name  string
		claim string
		facts []string
		want  []string // how the premise of each pair begins
	}{
		{"nothing shared", "Gerda lives near Hamburg.", []string{"Paris is large.", "Bananas ripen."}, []string{"Bananas", "Paris"}},
		{"one shares a word", "Gerda lives near Paris.", []string{"Bananas ripen.", "Paris is large."}, []string{"Paris", "Bananas"}},
		{"no more than are read", "Gerda lives near Hamburg.", []string{"Paris is large.", "Dogs bark.", "Bananas ripen."}, []string{"Bananas", "Dogs"}},
		{"a fact of several sentences is read once", "Gerda lives near Hamburg.", []string{"Paris is large. Bananas ripen."}, []string{"Paris"}},
		{"a page from its start", "Gerda lives near Hamburg.", []string{page}, []string{"A lighthouse", "It has a lamp"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, list := range [][]string{tt.facts, reversed(tt.facts)} {
				j := always(entails)
				checker(t, check.Options{Judge: j}).Check(t.Context(), facts(t, list...), "", []check.Claim{{Text: tt.claim}})
				got := j.asked()
				if len(got) != len(tt.want) {
					t.Fatalf("asked %q, want premises %q", got, tt.want)
				}
				for i, p := range got {
					if !strings.HasPrefix(p.Premise, tt.want[i]) {
						t.Errorf("facts %q: premise %d is %q, want %q", list, i, p.Premise, tt.want[i])
					}
				}
			}
		})
	}
}

func reversed(list []string) []string {
	out := slices.Clone(list)
	slices.Reverse(out)
	return out
}

// BenchmarkCheckFilled compares a claim that shares no word with 64 KiB of facts with one that
// does.
func BenchmarkCheckFilled(b *testing.B) {
	var list []string
	for i := range 480 {
		list = append(list, strings.Repeat("harbour ", i%5)+"The ferry of pier "+strings.Repeat("x", i%40+1)+" leaves at dawn and is back before the tide has turned twice in the long bay.")
	}
	e := facts(b, list...)
	c := checker(b, check.Options{Judge: free{}})
	for name, claim := range map[string]string{"found": "The ferry leaves Hamburg at dawn.", "filled": "Gerda lives near Hamburg."} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.Check(b.Context(), e, "", []check.Claim{{Text: claim}})
			}
		})
	}
}
