package check_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"signalbox/internal/testkit"
	"signalbox/stream/check"
	"signalbox/stream/evidence"
)

// larges returns texts of the given size in bytes, each the worst case for one of the readers.
func larges(size int) map[string]string {
	fill := func(part func(i int) string) string {
		var b strings.Builder
		for i := 0; b.Len() < size; i++ {
			b.WriteString(part(i))
		}
		return b.String()[:b.Len()]
	}
	same := func(part string) string { return fill(func(int) string { return part }) }
	// Formats i times each factor, modulo 99,991.
	counted := func(format string, factors ...int) string {
		args := make([]any, len(factors))
		return fill(func(i int) string {
			for k, f := range factors {
				args[k] = i * f % 99_991
			}
			return fmt.Sprintf(format, args...)
		})
	}
	return map[string]string{
		"short sentences":      counted("Ann met Bo%d. ", 1),
		"a word a sentence":    same("Paris. "),
		"words of their own":   counted("Ab%dcd. ", 1),
		"numbers":              counted("%d ", 7919),
		"numbers as sentences": counted("Store %d sold %d. ", 1, 7919),
		"one number":           same("7 "),
		"addresses":            counted("ann%d@brightfield.com, 12 Main Street, Apt %d; ", 1, 1),
		"one line":             same("a"),
		"one line of digits":   same("7"),
		"identical words":      same("tower "),
		"identical sentences":  same("The tower is 330 m high. "),
		"deep lists": fill(func(i int) string {
			return strings.Repeat(" ", i%100*2) + "- The tower is 330 m high\n"
		}),
		"quotes":        same("> The tower is 330 m high.\n"),
		"nested quotes": same("> > > > \"'“"),
		"tables":        "| a | b | c |\n|---|---|---|\n" + counted("| x%d | %d | %d |\n", 1, 1, 7),
		"a wide table": "| " + same("a | ") + "\n|" + strings.Repeat("---|", size/4) +
			"\n| " + same("7 | ") + "\n",
		"dates":         counted("On 7 May %d it rained. ", 1),
		"brackets":      same("[a]("),
		"headings":      same("# Paris\n"),
		"semicolons":    counted("a %d; ", 1),
		"clauses":       counted("and %d, ", 1),
		"backticks":     same("`a"),
		"names":         counted("Bo%d ", 1),
		"many pronouns": same("It is 7 and it was 8. "),
	}
}

// BenchmarkLargeTexts checks texts against themselves, and against prose.
func BenchmarkLargeTexts(b *testing.B) {
	for _, size := range []int{16 << 10, 64 << 10} {
		for name, text := range larges(size) {
			for _, against := range []string{"itself", "prose"} {
				ev := text
				if against == "prose" {
					ev = larges(size)["identical sentences"]
				}
				b.Run(fmt.Sprintf("%s/%s/%dK", name, against, size>>10), func(b *testing.B) {
					for b.Loop() {
						e, err := evidence.New(b.Context(),
							[]evidence.Source{{Text: ev, Fact: true}}, evidence.Options{MaxBytes: 2 << 20})
						if err != nil {
							b.Fatal(err)
						}
						j := always(isNeutral)
						r, err := checker(b, check.Options{Judge: j}).Text(b.Context(), e, "", text)
						if err != nil {
							b.Fatal(err)
						}
						b.ReportMetric(float64(len(r.Claims)), "claims")
						b.ReportMetric(float64(len(j.asked())), "pairs")
					}
				})
			}
		}
	}
}

// TestAJudgeReadsSoManyClaimsOfOneText checks that the work of a judge for one text is limited, and
// that claims beyond the limit are unchecked with a reason.
func TestAJudgeReadsSoManyClaimsOfOneText(t *testing.T) {
	t.Parallel()
	const claims = 1000
	var text strings.Builder
	for i := range claims {
		fmt.Fprintf(&text, "Ann met Bo%d in Paris. ", i)
	}
	j := always(entails)
	got, err := checker(t, check.Options{Judge: j}).Text(t.Context(), facts(t, towers...), "", text.String())
	if err != nil || len(got.Claims) != claims {
		t.Fatalf("%d claims, %v", len(got.Claims), err)
	}
	if n := len(j.asked()); n < 300 || n > 1000 {
		t.Errorf("the judge read %d pairs", n)
	}
	first, last := got.Claims[0], got.Claims[claims-1]
	if first.Verdict != check.Supported || first.Err != nil {
		t.Errorf("the first claim: %+v", first.Result)
	}
	if last.Verdict != check.Unchecked || !errors.Is(last.Err, check.ErrTooMuch) {
		t.Errorf("the last claim: %+v", last.Result)
	}
	// A repeated claim is charged each time, because its premises have to be found.
	j = always(entails)
	same := strings.Repeat("Ann met Bo in Paris. ", claims)
	got, err = checker(t, check.Options{Judge: j}).Text(t.Context(), facts(t, towers...), "", same)
	if err != nil {
		t.Fatal(err)
	}
	if last := got.Claims[claims-1]; !errors.Is(last.Err, check.ErrTooMuch) {
		t.Errorf("the last of equal claims: %+v", last.Result)
	}
}

// TestAJudgeOfATextIsAskedNoMoreAfterItsTime checks that on a slow machine the time limit ends a
// long text. The first portion is read in any case.
func TestAJudgeOfATextIsAskedNoMoreAfterItsTime(t *testing.T) {
	t.Parallel()
	const claims, each = 1000, time.Second
	var text strings.Builder
	for i := range claims {
		fmt.Fprintf(&text, "Ann met Bo%d in Paris. ", i)
	}
	for _, c := range []struct {
		limit    time.Duration
		portions int // 0: all
	}{{0, 0}, {1, 1}, {each, 1}, {each + 1, 2}, {3 * each, 3}} {
		limit, portions := c.limit, c.portions
		synctest.Test(t, func(t *testing.T) {
			j := &judge{says: func(check.Pair) check.Inference { return entails }, takes: each}
			c := checker(t, check.Options{Judge: j, Time: limit})
			got, err := c.Text(t.Context(), facts(t, towers...), "", text.String())
			if err != nil || len(got.Claims) != claims {
				t.Fatalf("%d claims, %v", len(got.Claims), err)
			}
			if n := len(j.batches); n != portions && limit > 0 || n < 4 && limit == 0 {
				t.Errorf("%v: the judge was asked %d times, want %d", limit, n, portions)
			}
			read := 0
			for i := range got.Claims {
				if got.Claims[i].Verdict == check.Supported {
					read++
				} else if !errors.Is(got.Claims[i].Err, check.ErrTooMuch) {
					t.Fatalf("%v: claim %d: %+v", limit, i, got.Claims[i].Result)
				}
			}
			if pairs := len(j.asked()); read == 0 || read > pairs {
				t.Errorf("%v: %d claims are supported by %d pairs", limit, read, pairs)
			}
		})
	}
}

// TestAJudgeReadsLessBesideMoreComparing checks that the work for comparing numbers reduces the
// quota of the model.
func TestAJudgeReadsLessBesideMoreComparing(t *testing.T) {
	t.Parallel()
	const name = "numbers as sentences"
	text := larges(64 << 10)[name]
	pairs := func(size int) int {
		t.Helper()
		j := always(isNeutral)
		if _, err := checker(t, check.Options{Judge: j}).Text(t.Context(), facts(t, larges(size)[name]), "", text); err != nil {
			t.Fatal(err)
		}
		return len(j.asked())
	}
	few, many := pairs(1<<10), pairs(40<<10)
	if few == 0 || 10*many > 8*few {
		t.Errorf("%d pairs beside 1 KiB of numbers, %d beside 40", few, many)
	}
}

// TestTheWorkForOneTextHasABound checks that comparing each claim with each evidence sentence,
// which is quadratic, ends at a limit that prose never reaches.
func TestTheWorkForOneTextHasABound(t *testing.T) {
	t.Parallel()
	const size = 64 << 10
	all, prose := larges(size), proseOf(size)
	quarters := []string{"semicolons", "a word a sentence", "a wide table"}
	if testkit.Race { // the whole takes 20 s under the race detector
		quarters = append(quarters, "one number")
	} else if n := unread(t, readWhole(t, all["one number"])); n == 0 {
		t.Error("one number: every claim was read")
	}
	if n := unread(t, readWhole(t, prose)); n > 0 {
		t.Errorf("%d claims of prose were not read", n)
	}
	// The work grows with the square of the size. A text whose quarter needs more than a sixteenth
	// of the steps needs more than all of them as a whole.
	for _, name := range quarters {
		text := larges(size / 4)[name]
		results, err := check.ReadWithin(t.Context(), factOf(t, text), text, 16)
		if err != nil {
			t.Fatal(err)
		}
		if n := unread(t, results); n == 0 {
			t.Errorf("%s: every claim was read", name)
		}
	}
}

func proseOf(size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "The bridge number %d over the river Aare in Bern was opened in %d by Ann Miller "+
			"and carries some %d cars a day. ", i, 1800+i%200, 100*i)
	}
	return b.String()
}

func factOf(t *testing.T, text string) *evidence.Evidence {
	t.Helper()
	sources := []evidence.Source{{Text: text, Fact: true}}
	e, err := evidence.New(t.Context(), sources, evidence.Options{MaxBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// readWhole checks a text against itself.
func readWhole(t *testing.T, text string) []check.Result {
	t.Helper()
	got, err := checker(t, check.Options{}).Text(t.Context(), factOf(t, text), "", text)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]check.Result, len(got.Claims))
	for i := range got.Claims {
		out[i] = got.Claims[i].Result
	}
	return out
}

// unread counts the claims left unchecked because the work was used up.
func unread(t *testing.T, results []check.Result) (n int) {
	t.Helper()
	for i := range results {
		if r := &results[i]; errors.Is(r.Err, check.ErrTooMuch) {
			n++
			if r.Verdict != check.Unchecked {
				t.Errorf("%+v", *r)
			}
		}
	}
	return n
}

// TestPremisesAreNotFoundForNobody checks that finding the premises of claims ends at the next
// claim if the caller is gone.
func TestPremisesAreNotFoundForNobody(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("The Louvre stands in Paris. ", 100)
	all := testkit.NewCountdown(t.Context(), 1<<30, context.Canceled)
	j := always(entails)
	if _, err := checker(t, check.Options{Judge: j}).Text(all, facts(t, towers...), "", text); err != nil {
		t.Fatal(err)
	}
	left := all.Looks() - 50 // while the premises of claims are found
	gone := testkit.NewCountdown(t.Context(), left, context.Canceled)
	j = always(entails)
	_, _ = checker(t, check.Options{Judge: j}).Text(gone, facts(t, towers...), "", text)
	if len(j.asked()) > 0 || gone.Looks() > left+5 {
		t.Errorf("%d pairs were read, %d looks after the end", len(j.asked()), gone.Looks()-left)
	}
}
