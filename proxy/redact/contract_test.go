package redact

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/openai"
	"signalbox/internal/signal"
)

// guessed redacts names in a request as a classifier that reads everything would find them.
func guessed(tb testing.TB, api openai.API, body string, names map[string]string) *openai.Request {
	tb.Helper()
	req, err := openai.Parse(api, []byte(body), openai.Limits{})
	if err != nil {
		tb.Fatal(err)
	}
	var spans []signal.Span
	for i, s := range req.Text().Segments {
		for name, kind := range names {
			for from := 0; ; {
				k := strings.Index(s.Text[from:], name)
				if k < 0 {
					break
				}
				spans = append(
					spans,
					signal.Span{Type: kind, Segment: i, Start: from + k, End: from + k + len(name), Score: 1},
				)
				from += k + len(name)
			}
		}
	}
	out, _, err := Hide(tb.Context(), req, spans, nil, nil)
	if err != nil {
		tb.Fatal(err)
	}
	if !json.Valid(out.Raw) {
		tb.Fatalf("no JSON: %s", out.Raw)
	}
	return out
}

// What application, model and server have agreed on keeps its name; descriptions of it are
// redacted.
func TestWordsOfTheContractStay(t *testing.T) {
	t.Parallel()
	names := map[string]string{"Watson": "PERSON", "watson": "PERSON", "Berlin": "GPE", "berlin": "GPE"}
	for name, tt := range map[string]struct {
		api        openai.API
		body, want string
	}{
		"names, properties and lists of a tool": {
			openai.Chat,
			`{"model":"auto","messages":[{"role":"user","content":"Ask Watson in Berlin"}],` +
				`"tools":[{"type":"function","function":{"name":"watson","description":"Ask Watson",` +
				`"parameters":{"type":"object","properties":{"berlin":{"type":"string","enum":["Berlin",` +
				`"x"],"description":"of Berlin"},"Berlin":{"type":"number","default":"Watson"}},` +
				`"required":["berlin","Berlin"]}}}],"tool_choice":{"type":"function","function":{"name":"watson"}}}`,
			`{"model":"auto","messages":[{"role":"user","content":"Ask [PERSON_1] in [PLACE_1]"}],` +
				`"tools":[{"type":"function","function":{"name":"watson","description":"Ask [PERSON_1]",` +
				`"parameters":{"type":"object","properties":{"berlin":{"type":"string","enum":["Berlin",` +
				`"x"],"description":"of [PLACE_1]"},"Berlin":{"type":"number","default":"[PERSON_1]"}},` +
				`"required":["berlin","Berlin"]}}}],"tool_choice":{"type":"function","function":{"name":"watson"}}}`,
		},
		"a tool that nothing else mentions": {
			openai.Chat,
			`{"model":"auto","messages":[{"role":"user","content":"hi"}],` +
				`"functions":[{"name":"watson"}],"function_call":{"name":"watson"}}`,
			`{"model":"auto","messages":[{"role":"user","content":"hi"}],` +
				`"functions":[{"name":"watson"}],"function_call":{"name":"watson"}}`,
		},
		"a schema of the answer": {
			openai.Chat,
			`{"model":"auto","messages":[{"role":"user","content":"in Berlin"}],` +
				`"response_format":{"type":"json_schema","json_schema":{"name":"berlin",` +
				`"schema":{"properties":{"name":{"const":"Berlin","title":"Watson"}}}}}}`,
			`{"model":"auto","messages":[{"role":"user","content":"in [PLACE_1]"}],` +
				`"response_format":{"type":"json_schema","json_schema":{"name":"berlin",` +
				`"schema":{"properties":{"name":{"const":"Berlin","title":"[PERSON_1]"}}}}}}`,
		},
		"calls and results": {
			openai.Chat,
			`{"model":"auto","messages":[{"role":"user","name":"Watson","content":"x"},` +
				`{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"watson",` +
				`"arguments":"{\"name\":\"Watson\"}"}}]},{"role":"tool","name":"watson","tool_call_id":"c",` +
				`"content":"Watson"}]}`,
			`{"model":"auto","messages":[{"role":"user","name":"[PERSON_1]","content":"x"},` +
				`{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"watson",` +
				`"arguments":"{\"name\":\"[PERSON_1]\"}"}}]},{"role":"tool","name":"watson",` +
				`"tool_call_id":"c","content":"[PERSON_1]"}]}`,
		},
		"words of several lines": {
			openai.Chat,
			`{"model":"auto","messages":[{"role":"user","content":"Ask Watson"}],"tools":[{"type":"function",` +
				`"function":{"name":"f","parameters":{"properties":{"Watson\nX":{"enum":["Watson\nLondon"]}}}}}]}`,
			`{"model":"auto","messages":[{"role":"user","content":"Ask [PERSON_1]"}],"tools":[{"type":"function",` +
				`"function":{"name":"f","parameters":{"properties":{"Watson\nX":{"enum":["Watson\nLondon"]}}}}}]}`,
		},
		"a default is any text": {
			openai.Chat,
			`{"model":"auto","messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function",` +
				`"function":{"name":"f","parameters":{"properties":{"default":{"enum":["Watson"]},` +
				`"p":{"default":{"enum":"Watson"}}}}}}]}`,
			`{"model":"auto","messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function",` +
				`"function":{"name":"f","parameters":{"properties":{"default":{"enum":["Watson"]},` +
				`"p":{"default":{"enum":"[PERSON_1]"}}}}}}]}`,
		},
		"a user of the Responses API has a name": {
			openai.Response,
			`{"model":"auto","input":[{"role":"user","name":"Watson","content":"x"}]}`,
			`{"model":"auto","input":[{"role":"user","name":"[PERSON_1]","content":"x"}]}`,
		},
		"keys of metadata that differ by case": {
			openai.Chat,
			`{"model":"auto","messages":[{"role":"user","content":"in Berlin"}],` +
				`"metadata":{"berlin":"a","Berlin":"Berlin"}}`,
			`{"model":"auto","messages":[{"role":"user","content":"in [PLACE_1]"}],` +
				`"metadata":{"berlin":"a","Berlin":"[PLACE_1]"}}`,
		},
		"names of members that differ by case": {
			openai.Chat,
			`{"model":"auto","messages":[{"role":"user","content":"in Berlin"}],` +
				`"documents":[{"Berlin":1,"berlin":2,"BERLIN":3},{"berlin":4}]}`,
			`{"model":"auto","messages":[{"role":"user","content":"in [PLACE_1]"}],` +
				`"documents":[{"[PLACE_1]":1,"[PLACE_2]":2,"[PLACE_3]":3},{"[PLACE_2]":4}]}`,
		},
		"tools of the Responses API": {
			openai.Response,
			`{"model":"auto","input":[{"role":"user","content":"Ask Watson"},{"type":"function_call",` +
				`"call_id":"c","name":"watson","arguments":"{}"}],"tools":[{"type":"function",` +
				`"name":"watson","description":"Watson"}],"text":{"format":{"type":"json_schema",` +
				`"name":"berlin","schema":{"properties":{"berlin":{},"Berlin":{}}}}}}`,
			`{"model":"auto","input":[{"role":"user","content":"Ask [PERSON_1]"},` +
				`{"type":"function_call","call_id":"c","name":"watson","arguments":"{}"}],` +
				`"tools":[{"type":"function","name":"watson","description":"[PERSON_1]"}],` +
				`"text":{"format":{"type":"json_schema","name":"berlin","schema":{"properties":{"berlin":{},` +
				`"Berlin":{}}}}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := guessed(t, tt.api, tt.body, names)
			if diff := cmp.Diff(tt.want, string(out.Raw)); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
		})
	}
}

// A name that occurs only in a schema's enum is redacted where people use it.
func TestANameOfTheContractIsHiddenElsewhere(t *testing.T) {
	t.Parallel()
	body := `{"model":"auto","messages":[{"role":"user","content":"pay %s"}],"tools":[{"type":"function",` +
		`"function":{"name":"f","parameters":{"properties":{"to":{"enum":["Claire Dubois","A1234567"]}}}}}]}`
	req, err := openai.Parse(openai.Chat, []byte(strings.Replace(body, "%s", "Claire Dubois", 1)), openai.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	var spans []signal.Span
	for i, s := range req.Text().Segments {
		for value, kind := range map[string]string{"Claire Dubois": "PERSON", "A1234567": "US_DRIVER_LICENSE"} {
			if k := strings.Index(s.Text, value); k >= 0 && i > 0 { // nothing is found in what the user says
				spans = append(spans, signal.Span{Type: kind, Segment: i, Start: k, End: k + len(value), Score: 1})
			}
		}
	}
	out, _, err := Hide(t.Context(), req, spans, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(strings.Replace(body, "%s", "[PERSON_1]", 1), "A1234567", "[LICENSE_1]", 1)
	if diff := cmp.Diff(want, string(out.Raw)); diff != "" {
		t.Errorf("hidden (-want +got):\n%s", diff)
	}
}
