package lexical

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
)

// phrases returns n different phrases of one to three made-up words, and a text of 1 KiB that holds
// one of them at its end.
func phrases(n int) (list []string, text string) {
	r := rand.New(rand.NewPCG(1, 2))
	syllables := strings.Fields("ka lo mi ter pon sa ru vel ni da gor in es tal bo fe qua zi mon per sti ra no li che")
	word := func() string {
		var b strings.Builder
		for range 2 + r.IntN(3) {
			b.WriteString(syllables[r.IntN(len(syllables))])
		}
		return b.String()
	}
	seen := map[string]bool{}
	for len(list) < n {
		p := word()
		for range r.IntN(3) {
			p += " " + word()
		}
		if !seen[p] {
			seen[p] = true
			list = append(list, p)
		}
	}
	var b strings.Builder
	for b.Len() < 1000 {
		b.WriteString(word() + "x ") // a word that is no phrase, since none ends in x
	}
	return list, b.String() + list[n/2]
}

func BenchmarkLargeSets(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		list, text := phrases(n)
		in := user(text)
		set := []Options{{Name: "large", Any: list}}
		b.Run(fmt.Sprintf("match_%d", n), func(b *testing.B) {
			m := build(b, set...)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if len(match(m, in)) != 1 {
					b.Fatal("not found")
				}
			}
		})
		b.Run(fmt.Sprintf("build_%d", n), func(b *testing.B) {
			b.ReportAllocs()
			var before, after runtime.MemStats
			for b.Loop() {
				runtime.GC()
				runtime.ReadMemStats(&before)
				m := build(b, set...)
				runtime.GC()
				runtime.ReadMemStats(&after)
				runtime.KeepAlive(m)
			}
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MiB")
		})
	}
}

// TestManyPhrasesAreFoundLikeOneByOne compares the automaton with a plain search for each phrase,
// over phrases of few letters, so that they are parts, starts and ends of each other.
func TestManyPhrasesAreFoundLikeOneByOne(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	word := func(most int) string {
		var b strings.Builder
		for range 1 + r.IntN(most) {
			b.WriteByte("ab "[r.IntN(3)])
		}
		return strings.Join(strings.Fields(b.String()), " ")
	}
	var sets []Options
	seen := map[string]bool{}
	for len(sets) < 300 {
		if p := word(9); p != "" && !seen[p] {
			seen[p] = true
			sets = append(sets, Options{Name: p, Any: []string{p}})
		}
	}
	m := build(t, sets...)
	for range 300 {
		text := word(60)
		found := map[string]bool{}
		for _, name := range match(m, user(text)) {
			found[name] = true
		}
		for _, s := range sets {
			if want := strings.Contains(" "+text+" ", " "+s.Name+" "); found[s.Name] != want {
				t.Fatalf("%q in %q: %v, want %v", s.Name, text, found[s.Name], want)
			}
		}
	}
}
