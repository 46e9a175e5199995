package resolve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"signalbox/internal/openai"
	"signalbox/memory"
)

// savable refuses requests whose prompt and response cannot become a context. It requires a prompt
// that consists of text and is complete, a single choice, and a name and lifetime that store
// accepts.
func savable(store *memory.Store, req *openai.Request) error {
	if err := store.CheckTTL(req.Extras.SaveContext.TTL); err != nil {
		return openai.Invalid(saveContextField+".ttl", saveContextField+"."+err.Error())
	}
	asks := func(field string, harmless ...string) bool {
		v := req.Field(field)
		return v != nil && !slices.Contains(harmless, string(bytes.TrimSpace(v)))
	}
	switch {
	case len(req.Extras.SaveContext.Name) > maxSaveName:
		return openai.Invalid(saveContextField+".name",
			fmt.Sprintf("%s.name is longer than %d bytes", saveContextField, maxSaveName))
	case req.API == openai.Chat && asks("n", "1", "null"), req.API == openai.Completion && (asks("n", "1", "null") || asks("best_of", "1", "null")):
		return openai.Invalid(saveContextField, saveContextField+" saves one response: n must be 1")
	case req.API == openai.Completion && (req.OpaquePrompt || len(req.Messages) != 1):
		return openai.Invalid(saveContextField, saveContextField+" requires the prompt to be a single string")
	case req.API == openai.Completion && asks("echo", "false", "null"):
		return openai.Invalid(saveContextField,
			saveContextField+" cannot be combined with echo: the prompt is saved already")
	case req.API == openai.Response:
		return savableResponse(req)
	}
	return nil
}

// savableResponse refuses inputs that are incomplete or contain more than text.
func savableResponse(req *openai.Request) error {
	for _, field := range []string{"prompt", "previous_response_id", "previous_response", "previous_input_messages", "conversation"} {
		if v := req.Field(field); v != nil && string(v) != "null" {
			return openai.Invalid(saveContextField,
				saveContextField+" requires the whole prompt in the request, and "+field+" refers to content stored elsewhere")
		}
	}
	for i := range req.Messages {
		if m := &req.Messages[i]; !plainItem(req.Raw[m.Span.Start:m.Span.End]) {
			return openai.Invalid(saveContextField,
				fmt.Sprintf("%s supports only text messages in requests to /v1/responses, and input[%d] is not one", saveContextField, i))
		}
	}
	return nil
}

// plainItem reports whether an input item is a text or a text-only message.
func plainItem(raw []byte) bool {
	if len(raw) == 0 || raw[0] != '{' {
		return true
	}
	var item struct {
		Type    string          `json:"type"`
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(raw, &item) != nil || item.Type != "" && item.Type != "message" {
		return false
	}
	if len(item.Content) == 0 || item.Content[0] != '[' {
		return true
	}
	var parts []struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(item.Content, &parts) != nil {
		return false
	}
	for _, p := range parts {
		if p.Type != "input_text" && p.Type != "output_text" && p.Type != "text" {
			return false
		}
	}
	return true
}

// maxSaveName limits the name of a context, in bytes.
const maxSaveName = 256
