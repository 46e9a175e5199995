package tokenize

import (
	"fmt"
	"strings"
	"testing"

	"signalbox/internal/testkit"
)

// sample is ordinary English prose of n tokens of the default tokenizer.
func sample(tb testing.TB, tok *Tokenizer, n int) string {
	tb.Helper()
	const prose = "The signal box stands beside the railway and sets the points for every train; unusual " +
		"requirements, such as re-routing freight around Kettleworth, are documented separately. "
	text := strings.Repeat(prose, n/10+1)
	var e Encoding
	tok.Encode(text, &e)
	return text[:e.End[n-1]]
}

func BenchmarkEncode(b *testing.B) {
	tok := load(b, "default")
	for _, n := range []int{16, 128, 256} {
		text := sample(b, tok, n)
		b.Run(fmt.Sprintf("tokens=%d", n), func(b *testing.B) {
			var e Encoding
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				tok.Encode(text, &e)
			}
		})
	}
}

func BenchmarkEncodeMixedScripts(b *testing.B) {
	tok := load(b, "default")
	text := strings.Repeat("Der Zug hält in Köln — “pünktlich”? 東京 Привет ", 12)
	var e Encoding
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		tok.Encode(text, &e)
	}
}

// TestEncodeDoesNotAllocate holds for text in which only the vocabulary is looked at.
func TestEncodeDoesNotAllocate(t *testing.T) {
	if testkit.Race {
		t.Skip("the race detector makes sync.Pool drop buffers")
	}
	tok := load(t, "default")
	text := sample(t, tok, 128)
	var e Encoding
	tok.Encode(text, &e)
	if n := testing.AllocsPerRun(100, func() { tok.Encode(text, &e) }); n > 0 {
		t.Errorf("%v allocations per call, want 0", n)
	}
}

// BenchmarkHostile encodes a megabyte of the texts that are worst for each engine.
func BenchmarkHostile(b *testing.B) {
	texts := hostile(1 << 20)
	for _, name := range append([]string{"unigram_metaspace", "sentencepiece_bpe"}, layouts...) {
		tok := open(b, name)
		for kind, text := range texts {
			text := text()
			b.Run(name+"/"+strings.ReplaceAll(kind, " ", "_"), func(b *testing.B) {
				var e Encoding
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					tok.Encode(text, &e)
				}
			})
		}
	}
}

// BenchmarkLayouts encodes the golden texts, one after another, and 8 KB of English.
func BenchmarkLayouts(b *testing.B) {
	mixed := strings.Join(layoutStrings(b), "\n")
	english := sample(b, load(b, "default"), 1600)
	for _, name := range layouts {
		tok := open(b, name)
		for kind, text := range map[string]string{"mixed": mixed, "english": english} {
			b.Run(name+"/"+kind, func(b *testing.B) {
				var e Encoding
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					tok.Encode(text, &e)
				}
			})
		}
	}
}
