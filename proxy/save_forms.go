package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"signalbox/internal/openai"
	"signalbox/proxy/fault"
	"signalbox/stream/response"
)

// savable refuses requests whose prompt and answer cannot become a context: it takes a prompt of
// text that is all there, and one answer.
func savable(req *openai.Request) error {
	asks := func(field string, harmless ...string) bool {
		v := req.Field(field)
		return v != nil && !slices.Contains(harmless, string(bytes.TrimSpace(v)))
	}
	switch {
	case len(req.Extras.SaveContext.Name) > maxSaveName:
		return fault.InvalidField(saveContextField+".name", fmt.Sprintf("%s.name is longer than %d bytes", saveContextField, maxSaveName))
	case req.API == openai.Chat && asks("n", "1", "null"), req.API == openai.Completion && (asks("n", "1", "null") || asks("best_of", "1", "null")):
		return fault.InvalidField(saveContextField, saveContextField+" is for one answer: n must be 1")
	case req.API == openai.Completion && (req.OpaquePrompt || len(req.Messages) != 1):
		return fault.InvalidField(saveContextField, saveContextField+" is for a prompt that is one text")
	case req.API == openai.Completion && asks("echo", "false", "null"):
		return fault.InvalidField(saveContextField, saveContextField+" and echo do not go together: the prompt is stored already")
	case req.API == openai.Response:
		return savableResponse(req)
	}
	return nil
}

// savableResponse refuses inputs that are not all there, or hold more than texts.
func savableResponse(req *openai.Request) error {
	for _, field := range []string{"prompt", "previous_response_id", "previous_response", "previous_input_messages", "conversation"} {
		if v := req.Field(field); v != nil && string(v) != "null" {
			return fault.InvalidField(saveContextField, saveContextField+" is for a prompt that is all there, and "+field+" stands for something else")
		}
	}
	for i := range req.Messages {
		if m := &req.Messages[i]; !plainItem(req.Raw[m.Span.Start:m.Span.End]) {
			return fault.InvalidField(saveContextField, fmt.Sprintf("%s takes messages of text from /v1/responses, and input[%d] is something else", saveContextField, i))
		}
	}
	return nil
}

// plainItem reports whether an item of an input is a text, or a message of nothing but text.
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

// asMessages is what the client sent as the body of a chat: the form in which it is stored.
func asMessages(req *openai.Request) ([]byte, error) {
	if req.API == openai.Chat {
		return openai.NewPatch(req).Bytes(), nil
	}
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	var body struct {
		Messages []message `json:"messages"`
	}
	if req.Instructions != "" {
		body.Messages = append(body.Messages, message{"system", req.Instructions})
	}
	for i := range req.Messages {
		body.Messages = append(body.Messages, message{req.Messages[i].Role, req.Messages[i].Text})
	}
	out, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("spell messages: %w", err)
	}
	return out, nil
}

// readResponse reads a response and returns why it ended, or its status.
func (s *saver) readResponse(body []byte) (finish string) {
	var in struct {
		Status string `json:"status"`
		Output []struct {
			Type    string `json:"type"`
			Content []struct {
				Text    string `json:"text"`
				Refusal string `json:"refusal"`
			} `json:"content"`
			CallID    string `json:"call_id"`
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"output"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		s.lost = fmt.Errorf("read response: %w", err)
		return ""
	}
	s.whole = new(response.Message)
	var text strings.Builder
	for _, item := range in.Output {
		switch item.Type {
		case "message":
			for _, part := range item.Content {
				text.WriteString(part.Text + part.Refusal)
			}
		case "function_call":
			s.whole.ToolCalls = append(s.whole.ToolCalls, response.ToolCall{
				ID: item.CallID, Type: "function", Function: response.Function{Name: item.Name, Arguments: item.Arguments},
			})
		case "reasoning": // is not part of what later turns see
		default:
			s.lost = errors.New("a response with " + item.Type)
		}
	}
	if said := text.String(); said != "" || len(s.whole.ToolCalls) == 0 {
		s.whole.Content = &said
	}
	if in.Status == "completed" {
		return "stop"
	}
	return in.Status
}
