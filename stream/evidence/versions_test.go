package evidence_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

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
		"rev2.3.1 and 5.10.2b":                      nil,
	} {
		if diff := cmp.Diff(want, evidence.Versions(nil, text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}
