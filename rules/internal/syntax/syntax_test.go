package syntax

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

func parse(tb testing.TB, text string) (at Cursor, report *[]Problem) {
	tb.Helper()
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		tb.Fatalf("the test's YAML does not parse: %v", err)
	}
	report = &[]Problem{}
	return At(report, &doc, "root"), report
}

func TestReadersReportWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	accept := func(Cursor, string) {}
	for name, c := range map[string]struct {
		text string
		read func(Cursor)
		want []string
	}{
		"a key that is no key": {"{domain: 1, domian: 2}", func(at Cursor) { at.Mapping("a mapping", "domain") }, []string{
			`1:13: root.domian: unknown key "domian"; did you mean "domain"?`,
		}},
		"a key given twice": {"{a: 1, ? a : 2}", func(at Cursor) { at.Mapping("a mapping") }, []string{
			"1:10: root.a: this key is given twice",
		}},
		"a key of another place": {"{priority: 1, models: [a], jailbreak: true}", func(at Cursor) { at.Mapping("a route", RouteKeys()...) }, []string{
			`1:2: root.priority: unknown key "priority"; routes are tried in the order of the file`,
			`1:15: root.models: unknown key "models"; it belongs under use`,
			`1:28: root.jailbreak: unknown key "jailbreak"; it belongs under when`,
		}},
		"a word of another language": {"{and: []}", func(at Cursor) { at.Mapping("a condition", ConditionKeys()...) }, []string{
			`1:2: root.and: unknown key "and"; did you mean "all"?`,
		}},
		"a list for a mapping": {"[a]", func(at Cursor) { at.Mapping("a route") }, []string{"1:1: root: found a list, expected a route"}},
		"an empty list":        {"[]", func(at Cursor) { at.List("names") }, []string{"1:1: root: found an empty list, expected names"}},
		"a number for a text": {"12", func(at Cursor) { at.Text("a text") }, []string{
			"1:1: root: found 12, expected a text; put it in quotes if it is one",
		}},
		"an empty word":         {`" "`, func(at Cursor) { at.Word("a name") }, []string{"1:1: root: found an empty text, expected a name"}},
		"a name listed twice":   {"[a, b, a]", func(at Cursor) { at.Words("name", accept) }, []string{`1:8: root[2]: "a" is listed twice`}},
		"an alias":              {"[&x a, *x]", func(at Cursor) { at.Words("name", accept) }, []string{"1:8: root[1]: YAML aliases are not accepted here; write the value out, or name the condition under conditions"}},
		"a text for a bool":     {"yess", func(at Cursor) { at.Bool() }, []string{`1:1: root: found "yess", expected true or false`}},
		"too small a number":    {"0", func(at Cursor) { at.Integer(1) }, []string{"1:1: root: found 0, expected a whole number of at least 1"}},
		"a share above one":     {"1.5", func(at Cursor) { at.Share() }, []string{"1:1: root: found 1.5, expected a number from 0 to 1"}},
		"a share that is none":  {".nan", func(at Cursor) { at.Share() }, []string{"1:1: root: found .nan, expected a number from 0 to 1"}},
		"a choice nearly right": {"latncy", func(at Cursor) { at.Choice("cost", "latency") }, []string{`1:1: root: unknown value "latncy"; did you mean "latency"?`}},
		"a choice by a synonym": {"cheapest", func(at Cursor) { at.Choice("cost", "latency") }, []string{`1:1: root: unknown value "cheapest"; did you mean "cost"?`}},
		"nothing to choose from": {"x", func(at Cursor) { at.Known("intent", "x", nil) }, []string{
			`1:1: root: unknown intent "x"; none is defined under signals.intents`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at, report := parse(t, c.text)
			c.read(at)
			var got []string
			for _, p := range *report {
				got = append(got, p.String())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLackingIsSilentAboutWhatAProblemExplains(t *testing.T) {
	t.Parallel()
	at, report := parse(t, "{title: x}")
	mark := at.Mark()
	at.Mapping("a route", "name")
	at.Lacking(mark, "found no name")
	if len(*report) != 1 {
		t.Errorf("problems: %v", *report)
	}
	at.Lacking(at.Mark(), "found no name")
	if len(*report) != 2 {
		t.Errorf("problems: %v", *report)
	}
}

func TestShortenKeepsCharactersWhole(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", maxShown-1) + "日本"
	if got, want := Shorten(long), strings.Repeat("x", maxShown-1)+"..."; got != want {
		t.Errorf("shortened to %q, want %q", got, want)
	}
}

func TestSortKeepsTheOrderOfTheFile(t *testing.T) {
	t.Parallel()
	problems := []Problem{{Line: 2, Col: 1}, {Line: 1, Col: 5, Msg: "a"}, {Line: 1, Col: 5, Msg: "b", Warning: true}, {Line: 1, Col: 2}}
	Sort(problems)
	want := []Problem{{Line: 1, Col: 2}, {Line: 1, Col: 5, Msg: "a"}, {Line: 1, Col: 5, Msg: "b", Warning: true}, {Line: 2, Col: 1}}
	if diff := cmp.Diff(want, problems); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if n := Errors(problems); n != 3 {
		t.Errorf("%d errors", n)
	}
}

// FuzzJSON feeds arbitrary YAML: what is encoded is JSON, and what is not is reported.
func FuzzJSON(f *testing.F) {
	for _, text := range []string{
		`{z: null, a: {b: true, c: 7}}`, `["\n\n", 2020-01-01, 0.9]`, `.inf`, `.nan`, `0x1F`, `1_000`, `!!binary aGk=`, `{a: 1, a: 2}`,
		`{<<: {a: 1}}`, `[&x 1, *x]`, `{[1]: 2}`, `"\ud800"`, strings.Repeat("[", 70) + strings.Repeat("]", 70), `!!float x`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var doc yaml.Node
		if yaml.Unmarshal([]byte(text), &doc) != nil || len(doc.Content) == 0 {
			t.Skip("not YAML")
		}
		var report []Problem
		got, ok := At(&report, &doc, "root").JSON()
		if ok != (len(report) == 0) {
			t.Fatalf("encoded: %v, problems: %v", ok, report)
		}
		if ok && !json.Valid(got) {
			t.Fatalf("not JSON: %q", got)
		}
	})
}

func TestLanguagesAreKnownByTheirNames(t *testing.T) {
	t.Parallel()
	known := []string{"de", "en", "es", "he", "id", "it", "no", "pl", "pt", "tl", "zh"}
	for word, want := range map[string]string{
		"germn": "de", "german": "de", "German": "de", "Deutsch": "de", "deu": "de", "de-AT": "de", "DE": "de",
		"spansh": "es", "portuguse": "pt", "zh_Hans": "zh", "chinese": "zh", "iw": "he", "nb": "no", "fil": "tl",
		"fr": "", "french": "", "xx": "", "dee": "", "klingon": "", "": "", "-": "",
	} {
		if got := Language(word, known); got != want {
			t.Errorf("%q means %q, want %q", word, got, want)
		}
	}
	for name, code := range languages {
		if Language(name, []string{code}) != code {
			t.Errorf("%q is not understood", name)
		}
	}
}
