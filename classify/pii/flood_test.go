package pii

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"signalbox/internal/testkit"
)

// floods are prompts full of one kind of value, or of what looks like one.
func floods(size int) map[string]string {
	fill := func(s string) string { return strings.Repeat(s, size/len(s)) }
	return map[string]string{
		"mail":                 fill("jo.doe@brightfield.com "),
		"short mail":           fill("a@b.co,"),
		"IPv4":                 fill("92.127.194.23 "),
		"IPv6":                 fill("2a00:1450::2e\n"),
		"phones with +":        fill("+44 20 7946 0958\n"),
		"phones":               fill("415-555-0132 "),
		"phones with spaces":   fill("415 555 0132 "),
		"phones in brackets":   fill("(415) 555-0132 "),
		"fours":                fill("4242 "),
		"fours with dashes":    fill("4242-"),
		"fours with dots":      fill("4242."),
		"fours that fail":      fill("4242 4242 4242 4241 "),
		"fours that are years": fill("2021 "),
		"cards in one piece":   fill("4242424242424242 "),
		"a run of digits":      fill("4"),
		"single digits":        fill("4 "),
		"digits and spaces":    fill("12 345 6 7890 12345678 1 "),
		"zeros":                fill("0 "),
		"accounts":             fill("DE89 3704 0044 0532 0130 00 "),
		"accounts that fail":   fill("DE89370400440532013001 "),
		"heads of accounts":    fill("DE89 "),
		"cued digits":          fill("call 5 card 4242 zip 1 "),
		"sites":                fill("https://a.brightfield.com/x "),
		"mail in one site":     "https://a.brightfield.com/" + fill("a@b.co/https://c.brightfield.com/"),
		"keys before mail":     fill("a=a=a=a@b.co,"),
		"area codes":           fill("(555) "),
		"clocks":               fill("12:"),
		"parentheses":          fill("((1))"),
		"keys of JSON":         fill(`"name":"Jo Doe",`),
		"records":              fill(`{"name":"Jo Doe"}`),
		"keys of logs":         fill("user="),
		"rows of names":        fill("name,email\n"),
		"columns":              fill("a|"),
		"keys alone":           fill("a:"),
		"quotes":               fill(`"`),
		"ends of tags":         fill(">>"),
		"equals signs":         fill("= "),
		"streets of Korean":    fill("로1"),
		"streets of Chinese":   fill("市路1号"),
		"streets of German":    fill("A-Str. 1, 12345 B "),
		"closings":             fill("LG\n\nA\n"),
		"accounts named":       fill("口座番号1234567 "),
		"titles of Japanese":   fill("田中部長です。"),
		"statements in rows":   fill("INSERT INTO p(first_name,dob)VALUES('Monica'),('"),
		"words between names":  fill("obecni: i "),
		"wide hyphens":         fill("1−"),
	}
}

// growth tells how much longer f takes on a text four times as long: 4 where the time is linear, 16
// where it is quadratic. Each time is the least of several; that of the longer text is not measured
// again once it shows no more than maxGrowth, for more of them could only show less.
func growth(tb testing.TB, f func(size int) func()) float64 {
	tb.Helper()
	const times = 3
	size := 1 << 16
	if testkit.Race {
		size = 1 << 15
	}
	least := func(n int, enough time.Duration) time.Duration {
		run, best := f(n), time.Hour
		for i := 0; i < times && best > enough; i++ {
			best = min(best, testkit.CPUTime(tb, run))
		}
		return best
	}
	const noise = 10 * time.Millisecond // the clock of the CPU may tick no faster
	one := max(least(size, 0), noise)
	return float64(least(4*size, maxGrowth*one)) / float64(one)
}

// maxGrowth lies between linear and quadratic.
const maxGrowth = 9

func TestAFloodOfValuesTakesLinearTime(t *testing.T) {
	for name := range floods(1 << 10) {
		got := growth(t, func(size int) func() {
			text := floods(size)[name]
			return func() { Patterns(text, nil) }
		})
		if got > maxGrowth {
			t.Errorf("%s: four times the text takes %.1f times as long", name, got)
		}
	}
}

// wordTokens calls every word between spaces a value of the kind.
func wordTokens(tb testing.TB, text, kind string) []Token {
	tb.Helper()
	probs := make([]float32, len(bio()))
	probs[0], probs[slices.Index(bio(), "B-"+kind)] = 0.1, 0.9
	var toks []Token
	for i := 0; i < len(text); {
		end := i
		for end < len(text) && text[end] != ' ' && end-i < 32 {
			end++
		}
		if end > i {
			toks = append(toks, Token{i, end, probs})
		}
		i = max(end, i+1)
	}
	return toks
}

func TestFusingAFloodTakesLinearTime(t *testing.T) {
	d := decoder(t)
	for _, name := range []string{
		"mail", "IPv4", "phones", "phones with spaces", "fours that fail", "accounts",
		"single digits", "digits and spaces", "parentheses",
	} {
		got := growth(t, func(size int) func() {
			text := floods(size)[name]
			patterns, toks := Patterns(text, nil), wordTokens(t, text, PhoneNumber)
			return func() { d.Fuse(text, patterns, toks, nil) }
		})
		if got > maxGrowth {
			t.Errorf("%s: four times the text takes %.1f times as long", name, got)
		}
	}
}

func TestTrimmingParenthesesTakesLinearTime(t *testing.T) {
	for _, s := range []string{"(", ")", "().", "a.)"} {
		got := growth(t, func(size int) func() {
			text := strings.Repeat(s, size/len(s))
			return func() { trimSpan(text, PhoneNumber, 0, len(text)) }
		})
		if got > maxGrowth {
			t.Errorf("%q: four times the text takes %.1f times as long", s, got)
		}
	}
}

// checkPatience fails when f, which looks at its context at least looks times, goes on once that is
// done, or keeps what it has found until then.
func checkPatience(t *testing.T, looks int, f func(ctx context.Context) (found int, err error)) {
	t.Helper()
	all := testkit.NewCountdown(t.Context(), 1<<30, context.Canceled)
	if n, err := f(all); err != nil || n == 0 || all.Looks() < looks {
		t.Fatalf("%d findings, error %v, %d looks, want at least %d", n, err, all.Looks(), looks)
	}
	for _, left := range []int{0, 1, all.Looks() / 2, all.Looks() - 1} {
		ctx := testkit.NewCountdown(t.Context(), left, context.Canceled)
		n, err := f(ctx)
		if !errors.Is(err, context.Canceled) || n != 0 || ctx.Looks() != left+1 {
			t.Errorf("cancelled at %d: %d findings, error %v, %d looks", left, n, err, ctx.Looks())
		}
	}
}

func TestNobodyWaitsForPatternsInVain(t *testing.T) {
	size := 1 << 18
	if testkit.Race {
		size = 1 << 16
	}
	for name, text := range floods(size) {
		if len(Patterns(text, nil)) == 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			checkPatience(t, len(text)/bytesPerLook, func(ctx context.Context) (int, error) {
				spans, err := PatternsContext(ctx, text, nil)
				return len(spans), err
			})
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	first := []Span{{Type: "X", Start: 3, End: 4}}
	got, err := PatternsContext(ctx, "a@example.com", first)
	if !errors.Is(err, context.Canceled) || len(got) != 1 {
		t.Errorf("%d spans, error %v, want what was there and a cancellation", len(got), err)
	}
}

func TestNobodyWaitsForADecoderInVain(t *testing.T) {
	text, toks := addresses(t, 40_000)
	patterns, d := Patterns(text, nil), decoder(t)
	steps := 4 // words are judged, joined, made spans, and these settled
	checkPatience(t, steps*len(toks)/itemsPerLook, func(ctx context.Context) (int, error) {
		spans, err := d.FuseContext(ctx, text, patterns, toks, nil)
		return len(spans), err
	})
}

func BenchmarkFloods(b *testing.B) {
	const size = 1 << 20
	all := floods(size)
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	d := decoder(b)
	for _, name := range names {
		text := all[name]
		b.Run("patterns/"+name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				Patterns(text, nil)
			}
		})
		patterns, toks := Patterns(text, nil), wordTokens(b, text, PhoneNumber)
		b.Run("fuse/"+name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				d.Fuse(text, patterns, toks, nil)
			}
		})
	}
}
