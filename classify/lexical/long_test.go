package lexical

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"signalbox/internal/testkit"
)

// BenchmarkLongText is the cost of a long prompt that no set is found in.
func BenchmarkLongText(b *testing.B) {
	text := user(strings.Repeat("The quick brown fox jumps over the lazy dog. ", 1<<20/45))
	list, _ := phrases(100)
	for name, set := range map[string]Options{
		"one phrase":  {Any: []string{"project titan"}},
		"100 phrases": {Any: list},
		"as written":  {Any: []string{"project titan"}, CaseSensitive: true},
		"pattern":     {Regex: `tit+an\s+[a-z]{3,9}[0-9]`},
		"fuzzy":       {Any: []string{"project titan"}, Fuzzy: 1},
	} {
		set.Name = "set"
		b.Run(name, func(b *testing.B) {
			m := build(b, set)
			b.SetBytes(int64(len(text.Segments[0].Text)))
			b.ReportAllocs()
			for b.Loop() {
				if len(match(m, text)) != 0 {
					b.Fatal("found")
				}
			}
		})
	}
}

// What the automaton is not shown holds no phrase: random texts of few letters, with phrases in
// them and near them, in parts.
func TestTheFilterMissesNothing(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	alphabet := []string{"a", "b", "c", "A", "é", "e\u0301", "漢", " ", "  ", "-", ".", "_", "1", "ж", "\u0301"}
	word := func(most int) string {
		var b strings.Builder
		for range 1 + r.IntN(most) {
			b.WriteString(alphabet[r.IntN(len(alphabet))])
		}
		return b.String()
	}
	for range testkit.Fewer(150) {
		var sets []Options
		for range 1 + r.IntN(5) {
			p := word(7)
			if len(fold(p, foldCase)) > 0 {
				sets = append(sets, Options{Name: fmt.Sprint(len(sets)), Any: []string{p}})
			}
		}
		m := build(t, sets...)
		text := word(200)
		if at := r.IntN(4); at > 0 && len(sets) > 0 { // across the edge of a part
			text = strings.Repeat("x ", bytesPerLook/2-at) + sets[0].Any[0] + text
		}
		got := match(m, user(text))
		for _, a := range m.exact {
			if a != nil {
				for i := range a.filter.fronts {
					a.filter.fronts[i] = ^uint64(0)
				}
				for i := range a.filter.signs {
					a.filter.signs[i] = true
				}
			}
		}
		if want := match(m, user(text)); !slices.Equal(got, want) {
			t.Fatalf("%+v in a text of %d bytes, %q: %v, without the filter %v", sets, len(text), text[max(0, len(text)-200):], got, want)
		}
	}
}

// TestFoldingByTable compares the tables with what they stand for.
func TestFoldingByTable(t *testing.T) {
	t.Parallel()
	for r := range unicode.MaxRune + 1 {
		want := foldSlowly(r)
		if r < utf8.RuneSelf {
			want = unicode.ToLower(r)
		}
		if got := foldRune(r); got != want {
			t.Errorf("%U is folded to %U, want %U", r, got, want)
		}
	}
}
