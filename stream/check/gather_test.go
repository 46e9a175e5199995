package check_test

import (
	"strings"
	"testing"

	"signalbox/stream/check"
)

// Beside a long source the judge reads the best window and what the page says of the claim in several places; beside short ones windows.
func TestFactsFromAllOverAPageAreReadTogether(t *testing.T) {
	t.Parallel()
	filler := strings.Repeat("Bananas ripen on the way to the market in spring. ", 12)
	page := "The Astra harbour was opened by Anna Berg. " + filler + "The harbour of Astra has a lighthouse of granite. " + filler
	const claim = "The Astra harbour, opened by Anna Berg, has a lighthouse of granite."
	together := func(p check.Pair) bool {
		return strings.Contains(p.Premise, "Anna Berg") && strings.Contains(p.Premise, "granite")
	}
	says := func(p check.Pair) check.Inference {
		if together(p) {
			return entails
		}
		return isNeutral
	}
	for _, premises := range []int{1, 2, 3} {
		j := &judge{says: says}
		got := checker(t, check.Options{Judge: j, Premises: premises}).Check(t.Context(), facts(t, page, "The moon is far."), "", []check.Claim{{Text: claim}})[0]
		if got.Verdict != check.Supported || !strings.Contains(got.Premise, "granite") || got.ID != "f0" {
			t.Errorf("%d premises: %+v, want supported by what stands in two places", premises, got)
		}
		read := 0
		for _, batch := range j.batches {
			read += len(batch)
		}
		if read != premises {
			t.Errorf("%d premises: the judge read %d", premises, read)
		}
	}
	j := &judge{says: says}
	short := "The Astra harbour was opened by Anna Berg."
	checker(t, check.Options{Judge: j}).Check(t.Context(), facts(t, short, "The harbour of Astra has a lighthouse of granite."), "", []check.Claim{{Text: claim}})
	for _, batch := range j.batches {
		for _, p := range batch {
			if together(p) {
				t.Errorf("read %q, want short facts as they are", p.Premise)
			}
		}
	}
}
