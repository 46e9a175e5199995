package modelserver

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"signalbox/proxy/kv"
)

// identify determines the program of the server. The owner of the models is the best indication; a
// server without one is identified by a page that only one kind has.
func (a *asker) identify(ctx context.Context, s *Server, list *models, got *answer) {
	owner := s.name(list)
	switch {
	case owner == "vllm":
		a.vllm(ctx, s)
	case owner == "sglang":
		a.sglang(ctx, s)
	case owner == "llamacpp" || got.header.Get("Server") == "llama.cpp":
		a.llama(ctx, s)
	case owner == "signalbox":
		s.Kind = Signalbox
	case a.ollama(ctx, s), a.tgi(ctx, s), a.sglang(ctx, s), a.vllm(ctx, s):
	default:
		s.Kind = Other
	}
	s.Version = printable(s.Version)
	for i := range s.Models {
		m := &s.Models[i]
		if m.Thinking == "" && (s.Kind == VLLM || s.Kind == SGLang) {
			m.Thinking = thinking(m.ID)
		}
	}
}

// name fills in the models, and returns their owner.
func (s *Server) name(list *models) (owner string) {
	s.Models = make([]Model, 0, len(list.Data))
	for i := range list.Data {
		m := &list.Data[i]
		if m.ID == "" || m.ID != printable(m.ID) {
			continue // clients could not request it, and a terminal should not show it
		}
		owner = cmp.Or(owner, m.OwnedBy)
		s.Models = append(s.Models, Model{
			ID: m.ID, Window: cmp.Or(m.Window, m.Context, m.LlamaCPP.Window),
			Embedding: embeds(m.ID),
		})
	}
	return owner
}

// printable removes characters that move a cursor or end a line, and limits the length.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, s)
	if len(s) > 200 {
		s = strings.ToValidUTF8(s[:200], "")
	}
	return s
}

// versioned is a page with a version.
type versioned struct {
	Version string `json:"version"`
}

// vllm reads the pages of vLLM; /is_sleeping and /is_paused exist only in its development mode.
func (a *asker) vllm(ctx context.Context, s *Server) bool {
	var v versioned
	if !a.read(ctx, "/version", &v) || v.Version == "" {
		return false
	}
	s.Kind, s.Version = VLLM, v.Version
	var state struct {
		Sleeping bool `json:"is_sleeping"`
		Paused   bool `json:"is_paused"`
	}
	s.Asleep = a.read(ctx, "/is_sleeping", &state) && state.Sleeping ||
		a.read(ctx, "/is_paused", &state) && state.Paused
	if got, err := a.get(ctx, "/metrics"); err == nil && got.status == http.StatusOK {
		if r, err := kv.Read(bytes.NewReader(got.body)); err == nil {
			s.Metrics, s.Asleep = r.VLLM, s.Asleep || r.Asleep
		}
	}
	return true
}

// sglang reads SGLang's pages: srt/entrypoints/http_server.py.
func (a *asker) sglang(ctx context.Context, s *Server) bool {
	var info struct {
		Path       string `json:"model_path"`
		Generation *bool  `json:"is_generation"`
	}
	if !a.read(ctx, "/get_model_info", &info) || info.Path == "" {
		return false
	}
	s.Kind = SGLang
	for i := range s.Models {
		s.Models[i].Embedding = s.Models[i].Embedding || info.Generation != nil && !*info.Generation
	}
	var v versioned
	if a.read(ctx, "/server_info", &v) || a.read(ctx, "/get_server_info", &v) {
		s.Version = v.Version
	}
	return true
}

// llama reads llama.cpp's /props; the context window is that of one slot.
func (a *asker) llama(ctx context.Context, s *Server) {
	s.Kind = LlamaCPP
	var props struct {
		Build    string `json:"build_info"`
		Template string `json:"chat_template"`
		Sleeping bool   `json:"is_sleeping"`
		Settings struct {
			Window int `json:"n_ctx"`
		} `json:"default_generation_settings"`
	}
	if !a.read(ctx, "/props", &props) {
		return
	}
	s.Version = props.Build // it wakes up with the next request, so sleeping is not a problem
	for i := range s.Models {
		m := &s.Models[i]
		m.Window = cmp.Or(props.Settings.Window, m.Window)
		if strings.Contains(props.Template, "enable_thinking") {
			m.Thinking = "qwen3"
		}
	}
}

// ollama reads the pages of Ollama, described in its docs/api.md.
func (a *asker) ollama(ctx context.Context, s *Server) bool {
	var v versioned
	home, err := a.get(ctx, "/")
	if err != nil || !strings.Contains(string(home.body), "Ollama") ||
		!a.read(ctx, "/api/version", &v) {
		return false
	}
	s.Kind, s.Version = Ollama, v.Version
	var loaded struct {
		Models []struct {
			Model  string `json:"model"`
			Window int    `json:"context_length"`
		} `json:"models"`
	}
	_ = a.read(ctx, "/api/ps", &loaded)
	for i := range s.Models {
		m := &s.Models[i]
		for _, l := range loaded.Models {
			if l.Model == m.ID {
				m.Window = l.Window
			}
		}
		a.ollamaModel(ctx, m)
	}
	return true
}

// ollamaModel reads the capabilities of a model. The context length in this page is that of the
// weights, not the one that Ollama runs the model with, and is ignored.
func (a *asker) ollamaModel(ctx context.Context, m *Model) {
	body, err := json.Marshal(map[string]string{"model": m.ID})
	if err != nil {
		return
	}
	var show struct {
		Capabilities []string `json:"capabilities"`
	}
	got, err := a.ask(ctx, http.MethodPost, "/api/show", body)
	if err != nil || got.status != http.StatusOK || json.Unmarshal(got.body, &show) != nil {
		return
	}
	if len(show.Capabilities) > 0 {
		m.Embedding = !slices.Contains(show.Capabilities, "completion")
	}
	if slices.Contains(show.Capabilities, "thinking") {
		m.Thinking = "reasoning_effort"
	}
}

// tgi reads the page /info of Text Generation Inference: router/src/server.rs.
func (a *asker) tgi(ctx context.Context, s *Server) bool {
	var info struct {
		Model   string `json:"model_id"`
		Version string `json:"version"`
		Total   int    `json:"max_total_tokens"`
		Input   int    `json:"max_input_tokens"`
		Router  string `json:"router"`
	}
	if !a.read(ctx, "/info", &info) || info.Model == "" ||
		info.Total == 0 && info.Input == 0 && info.Router == "" {
		return false
	}
	s.Kind, s.Version = TGI, info.Version
	for i := range s.Models {
		s.Models[i].Window = cmp.Or(info.Total, s.Models[i].Window)
	}
	return true
}

// embeds guesses from the name whether a model computes embeddings, which model lists do not state.
func embeds(id string) bool {
	id = strings.ToLower(id)
	return slices.ContainsFunc([]string{"embed", "bge-", "e5-", "gte-", "minilm", "rerank"}, func(word string) bool {
		return strings.Contains(id, word)
	})
}

// thinking guesses from the name how a model's template switches reasoning: docs/parameters.md
// lists the dialects. Models that always or never reason have none.
func thinking(id string) string {
	id = strings.ToLower(id)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(id, w) })
	}
	switch {
	case has("gpt-oss"):
		return "gpt_oss"
	case has("deepseek-v3.1", "deepseek-v3.2", "deepseek-v4"):
		return "deepseek"
	case has("qwen3") && !has("instruct", "thinking", "coder", "embed"):
		return "qwen3"
	}
	return ""
}
