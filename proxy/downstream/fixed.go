package downstream

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"signalbox/internal/openai"
)

// WriteFixed writes a fixed text as the response, in the form that the client asked for, once for
// each requested choice.
func WriteFixed(w *Writer, req *openai.Request, text string) error {
	if w.Messages != nil {
		w.Messages.Prompt = 0 // no model reads the prompt
	}
	switch req.API {
	case openai.Completion:
		return writeCompletion(w, req, text)
	case openai.Response:
		return writeResponse(w, req, text)
	case openai.Chat, openai.Other: // Other is never routed
	}
	return writeChat(w, req, text)
}

// completion is a chat completion or text completion produced by the proxy, for routes that reply
// themselves.
type completion struct {
	ID      string   `json:"id"`
	Object  string   `json:"object"`
	Created int64    `json:"created"`
	Model   string   `json:"model"`
	Choices []choice `json:"choices"`
	Usage   *usage   `json:"usage,omitempty"`
}

type choice struct {
	Index        int      `json:"index"`
	Message      *message `json:"message,omitempty"`
	Delta        *message `json:"delta,omitempty"`
	Text         *string  `json:"text,omitempty"` // in a text completion
	Logprobs     *string  `json:"logprobs"`
	FinishReason *string  `json:"finish_reason"`
}

type message struct {
	Role    string  `json:"role,omitempty"`
	Content *string `json:"content,omitempty"`
}

// usage is all zero, since no model ran.
type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
}

func writeChat(w *Writer, req *openai.Request, text string) error {
	stop := "stop"
	base := completion{ID: "chatcmpl-" + w.ID, Object: "chat.completion", Created: time.Now().Unix(), Model: req.Model}
	var whole, parts []choice
	for i := range choices(req) {
		said := &message{Role: "assistant", Content: &text}
		whole = append(whole, choice{Index: i, Message: said, FinishReason: &stop})
		parts = append(parts, choice{Index: i, Delta: said}, choice{Index: i, Delta: &message{}, FinishReason: &stop})
	}
	if !req.Stream {
		base.Choices, base.Usage = whole, &usage{}
		return writeOwn(w, base)
	}
	base.Object = "chat.completion.chunk"
	return base.stream(w, req, parts)
}

// maxChoices limits how often n repeats a text. OpenAI returns at most 128 choices.
const maxChoices = 128

// choices returns the number of choices of a request: n for each of its prompts.
func choices(req *openai.Request) int {
	prompts := 1
	if req.API == openai.Completion {
		prompts = max(len(req.Messages), 1)
	}
	return prompts * min(req.Choices(), max(maxChoices/prompts, 1))
}

// writeCompletion replies to each prompt with the text.
func writeCompletion(w *Writer, req *openai.Request, text string) error {
	stop, none := "stop", ""
	base := completion{ID: "cmpl-" + w.ID, Object: "text_completion", Created: time.Now().Unix(), Model: req.Model}
	var whole, parts []choice
	for i := range choices(req) {
		whole = append(whole, choice{Index: i, Text: &text, FinishReason: &stop})
		parts = append(parts, choice{Index: i, Text: &text}, choice{Index: i, Text: &none, FinishReason: &stop})
	}
	if req.Stream {
		return base.stream(w, req, parts)
	}
	base.Choices, base.Usage = whole, &usage{}
	return WriteJSON(w, http.StatusOK, base)
}

// stream sends the choices, one per chunk.
func (c completion) stream(w *Writer, req *openai.Request, choices []choice) error {
	var s eventWriter
	for _, one := range choices {
		event := c
		event.Choices = []choice{one}
		s.add("", event)
	}
	if req.IncludeUsage {
		event := c
		event.Choices, event.Usage = []choice{}, &usage{}
		s.add("", event)
	}
	s.out = append(s.out, "data: [DONE]\n\n"...)
	return s.send(w)
}

// writeOwn writes a completion produced by the proxy.
func writeOwn(w *Writer, v any) error {
	b, err := Encode(v)
	if err != nil {
		return err
	}
	if b, err = w.Translate(b); err != nil {
		return err
	}
	return WriteBytes(w, http.StatusOK, b)
}

// responseObject is a Responses API object produced by the proxy. It has the members that the API
// requires, null where there is no value (OpenAI API reference, the response object).
type responseObject struct {
	ID                string          `json:"id"`
	Object            string          `json:"object"`
	CreatedAt         int64           `json:"created_at"`
	Status            string          `json:"status"`
	Error             *responseFault  `json:"error"`
	IncompleteDetails *string         `json:"incomplete_details"`
	Instructions      json.RawMessage `json:"instructions"`
	MaxOutputTokens   *int64          `json:"max_output_tokens"`
	Model             string          `json:"model"`
	Output            []outputItem    `json:"output"`
	ParallelToolCalls bool            `json:"parallel_tool_calls"`
	PreviousID        json.RawMessage `json:"previous_response_id"`
	ToolChoice        string          `json:"tool_choice"`
	Tools             []string        `json:"tools"`
	Temperature       *float64        `json:"temperature"`
	TopP              *float64        `json:"top_p"`
	Metadata          json.RawMessage `json:"metadata"`
	Usage             *responseUsage  `json:"usage"`
}

// responseFault is why a response failed.
type responseFault struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

type outputItem struct {
	ID      string       `json:"id"`
	Type    string       `json:"type"`
	Status  string       `json:"status"`
	Role    string       `json:"role"`
	Content []outputText `json:"content"`
}

type outputText struct {
	Type        string   `json:"type"`
	Text        string   `json:"text"`
	Annotations []string `json:"annotations"`
	Logprobs    []string `json:"logprobs"`
}

// responseUsage is all zero, since no model ran.
type responseUsage struct {
	Input        int `json:"input_tokens"`
	InputDetails struct {
		Cached int `json:"cached_tokens"`
	} `json:"input_tokens_details"`
	Output        int `json:"output_tokens"`
	OutputDetails struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
	Total int `json:"total_tokens"`
}

// responseEvent is any of the events that carry a text.
type responseEvent struct {
	Type     string          `json:"type"`
	Sequence int             `json:"sequence_number"`
	Response *responseObject `json:"response,omitempty"`
	ItemID   string          `json:"item_id,omitempty"`
	Output   *int            `json:"output_index,omitempty"`
	Content  *int            `json:"content_index,omitempty"`
	Item     *outputItem     `json:"item,omitempty"`
	Part     *outputText     `json:"part,omitempty"`
	Delta    *string         `json:"delta,omitempty"`
	Text     *string         `json:"text,omitempty"`
	Logprobs *[]string       `json:"logprobs,omitempty"`
}

// The states of a response and its items.
const (
	statusInProgress = "in_progress"
	statusCompleted  = "completed"
	statusFailed     = "failed"
)

// ResponseID returns the id of a fixed reply in the Responses API.
func ResponseID(w *Writer) string { return "resp_" + w.ID }

// writeResponse replies with the text as the only item of a response, as one object or as the
// events that a server sends for it.
func writeResponse(w *Writer, req *openai.Request, text string) error {
	part := outputText{Type: "output_text", Text: text, Annotations: []string{}, Logprobs: []string{}}
	item := outputItem{ID: "msg_" + w.ID, Type: "message", Status: statusCompleted, Role: "assistant", Content: []outputText{part}}
	begun := w.beginResponse(req)
	ended := begun
	ended.Status, ended.Output, ended.Usage = statusCompleted, []outputItem{item}, &responseUsage{}
	if !req.Stream {
		return WriteJSON(w, http.StatusOK, ended)
	}
	empty := part
	empty.Text = ""
	opened := outputItem{ID: item.ID, Type: item.Type, Status: statusInProgress, Role: item.Role, Content: []outputText{}}
	first, none := 0, []string{}
	at := responseEvent{ItemID: item.ID, Output: &first, Content: &first}
	var s eventWriter
	sequence := 0
	add := func(kind string, e responseEvent) {
		e.Type, e.Sequence = kind, sequence
		sequence++
		s.add(kind, e)
	}
	add("response.created", responseEvent{Response: &begun})
	add("response.in_progress", responseEvent{Response: &begun})
	add("response.output_item.added", responseEvent{Output: &first, Item: &opened})
	e := at
	e.Part = &empty
	add("response.content_part.added", e)
	e = at
	e.Delta, e.Logprobs = &text, &none
	add("response.output_text.delta", e)
	e = at
	e.Text, e.Logprobs = &text, &none
	add("response.output_text.done", e)
	e = at
	e.Part = &part
	add("response.content_part.done", e)
	add("response.output_item.done", responseEvent{Output: &first, Item: &item})
	add("response.completed", responseEvent{Response: &ended})
	return s.send(w)
}

// beginResponse returns a response without any content yet.
func (w *Writer) beginResponse(req *openai.Request) responseObject {
	metadata := json.RawMessage(req.Field("metadata"))
	if metadata == nil {
		metadata = json.RawMessage("{}")
	}
	return responseObject{
		ID: ResponseID(w), Object: "response", CreatedAt: time.Now().Unix(), Status: statusInProgress, Model: req.Model,
		Instructions: orNull(req.Field("instructions")), PreviousID: orNull(req.Field("previous_response_id")),
		Metadata: metadata, MaxOutputTokens: req.MaxCompletionTokens, Output: []outputItem{}, ParallelToolCalls: true,
		ToolChoice: "auto", Tools: []string{},
	}
}

// failedResponse returns the event that ends a failed response. Some clients, such as Codex,
// understand no other error.
func (w *Writer) failedResponse(e *openai.Error, req *openai.Request, number int, id string) []byte {
	r := w.beginResponse(req)
	if id := strings.Trim(id, `"`); id != "" {
		r.ID = id
	}
	r.Status, r.Error = statusFailed, &responseFault{Code: cmp.Or(e.Code, "server_error"), Message: e.Message}
	var s eventWriter
	s.add("response.failed", responseEvent{Type: "response.failed", Sequence: number, Response: &r})
	return s.out
}

// orNull returns a value as the client spelled it, or null if it sent none.
func orNull(value []byte) json.RawMessage {
	if value == nil {
		return json.RawMessage("null")
	}
	return value
}
