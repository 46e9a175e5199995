package check_test

import (
	"testing"

	"signalbox/stream/check"
)

// TestWhatWasReplacedIsNotSupported checks that a former state is not supported, however certain
// the judge is.
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
		wantVerdict(t, entails, c.fact, c.claim, c.want)
	}
}
