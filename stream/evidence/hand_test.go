package evidence_test

import (
	"testing"

	"signalbox/stream/claims"
	"signalbox/stream/evidence"
	"signalbox/stream/numeric"
)

// TestHandmadeClaims checks the numbers of every claim of the table, split from a text as in an
// answer.
func TestHandmadeClaims(t *testing.T) {
	t.Parallel()
	var n, alarms, misses int
	for _, sheet := range handmade {
		var sources []evidence.Source
		for _, f := range sheet.facts {
			sources = append(sources, evidence.Source{Text: f, Fact: true})
		}
		e, err := evidence.New(t.Context(), sources, evidence.DefaultOptions())
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range sheet.holds {
			n++
			if v, found := judgeText(t, e, text); v != numeric.Supported {
				alarms++
				t.Errorf("%s: %q is %v %+v, want supported", sheet.name, text, v, found)
			}
		}
		for _, text := range sheet.fails {
			n++
			if v, found := judgeText(t, e, text); v < numeric.Unsupported {
				misses++
				t.Errorf("%s: %q is %v %+v, want it caught", sheet.name, text, v, found)
			}
		}
		n += len(sheet.limits)
		for _, text := range sheet.limits {
			v, _ := judgeText(t, e, text)
			t.Logf("%s: known limit: %q is %v", sheet.name, text, v)
		}
	}
	t.Logf("%d claims: %d true ones not supported, %d false ones missed", n, alarms, misses)
}

// judgeText splits an answer of one claim and checks it.
func judgeText(tb testing.TB, e *evidence.Evidence, text string) (numeric.Verdict, []numeric.Finding) {
	tb.Helper()
	s, err := claims.New(claims.DefaultOptions())
	if err != nil {
		tb.Fatal(err)
	}
	said := append(s.Feed(text), s.Flush()...)
	worst, context := numeric.NotCheckable, ""
	var all []numeric.Finding
	for _, c := range said {
		v, found := e.Numbers().Check(nil, c.Text, context)
		worst, context = max(worst, v), c.Text
		all = append(all, found...)
	}
	return worst, all
}
