package check_test

import (
	"strings"
	"testing"

	"signalbox/stream/check"
)

// page is a text of more than a fact or two.
var page = "The clinic of Lindholm was opened by Margarethe Holm in 1911. " +
	"India and Sweden sent nurses, and the World Health Organization sends a doctor each year. " +
	strings.Repeat("Its garden is tended by the patients and is open to the people of the village. ", 4)

// TestNeutralBesideAPage checks that a neutral result on a page flags a claim only for a name that
// the page lacks, or if the fused support is very low.
func TestNeutralBesideAPage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		claim string
		want  check.Verdict
		span  string
	}{
		{"Patients of Lindholm look after the plants.", check.Unchecked, ""},
		{"The clinic of Lindholm was opened by Jonas Berg.", check.Unsupported, "Jonas Berg"},
		{"Indian and Swedish nurses came to Lindholm.", check.Unchecked, ""},
		{"The WHO lends Lindholm a doctor.", check.Unchecked, ""},
		{"The OECD lends Lindholm a doctor.", check.Unsupported, "OECD"},
		{"The founder of Lindholm probably knew the Red Cross.", check.Unsupported, "Red Cross"},
		{"The authors of Lindholm did not visit Oslo.", check.Unsupported, "Oslo"},
		{"The text does not say whether Lindholm has a bus to Malmö.", check.Unchecked, ""},
		{"Lindholm has a bus to Malmö.", check.Unsupported, "Malmö"},
	} {
		c2, e := checker(t, check.Options{Judge: always(isNeutral)}), facts(t, page)
		got := c2.Check(t.Context(), e, "", []check.Claim{{Text: c.claim}})[0]
		if got.Verdict != c.want {
			t.Errorf("%q: %v (%s), want %v", c.claim, got.Verdict, got.Reason, c.want)
		}
		if span := string([]rune(c.claim)[got.Span.Start:got.Span.End]); span != c.span {
			t.Errorf("%q: the span is %q, want %q", c.claim, span, c.span)
		}
	}
	alone := strings.Replace(byEntailment, `"unsupported": 0.3`, `"unsupported": 0.3, "alone": 0.2`, 1)
	for claim, want := range map[string]check.Verdict{
		"Patients of Lindholm look after the plants.":  check.Unsupported,
		"At Lindholm, patients look after two things:": check.Unchecked, // its content follows
	} {
		c, e := checker(t, check.Options{Judge: always(isNeutral), Fusion: fusion(t, alone)}), facts(t, page)
		if got := c.Check(t.Context(), e, "", []check.Claim{{Text: claim}})[0]; got.Verdict != want {
			t.Errorf("support below alone: %q: %v (%s), want %v", claim, got.Verdict, got.Reason, want)
		}
	}
	strict, e := checker(t, check.Options{Judge: always(isNeutral), Strict: true}), facts(t, page)
	if got := strict.Check(t.Context(), e, "", []check.Claim{{Text: "Patients of Lindholm look after the plants."}})[0]; got.Verdict != check.Unsupported {
		t.Errorf("strict, beside a page: %v (%s)", got.Verdict, got.Reason)
	}
	c, e := checker(t, check.Options{Judge: always(isNeutral)}), facts(t, "The Louvre is a museum in Paris.")
	if got := c.Check(t.Context(), e, "", []check.Claim{{Text: "The Louvre pleases Paris."}})[0]; got.Verdict != check.Unsupported {
		t.Errorf("beside a fact: %v (%s)", got.Verdict, got.Reason)
	}
}

func TestShortFormsOfNames(t *testing.T) {
	t.Parallel()
	text := page + " The Österreichische Bundesbahnen Betriebe paid for the railway. The NHS pays, and WW II ended the first garden. A board of the EU and of France met in Italy."
	wantNeutral(t, text, map[string]check.Verdict{
		"Lindholm is paid by the National Health Service.": check.Unchecked,
		"Lindholm is paid by the ÖBB.":                     check.Unchecked,
		"French and Italian boards met at Lindholm.":       check.Unchecked,
		"A European board met at Lindholm.":                check.Unchecked,
		"A Polish board met at Lindholm.":                  check.Unsupported,
	})
}

// wantNeutral checks the verdicts on claims that a judge finds neutral.
func wantNeutral(t *testing.T, text string, claims map[string]check.Verdict) {
	t.Helper()
	c, e := checker(t, check.Options{Judge: always(isNeutral)}), facts(t, text)
	for claim, want := range claims {
		if got := c.Check(t.Context(), e, "", []check.Claim{{Text: claim}})[0]; got.Verdict != want {
			t.Errorf("%q: %v (%s), want %v", claim, got.Verdict, got.Reason, want)
		}
	}
}

// wantRefuted checks the verdicts on claims about a museum that is open, with a judge that
// contradicts all.
func wantRefuted(t *testing.T, cases map[string]check.Verdict) {
	t.Helper()
	for claim, want := range cases {
		wantVerdict(t, contradicts, "The museum is open to the public.", claim, want)
	}
}

// TestReplies checks that a claim that only denies the question is not refuted by a judge.
func TestReplies(t *testing.T) {
	t.Parallel()
	wantRefuted(t, map[string]check.Verdict{
		"Not necessarily.":             check.Unchecked,
		"Not in any real sense.":       check.Unchecked,
		"Nicht unbedingt.":             check.Unchecked,
		"Not one museum of Paris is.":  check.Contradicted,
		"Not open to the whole public": check.Unchecked,
		"None.":                        check.Unchecked,
		"Smoking in the rooms: none.":  check.Contradicted,
		"Open Questions: None.":        check.Unchecked,
		"Open Questions: The museum.":  check.Contradicted,
	})
}

// TestNumbersOfTheQuestion checks that an assumption of the question needs no evidence if the claim
// repeats it as an assumption.
func TestNumbersOfTheQuestion(t *testing.T) {
	t.Parallel()
	const fact = "Small purchases go through the portfolio, and there are 40 of them."
	for _, c := range []struct {
		question, claim string
		want            check.Verdict
	}{
		{"We want a tool for $6,000 a year. Who buys it?", "At $6,000 a year, the portfolio buys it.", check.Supported},
		{"We want a tool for $6,000 a year. Who buys it?", "At $7,000 a week, the portfolio buys it.", check.Unsupported},
		{"", "At $6,000 a week, the portfolio buys it.", check.Unsupported},
		{"Is the fee 45 EUR?", "The fee is 45 EUR.", check.Unsupported},
		{"Are there 60 of them?", "For the portfolio, there are 60 of them.", check.Contradicted},
		{"We are a team of 60. Is that too many?", "For 60 people there is the portfolio.", check.Supported},
		{"We are a team of 60. Is that too many?", "For 70 people there is the portfolio.", check.Contradicted},
		{"Are 60 too many?", "For 60 people there is the portfolio.", check.Contradicted},
		{"Is the limit $12,000 a year?", "For purchases the limit is $12,000 a year.", check.Unsupported},
	} {
		checker, e := checker(t, check.Options{Judge: always(entails)}), facts(t, fact)
		report, err := checker.Text(t.Context(), e, c.question, c.claim)
		if err != nil {
			t.Fatal(err)
		}
		if got := report.Claims[0]; got.Verdict != c.want && (c.want != check.Supported || got.Verdict > check.Supported) {
			t.Errorf("%q asked %q: %v (%s), want %v", c.claim, c.question, got.Verdict, got.Reason, c.want)
		}
	}
}

// TestTallies checks that a line which announces a number of things may count what follows.
func TestTallies(t *testing.T) {
	t.Parallel()
	wantNeutral(t, page, map[string]check.Verdict{
		"3 pages of Lindholm stand out:":  check.Unchecked,
		"3 pages of Lindholm stand out.":  check.Unsupported,
		"Lindholm has 3 pages:":           check.Unsupported,
		"3 pages cost 40 euros:":          check.Unsupported,
		"Lindholm points to four people:": check.Unchecked,
		"Lindholm lasts four years:":      check.Unsupported,
	})
}

// TestRunInHeads checks that a bold head that ends like a sentence states nothing, unless it has a
// number or a name.
func TestRunInHeads(t *testing.T) {
	t.Parallel()
	wantRefuted(t, map[string]check.Verdict{
		"**Open to all.**":                                         check.NotCheckable,
		"**The museum is open to all.**":                           check.NotCheckable,
		"The museum is open to all.":                               check.Contradicted,
		"**The museum is open to all** now.":                       check.Contradicted,
		"**The museum opens at 9:00.**":                            check.Unsupported,
		"**The museum is open to all of the people of the city.**": check.Contradicted,
	})
}

// TestTitlesAreNoNames checks that titles in an answer that is a form are not names.
func TestTitlesAreNoNames(t *testing.T) {
	t.Parallel()
	wantNeutral(t, page, map[string]check.Verdict{
		"Files and Code Sections:":                   check.NotCheckable,
		"**Key Takeaways:**":                         check.NotCheckable,
		"The founder **Jonas Berg:** a doctor.":      check.Unsupported,
		"Overall Risk Assessment: Lindholm is safe.": check.Unchecked,
		"Overall Risk Assessment: the bus to Malmö.": check.Unsupported,
		"The head of Malmö: a risk for Lindholm.":    check.Unsupported,
	})
}
