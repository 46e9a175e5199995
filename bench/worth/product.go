package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"go.yaml.in/yaml/v3"

	"signalbox/bench/lab"
	"signalbox/internal/telemetry"
	"signalbox/memory/outcomes"
	"signalbox/proxy"
	"signalbox/proxy/decide"
)

// arm is one way to answer a prompt: a model of the product at a reasoning effort. Its responses
// are those of a model in the data.
type arm struct {
	model  string // its name in the configuration
	effort string // none, low, medium or high; empty for a model without effort control
	of     string // the model in the data
}

// setup is the configuration of a product.
type setup struct {
	arms    []arm
	prior   map[string]float64 // skill of each model, in [0,1]
	prices  prices
	explore decide.ExploreOptions
	known   int     // maximum number of known outcomes of a task, for each arm; 0 for all
	loss    float64 // outcomes.max_quality_loss; 0 for its default
}

// prices are those of models in the data in USD per million tokens; a model without a price costs
// 1.
type prices map[string]float64

func (p prices) of(model string) float64 {
	if usd, ok := p[model]; ok {
		return usd
	}
	return 1
}

// product is the proxy behind a listener, in front of servers that respond according to the data.
type product struct {
	url      string
	client   *http.Client
	front    *httptest.Server
	upstream *httptest.Server
	store    *outcomes.Store
	read     *reader
	arms     []arm
	prior    map[string]float64
	byText   map[string]*prompt
}

// The routes of a product, selected by a header, and the tenant of the requests.
const (
	routeHeader = "X-Worth-Route"
	byQuality   = "quality"
	byEffort    = "effort" // the default of a product whose model has efforts
	tenant      = "default"
)

// margins are the margins of the routes that choose by cost.
//
//nolint:gochecknoglobals // constant table
var margins = []float64{0.01, 0.02, 0.05}

func byCost(margin float64) string { return fmt.Sprintf("cost-%g", margin) }

// maxOutcomes is the maximum number of outcomes of a tenant that the product stores.
const maxOutcomes = 100_000

// open builds a product for the given prompts.
func open(ctx context.Context, s setup, r *reader, prompts []*prompt) (*product, error) {
	p := &product{read: r, arms: s.arms, prior: s.prior, byText: make(map[string]*prompt, len(prompts))}
	for _, x := range prompts {
		p.byText[x.text] = x
	}
	var err error
	p.store, _, err = outcomes.Open(outcomes.Options{Limit: maxOutcomes, Tenants: 1, Waiting: 1000})
	if err != nil {
		return nil, err
	}
	p.upstream = httptest.NewServer(http.HandlerFunc(p.answer))
	text, err := yaml.Marshal(s.config(p.upstream.URL + "/v1"))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("write the configuration: %w", err), p.close())
	}
	cfg, err := lab.Parse(string(text))
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	cfg.Outcomes.Learn, cfg.Outcomes.Explore = "feedback", s.explore
	cfg.Outcomes.MaxQualityLoss = cmp.Or(s.loss, cfg.Outcomes.MaxQualityLoss)
	tel, err := telemetry.New(ctx, cfg.Telemetry, "bench", io.Discard)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("telemetry: %w", err), p.close())
	}
	st, err := proxy.NewState(&proxy.StateOptions{
		Models: cfg.Models, Prompts: cfg.Prompts, Auth: cfg.Auth, Server: cfg.Server,
		Program: cfg.Program, Classifier: r, Generation: 1,
		Outcomes: cfg.Outcomes, Learnt: p.store,
	}, tel)
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	p.front = httptest.NewServer(proxy.New(cfg.Server, st, tel).Handler())
	p.url, p.client = p.front.URL, p.front.Client()
	return p, nil
}

func (p *product) close() error {
	if p.front != nil {
		p.front.Close()
	}
	p.upstream.Close()
	return p.store.Close()
}

// config is the configuration of a product: one route by quality, and one by cost for each margin.
func (s *setup) config(upstream string) map[string]any {
	var models []any
	var names []string
	for _, a := range s.arms {
		if len(names) > 0 && names[len(names)-1] == a.model {
			continue
		}
		names = append(names, a.model)
		m := map[string]any{
			"name": a.model, "skills": map[string]any{"default": s.prior[a.model]},
			"price":     map[string]any{"output": s.prices.of(a.of)},
			"endpoints": []any{map[string]any{"name": "e", "url": upstream}},
			"health":    map[string]any{"path": "off"},
		}
		if a.effort != "" {
			m["reasoning"] = map[string]any{"dialect": "reasoning_effort", "efforts": []any{"none", "high"}}
		}
		models = append(models, m)
	}
	use := map[string]any{"models": names, "by": "quality"}
	if s.arms[0].effort != "" {
		use["reasoning"] = "auto"
	}
	var routes []any
	for _, m := range margins {
		routes = append(routes, map[string]any{
			"name": byCost(m), "when": map[string]any{"header": map[string]any{
				"name": routeHeader, "equals": byCost(m),
			}},
			"use": map[string]any{"models": names, "by": "cost", "quality_margin": m},
		})
	}
	return map[string]any{"models": models, "routes": routes, "default": use}
}

// answer is a model server: it sends the response of the model at the effort as recorded in the
// data, which is its number of tokens.
func (p *product) answer(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Model    string `json:"model"`
		Effort   string `json:"reasoning_effort"`
		Messages []struct {
			Content string `json:"content"`
		} `json:"messages"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || len(in.Messages) == 0 {
		http.Error(w, `{"error":{"message":"no chat"}}`, http.StatusBadRequest)
		return
	}
	x := p.byText[in.Messages[len(in.Messages)-1].Content]
	a := p.arm(in.Model, in.Effort)
	if x == nil || a == nil {
		http.Error(w, `{"error":{"message":"no such prompt or model"}}`, http.StatusNotFound)
		return
	}
	got := x.out[a.of]
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"id":"c","object":"chat.completion","created":1,"model":%q,"choices":[{"index":0,`+
		`"message":{"role":"assistant","content":"A"},"finish_reason":"stop"}],"usage":{"prompt_tokens":%d,`+
		`"completion_tokens":%d,"total_tokens":%d,"completion_tokens_details":{"reasoning_tokens":%d}}}`,
		in.Model, len(x.text)/4, int(got.tokens), len(x.text)/4+int(got.tokens), int(got.reasoning))
}

// arm finds the arm for a request.
func (p *product) arm(model, effort string) *arm {
	for i := range p.arms {
		if a := &p.arms[i]; a.model == model && (a.effort == effort || a.effort == "") {
			return a
		}
	}
	return nil
}

// served is the result of one request.
type served struct {
	id     string
	arm    *arm    // the arm that answered
	tokens float64 // of the response, as read by the client
	expect []figure
}

// figure is the product's expectation for a model.
type figure struct {
	model   string
	quality float64
	cost    float64 // in USD
}

// askTimeout limits a request: far above the time needed to read the longest prompt.
const askTimeout = 2 * time.Minute

func (p *product) ask(ctx context.Context, x *prompt, route string) (*served, error) {
	h, answer, err := p.post(ctx, "/v1/chat/completions", map[string]any{
		"model": "auto", "messages": []any{map[string]any{"role": "user", "content": x.text}},
		"signalbox": map[string]any{"explain": true},
	}, route)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", x.id, err)
	}
	var got struct {
		Usage struct {
			Completion float64 `json:"completion_tokens"`
		} `json:"usage"`
		Extension struct {
			Decision struct {
				Candidates []struct {
					Name    string   `json:"name"`
					Quality *float64 `json:"quality"`
					Cost    *float64 `json:"cost_usd"`
				} `json:"candidates"`
			} `json:"decision"`
		} `json:"x_signalbox"`
	}
	if err := json.Unmarshal(answer, &got); err != nil {
		return nil, fmt.Errorf("read the answer to %s: %w", x.id, err)
	}
	s := &served{
		id: h.Get("X-Request-Id"), tokens: got.Usage.Completion,
		arm: p.arm(h.Get("X-Signalbox-Model"), h.Get("X-Signalbox-Reasoning")),
	}
	switch {
	case s.arm == nil:
		return nil, fmt.Errorf("ask %s: %s answered", x.id, h.Get("X-Signalbox-Model"))
	case route == byEffort: // there is one candidate, for which no expectation is needed
		return s, nil
	}
	for _, c := range got.Extension.Decision.Candidates {
		if c.Quality == nil || c.Cost == nil {
			return nil, fmt.Errorf("ask %s: quality or cost of %s are not known", x.id, c.Name)
		}
		s.expect = append(s.expect, figure{c.Name, *c.Quality, *c.Cost})
	}
	return s, nil
}

// rate reports the score of a response to the product.
func (p *product) rate(ctx context.Context, s *served, score float64) error {
	_, _, err := p.post(ctx, "/signalbox/v1/feedback", map[string]any{"request_id": s.id, "outcome": score}, "")
	return err
}

func (p *product) post(ctx context.Context, path string, body any, route string) (http.Header, []byte, error) {
	ctx, stop := context.WithTimeout(ctx, askTimeout)
	defer stop()
	h, answer, err := lab.Post(ctx, p.client, p.url+path, body, routeHeader, route)
	if err != nil {
		return nil, nil, err
	}
	if degraded := h.Get("X-Signalbox-Degraded"); degraded != "" && degraded != "domain" {
		// Skills are independent of the domain, and the reader computes none.
		return nil, nil, fmt.Errorf("decided without %s", degraded)
	}
	return h, answer, nil
}

// teach adds the outcomes of all arms for some prompts to the product's memory, as earlier rated
// responses. If there are more than a tenant may have, prompts are left out evenly.
func (p *product) teach(ctx context.Context, prompts []*prompt) error {
	for _, x := range lab.Spread(prompts, maxOutcomes/len(p.arms)) {
		v, why := p.read.vector(ctx, x.text)
		if v == nil {
			return fmt.Errorf("%s: no embedding: %s", x.id, why)
		}
		for i := range p.arms {
			a := &p.arms[i]
			got, ok := x.out[a.of]
			if !ok {
				continue
			}
			err := p.store.Add(outcomes.Outcome{
				Tenant: tenant, ID: fmt.Sprintf("%s %d", x.id, i), Model: a.model, Effort: a.effort,
				Prior: p.prior[a.model], Score: got.score, Weight: 1, Tokens: int(got.tokens), Source: "bench",
			}, v)
			if err != nil {
				return err
			}
		}
	}
	return nil
}
