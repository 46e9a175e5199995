package simulator

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// responseRequest is the body of a request to the Responses API. Nothing is stored, so
// previous_response_id cannot be used.
type responseRequest struct {
	sampling
	Input              responseInput  `json:"input"`
	Instructions       *string        `json:"instructions"`
	MaxOutputTokens    *float64       `json:"max_output_tokens"`
	Reasoning          reasoningParam `json:"reasoning"`
	ChatTemplateKwargs jsontext.Value `json:"chat_template_kwargs"`
	Tools              []responseTool `json:"tools"`
	ToolChoice         toolChoice     `json:"tool_choice"`
	Text               textParam      `json:"text"`
	PreviousResponseID string         `json:"previous_response_id"`
}

type reasoningParam struct {
	Effort string `json:"effort"`
}

// responseTool is a tool without the enclosing object that chat completions use.
type responseTool struct {
	Type        string         `json:"type"`
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Parameters  jsontext.Value `json:"parameters"`
}

// responseInput is the input as the messages of a chat.
type responseInput []message

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (in *responseInput) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() == jsontext.KindString {
		*in = responseInput{{Role: "user"}}
		return json.UnmarshalDecode(dec, &(*in)[0].Content.text)
	}
	var items []struct {
		message
		Type      string  `json:"type"`
		Name      string  `json:"name"`
		Arguments string  `json:"arguments"`
		Output    content `json:"output"`
	}
	if err := json.UnmarshalDecode(dec, &items); err != nil {
		return err
	}
	for i := range items {
		item := &items[i]
		switch item.Type {
		case "", "message":
		case "function_call":
			item.message = message{Role: "assistant", Content: content{text: item.Name + item.Arguments}}
		case "function_call_output":
			item.message = message{Role: "tool", Content: item.Output}
		case "reasoning":
			item.Role = "assistant"
		default:
			return fmt.Errorf("input[%d]: items of type %q are not simulated", i, item.Type)
		}
		*in = append(*in, item.message)
	}
	return nil
}

// planResponse checks a request and generates its response. A non-nil error is a *requestError.
func (s *Server) planResponse(r *http.Request, req *responseRequest) (*generation, error) {
	if id := req.PreviousResponseID; id != "" {
		return nil, &requestError{http.StatusNotFound, "NotFoundError", "response_id", fmt.Sprintf("Response with id '%s' not found.", id)}
	}
	chat := &chatRequest{
		sampling: req.sampling, MaxCompletionTokens: req.MaxOutputTokens, ReasoningEffort: req.Reasoning.Effort,
		ChatTemplateKwargs: req.ChatTemplateKwargs, ToolChoice: req.ToolChoice,
	}
	chat.N, chat.MaxTokens, chat.StreamOptions = nil, nil, nil
	chat.ResponseFormat.Type = req.Text.Format.Type
	chat.ResponseFormat.JSONSchema.Schema = req.Text.Format.Schema
	if req.Instructions != nil {
		chat.Messages = append(chat.Messages, message{Role: "system", Content: content{text: *req.Instructions}})
	}
	chat.Messages = append(chat.Messages, req.Input...)
	for i := range req.Tools {
		var t tool
		t.Function.Name, t.Function.Description, t.Function.Parameters = req.Tools[i].Name, req.Tools[i].Description, req.Tools[i].Parameters
		chat.Tools = append(chat.Tools, t)
	}
	// A limit beyond the window is reduced, not rejected (ResponsesRequest.to_sampling_params).
	if room := float64(s.opt.MaxModelLen - chatTokens(chat.Messages, chat.Tools)); chat.MaxCompletionTokens != nil && *chat.MaxCompletionTokens > room && room >= 1 {
		chat.MaxCompletionTokens = &room
	}
	g, err := s.planChat(r, chat, "resp_")
	if e, ok := errors.AsType[*requestError](err); ok {
		e.param = strings.NewReplacer(
			"messages", "input", "max_tokens", "max_output_tokens",
			"response_format", "text.format",
		).Replace(e.param)
	}
	return g, err
}

func (s *Server) response(w http.ResponseWriter, r *http.Request) {
	var req responseRequest
	if !s.read(w, r, &req) {
		return
	}
	g, err := s.planResponse(r, &req)
	if err != nil {
		s.fail(w, err)
		return
	}
	f := newResponseFramer(g, s.opt.Model, &req)
	s.serve(w, r, g, f, func() any { return f.body(true) })
}
