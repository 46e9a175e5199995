package check_test

import (
	"testing"
	"unicode/utf8"

	"signalbox/stream/check"
	"signalbox/stream/evidence"
)

// FuzzVerdicts looks for a claim whose verdict depends on earlier checks, or whose span is outside
// it. Fields, checkboxes, headings and changes are read in addition to the judge's result.
func FuzzVerdicts(f *testing.F) {
	for _, s := range [][2]string{
		{`{"in_stock": false, "qty": 0}`, "It is in stock."},
		{`[{"name":"Lamp","ready":false},{"name":"Desk","ready":true}]`, "The Desk is ready."},
		{"Enabled: no\nRetries = off, a:b=true|yes", "It is enabled at ACME."},
		{"- [x] login page\n- [ ] payment page", "The payment page is done."},
		{"## Removed\n- Support for Python 3.8 clients.\n- Dark mode", "Support for Python 3.8 clients was added."},
		{"| Plan | Price |\n|---|---|\n| Team | $12 |", "| Team | $13 |"},
		{"The office moved from Bonn to Cologne.", "The office is in Bonn."},
		{"The old price was 30; it is now 20.", "The price is 30."},
		{`{"isNoShow":"ja","never_expires":true,"":on}`, "It never expires; it is no show."},
		{"a:\xfftrue", "\xff is a"},
		{":=:=true", "true"},
		{"", "It is 5."},
	} {
		f.Add(s[0], s[1], uint8(0))
		f.Add(s[1], s[0], uint8(7))
	}
	f.Fuzz(func(t *testing.T, fact, claim string, how uint8) {
		if len(fact) > 4<<10 || len(claim) > 2<<10 {
			t.Skip("longer than a sentence")
		}
		e, err := evidence.New(t.Context(), []evidence.Source{{Text: fact, Fact: true}}, evidence.Options{})
		if err != nil {
			t.Skip()
		}
		says := [...]check.Inference{entails, contradicts, isNeutral}[how%3]
		c, err := check.New(check.Options{Judge: always(says), English: how&4 == 0})
		if err != nil {
			t.Fatal(err)
		}
		list := []check.Claim{{Text: claim, Context: fact}, {Text: claim, Context: fact}}
		got := c.Check(t.Context(), e, "", list)
		for _, r := range got {
			if !(r.Score >= 0 && r.Score <= 1) {
				t.Fatalf("score %v", r.Score)
			}
			if r.Span.Start < 0 || r.Span.End < r.Span.Start || r.Span.End > utf8.RuneCountInString(claim) {
				t.Fatalf("span %v in %d code points", r.Span, utf8.RuneCountInString(claim))
			}
			if r.Verdict != got[0].Verdict || r.Reason != got[0].Reason {
				t.Fatalf("%v (%s) and %v (%s) of one claim", got[0].Verdict, got[0].Reason, r.Verdict, r.Reason)
			}
		}
		if _, err := c.Text(t.Context(), e, "", claim); err != nil {
			t.Fatal(err)
		}
	})
}
