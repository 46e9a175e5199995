package numeric_test

import (
	"testing"

	"signalbox/stream/numeric"
)

// TestTheRestOfANumberIsLeftOpen checks that the complement of a part may follow: the number in the
// evidence is supported, and the other one is left open.
func TestTheRestOfANumberIsLeftOpen(t *testing.T) {
	t.Parallel()
	const (
		present = "Present: 23 of 41 members."
		trial   = "We randomised 84 adults. // Five participants withdrew."
		grants  = "Of the 3.2 million euros granted, 2.1 million went to schools."
		study   = "Methods: We randomised 84 healthy adults in Leeds. // Results: Glucose rose. " +
			"Five participants withdrew, four of them early."
		ziel = "412 Läufer starteten, 388 erreichten das Ziel."
	)
	wantSaid(t, []said{
		{present, "18 of the 41 members were absent.", numeric.Supported},
		{present, "18 of the 41 members were present.", numeric.Contradicted},
		{present, "16 of the 41 members were absent.", numeric.Contradicted},
		{grants, "Of the 3.2 million euros, 1.1 million did not go to schools.", numeric.Supported},
		{grants, "Of the 3.2 million euros, 1.4 million did not go to schools.", numeric.Contradicted},
		{study, "Of 84 participants, 79 completed the study.", numeric.Supported},
		{study, "Of 84 participants, 80 completed the study.", numeric.Contradicted},
		{study, "Of 48 participants, 43 completed the study.", numeric.Contradicted},
		{ziel, "24 der 412 Läufer erreichten das Ziel nicht.", numeric.Supported},
		{ziel, "42 der 412 Läufer erreichten das Ziel nicht.", numeric.Contradicted},
		{trial, "Of 84 participants, 79 completed the study.", numeric.Supported},
		{trial, "Of 84 participants, 80 completed the study.", numeric.Unsupported},
	})
}
