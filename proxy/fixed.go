package proxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"signalbox/internal/openai"
)

// completion is a chat completion of our own, for routes that answer themselves.
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
	Logprobs     *string  `json:"logprobs"`
	FinishReason *string  `json:"finish_reason"`
}

type message struct {
	Role    string  `json:"role,omitempty"`
	Content *string `json:"content,omitempty"`
}

// usage is all zero: no model ran.
type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
}

// answerFixed replies with a fixed text in the form that the client asked for.
func answerFixed(w *reply, req *openai.Request, text string) error {
	stop := "stop"
	base := completion{ID: "chatcmpl-" + w.id, Object: "chat.completion", Created: time.Now().Unix(), Model: req.Model}
	if !req.Stream {
		base.Choices = []choice{{Message: &message{Role: "assistant", Content: &text}, FinishReason: &stop}}
		base.Usage = &usage{}
		return writeJSON(w, http.StatusOK, base)
	}
	base.Object = "chat.completion.chunk"
	events := make([]completion, 0, 3)
	for _, c := range []choice{
		{Delta: &message{Role: "assistant", Content: &text}},
		{Delta: &message{}, FinishReason: &stop},
	} {
		event := base
		event.Choices = []choice{c}
		events = append(events, event)
	}
	if req.IncludeUsage {
		event := base
		event.Choices, event.Usage = []choice{}, &usage{}
		events = append(events, event)
	}
	h := w.Header()
	h["Content-Type"] = []string{"text/event-stream; charset=utf-8"}
	h["Cache-Control"] = []string{"no-cache"}
	h["X-Accel-Buffering"] = []string{"no"}
	var out []byte
	for _, event := range events {
		b, err := encode(event)
		if err != nil {
			return err
		}
		out = append(append(append(out, "data: "...), b...), "\n\n"...)
	}
	if _, err := w.Write(append(out, "data: [DONE]\n\n"...)); err != nil {
		return clientError(err)
	}
	return nil
}

// writeJSON answers with a value.
func writeJSON(w *reply, status int, v any) error {
	b, err := encode(v)
	if err != nil {
		return err
	}
	h := w.Header()
	h["Content-Type"] = []string{"application/json"}
	h["Content-Length"] = []string{strconv.Itoa(len(b))}
	w.WriteHeader(status)
	if _, err := w.Write(b); err != nil {
		return clientError(err)
	}
	return nil
}

// encode writes v as JSON. Unlike json.Marshal it leaves < and > readable, of which conditions are full.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
