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

func (s wordScanner) Score(text string) float32 {
	return float32(strings.Count(text,
		s.word)) / 100
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
	v := *extract(t, c, user(text), signal.MaskOf(signal.Jailbreak)).Value(signal.Jailbreak)
	if v.Label != "jailbreak" || v.Coverage != signal.Windowed {
		t.Errorf("jailbreak is %q with coverage %d, want the attack found in windows", v.Label, v.Coverage)
	}
	// Ten of some 700 windows of ten tokens of about three bytes, six tokens apart.
	if least, most := len(text)/18, len(text)/16; v.Windows < least || v.Windows > most ||
		v.Read != 10 {
		t.Errorf("%d of %d windows read, want 10 of %d to %d", v.Read, v.Windows, least, most)
	}
	if n := rowsOf(f); n > 10 {
		t.Errorf("%d rows for 10 windows of a row each", n)
	}
	f.calls = nil
	set := new(signal.Set)
	c.ExtractAll(t.Context(), user(text), signal.MaskOf(signal.Jailbreak), set)
	all := *set.Value(signal.Jailbreak)
	if all.Label != "jailbreak" || all.Read != all.Windows || all.Windows != (4000-8+5)/6+1 {
		t.Errorf("all windows: %q, %d of %d read", all.Label, all.Read, all.Windows)
	}
}

func TestShortPromptsAreReadWholeWhateverTheScanSays(t *testing.T) {
	f := newFake()
	c := openScanning(t, f)
	// 20 tokens are 3 windows of 8, 6 apart; the attack has no score.
	c.sources[0].Engine.scanner = wordScanner{"w"}
	text := words(14) + " attack, attack " + words(3)
	v := *extract(t, c, user(text), signal.MaskOf(signal.Jailbreak)).Value(signal.Jailbreak)
	if v.Label != "jailbreak" || v.Windows != 3 || v.Read != 3 {
		t.Errorf("%q from %d of %d windows, want an attack from 3 of 3", v.Label, v.Read, v.Windows)
	}
}

func TestHowManyWindowsAreWorthReading(t *testing.T) {
	for n, want := range map[int]int{
		0: 0, 1: 1, 2: 2, 3: 3, 4: 3, 27: 3, 32: 3, 64: 5, 256: 9,
		1600: 10, 1 << 20: 10,
	} {
		if got := worthReading(n); got != want {
			t.Errorf("%d of %d windows, want %d", got, n, want)
		}
	}
}

func TestSelectionTakesTheMostSuspiciousThenPersonalData(t *testing.T) {
	for name, tc := range map[string]struct {
		kinds signal.Mask
		want  []int
	}{
		"attacks": {signal.MaskOf(signal.Jailbreak), []int{6, 13, 20}},
		"attacks and data": {
			signal.MaskOf(signal.Injection, signal.PII),
			[]int{6, 13, 20, 24, 5},
		},
		"personal data alone": {signal.MaskOf(signal.PII), []int{24, 6, 5}},
	} {
		candidates := make([]candidate, 25)
		for i := range candidates {
			candidates[i] = candidate{start: i * 10, end: i*10 + 10, score: float32(i%7) / 10}
		}
		candidates[5].nominated, candidates[6].nominated, candidates[24].nominated = 1, 2, 3
		if got := choose(candidates, tc.kinds, wholeWindows); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
	if got := choose(make([]candidate, 25), signal.MaskOf(signal.PII),
		wholeWindows); !slices.Equal(got, []int{0}) {
		t.Errorf("nothing to choose by: %v, want the first window", got)
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
	v := *extract(t, c, user(words(2000)), signal.MaskOf(signal.Jailbreak)).Value(signal.Jailbreak)
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
	if v := set.Value(signal.Jailbreak); v.Label != "jailbreak" || v.Windows < 2 {
		t.Errorf("jailbreak is %q from %d windows, want the hidden attack seen", v.Label, v.Windows)
	}
	if v := set.Value(signal.Keyword); !slices.Equal(v.Labels, []string{"titan"}) {
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

func TestWhatATwinSharesWithItsText(t *testing.T) {
	for _, tc := range []struct {
		text, twin string
		head, tail int
	}{
		{"abcdef", "abXdef", 2, 3},
		{"abc", "abcpayload", 3, 10},
		{"aaa", "aaaa", 3, 4},
		{"abc", "xyz", 0, 3},
		{"", "x", 0, 1},
	} {
		if head, tail := shared(tc.text, tc.twin); head != tc.head || tail != tc.tail {
			t.Errorf("%q and %q: %d, %d, want %d, %d", tc.text, tc.twin, head, tail,
				tc.head, tc.tail)
		}
	}
}

func TestOfALongTwinOnlyWhatIsNewIsRead(t *testing.T) {
	f := newFake()
	c := openScanning(t, f)
	//nolint:dupword // it is to weigh more
	text := words(200) + " at\u200btack at\u200btack " + words(200)
	v := *extract(t, c, user(text), signal.MaskOf(signal.Jailbreak)).Value(signal.Jailbreak)
	if raw := (len(text)-6)/18 + 1; v.Label != "jailbreak" || v.Windows < raw/2 ||
		v.Windows > 2*raw {
		t.Errorf("%q from %d of %d windows", v.Label, v.Read, v.Windows)
	}
	plain := extract(t, c, user(strings.ReplaceAll(text, "\u200b", "")),
		signal.MaskOf(signal.Jailbreak)).Value(signal.Jailbreak)
	if v.Windows > plain.Windows+8 || v.Read > plain.Read+8 {
		t.Errorf("%d of %d windows, %d of %d of the same in clear words", v.Read, v.Windows,
			plain.Read, plain.Windows)
	}
}
