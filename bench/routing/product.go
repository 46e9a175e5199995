package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"signalbox/bench/lab"
	"signalbox/internal/signal"
	"signalbox/internal/telemetry"
	"signalbox/proxy"
	"signalbox/proxy/signals"
)

// classifier is the product's classifier with a cache of its results. It is not safe for concurrent
// use.
type classifier struct {
	extract func(ctx context.Context, text string, need signal.Mask) *signal.Set
	signals signal.Mask
	found   map[string]*signal.Set
}

var _ signals.Classifier = (*classifier)(nil)

// openClassifier opens the embedded models. done closes them.
func openClassifier(ctx context.Context, log io.Writer) (c *classifier, done func(), err error) {
	cfg, err := lab.Parse(lab.Plain)
	if err != nil {
		return nil, nil, err
	}
	a, err := lab.Build(ctx, lab.Plain, log)
	if err != nil {
		return nil, nil, err
	}
	c = &classifier{extract: a.Extract, signals: cfg.Catalog.Signals, found: map[string]*signal.Set{}}
	return c, func() { _ = a.Close(context.WithoutCancel(ctx)) }, nil
}

// asked returns the signals that the report needs; one pass computes both.
func asked() signal.Mask { return signal.MaskOf(signal.Domain, signal.Complexity) }

// Extract implements proxy.Classifier from the cache. Signals that the report does not need are
// unknown.
func (c *classifier) Extract(ctx context.Context, text *signal.Text, need signal.Mask, set *signal.Set) {
	found := c.of(ctx, text.LastUser)
	for _, k := range need.Kinds() {
		set.Put(k, *found.Value(k))
	}
}

func (c *classifier) of(ctx context.Context, text string) *signal.Set {
	found := c.found[text]
	if found == nil {
		found = c.extract(ctx, text, asked())
		c.found[text] = found
	}
	return found
}

// Signals implements proxy.Classifier.
func (c *classifier) Signals() signal.Mask { return c.signals }

// Degraded implements proxy.Classifier.
func (*classifier) Degraded() []string { return nil }

// domain returns the domain of a text that was classified before; empty if unknown.
func (c *classifier) domain(text string) string {
	if found := c.found[text]; found != nil {
		return found.Value(signal.Domain).Label
	}
	return ""
}

// product is a proxy in front of a server that always sends the same response.
type product struct {
	handler  http.Handler
	upstream *httptest.Server
	policies map[string]string // names in the report, by the value of the header that selects a policy
}

const policyHeader = "X-Policy"

// completion is the response of every model.
var completion = fmt.Sprintf(`{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"A"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":%d,"total_tokens":%d}}`, answerTokens, answerTokens+1) //nolint:gochecknoglobals // constant

// setting is the configuration of a product with the names of its policies.
type setting struct {
	Models   []map[string]any  `yaml:"models"`
	Routes   []map[string]any  `yaml:"routes"`
	Default  map[string]any    `yaml:"default"`
	policies map[string]string `yaml:"-"`
}

// model adds a model; endpoint and health are set when the product is opened.
func (s *setting) model(fields map[string]any) { s.Models = append(s.Models, fields) }

// policy adds a route that is selected by the header.
func (s *setting) policy(name, title string, use map[string]any) {
	if s.policies == nil {
		s.policies = map[string]string{}
	}
	s.policies[name] = title
	when := map[string]any{"header": map[string]any{"name": policyHeader, "equals": name}}
	s.Routes = append(s.Routes, map[string]any{"name": name, "when": when, "use": use})
	s.Default = use
}

// config is the configuration of an experiment: one route for each policy of the product.
func (e *experiment) config() *setting {
	s := &setting{}
	var names []string
	for i := range e.pool {
		c := &e.pool[i]
		names = append(names, c.name)
		s.model(map[string]any{"name": c.name, "skills": c.skills, "price": map[string]any{"input": c.price.Input, "output": c.price.Output}})
	}
	s.policy("0-quality", "signalbox, by quality", map[string]any{"models": names, "by": "quality"})
	if e.samePrice {
		return s
	}
	for i, m := range margins {
		s.policy(fmt.Sprintf("1-cost-%d", i), fmt.Sprintf("signalbox, by cost, margin %.2f", m), map[string]any{"models": names, "by": "cost", "quality_margin": m})
	}
	return s
}

// openProduct compiles a configuration.
func openProduct(ctx context.Context, s *setting, c *classifier) (*product, error) {
	up := lab.Answering(completion)
	for _, m := range s.Models {
		m["endpoints"] = []any{map[string]any{"name": "e", "url": up.URL + "/v1"}}
		m["health"] = map[string]any{"path": "off"}
	}
	p := &product{upstream: up, policies: s.policies}
	text, err := yaml.Marshal(s)
	if err != nil {
		p.close()
		return nil, fmt.Errorf("write the configuration: %w", err)
	}
	cfg, err := lab.Parse(string(text))
	if err != nil {
		p.close()
		return nil, err
	}
	tel, err := telemetry.New(ctx, cfg.Telemetry, "bench", io.Discard)
	if err != nil {
		p.close()
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	st, err := proxy.NewState(&proxy.StateOptions{
		Models: cfg.Models, Prompts: cfg.Prompts, Auth: cfg.Auth, Server: cfg.Server,
		Program: cfg.Program, Classifier: c, Generation: 1,
	}, tel)
	if err != nil {
		p.close()
		return nil, err
	}
	p.handler = proxy.New(cfg.Server, st, tel).Handler()
	return p, nil
}

func (p *product) close() { p.upstream.Close() }

// askTimeout limits one question: far above the time of a pass over the longest of them.
const askTimeout = 2 * time.Minute

// ask sends a question to a policy and returns the headers of the response.
func (p *product) ask(ctx context.Context, text, policy string) (http.Header, error) {
	ctx, stop := context.WithTimeout(ctx, askTimeout)
	defer stop()
	body, err := json.Marshal(map[string]any{"model": "auto", "messages": []any{map[string]any{"role": "user", "content": strings.ToValidUTF8(text, "")}}})
	if err != nil {
		return nil, fmt.Errorf("encode question: %w", err)
	}
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/chat/completions", bytes.NewReader(body))
	r.Header.Set(policyHeader, policy)
	w := httptest.NewRecorder()
	p.handler.ServeHTTP(w, r)
	h := w.Header()
	switch {
	case w.Code != http.StatusOK:
		return nil, fmt.Errorf("status %d: %s", w.Code, w.Body)
	case h.Get("X-Signalbox-Degraded") != "":
		return nil, fmt.Errorf("decided without %s", h.Get("X-Signalbox-Degraded"))
	case h.Get("X-Signalbox-Route") != policy:
		return nil, fmt.Errorf("route %q was taken, not %q", h.Get("X-Signalbox-Route"), policy)
	}
	return h, nil
}
