package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"signalbox/stream/check"
)

func TestFeaturesOfRows(t *testing.T) {
	t.Parallel()
	const rows = `{"facts": "The Eiffel Tower is 330 m tall.", "question": "", "answer": "The Eiffel Tower is 350 m tall. Is it? It is in Paris.", "label": "unsupported", "src": "x"}
{"facts": ["The Louvre is in Paris.", "Bananas ripen."], "answer": "The Louvre is in Paris.", "label": "supported"}
{"facts": "A fact.", "answer": "Is it?", "label": "supported"}
{"facts": "The Tokyo Tower is 333 m tall.", "answer": "The Tokyo Tower is 333 m tall."}
`
	for _, workers := range []string{"1", "3", "8"} {
		var out, problems bytes.Buffer
		if err := run(t.Context(), []string{"--workers", workers}, strings.NewReader(rows), &out, &problems); err != nil {
			t.Fatalf("%v: %s", err, problems.String())
		}
		dec := json.NewDecoder(&out)
		var head struct{ Features []string }
		if err := dec.Decode(&head); err != nil || len(head.Features) != len(check.FeatureNames()) {
			t.Fatalf("first line %+v, %v", head, err)
		}
		want := []line{
			{Row: 0, Claim: 0, Label: "unsupported", Text: "The Eiffel Tower is 350 m tall.", Verdict: "contradicted"},
			{Row: 0, Claim: 1, Label: "unsupported", Text: "It is in Paris.", Verdict: "unchecked"},
			{Row: 1, Claim: 0, Label: "supported", Text: "The Louvre is in Paris.", Verdict: "supported"},
			{Row: 2, Claim: 0, Label: "supported", Text: "Is it?", Verdict: "not_checkable"},
			{Row: 3, Claim: 0, Text: "The Tokyo Tower is 333 m tall.", Verdict: "supported"},
		}
		for _, w := range want {
			var l line
			if err := dec.Decode(&l); err != nil {
				t.Fatal(err)
			}
			if l.Row != w.Row || l.Claim != w.Claim || l.Label != w.Label || l.Text != w.Text || l.Verdict != w.Verdict || len(l.Features) != len(head.Features) {
				t.Errorf("line %+v, want %+v", l, w)
			}
		}
		if dec.More() {
			t.Error("more lines than claims")
		}
	}
}

func TestBadRowsAreNamed(t *testing.T) {
	t.Parallel()
	for name, rows := range map[string]string{
		"no JSON":          "{\"answer\": \"x\"}\n{",
		"facts of no kind": "{\"answer\": \"x\"}\n{\"facts\": 5}",
	} {
		var out, problems bytes.Buffer
		err := run(t.Context(), []string{"--workers", "1"}, strings.NewReader(rows), &out, &problems)
		if err == nil || !strings.Contains(err.Error(), "row 1") {
			t.Errorf("%s: %v, want an error of row 1", name, err)
		}
	}
}
