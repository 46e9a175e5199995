package escalate

import (
	"encoding/json"

	"signalbox/internal/openai"
)

// Expected is what a request asks a response to be. The zero value asks for nothing. It is not
// changed once it was made.
type Expected struct {
	tools map[string]any // schemas of arguments by name; nil where the request brings no tools
	open  bool           // there are tools of other kinds, whose names are not known
	json  bool           // texts have to be JSON
	form  any            // its schema; nil for any JSON
}

// maxSchema bounds the tools and the schema of a request that are read, in bytes.
const maxSchema = 256 << 10

// Expect reads what a request asks for. What cannot be read asks for nothing: the model server
// refuses it.
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

// readTools reads functions; other tools have arguments that are no JSON, or run on the server.
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
			f = t.function // as the Responses API has it
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
		Schema json.RawMessage `json:"schema"` // as the Responses API has it
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

// call reports whether a call is one of a tool that is there, with arguments that it takes.
func (e *Expected) call(name, arguments string) bool {
	form, ok := e.tools[name]
	if arguments == "" { // some servers send none for a tool without parameters
		arguments = "{}"
	}
	return (ok || e.open || e.tools == nil) && fits(arguments, form)
}
