package guardrail

import (
	"encoding/json"
	"slices"

	"signalbox/internal/openai"
)

// formed reports whether the response text has a form that a marker would break: JSON, or what vLLM
// calls guided decoding or structured outputs. Since a client can keep markers out of the text in
// this way, only requests that a model server of this API would honour count: a member of another
// API, an empty one or one of the wrong type does not.
func formed(req *openai.Request) bool {
	if structured(req.Field("structured_outputs")) {
		return true
	}
	if req.API == openai.Response {
		return formal(openai.Member(req.Field("text"), "format"))
	}
	return filled(req.Field("guided_json"), '{', '"') || filled(req.Field("guided_regex"), '"') || filled(req.Field("guided_choice"), '[') ||
		filled(req.Field("guided_grammar"), '"') || formal(req.Field("response_format"))
}

// formal reports whether response_format, or text.format, requires anything but text. The types are
// those of OpenAI and structural_tag of vLLM.
func formal(format []byte) bool {
	var kind string
	if json.Unmarshal(openai.Member(format, "type"), &kind) != nil {
		return false
	}
	return kind == "json_object" || kind == "json_schema" || kind == "structural_tag"
}

// structured reports whether vLLM's field structured_outputs specifies a form.
func structured(v []byte) bool {
	for _, name := range [...]string{"json", "regex", "choice", "grammar", "structural_tag"} {
		if filled(openai.Member(v, name), '{', '"', '[') {
			return true
		}
	}
	return string(openai.Member(v, "json_object")) == "true"
}

// filled reports whether a JSON value begins with one of the bytes and is not empty.
func filled(v []byte, kinds ...byte) bool {
	var got any
	if json.Unmarshal(v, &got) != nil {
		return false
	}
	var first byte
	switch got := got.(type) {
	case string:
		if got != "" {
			first = '"'
		}
	case []any:
		if len(got) > 0 {
			first = '['
		}
	case map[string]any:
		if len(got) > 0 {
			first = '{'
		}
	}
	return first != 0 && slices.Contains(kinds, first)
}
