package evidence_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/testkit"
	"signalbox/stream/evidence"
)

func TestVersionsAreToldFromOtherNumbers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"In 3.1.4 and v2.10 (V1.0.0), 2.0.1-rc.1.":  {"3.1.4", "2.10", "1", "2.0.1"},
		"Version 2.4 needs 3.8 of it.":              {"2.4"},
		"## 3.1.12\n":                               {"3.1.12"},
		"On 1.9.2025, 01.09.25, at 3.14 and 7.":     nil,
		"1.234.567 of 127.0.0.1, see section 4.2.1": nil,
		"Versions 2.1, 2.2 and 2.4 of 3.1.":         {"2.1", "2.2", "2.4"},
		"v2.1.0 on 3.8, 4.2":                        {"2.1"},
		"rev2.3.1 and 5.10.2b":                      nil,
	} {
		if diff := cmp.Diff(want, evidence.Versions(nil, text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

// TestVersionsOfATextWithoutBlanksTakeLinearTime checks that the text before a number is searched
// only for the length of a word, and not back to the last space.
func TestVersionsOfATextWithoutBlanksTakeLinearTime(t *testing.T) {
	t.Parallel()
	at := time.Now()
	evidence.Versions(nil, strings.Repeat("a1.1.1", 1<<17))
	if took := time.Since(at); testkit.Timed() && took > time.Second {
		t.Errorf("it took %v", took)
	}
}

// TestVersionsOfTheEvidence checks that a version is known if the evidence has a longer one, has it
// without the word "version", or has it in a list.
func TestVersionsOfTheEvidence(t *testing.T) {
	t.Parallel()
	many := "Fixed in 1.0.1, 1.0.2, 1.0.3, 1.0.4, 1.0.5, 1.0.6, 1.0.7, 1.0.8, 1.0.9 and 1.0.10."
	e, err := evidence.New(t.Context(), []evidence.Source{{ID: "a", Text: "Version 2.4.7 runs with Go 1.22.\n\n" + many}},
		evidence.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for v, want := range map[string]bool{
		"2.4.7": true, "2.4": true, "1.22": true, "1.0.10": true,
		"1.0.11": false, "2.4.8": false, "2.5": false, "2.4.7.1": false,
	} {
		if e.HasVersion(v, true) != want {
			t.Errorf("version %s: %v, want %v", v, !want, want)
		}
	}
	if e.HasVersion("2.4", false) {
		t.Error("2.4.0 is none of its versions")
	}
}

func TestRangesOfVersions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"Versions before 2.3.1 crash.": true, "Needs v1.22 or later.": true, "It is >=1.2.3.": true,
		"Up to version 2.4.":  true,
		"Older than `v3.1.4`": true, "2.4+": true, "1.0.0 through 1.4.9": true,
		"Version 2.3.1 is faster than 2.3.0.": false, "2.3.1 and 2.4.0": false, "Before 5 May it was 2.3.1.": false,
		"": false,
	} {
		if got := evidence.RangesVersions(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
