package check_test

import (
	"testing"

	"signalbox/stream/check"
)

// TestWhatFailedIsTold checks that a failed number, date or name is reported by its position in the
// claim, in code points.
func TestWhatFailedIsTold(t *testing.T) {
	t.Parallel()
	e := facts(t, "The Börse tower is 329 m tall.", "Jürgen Öst opened the Börse on 3 May 1999.")
	for _, c := range []struct{ claim, want string }{
		{"Überall heißt es: the Börse tower is 350 m tall.", "350 m"},
		{"The Börse was opened by Jürgen Öst on 4 May 1999.", "4 May 1999"},
		{"Überdies the Börse bought 7,700 chairs.", "7,700"},
		{"Überdies the Börse was painted by Märta Lind.", "Märta Lind"},
		{"The Börse tower is 329 m tall.", ""},
	} {
		got := checker(t, check.Options{Judge: always(isNeutral)}).Check(t.Context(), e, "", []check.Claim{{Text: c.claim}})[0]
		if said := string([]rune(c.claim)[got.Span.Start:got.Span.End]); said != c.want {
			t.Errorf("%q: %s at %v, %q, want %q", c.claim, got.Verdict, got.Span, said, c.want)
		}
	}
}
