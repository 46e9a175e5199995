package simulator

import (
	"github.com/go-json-experiment/json/jsontext"
)

// forms are the fields by which a request sets the format of the response: response_format of the
// API, and the guided decoding of vLLM under its old and its new name.
type forms struct {
	ResponseFormat struct {
		Type       string `json:"type"`
		JSONSchema struct {
			Schema jsontext.Value `json:"schema"`
		} `json:"json_schema"`
	} `json:"response_format"`
	GuidedJSON        jsontext.Value `json:"guided_json"`
	GuidedRegex       string         `json:"guided_regex"`
	GuidedChoice      []string       `json:"guided_choice"`
	StructuredOutputs struct {
		JSON       jsontext.Value `json:"json"`
		JSONObject bool           `json:"json_object"`
		Regex      string         `json:"regex"`
		Choice     []string       `json:"choice"`
	} `json:"structured_outputs"`
}

// textParam is the member text of the Responses API.
type textParam struct {
	Format struct {
		Type   string         `json:"type"`
		Schema jsontext.Value `json:"schema"`
	} `json:"format"`
}

// formed returns a response in the requested format; ok is false if none is requested, or a
// grammar, which is not simulated. An error is a *requestError.
func (f *forms) formed(said string) (text string, ok bool, err error) {
	param := "response_format"
	var (
		schema jsontext.Value
		object bool
		regex  string
		choice []string
	)
	switch f.ResponseFormat.Type {
	case "", "text", "structural_tag":
		param, schema = "guided_json", f.GuidedJSON
		if regex, choice = f.GuidedRegex, f.GuidedChoice; regex != "" {
			param = "guided_regex"
		}
		if s := &f.StructuredOutputs; !given(schema) && regex == "" && choice == nil {
			param, schema, object = "structured_outputs", s.JSON, s.JSONObject
			regex, choice = s.Regex, s.Choice
		}
	case "json_object":
		object = true
	case "json_schema":
		if schema = f.ResponseFormat.JSONSchema.Schema; !given(schema) {
			return "", false, badRequest(param, "type json_schema must have json_schema.schema.")
		}
	default:
		return "", false, badRequest(param, "Unknown type: %q.", f.ResponseFormat.Type)
	}
	switch {
	case given(schema):
		if text, err = makeValue(unquoted(schema), false); err != nil {
			return "", false, badRequest(param, "The schema cannot be used: %v.", err)
		}
		return text, true, nil
	case object:
		return `{"simulated": true, "answer": ` + string(appendQuoted(nil, said)) + `}`, true, nil
	case regex != "":
		if text, ok = matching(regex, 0); !ok {
			return "", false, badRequest(param, "The regular expression cannot be used: %q.", regex)
		}
		return text, true, nil
	case len(choice) > 0:
		return choice[0], true, nil
	}
	return "", false, nil
}

// given reports whether a field is present and not null.
func given(v jsontext.Value) bool { return len(v) > 0 && string(v) != "null" }

// unquoted returns a schema, which may be sent as a JSON string.
func unquoted(v jsontext.Value) []byte {
	if v.Kind() != '"' {
		return v
	}
	b, _ := jsontext.AppendUnquote(nil, v) // it has been validated
	return b
}
