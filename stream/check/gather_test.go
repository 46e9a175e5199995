package check_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/stream/check"
)

// TestFactsFromAllOverAPageAreReadTogether checks that for a long source the judge reads the best
// window and a premise gathered from several places of the page, and for short sources only
// windows.
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
	// The third window is from the other source.
	for premises, want := range map[int]int{1: 2, 2: 2, 3: 4} {
		j := &judge{says: says}
		got := checker(t, check.Options{Judge: j, Premises: premises}).Check(t.Context(), facts(t, page, "The moon is far."), "", []check.Claim{{Text: claim}})[0]
		if got.Verdict != check.Supported || !strings.Contains(got.Premise, "granite") || got.ID != "f0" {
			t.Errorf("%d premises: %+v, want supported by what stands in two places", premises, got)
		}
		read := 0
		for _, batch := range j.batches {
			read += len(batch)
		}
		if read != want {
			t.Errorf("%d premises: the judge read %d, want %d", premises, read, want)
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

// TestAFactBesideAPageIsRead checks that another source is read in addition to a page, and that the
// one that decides is named.
func TestAFactBesideAPageIsRead(t *testing.T) {
	t.Parallel()
	filler := strings.Repeat("Bananas ripen on the way to the market in spring. ", 20)
	page := "The museum of Lund is open on Mondays and on Tuesdays. " + filler
	const pinned = "The museum of Lund is closed on all Mondays in winter."
	j := &judge{says: func(p check.Pair) check.Inference {
		if p.Premise == pinned {
			return contradicts
		}
		return isNeutral
	}}
	got := checker(t, check.Options{Judge: j}).Check(t.Context(), facts(t, page, pinned), "", []check.Claim{{Text: "The museum of Lund is open on Mondays."}})[0]
	if got.Verdict != check.Contradicted || got.ID != "f1" || got.Premise != pinned {
		t.Errorf("%+v, want contradicted by the fact beside the page", got)
	}
	if n := len(j.asked()); n != 3 {
		t.Errorf("the judge read %d premises, want the page's best, the fact and what was gathered", n)
	}
}

// TestAPageHasMoreThan150Words checks that a source of 150 words is read in windows and a longer
// one is a page. The features of words use the same premises in both cases.
func TestAPageHasMoreThan150Words(t *testing.T) {
	t.Parallel()
	const claim = "The Astra harbour, opened by Anna Berg, has a lighthouse of granite."
	for _, words := range []int{150, 151} {
		text := "The Astra harbour was opened by Anna Berg. " + strings.Repeat("Bananas ripen in spring. ", 30) + "The harbour of Astra has a lighthouse of granite."
		text = strings.Repeat("Rain. ", words-len(strings.Fields(text))) + text
		e := facts(t, text)
		together := func(j *judge) bool {
			return slices.ContainsFunc(j.asked(), func(p check.Pair) bool {
				return strings.Contains(p.Premise, "Anna Berg") && strings.Contains(p.Premise, "granite")
			})
		}
		j := always(isNeutral)
		list, err := checker(t, check.Options{Judge: j}).Examine(t.Context(), e, "", claim)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := together(j), words > 150; got != want {
			t.Errorf("%d words: gathered %t, want %t", words, got, want)
		}
		plain, err := checker(t, check.Options{}).Examine(t.Context(), e, "", claim)
		if err != nil {
			t.Fatal(err)
		}
		inferred := 7 // features of the judge come first
		if d := cmp.Diff(plain[0].Features[inferred:], list[0].Features[inferred:]); d != "" {
			t.Errorf("%d words: features of words (-without a judge +with):\n%s", words, d)
		}
		if n := len(list[0].Read); n != len(list[0].Inferences) || n != 2 {
			t.Errorf("%d words: %d premises read, %d inferences, want 2", words, n, len(list[0].Inferences))
		}
	}
}

func TestClaimsOfACheckThatIsOverAreNotPrepared(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	j := always(entails)
	got := checker(t, check.Options{Judge: j}).Check(ctx, facts(t, towers...), "", []check.Claim{{Text: "The Louvre stands in Paris."}})[0]
	if got.Verdict != check.Unchecked || !errors.Is(got.Err, context.Canceled) || len(j.asked()) > 0 {
		t.Errorf("%+v after %d pairs, want unchecked without asking", got, len(j.asked()))
	}
}
