package classify

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"signalbox/classify/lexical"
	"signalbox/classify/scan"
	"signalbox/classify/tokenize"
	"signalbox/internal/signal"
)

// wordScanner cuts a text into windows and scores each by how often it has a word.
type wordScanner struct{ word string }

func (s wordScanner) Windows(ctx context.Context, text string, size, stride int, dst []scan.Window) ([]scan.Window, error) {
	for start := 0; start < len(text); start += stride {
		end := min(start+size, len(text))
		dst = append(dst, scan.Window{Start: start, End: end, Score: float32(strings.Count(text[start:end], s.word)) / 100})
		if end == len(text) {
			break
		}
	}
	return dst, ctx.Err()
}

// openScanning is a Classifier over the test bundle whose engine can scan.
func openScanning(tb testing.TB, f *fake) *Classifier {
	tb.Helper()
	e, err := OpenEngine(testBundle(tb), f)
	if err != nil {
		tb.Fatal(err)
	}
	e.scanner = wordScanner{"attack"}
	c, err := New([]Source{{Engine: e}}, DefaultOptions())
	if err != nil {
		tb.Fatal(err)
	}
	f.calls = nil
	return c
}

// rowsOf counts the rows of all runs.
func rowsOf(f *fake) int {
	n := 0
	for _, c := range f.calls {
		n += len(c.rows)
	}
	return n
}

func TestLongPromptsAreReadWhereTheScanPoints(t *testing.T) {
	long := make([]string, 4000)
	for i := range long {
		long[i] = "w" + string(rune('0'+i%10)) // two bytes and a space
	}
	long[2345] = "attack"
	text := strings.Join(long, " ")
	f := newFake()
	c := openScanning(t, f)
	v := extract(t, c, user(text), signal.MaskOf(signal.Jailbreak)).Values[signal.Jailbreak]
	if v.Label != "jailbreak" || v.Coverage != signal.Windowed {
		t.Errorf("jailbreak is %q with coverage %d, want the attack found in windows", v.Label, v.Coverage)
	}
	// Head, tail and 12 others of windows of ten tokens of about three bytes, six tokens apart.
	if least, most := len(text)/18, len(text)/16; v.Windows < least || v.Windows > most || v.Read != 14 {
		t.Errorf("%d of %d windows read, want 14 of %d to %d", v.Read, v.Windows, least, most)
	}
	if n := rowsOf(f); n > 14 {
		t.Errorf("%d rows for 14 windows of a row each", n)
	}
	f.calls = nil
	set := new(signal.Set)
	c.ExtractAll(t.Context(), user(text), signal.MaskOf(signal.Jailbreak), set)
	all := set.Values[signal.Jailbreak]
	if all.Label != "jailbreak" || all.Read != all.Windows || all.Windows != (4000-8+5)/6+1 {
		t.Errorf("all windows: %q, %d of %d read", all.Label, all.Read, all.Windows)
	}
}

func TestShortPromptsAreReadWholeWhateverTheScanSays(t *testing.T) {
	f := newFake()
	c := openScanning(t, f)
	// 74 tokens are 12 windows of 8, 6 apart; the attack has no score.
	f.hook = nil
	c.sources[0].Engine.scanner = wordScanner{"w"}
	text := words(59) + " attack, attack " + words(12)
	v := extract(t, c, user(text), signal.MaskOf(signal.Jailbreak)).Values[signal.Jailbreak]
	if v.Label != "jailbreak" || v.Windows != 12 || v.Read != 12 {
		t.Errorf("%q from %d of %d windows, want an attack from 12 of 12", v.Label, v.Read, v.Windows)
	}
}

func TestSelectionTakesHeadTailAndTheMostSuspicious(t *testing.T) {
	need := signal.MaskOf(signal.Jailbreak)
	candidates := make([]candidate, 30)
	for i := range candidates {
		candidates[i] = candidate{source: safety, start: i * 10, end: i*10 + 10, score: float32(i%7) / 10}
	}
	for i := 25; i < 30; i++ {
		candidates[i].source = twin
	}
	pick(candidates, 25, 4, need)
	var got []int
	for i := range candidates {
		if candidates[i].picked {
			got = append(got, i)
		}
	}
	if want := []int{0, 6, 13, 20, 24, 27}; !slices.Equal(got, want) {
		t.Errorf("picked %v, want head, tail and the four with the best score, %v", got, want)
	}
}

func TestAScanOfAnotherBundleServes(t *testing.T) {
	first, second := newFake(), newFake()
	a, err := OpenEngine(testBundle(t), first)
	if err != nil {
		t.Fatal(err)
	}
	b, err := OpenEngine(testBundle(t, "name: test", "name: other"), second)
	if err != nil {
		t.Fatal(err)
	}
	a.scanner = wordScanner{"attack"}
	c, err := New([]Source{
		{Engine: a, Signals: signal.MaskOf(signal.Domain)}, {Engine: b, Signals: signal.MaskOf(signal.Jailbreak)},
	}, DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	v := extract(t, c, user(words(2000)), signal.MaskOf(signal.Jailbreak)).Values[signal.Jailbreak]
	if v.State != signal.Known || v.Read >= v.Windows {
		t.Errorf("%d of %d windows read, want a selection", v.Read, v.Windows)
	}
}

func TestHiddenTextIsReadInItsNormalisedForm(t *testing.T) {
	f := newFake()
	c := open(t, f, Options{MaxBatch: 8, Windows: 12, Keywords: []lexical.Options{{Name: "titan", Any: []string{"project titan"}}}})
	zero := "\u200b" // a zero-width space
	text := &signal.Text{LastUser: "math", Segments: []signal.Segment{
		{Role: "tool", Text: "at" + zero + "tack at" + zero + "tack, Project Ti" + zero + "tan"},
		{Role: "user", Text: "math"},
	}}
	set := extract(t, c, text, all)
	if v := &set.Values[signal.Jailbreak]; v.Label != "jailbreak" || v.Windows < 2 {
		t.Errorf("jailbreak is %q from %d windows, want the hidden attack seen", v.Label, v.Windows)
	}
	if v := &set.Values[signal.Keyword]; !slices.Equal(v.Labels, []string{"titan"}) {
		t.Errorf("keywords %v, want the hidden one", v.Labels)
	}
	f.calls = nil
	extract(t, c, user("math word"), all)
	if n := rowsOf(f); n != 1 {
		t.Errorf("%d rows for a text that hides nothing, want 1", n)
	}
}

func TestWindowsLoseWhatTheirNeighboursHaveToFitARow(t *testing.T) {
	encoding := func(n int) *tokenize.Encoding {
		e := new(tokenize.Encoding)
		for i := range int32(n) {
			e.IDs, e.Start, e.End = append(e.IDs, i), append(e.Start, i), append(e.End, i+1)
		}
		return e
	}
	tests := map[string]struct {
		tokens      int
		first, last bool
		from, to    int32
	}{
		"one that fits":                       {10, false, false, 0, 10},
		"one in the middle":                   {13, false, false, 1, 11},
		"the first":                           {13, true, false, 0, 10},
		"the last":                            {13, false, true, 3, 13},
		"one with as much as neighbours have": {14, false, false, 2, 12},
		"one that is much too long":           {15, false, false, 0, 15},
	}
	for name, tt := range tests {
		e := encoding(tt.tokens)
		fitRow(e, 10, 4, tt.first, tt.last)
		n := len(e.IDs)
		if e.IDs[0] != tt.from || e.Start[0] != tt.from || e.End[n-1] != tt.to || n != len(e.Start) || n != len(e.End) {
			t.Errorf("%s: tokens %d to %d, want %d to %d", name, e.Start[0], e.End[n-1], tt.from, tt.to)
		}
	}
}

func TestWindowsOfADenseTextAreShorter(t *testing.T) {
	c := openScanning(t, newFake())
	p := &pass{e: c.sources[0].Engine}
	for text, want := range map[string]float64{
		strings.Repeat("w1 ", 4000):           3,
		strings.Repeat("! ", 6000):            2,
		strings.Repeat("!", 9000):             1,
		strings.Repeat("\u6771", 3000):        3,
		strings.Repeat("immeasurable ", 1000): maxBytesPerToken,
		"":                                    1,
	} {
		if got := p.bytesPerToken(text); math.Abs(got-want) > 0.1 {
			t.Errorf("%.12q: %.2f bytes a token, want %v", text, got, want)
		}
	}
}
