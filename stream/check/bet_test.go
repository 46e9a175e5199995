package check_test

import (
	"testing"

	"signalbox/stream/check"
)

// TestEntailedIsNotAlwaysSupported checks that an entailed claim is supported only if nothing
// distinguishes it from the sentence it is based on.
func TestEntailedIsNotAlwaysSupported(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, fact, claim string
		want              check.Verdict
	}{
		{"roles exchanged", "The city fined the harbour for the spill.", "The harbour fined the city for the spill.", check.Contradicted},
		{"in the passive", "The city fined the harbour for the spill.", "The harbour was fined by the city for the spill.", check.Supported},
		{"no passive any more", "The harbour was fined by the city for the spill.", "The harbour fined the city for the spill.", check.Unchecked},
		{"an adjunct moved", "The pool is heated on Sundays in March.", "On Sundays in March the pool is heated.", check.Supported},
		{"another subject", "The kiosk sells maps and the office sells stamps.", "The kiosk sells stamps.", check.Unchecked},
		{"another one of a kind", "Boats to Elba leave on Mondays, while boats to Capri leave daily.", "Boats to Elba leave daily.", check.Unchecked},
		{"its own kind", "Boats to Elba leave on Mondays, while boats to Capri leave daily.", "Boats to Capri leave daily.", check.Supported},
		{"a pronoun", "Small kiosks keep keys for long; large kiosks keep them forever.", "Large kiosks keep keys forever.", check.Supported},
		{"more than the pronoun", "Small kiosks keep keys for long; large kiosks keep them forever.", "Large kiosks keep keys for long.", check.Unchecked},
		{"no pronoun", "Petra plays the cello that she built and Jonas plays the trumpet.", "Petra plays the trumpet.", check.Unchecked},
		{"a number", "The red kiosk has one lamp and the blue kiosk has stamps.", "The red kiosk has stamps.", check.Unchecked},
		{"a pronoun too early", "The kiosk sells maps to those that want them and the office sells stamps.", "The kiosk sells stamps.", check.Unchecked},
		{"somebody else", "The landlord pays for repairs of the roof.", "The tenant pays for repairs of the roof.", check.Contradicted},
		{"a person", "The gardener waters the roses every day.", "A person waters the roses every day.", check.Supported},
		{"its own subject", "The kiosk sells maps and the office sells stamps.", "The office sells stamps.", check.Supported},
		{"an opposite", "The gravel road is smooth near the farm.", "The gravel road is rough near the farm.", check.Contradicted},
		{"a possibility told as a fact", "The harbour may freeze near the pier.", "The harbour freezes near the pier.", check.Unchecked},
		{"a fact told as a duty", "Guests pay at the harbour desk.", "Guests must pay at the harbour desk.", check.Unchecked},
		{"a quantity that is not there", "The boats are painted at the harbour.", "All the boats are painted at the harbour.", check.Unchecked},
		{"every year of one date", "The harbour feast took place on 12 May 2019.", "The harbour feast takes place every year.", check.Unchecked},
		{"without its condition", "The ferry is free if the harbour is closed.", "The ferry is free.", check.Unchecked},
		{"a condition changed", "The ferry leaves after the harbour bell rings.", "The ferry leaves before the harbour bell rings.", check.Contradicted},
		{
			"a date of another word",
			"The toll was approved on 12 May and takes effect on 1 June.", "The toll comes in on 12 May.",
			check.Unchecked,
		},
		{
			"a date of its word",
			"The toll was approved on 12 May and takes effect on 1 June.", "The toll takes effect on 1 June.",
			check.Supported,
		},
		{"a negation more", "The ferry stops at the harbour.", "The ferry does not stop at the harbour.", check.Contradicted},
	} {
		got := checker(t, check.Options{Judge: always(entails)}).Check(t.Context(), facts(t, c.fact), "", []check.Claim{{Text: c.claim}})[0]
		if got.Verdict != c.want {
			t.Errorf("%s: %q of %q: %s (%s), want %s", c.name, c.claim, c.fact, got.Verdict, got.Reason, c.want)
		}
	}
}

// TestWhatTheEvidenceSaysIsNeverUnsupported checks that a sentence of the evidence is never worse
// than unchecked, whatever a judge says. One that refers back may be about something else.
func TestWhatTheEvidenceSaysIsNeverUnsupported(t *testing.T) {
	t.Parallel()
	e := facts(t, "The server listens on `port 8080`. It was installed by Nora Quist in 2019.")
	for claim, want := range map[string]check.Verdict{
		"The server listens on port 8080.":           check.Supported,
		"It was installed by Nora Quist in 2019.":    check.Unchecked,
		"It was installed by Nora Quist in **2019**": check.Unchecked,
	} {
		got := checker(t, check.Options{Judge: always(contradicts)}).Check(t.Context(), e, "", []check.Claim{{Text: claim}})[0]
		if got.Verdict != want {
			t.Errorf("%q: %s (%s), want %s", claim, got.Verdict, got.Reason, want)
		}
	}
}

// TestNumbersOfALineThatIntroducesAreChecked checks that a line that introduces something states
// only its numbers.
func TestNumbersOfALineThatIntroducesAreChecked(t *testing.T) {
	t.Parallel()
	e := facts(t, "The Hamburg office has 42 employees.")
	for claim, want := range map[string]check.Verdict{
		"Here are the facts about the Hamburg office:":               check.NotCheckable,
		"Here are 3 facts about the Hamburg office:":                 check.NotCheckable,
		"Here’s what the Hamburg office does:":                       check.NotCheckable,
		"**Here are 2 things** that I know of Hamburg:":              check.NotCheckable,
		"Here are the 99 employees of the Hamburg office:":           check.Contradicted,
		"Here are 3 of the 99 employees of the Hamburg office:":      check.Contradicted,
		"Here is proof that the Hamburg office burned down in 1999:": check.Unsupported,
		"Below is the Munich office, which charges 70 euros:":        check.Unsupported,
	} {
		got := checker(t, check.Options{Judge: always(isNeutral)}).Check(t.Context(), e, "", []check.Claim{{Text: claim}})[0]
		if got.Verdict != want {
			t.Errorf("%q: %s (%s), want %s", claim, got.Verdict, got.Reason, want)
		}
	}
}

// TestADayThatFollowsIsThatOfTheEnd checks that a time calculated from a start and a length is the
// end, for which the evidence has the opposite word or none. What happens then is decided by the
// judge.
func TestADayThatFollowsIsThatOfTheEnd(t *testing.T) {
	t.Parallel()
	e := facts(t, "The film starts at 20:15 and lasts 90 minutes.")
	for claim, want := range map[string][2]check.Verdict{
		"The film ends at 21:45.":     {check.Unchecked, check.Supported},
		"The film was shot at 21:45.": {check.Unchecked, check.Supported},
		"The film starts at 21:45.":   {check.Contradicted, check.Contradicted},
		"The film ends at 21:15.":     {check.Contradicted, check.Contradicted},
	} {
		for i, judge := range [...]check.Inference{isNeutral, entails} {
			got := checker(t, check.Options{Judge: always(judge)}).Check(t.Context(), e, "", []check.Claim{{Text: claim}})[0]
			if got.Verdict != want[i] {
				t.Errorf("%q: %s (%s), want %s", claim, got.Verdict, got.Reason, want[i])
			}
		}
	}
}

// TestADateInAHeadingIsOfItsSection checks that text under a heading belongs to the date in it, and
// not to that of another heading.
func TestADateInAHeadingIsOfItsSection(t *testing.T) {
	t.Parallel()
	e := facts(t, "## 3.2.0 (2025-04-08)\n\n### Added\n- Dark mode for the editor\n- Export to PDF\n\n### Removed\n"+
		"- Support for Node 16\n\n## 3.1.4 (2025-03-02)\n\n### Fixed\n- Crash when the cache folder is missing")
	for claim, want := range map[string]check.Verdict{
		"Dark mode for the editor was added on 8 April 2025.":                   check.Supported,
		"Dark mode for the editor was added on 2 March 2025.":                   check.Unchecked,
		"The crash when the cache folder is missing was fixed on 2 March 2025.": check.Supported,
		"The crash when the cache folder is missing was fixed on 8 April 2025.": check.Unchecked,
	} {
		got := checker(t, check.Options{Judge: always(entails)}).Check(t.Context(), e, "", []check.Claim{{Text: claim}})[0]
		if got.Verdict != want {
			t.Errorf("%q: %s (%s), want %s", claim, got.Verdict, got.Reason, want)
		}
	}
}

// TestAWordForAProgramIsNoStrangeName checks that a capitalised term for any program is not a
// missing name if the evidence has the numbers.
func TestAWordForAProgramIsNoStrangeName(t *testing.T) {
	t.Parallel()
	e := facts(t, "A request that exceeds the quota is answered with 429. A request without a key is answered with 401.")
	for claim, want := range map[string]check.Verdict{
		"Without a key the API returns 401.": check.Unchecked,
		"Without a key the API returns 403.": check.Contradicted,
		"Without a key Zandor returns 401.":  check.Unsupported,
	} {
		got := checker(t, check.Options{Judge: always(isNeutral)}).Check(t.Context(), e, "", []check.Claim{{Text: claim}})[0]
		if got.Verdict != want {
			t.Errorf("%q: %s (%s), want %s", claim, got.Verdict, got.Reason, want)
		}
	}
}
