package escalate

import (
	"encoding/json"

	"signalbox/internal/openai"
)

// Expected is what a request requires of a response. The zero value requires nothing. It is
// immutable.
type Expected struct {
	tools map[string]any // schemas of arguments by tool name; nil if the request has no tools
	open  bool           // there are tools of other kinds, whose names are unknown
	json  bool           // texts must be JSON
	form  any            // their schema; nil for any JSON
}

// maxSchema limits the tools and schemas of a request that are read, in bytes.
const maxSchema = 256 << 10

// Expect reads the requirements of a request. Invalid ones are ignored, since the model server
// refuses them.
func Expect(req *openai.Request) *Expected {
	e := &Expected{}
	e.readTools(req.Field("tools"))
	switch req.API {
	case openai.Chat:
		e.readFormat(req.Field("response_format"))
	case openai.Response:
		e.readFormat(openai.Member(req.Field("text"), "format"))
	case openai.Completion, openai.Other:
	}
	return e
}

// readTools reads functions. Other tools have arguments that are not JSON, or run on the server.
func (e *Expected) readTools(b []byte) {
	type function struct {
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
	}
	var list []struct {
		function

		Function function `json:"function"`
	}
	if len(b) == 0 || len(b) > maxSchema || json.Unmarshal(b, &list) != nil {
		return
	}
	e.tools = make(map[string]any, len(list))
	for _, t := range list {
		f := t.Function
		if f.Name == "" {
			f = t.function // the form of the Responses API
		}
		if f.Name == "" {
			e.open = true
			continue
		}
		var form any
		if len(f.Parameters) > 0 && json.Unmarshal(f.Parameters, &form) != nil {
			form = nil
		}
		e.tools[f.Name] = form
	}
}

// readFormat reads the format of texts.
func (e *Expected) readFormat(b []byte) {
	if len(b) == 0 || len(b) > maxSchema {
		return
	}
	var f struct {
		Type   string          `json:"type"`
		Schema json.RawMessage `json:"schema"` // the form of the Responses API
		In     struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	}
	if json.Unmarshal(b, &f) != nil || f.Type != "json_object" && f.Type != "json_schema" {
		return
	}
	e.json = true
	form := f.In.Schema
	if len(form) == 0 {
		form = f.Schema
	}
	if len(form) > 0 && json.Unmarshal(form, &e.form) != nil {
		e.form = nil
	}
}

// call reports whether a call names an existing tool with arguments that it accepts.
func (e *Expected) call(name, arguments string) bool {
	form, ok := e.tools[name]
	if arguments == "" { // some servers send nothing for a tool without parameters
		arguments = "{}"
	}
	return (ok || e.open || e.tools == nil) && fits(arguments, form)
}
