package check_test

import (
	"testing"

	"signalbox/stream/check"
	"signalbox/stream/evidence"
)

// TestAVersionIsOfWhatIsToldOfIt checks that a change of one version is not accepted for another,
// whatever a model says.
func TestAVersionIsOfWhatIsToldOfIt(t *testing.T) {
	t.Parallel()
	notes := facts(t, "## 3.1.4 - 2 June\n### Added\n- Retries of failed uploads.\n### Fixed\n"+
		"- Crash with empty folders.\n\n## 3.1.2 - 8 May\n### Added\n- Dark mode for the desktop app.\n")
	prose := facts(t, "v2.10.0 drops support for Python 3.8.", "v2.9.1 fixes a memory leak in the parser.")
	none := facts(t, "The app has a dark mode.")
	both := facts(t, "Versions 4.2.7 and 4.3.1 fix a memory leak in the parser.", "v4.1.2 adds a dark mode.")
	ranges := facts(t, "Versions before 2.3.1 crash with empty folders.", "The crash is fixed in 2.3.1 and later.")
	for _, c := range []struct {
		of    int
		claim string
		want  check.Verdict
	}{
		{0, "Retries of failed uploads were added in 3.1.4.", check.Supported},
		{0, "Retries of failed uploads were added in 3.1.2.", check.Contradicted},
		{0, "Retries of failed uploads were added in 3.1.3.", check.Unsupported},
		{0, "The crash with empty folders was fixed in version 3.1.4.", check.Supported},
		{0, "The crash with empty folders was fixed in version 3.1.2.", check.Contradicted},
		{0, "Dark mode for the desktop app was added in v3.1.2.", check.Supported},
		{1, "The memory leak in the parser is fixed since v2.9.1.", check.Unchecked},
		{1, "v2.9.1 fixes a memory leak in the parser.", check.Supported},
		{1, "Version 2.10 fixes a memory leak in the parser.", check.Contradicted},
		{1, "v2.11 fixes a memory leak in the parser.", check.Unsupported},
		{3, "Version 4.3.1 fixes a memory leak in the parser.", check.Supported},
		{3, "Version 4.2 fixes a memory leak in the parser.", check.Unchecked},
		{3, "Version 4.2.0 fixes a memory leak in the parser.", check.Unsupported},
		{3, "Version 4.1 fixes a memory leak in the parser.", check.Contradicted},
		{4, "Version 2.2.7 crashes with empty folders.", check.Unchecked},
		{4, "The crash is fixed in 2.4.0.", check.Supported},
		{2, "The app has a dark mode since 3.1.4.", check.Unchecked},
	} {
		e := []*evidence.Evidence{notes, prose, none, both, ranges}[c.of]
		got := checker(t, check.Options{Judge: always(entails)}).Check(t.Context(), e, "", []check.Claim{{Text: c.claim}})[0]
		if got.Verdict != c.want {
			t.Errorf("%q: %s (%s), want %s", c.claim, got.Verdict, got.Reason, c.want)
		}
	}
}
