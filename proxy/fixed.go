package proxy

import (
	"net/http"
	"time"

	"signalbox/internal/openai"
)

// answerFixed replies with a fixed text in the form that the client asked for.
func answerFixed(w *reply, req *openai.Request, text string) error {
	switch req.API {
	case openai.Completion:
		return answerCompletion(w, req, text)
	case openai.Response:
		return answerResponse(w, req, text)
	case openai.Chat, openai.Other: // the latter is not routed
	}
	return answerChat(w, req, text)
}

// completion is a chat completion of our own, or one that is no chat, for routes that answer
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
	Text         *string  `json:"text,omitempty"` // of a completion that is no chat
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

func answerChat(w *reply, req *openai.Request, text string) error {
	stop := "stop"
	base := completion{ID: "chatcmpl-" + w.id, Object: "chat.completion", Created: time.Now().Unix(), Model: req.Model}
	if !req.Stream {
		base.Choices = []choice{{Message: &message{Role: "assistant", Content: &text}, FinishReason: &stop}}
		base.Usage = &usage{}
		return writeAnswer(w, base)
	}
	base.Object = "chat.completion.chunk"
	return base.stream(w, req, []choice{
		{Delta: &message{Role: "assistant", Content: &text}},
		{Delta: &message{}, FinishReason: &stop},
	})
}

// answerCompletion gives the text to each prompt.
func answerCompletion(w *reply, req *openai.Request, text string) error {
	stop, none := "stop", ""
	base := completion{ID: "cmpl-" + w.id, Object: "text_completion", Created: time.Now().Unix(), Model: req.Model}
	var whole, parts []choice
	for i := range max(len(req.Messages), 1) {
		whole = append(whole, choice{Index: i, Text: &text, FinishReason: &stop})
		parts = append(parts, choice{Index: i, Text: &text}, choice{Index: i, Text: &none, FinishReason: &stop})
	}
	if req.Stream {
		return base.stream(w, req, parts)
	}
	base.Choices, base.Usage = whole, &usage{}
	return writeJSON(w, http.StatusOK, base)
}

// stream sends the choices, a chunk each.
func (c completion) stream(w *reply, req *openai.Request, choices []choice) error {
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

// writeAnswer answers with an answer of our own.
func writeAnswer(w *reply, v any) error {
	b, err := encode(v)
	if err != nil {
		return err
	}
	if b, err = w.spell(b); err != nil {
		return err
	}
	return writeBytes(w, http.StatusOK, b)
}
