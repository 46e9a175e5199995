package evidence_test

import (
	"testing"

	"signalbox/stream/evidence"
	"signalbox/stream/numeric"
)

// TestEntriesOfListsAreCounted checks that a number may count the entries of a list within other
// text.
func TestEntriesOfListsAreCounted(t *testing.T) {
	t.Parallel()
	e, err := evidence.New(t.Context(), []evidence.Source{{Text: "# Handbook\n\nRead it all.\n\n## Sections\n\n" +
		"* Benefits. They begin at once.\n* Rituals\n* Leave\n\nAsk the team.\n\n* Ops\n* Support\n"}}, evidence.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for claim, want := range map[string]numeric.Verdict{
		"There are 3 sections.": numeric.NotCheckable,
		"There are 2 sections.": numeric.NotCheckable,
		"There are 4 sections.": numeric.Unsupported,
		"There are 3 doctors.":  numeric.Unsupported,
	} {
		if got, findings := e.Numbers().Check(nil, claim, ""); got != want {
			t.Errorf("%q: %v, want %v: %+v", claim, got, want, findings)
		}
	}
}
