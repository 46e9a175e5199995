package tools

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// spelled returns the forms of tools: NAME for whole, name/ for brief.
func spelled(l *List, forms []Form) []string {
	var out []string
	for i, f := range forms {
		if f != Away {
			out = append(out, l.Name(i)+[...]string{Brief: "/", Whole: ""}[f])
		}
	}
	return out
}

func TestFitFillsItsShare(t *testing.T) {
	l := office(t)
	vectors := [][]float32{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {0, .6, .8}, {}}
	say := func(text string, vector ...float32) []Turn { return []Turn{{Text: text, Vector: vector}} }
	for name, tc := range map[string]struct {
		moment  Moment
		vectors [][]float32
		share   float64
		must    string
		want    []string
	}{
		"all fit, the best is whole": {Moment{Parts: say("the weather")}, nil, 1, "", []string{"getWeather", "send_mail/", "book_flight/", "create_ticket/", ""}},
		"some fit":                   {Moment{Parts: say("book a flight and mail me")}, nil, .55, "", []string{"send_mail/", "book_flight", ""}},
		"the best is there":          {Moment{Parts: say("the weather")}, nil, 0, "", []string{"getWeather", ""}},
		"what must be kept":          {Moment{Parts: say("the weather")}, nil, 0, "create_ticket", []string{"getWeather", "create_ticket", ""}},
		"nothing can be told":        {Moment{Parts: say("yes")}, nil, 1, "", nil},
		"what the model said counts": {Moment{Parts: say("yes"), Before: Turn{Text: "Shall I open a ticket?"}}, nil, .4, "", []string{"create_ticket", ""}},
		"each part counts":           {Moment{Parts: append(say("the weather at a place, at a place"), say("mail")...)}, nil, .65, "", []string{"getWeather", "send_mail/", ""}},
		"two are as good":            {Moment{Parts: say("yes", .7, 0, .7)}, vectors, .4, "", []string{"getWeather", ""}},
		"one of them was called": {
			Moment{Parts: say("yes", .7, 0, .7), Called: []string{"unknown", "book_flight"}}, vectors, .4, "", []string{"book_flight", ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.vectors == nil {
				tc.vectors = make([][]float32, l.Len())
			}
			got := l.Fit(&tc.moment, tc.vectors, 1, tc.share, func(name string) bool { return name == tc.must })
			if d := cmp.Diff(tc.want, spelled(l, got)); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

func TestABriefToolHasItsParameters(t *testing.T) {
	for in, want := range map[string]string{
		`{"type":"function", "function":{"name":"a","description":"d","strict":true,"parameters":{"type":"object","title":"T",` +
			`"properties":{"title":{"type":"string","description":"x"},"b":{"enum":["description"],"default":1}},"required":["title"]}}}`: `{"type":"function",` +
			`"function":{"name":"a","description":"","strict":true,"parameters":{"type":"object","properties":{"title":{"type":"string"},"b":{"enum":["description"]}},"required":["title"]}}}`,
		`{"name":"a","description":"d","input_schema":{"anyOf":[{"description":"d"},{"items":{"title":"t"}},3]},"cache_control":{"type":"ephemeral"}}`: `{"name":"a",` +
			`"description":"","input_schema":{"anyOf":[{},{"items":{}},3]},"cache_control":{"type":"ephemeral"}}`,
		`{"parameters":{"dependentSchemas":{"title":{"title":"t"}},"dependentRequired":{"title":["x"]},"x-title":{"title":"t"}}}`: `` +
			`{"parameters":{"dependentSchemas":{"title":{}},"dependentRequired":{"title":["x"]},"x-title":{"title":"t"}}}`,
		`7`: `7`, `{"parameters":true}`: `{"parameters":true}`, `{"parameters":{"properties":[ ]}}`: `{"parameters":{"properties":[]}}`,
	} {
		if got := string(brief(json.RawMessage(in))); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", in, got, want)
		}
	}
	deep := strings.Repeat(`{"items":`, 200) + `{"description":"stays"}` + strings.Repeat(`}`, 200)
	if got := string(brief(json.RawMessage(`{"parameters":` + deep + `}`))); got != `{"parameters":`+deep+`}` {
		t.Errorf("what is too deep changed: %s", got)
	}
}

func TestPartsAreSentences(t *testing.T) {
	for in, want := range map[string][]string{
		"":                        nil,
		"  ... 12":                nil,
		"Book it. Then mail me!":  {"Book it.", "Then mail me!"},
		"\xff\na. b":              {"a.", "b"},
		"v1.2 is out\nread a.pdf": {"v1.2 is out", "read a.pdf file filename document read"},
		"see www.x.org":           {"see www.x.org url web webpage website page link"},
	} {
		if d := cmp.Diff(want, Parts(in)); d != "" {
			t.Errorf("%q (-want +got):\n%s", in, d)
		}
	}
	var many []string
	for i := range 1000 {
		many = append(many, fmt.Sprintf("Sentence %d.", i))
	}
	if n := len(Parts(strings.Join(many, " "))); n > partsOfTurn {
		t.Errorf("%d parts", n)
	}
}

func TestCallsBeforeTheUserSpoke(t *testing.T) {
	names, before := Called([]byte(`[{"role":"user"},{"tool_calls":[{"function":{"name":"a"}}]},{"role":"user"},{"tool_calls":[{"function":{"name":"b"}}]}]`))
	if !slices.Equal(names, []string{"a", "b"}) || before != 1 {
		t.Error(names, before)
	}
}

func FuzzFit(f *testing.F) {
	f.Add([]byte(`[{"type":"function","function":{"name":"getX","description":"d","parameters":{"properties":{"a":{"type":"string"}}}}},{"name":3},7,null,[]]`), "get x")
	f.Fuzz(func(t *testing.T, raw []byte, said string) {
		l, err := Parse(raw)
		if err != nil {
			return
		}
		m := Moment{}
		for _, p := range Parts(said) {
			m.Parts = append(m.Parts, Turn{Text: p})
		}
		forms := l.Fit(&m, make([][]float32, l.Len()), 1, .9, never)
		if forms == nil {
			return
		}
		again, err := Parse(l.JSON(forms))
		if err != nil {
			t.Fatalf("%s: %v", l.JSON(forms), err)
		}
		if n := len(spelled(l, forms)); again.Len() != n {
			t.Errorf("%d tools are kept and %d sent", n, again.Len())
		}
	})
}
