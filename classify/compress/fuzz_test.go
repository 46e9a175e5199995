package compress_test

import (
	"testing"
	"unicode/utf8"

	"signalbox/classify/compress"
)

func FuzzCompress(f *testing.F) {
	for i, kind := range kinds {
		f.Add(generated(kind, 3000, 9), 16+100*i, i%2 == 0)
	}
	f.Fuzz(func(t *testing.T, text string, budget int, counted bool) {
		o := compress.Options{Budget: compress.MinBudget + (budget&0x7fffffff)%2000}
		if counted {
			o.Count = utf8.RuneCountInString
		}
		check(t, text, o, shorten(text, o))
	})
}
