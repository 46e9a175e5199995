package classify

import (
	"slices"
	"strings"
	"testing"

	"signalbox/internal/signal"
)

func TestATaskReadsALongTextWindowByWindow(t *testing.T) {
	const embedding = "output: e, dims: 4, window: {tokens: 34, stride: 30, max: 3, combine: mean}"
	const domain = "threshold: 0.4, window: {tokens: 34, stride: 30, max: 3, combine: mean}"
	for name, c := range map[string]struct {
		tokens   int
		window   string
		starts   []int // of the rows, in words
		windows  int
		coverage signal.Coverage
	}{
		"a text of one row":           {32, "{tokens: 34, stride: 30, max: 3, long: windows, combine: mean}", []int{0}, 1, signal.Complete},
		"rows that overlap":           {80, "{tokens: 34, stride: 20, max: 0, long: windows, combine: mean}", []int{0, 20, 40, 48}, 4, signal.Windowed},
		"the first ones and the last": {150, "{tokens: 34, stride: 30, max: 3, long: windows, combine: mean}", []int{0, 30, 118}, 5, signal.Windowed},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			b := testBundle(t, domain, "threshold: 0.4, window: "+c.window, embedding, "output: e, dims: 4, window: "+c.window)
			cl, err := classifierOf(b, f, DefaultOptions())
			if err != nil {
				t.Fatal(err)
			}
			f.calls = nil
			text := singleText(words(c.tokens))
			set := extract(t, cl, &text, signal.MaskOf(signal.Domain)|signal.MaskOf(signal.Embedding))
			var got [][]int64
			for _, call := range f.calls {
				got = append(got, call.rows...)
			}
			if len(got) != len(c.starts) {
				t.Fatalf("%d rows, want %d", len(got), len(c.starts))
			}
			for _, start := range c.starts {
				want := []int64{clsID}
				for k := start; k < min(start+32, c.tokens); k++ {
					want = append(want, int64(wordID+1+k%numbered))
				}
				if want = append(want, sepID); !slices.ContainsFunc(got, func(row []int64) bool { return slices.Equal(row, want) }) {
					t.Errorf("no row begins with word %d: %v", start, got)
				}
			}
			for _, k := range []signal.Kind{signal.Domain, signal.Embedding} {
				v := set.Value(k)
				if v.State != signal.Known || v.Windows != c.windows || v.Read != len(c.starts) || v.Coverage != c.coverage {
					t.Errorf("kind %d: %+v", k, v)
				}
			}
		})
	}
}

// What the windows say is averaged: the subject that two of three windows are about holds.
func TestTheMeanOfTheWindowsCounts(t *testing.T) {
	b := testBundle(t, "threshold: 0.4, window: {tokens: 34, stride: 30, max: 3, combine: mean}",
		"threshold: 0.4, window: {tokens: 34, stride: 32, max: 3, long: windows, combine: mean}")
	cl, err := classifierOf(b, newFake(), DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	maths := strings.Repeat("math ", 32)
	for text, want := range map[string]string{maths + maths + words(32): "math", words(96): "other"} {
		x := singleText(text)
		set := extract(t, cl, &x, signal.MaskOf(signal.Domain))
		if v := set.Value(signal.Domain); v.Label != want || v.Read != 3 {
			t.Errorf("%.20s: %q of %d windows, want %q", text, v.Label, v.Read, want)
		}
	}
}
