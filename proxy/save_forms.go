package proxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"signalbox/internal/openai"
	"signalbox/stream/response"
)

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
