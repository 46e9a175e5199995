package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"signalbox/classify/bundle"
	"signalbox/gpu"
	"signalbox/internal/config"
	"signalbox/internal/eval"
	"signalbox/internal/modelserver"
	"signalbox/internal/signal"
	"signalbox/internal/worker"
	"signalbox/memory/redis"
	"signalbox/proxy/backend"
	"signalbox/proxy/pool"
	"signalbox/rules"
)

// Evaluator is what eval needs for one task.
type Evaluator struct {
	Classify  eval.Classifier
	Threshold float64  // of tasks with a positive label
	Labels    []string // that data may have
	Types     []string // of entities that count, for pii
}

// Evaluator returns what eval runs for a task. It is an error when nothing computes the task's
// signal.
func (a *App) Evaluator(task eval.Task) (*Evaluator, error) {
	cfg := a.cfg.Load()
	e := &Evaluator{Labels: task.Labels()}
	if task == eval.Route {
		e.Classify = a.routeEvaluator()
		e.Labels = []string{rules.RouteDefault}
		for _, r := range cfg.Program.Routes() {
			e.Labels = append(e.Labels, r.Name)
		}
		return e, nil
	}
	if task == eval.Grounding {
		e.Threshold = cmp.Or(leastMark(&cfg.Classify), defaultDoubt)
		e.Classify = a.groundingEvaluator()
		return e, nil
	}
	k, ok := signal.ParseKind(string(task))
	if !ok || !cfg.Catalog.Signals.Has(k) {
		return nil, fmt.Errorf("task %q cannot be evaluated: no model provides signal %s", task, task)
	}
	e.Threshold = cfg.Threshold(k)
	e.Classify = a.signalEvaluator(k, task)
	switch task {
	case eval.PII:
		e.Types = bundle.PIITypes()
	case eval.Intent:
		e.Labels = append(slices.Clone(cfg.Catalog.Labels[k]), eval.NoIntent)
	case eval.Domain:
		e.Labels = cfg.Catalog.Labels[k]
	case eval.Jailbreak, eval.Injection, eval.Complexity, eval.FactCheck,
		eval.Grounding, eval.Route:
	}
	return e, nil
}

func (a *App) signalEvaluator(k signal.Kind, task eval.Task) eval.Classifier {
	need := signal.MaskOf(k)
	positive, _ := task.Positive()
	return func(ctx context.Context, ex *eval.Example) eval.Answer {
		text, start := ex.Text, time.Now()
		set := a.Extract(ctx, text, need)
		v := set.Value(k)
		out := eval.Answer{Known: v.State == signal.Known, Label: v.Label, Score: v.Score, Took: time.Since(start)}
		if out.Known && k == signal.Intent && v.Label == "" {
			out.Label = eval.NoIntent
		}
		// whose score it is, in full precision
		if out.Positive = v.Score; signal.DefaultOrigins(k) == 0 {
			out.Positive, _ = v.Prob(positive)
		}
		for _, s := range v.Spans {
			from := utf8.RuneCountInString(text[:s.Start])
			out.Entities = append(out.Entities, eval.Entity{Type: s.Type, Start: from, End: from + utf8.RuneCountInString(text[s.Start:s.End])})
		}
		return out
	}
}

func (a *App) routeEvaluator() eval.Classifier {
	return func(ctx context.Context, ex *eval.Example) eval.Answer {
		body, err := a.ChatBody(ex.Text)
		if err != nil {
			return eval.Answer{}
		}
		start := time.Now()
		x, err := a.Explain(ctx, body, "", "", nil)
		if err != nil {
			return eval.Answer{Took: time.Since(start)}
		}
		return eval.Answer{Known: true, Label: x.Route, Took: time.Since(start)}
	}
}

// ChatBody is the least chat completion request that asks for a route.
func (a *App) ChatBody(prompt string) ([]byte, error) {
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	b, err := json.Marshal(struct {
		Model    string    `json:"model"`
		Messages []message `json:"messages"`
	}{a.cfg.Load().Server.AutoModels[0], []message{{"user", prompt}}})
	if err != nil {
		return nil, fmt.Errorf("encode prompt: %w", err)
	}
	return b, nil
}

// Probed is the outcome of reaching for one thing that a configuration names.
type Probed struct {
	Name   string
	Detail string
	Err    error
	Local  bool // it is on this machine, as models are
}

// probeTimeout bounds one probe; an operator waits for the answer.
const probeTimeout = 5 * time.Second

// Probe opens the models, and asks Redis and every endpoint for their health, one after the other.
func Probe(ctx context.Context, cfg *config.Config, s config.Settings) []Probed {
	out := append(probeModels(ctx, cfg, Options{Settings: s}), probeRemotes(ctx, cfg)...)
	if o := &cfg.Memory.Redis; o.URL != "" {
		p := Probed{Name: "memory.redis"}
		p.Detail, p.Err = probeRedis(ctx, redis.Options{URL: o.URL, Prefix: o.Prefix})
		out = append(out, p)
	}
	for i := range cfg.Models {
		m := &cfg.Models[i]
		for j := range m.Endpoints {
			e := &m.Endpoints[j]
			p := Probed{Name: fmt.Sprintf("model %s endpoint %s", m.Name, e.Name)}
			p.Detail, p.Err = probeEndpoint(ctx, m, e)
			out = append(out, p)
		}
	}
	return out
}

// probeRedis asks a Redis about itself; doctor says more of it.
func probeRedis(ctx context.Context, o redis.Options) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	c, err := redis.Examine(ctx, o)
	switch {
	case err != nil:
		return "", fmt.Errorf("probe: %w", err)
	case c.Old():
		return "", fmt.Errorf("version %s does not support the scripts: run Redis 7 or newer", c.Version)
	case c.Replica:
		return "", errors.New("it is a replica, which does not accept writes: use the primary")
	}
	version := cmp.Or(c.Version, "of unknown version")
	return fmt.Sprintf("Redis %s, responds in %s", version, c.Took.Round(time.Microsecond)), nil
}

// probeRemotes asks the servers of remote models for them.
func probeRemotes(ctx context.Context, cfg *config.Config) []Probed {
	var out []Probed
	for i := range cfg.Classify.Tasks {
		t := &cfg.Classify.Tasks[i]
		if t.Remote.URL == "" {
			continue
		}
		p := Probed{Name: fmt.Sprintf("task %s remote %s", t.Name, t.Remote.Model)}
		start := time.Now()
		client, err := dial(ctx, t.Remote, t.Remote.Model, nil)
		if p.Err = err; err == nil {
			p.Detail = fmt.Sprintf("ready in %d ms", time.Since(start).Milliseconds())
			p.Err = client.Close()
		}
		out = append(out, p)
	}
	return out
}

// probeEndpoint asks for the list of models, which every OpenAI-compatible server has and which
// also shows whether the key is right and the model is served.
func probeEndpoint(ctx context.Context, m *backend.ModelOptions, e *pool.EndpointOptions) (string, error) {
	client, err := e.Client(probeTimeout)
	if err != nil {
		return "", fmt.Errorf("probe: %w", err)
	}
	defer client.CloseIdleConnections()
	start := time.Now()
	s, err := modelserver.Ask(ctx, client, e.URL, e.APIKey)
	if errors.Is(err, modelserver.ErrKey) && e.ForwardAuth {
		return "requires the API key of the caller (forward_auth)", nil
	}
	if err != nil {
		return "", fmt.Errorf("probe: %w", err)
	}
	detail := fmt.Sprintf("200 OK in %d ms", time.Since(start).Milliseconds())
	served := cmp.Or(m.ServedAs, m.Name)
	// llama.cpp answers whatever model a request names.
	if len(s.Models) == 0 || s.Find(served) >= 0 || s.Kind == modelserver.LlamaCPP {
		return detail, nil
	}
	if s.Kind == modelserver.Other { // gateways answer names that they do not list, such as patterns
		return fmt.Sprintf("%s, but it lists %s, not %q: see served_as", detail, s.Names(), served), nil
	}
	return "", fmt.Errorf("it serves %s, not %q: correct served_as", s.Names(), served)
}

// VersionInfo is what `signalbox version` prints.
type VersionInfo struct {
	Runtime   string
	Library   string
	Bundle    string
	Provider  string // that `provider: auto` takes here
	Providers []gpu.Provider
	Err       error // why ONNX Runtime could not be opened
}

// Versions opens ONNX Runtime, asks what it has, and closes it again.
func Versions(s config.Settings) VersionInfo {
	c := config.Default().Classify
	v := VersionInfo{Bundle: embeddedBundle(&c)}
	rt, err := gpu.Open(c.GPU(s))
	if err != nil {
		v.Err = err
		return v
	}
	v.Runtime, v.Library, v.Providers = rt.Version(), rt.Library(), rt.Providers()
	v.Provider, _ = rt.Provider()
	v.Err = rt.Close()
	return v
}

func embeddedBundle(c *config.Classify) string {
	placed, err := place(c)
	if err != nil {
		return "none"
	}
	if judges, err := placeGrounding(c); err == nil && judges != nil {
		placed = append(placed, *judges)
	}
	var names []string
	for i := range placed { // that of all languages, that of the others and that of the guard
		m := &placed[i].bundle.Manifest
		names = append(names, m.Name+" "+m.Version)
	}
	return strings.Join(names, ", ")
}

// Probes is Versions with every provider asked, each in a process of its own, so that one which
// crashes or hangs when it is started costs its own answer only.
func Probes(ctx context.Context, o Options) VersionInfo {
	v := Versions(o.Settings)
	if v.Err != nil {
		return v
	}
	command, err := o.workerCommand()
	if err != nil {
		v.Err = err
		return v
	}
	for i := range v.Providers {
		p := &v.Providers[i]
		if p.Name == gpu.ProviderCPU {
			continue
		}
		c := config.Default().Classify
		c.Provider = p.Name
		if found, err := worker.Probe(ctx, worker.Options{Command: command, GPU: c.GPU(o.Settings)}); err != nil {
			p.State, p.Detail = gpu.SupportUnknown, err.Error()
		} else if at := slices.IndexFunc(found, func(f gpu.Provider) bool { return f.Name == p.Name }); at >= 0 {
			*p = found[at]
		}
	}
	return v
}
