package check_test

import (
	"testing"

	"signalbox/stream/check"
)

// What moved is not where it was, however sure the judge is.
func TestWhatWasReplacedIsNotSupported(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fact, claim string
		want        check.Verdict
	}{
		{"The office moved from Bonn to Cologne.", "The office is in Bonn.", check.Contradicted},
		{"The office moved from Bonn to Cologne.", "The office is in Cologne.", check.Supported},
		{"The office moved from Bonn to Cologne.", "The office was in Bonn.", check.Supported},
		{"The meeting was moved from Tuesday to Thursday.", "The meeting is on Tuesday.", check.Contradicted},
		{"The meeting was moved from Tuesday to Thursday.", "The meeting is on Thursday.", check.Supported},
		{"Der Termin wurde von Montag auf Mittwoch verlegt.", "Der Termin ist am Montag.", check.Contradicted},
		{"The train runs from Bonn to Cologne.", "The train stops in Bonn.", check.Supported},
		{"The timeout was lowered from 60 minutes to 20 minutes.", "The timeout is 20 minutes.", check.Supported},
	} {
		got := checker(t, check.Options{Judge: always(entails), English: true}).Check(t.Context(), facts(t, c.fact), "", []check.Claim{{Text: c.claim}})[0]
		if got.Verdict != c.want {
			t.Errorf("%q of %q: %s (%s), want %s", c.claim, c.fact, got.Verdict, got.Reason, c.want)
		}
	}
}
