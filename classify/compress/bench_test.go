package compress_test

import (
	"testing"

	"signalbox/classify/compress"
)

// BenchmarkCompress reads about 200,000 tokens of each kind of text.
func BenchmarkCompress(b *testing.B) {
	for _, kind := range kinds {
		text := generated(kind, 800_000, 8)
		b.Run(kind, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				shorten(text, compress.Options{})
			}
		})
	}
}

func BenchmarkEstimate(b *testing.B) {
	text := generated("prose", 8000, 8)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		compress.Estimate(text)
	}
}
