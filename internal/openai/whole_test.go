package openai

import (
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"signalbox/internal/testkit"
)

// wholeBodies are requests that hold every member that the parsers read, by kind. What reads each
// is looked at in proxy/redact and listed in docs/members.md.
var wholeBodies = map[API]string{
	Chat: "chat", Completion: "completion", Response: "response", Other: "other",
}

func wholeBody(t *testing.T, api API) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "whole", wholeBodies[api]+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// namesIn lists the members of a body as paths with dots, lists as [].
func namesIn(t *testing.T, raw []byte) []string {
	t.Helper()
	var out []string
	var walk func(v jsontext.Value, at string)
	walk = func(v jsontext.Value, at string) {
		d := jsontext.NewDecoder(strings.NewReader(string(v)))
		if k := v.Kind(); k != '{' && k != '[' {
			return
		}
		_, _ = d.ReadToken()
		for k := d.PeekKind(); k != '}' && k != ']'; k = d.PeekKind() {
			in := at + "[]"
			if v.Kind() == '{' {
				name, err := d.ReadToken()
				if err != nil {
					t.Fatal(err)
				}
				in = strings.TrimPrefix(at+"."+name.String(), ".")
				out = append(out, in)
			}
			next, err := d.ReadValue()
			if err != nil {
				t.Fatal(err)
			}
			walk(next.Clone(), in)
		}
	}
	walk(raw, "")
	return out
}

// A member that a parser knows and the bodies lack would be one whose readers nobody has looked at.
func TestWholeBodiesHoldEveryMember(t *testing.T) {
	t.Parallel()
	need := map[API]map[string][]string{
		Chat: {
			"": chatNames, "messages[].": messageNames, "messages[].content[].": partNames,
			"messages[].tool_calls[].":          toolCallNames,
			"messages[].tool_calls[].function.": {"name", "arguments"},
			"messages[].tool_calls[].custom.":   {"name", "input"},
			"stream_options.":                   streamOptionsNames,
		},
		Completion: {"": completionNames},
		Response: {
			"": responseNames, "input[].": responseItemNames, "reasoning.": reasoningNames,
			"prompt.": promptNames,
		},
		Other: {
			"": bodyNames, "input[].": {"role", "content", "name", "arguments", "output", "input"},
		},
	}
	places := map[scope][]string{
		inBody: {""}, inPart: {"messages[].content[].", "input[].content[]."}, inItem: {"input[]."},
		inMedium: {
			"messages[].content[].file.", "messages[].content[].image_url.",
			"input[].content[].input_audio.",
		},
		inPrompt: {"prompt."},
	}
	seen := map[string]bool{}
	for api, wanted := range need {
		names := namesIn(t, wholeBody(t, api))
		for _, n := range names {
			seen[n] = true
		}
		for at, members := range wanted {
			for _, m := range members {
				if !slices.Contains(names, at+m) {
					t.Errorf("%s: the body lacks %s", api, at+m)
				}
			}
		}
	}
	for _, e := range exemptions {
		if !slices.ContainsFunc(places[e.in], func(at string) bool { return seen[at+e.name] }) {
			t.Errorf("no body holds %s, which is exempt", e.name)
		}
		if e.why == "" {
			t.Errorf("%s is exempt for no reason", e.name)
		}
	}
}

// A case of a parser that is in none of the tables above, and skips its value, would be missed by
// the comparison of the tables with the bodies: so the bodies are compared with the source as well.
func TestWholeBodiesHoldEveryCaseOfTheParsers(t *testing.T) {
	t.Parallel()
	var bodies strings.Builder
	for api := range wholeBodies {
		bodies.Write(wholeBody(t, api))
	}
	types := []string{`"input_video"`, `"_output"`} // values of type, and what they end with: no names
	cases := testkit.Cases(t, func(at token.Position, quoted string) {
		if !strings.Contains(bodies.String(), quoted) && !slices.Contains(types, quoted) {
			t.Errorf("%s: no body holds %s", at, quoted)
		}
	}, "body.go", "completion.go", "parse.go", "read.go", "response.go")
	if cases < 100 {
		t.Errorf("%d cases were found in the source", cases)
	}
}
