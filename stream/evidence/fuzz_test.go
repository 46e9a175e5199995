package evidence_test

import (
	"strings"
	"testing"

	"signalbox/stream/evidence"
)

func FuzzEvidence(f *testing.F) {
	for _, s := range []string{
		"## Removed\n- Dark mode\n- [ ] docs\n- [x] search\n\nText between.\n- Parking",
		"| Plan | Price (EUR) |\n|---|---|\n| Team | 12 |\n| Pro | 3,5 |", "| a |\n| - |\n|", "- [", "[x] ", "- [x", "# \n- [X]",
		`{"in_stock": false, "list": [{"a": 1}, {"a": -2}]}`,
		`[{"n":"M\u00fcller","x":[[1],2,{}]},"\ud800",null]{"a":{"b":{"c":1.5}}} `,
		`[{"t":"one two three four five six seven eight nine ten and so on, word by word, ` +
			`for the most part of a \n string of many words","p":3}]`,
		"The office moved from Bonn to Cologne; it is now larger.",
		"One.\n@@ -1,3 +1,2 @@ f\n-a: 1\n-b: 2\n+a: 3\n \n- Two.\n@@ -0,0 +1 " +
			"@@\n+\xc3", "@@ -1 +1 @@", "@@ -9,9 +9,9 @@\n\\\n",
		"| Umsatz (Mio. €) | (in k) | () |\n|---|---|---|\n| 1 | 2 | 3 |", "a\xff | b\n|-|-|\n| \xc3 |", "```\ncode\n```\n> quote", "",
	} {
		f.Add(s, "The plan Team costs 12 euros, not 3.")
		f.Add("Plain text before. "+s, s)
	}
	f.Fuzz(func(t *testing.T, text, claim string) {
		e, err := evidence.New(
			t.Context(),
			[]evidence.Source{{ID: "a", Text: text, Fact: true}, {Text: claim}},
			evidence.Options{},
		)
		if err != nil {
			t.Skip() // too large
		}
		for i := range e.Len() {
			said, heading := e.Item(i)
			if said == "" {
				t.Fatalf("sentence %d is empty", i)
			}
			if strings.Contains(heading, "\n") {
				t.Fatalf("heading %q", heading)
			}
			if ticked, ok := e.Box(i); ticked && !ok {
				t.Fatalf("a ticked box that is none: %q", said)
			}
			if p := e.Premise(i); p.Sentence != i || p.Text == "" {
				t.Fatalf("premise %+v of sentence %d", p, i)
			}
		}
		for _, p := range e.For(nil, claim, nil, 4) {
			if p.Sentence < 0 || p.Sentence >= e.Len() || p.Source < 0 || p.Source > 1 || !(p.Score > 0) {
				t.Fatalf("premise %+v of %d sentences", p, e.Len())
			}
			if at := e.Gather(claim, p.Source).Sentence; at < -1 || at >= e.Len() {
				t.Fatalf("gathered from sentence %d of %d", at, e.Len())
			}
		}
		if at := e.Says(claim); at < -1 || at >= e.Len() {
			t.Fatalf("said by sentence %d of %d", at, e.Len())
		}
	})
}
