// Package backend holds models as requests are served from them: their options, prices and limits,
// their endpoints, and the placement data of each. It sends nothing.
package backend

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"signalbox/internal/openai"
	"signalbox/internal/option"
	"signalbox/memory/prefix"
	"signalbox/proxy/affinity"
	"signalbox/proxy/budget"
	"signalbox/proxy/choose"
	"signalbox/proxy/framing"
	"signalbox/proxy/kv"
	"signalbox/proxy/pool"
	"signalbox/proxy/reasoning"
)

// ModelOptions is one item of the list `models`.
type ModelOptions struct {
	// Name is the name of the model, as routes and clients use it. Required, unique. Reloadable, as
	// is everything in this section.
	Name string `yaml:"name"`
	// ServedAs is the model name that is sent upstream. Default: name.
	ServedAs string `yaml:"served_as"`
	// Endpoints lists the servers that serve the model. At least one.
	Endpoints []pool.EndpointOptions `yaml:"endpoints"`
	// ContextWindow is the context length of the model in tokens, prompt and response together. A
	// prompt is refused if it cannot fit with any tokenizer, or does not fit when counted with the
	// model's own. Default 0: unknown. Then nothing is clamped or refused, and clients see the
	// value that the servers report.
	ContextWindow int `yaml:"context_window"`
	// Price is the price of the model's tokens, used for the cost metrics, budgets and `by: cost`.
	Price choose.Price `yaml:"price"`
	// Budget limits the total cost of all requests to the model, computed from its price. A request
	// that does not fit goes to the next candidate of its route, or gets a 429 if there is none.
	Budget budget.Options `yaml:"budget"`
	// Skills rates how well the model answers, for `by: quality` and `quality_margin`: the share of
	// correct answers, in [0,1], for each domain, and under `default` for all other domains, such
	// as {default: 0.5, math: 0.8}. Without default, other domains get the mean of the given
	// values. Default: unknown.
	Skills map[string]float64 `yaml:"skills"`
	// SkillsFrom takes the skills from the built-in MMLU-Pro results of a public model, such as
	// Meta-Llama-3_1-8B-Instruct. Entries of skills take precedence. Default: none.
	SkillsFrom string `yaml:"skills_from"`
	// Reasoning configures how the reasoning effort is sent to the model.
	Reasoning reasoning.Options `yaml:"reasoning"`
	// MaxTokensField is the field in which the model takes a limit on the response: max_tokens or
	// max_completion_tokens. A client's limit in the other field is moved to this one, or removed
	// if the client set both, unless the client asked for this very model. OpenAI's o-series and
	// gpt-5 accept only max_completion_tokens, older servers only max_tokens. Default
	// max_completion_tokens with reasoning dialect openai. Otherwise limits of routes use
	// max_tokens, and a client's limit stays in its field.
	MaxTokensField string `yaml:"max_tokens_field" words:"max_tokens max_completion_tokens"`
	// StreamUsage selects when the servers are asked for the token usage of a stream whose client
	// did not ask for it. The client does not see that usage. auto asks if a token rate limit or a
	// budget is settled by it; always also asks for metrics, costs and the lengths that automatic
	// limits learn from; never is for servers that refuse stream_options. Default auto.
	StreamUsage string `yaml:"stream_usage" words:"auto always never"`
	// Messages selects how requests to /v1/messages, Anthropic's API, are forwarded. translate
	// converts them to chat completions, which every server accepts. pass forwards them unchanged
	// to servers with their own /messages endpoint, such as vLLM, if neither the request nor its
	// response has to be changed or inspected, and translates the rest. Default translate.
	Messages string `yaml:"messages" words:"translate pass"`
	// ContextRole is the message role of the stored contexts that are inserted at the start of the
	// prompt: system, or user for models whose template accepts no system message. Default system.
	ContextRole string `yaml:"context_role" words:"system user"`
	// Health configures active health checks of the endpoints.
	Health pool.HealthOptions `yaml:"health"`
	// Queue limits the requests that wait while every endpoint has max_inflight requests in flight.
	Queue pool.QueueOptions `yaml:"queue"`
	// KV describes the key-value caches of the endpoints, which determine where a prompt is
	// answered soonest.
	KV kv.ModelOptions `yaml:"kv"`
	// FirstByteTimeout overrides server.first_byte_timeout for this model. Default 0: no override.
	FirstByteTimeout option.Duration `yaml:"first_byte_timeout"`
	// AnswerTimeout overrides server.answer_timeout for this model. Default 0: no override.
	AnswerTimeout option.Duration `yaml:"answer_timeout"`
	// GapTimeout overrides server.gap_timeout for this model. Default 0: no override.
	GapTimeout option.Duration `yaml:"gap_timeout"`
}

// The values of ModelOptions.StreamUsage.
const (
	usageAuto   = "auto"
	UsageAlways = "always"
	UsageNever  = "never"
)

// Validate reports every bad option, one "field: problem" per line.
func (o ModelOptions) Validate() error {
	var p option.Problems
	p.Name("name", o.Name)
	if o.ServedAs != "" && strings.TrimSpace(o.ServedAs) == "" {
		p.Addf("served_as", "the name is blank")
	}
	if len(o.Endpoints) == 0 {
		p.Addf("endpoints", "at least one is required")
	}
	seen := option.Unique{}
	for i := range o.Endpoints {
		at := fmt.Sprintf("endpoints[%d]", i)
		o.Endpoints[i].Check(&p, at)
		seen.Check(&p, at+".name", o.Endpoints[i].Name)
	}
	option.NotNegative(&p, "context_window", o.ContextWindow)
	o.Price.Check(&p, "price")
	o.Budget.Check(&p, "budget")
	if o.Budget.USD > 0 && !o.Price.Known() {
		p.Addf("budget.usd", "the model has no price, so the budget cannot count it: set a price")
	}
	choose.CheckSkills(&p, o.Skills, o.SkillsFrom)
	o.Reasoning.Check(&p, "reasoning")
	o.validateTokenField(&p)
	switch o.StreamUsage {
	case "", usageAuto, UsageAlways, UsageNever:
	default:
		p.Addf("stream_usage", "%q is not one of %s, %s, %s", o.StreamUsage, usageAuto, UsageAlways, UsageNever)
	}
	switch o.Messages {
	case "", messagesTranslate, MessagesPass:
	default:
		p.Addf("messages", "%q is neither %s nor %s", o.Messages, messagesTranslate, MessagesPass)
	}
	if _, ok := contextRole(o.ContextRole); !ok {
		p.Addf("context_role", "%q is neither %s nor %s", o.ContextRole, prefix.System, prefix.User)
	}
	o.validateTimes(&p)
	return p.Err()
}

func (o ModelOptions) validateTimes(p *option.Problems) {
	o.Health.Check(p, "health")
	o.Queue.Check(p, "queue")
	o.KV.Check(p, "kv")
	for _, d := range []struct {
		field string
		d     option.Duration
	}{
		{"first_byte_timeout", o.FirstByteTimeout},
		{"answer_timeout", o.AnswerTimeout},
		{"gap_timeout", o.GapTimeout},
	} {
		option.NotNegative(p, d.field, d.d)
	}
}

func (o ModelOptions) validateTokenField(p *option.Problems) {
	switch o.MaxTokensField {
	case "", openai.FieldMaxTokens, openai.FieldMaxCompletionTokens:
	default:
		p.Addf("max_tokens_field", "%q is neither %s nor %s", o.MaxTokensField, openai.FieldMaxTokens, openai.FieldMaxCompletionTokens)
	}
}

// contextRole parses a role; the empty one is system.
func contextRole(s string) (role prefix.Role, ok bool) {
	switch s {
	case "", prefix.System.String():
		return prefix.System, true
	case prefix.User.String():
		return prefix.User, true
	}
	return prefix.System, false
}

// Told reports whether the model can be told how much to reason.
func (o ModelOptions) Told() bool {
	return o.Reasoning.Dialect != "" && o.Reasoning.Dialect != reasoning.DialectNone
}

// HasEfforts reports whether the model has more than one effort.
func (o ModelOptions) HasEfforts() bool {
	d, err := reasoning.New(&o.Reasoning)
	return err == nil && len(d.Efforts()) > 1
}

// TokenField returns the field for a response limit that the model accepts; empty if it accepts
// either, in which case the proxy sends max_tokens.
func (o ModelOptions) TokenField() string {
	switch {
	case o.MaxTokensField != "":
		return o.MaxTokensField
	case o.Reasoning.Dialect == reasoning.DialectOpenAI:
		return openai.FieldMaxCompletionTokens
	}
	return ""
}

// Model is one configured model: the data for choosing it, its endpoints and how to send requests
// to it. It is immutable except for the state of its endpoints.
type Model struct {
	*choose.Model
	*pool.Group

	Servers  *Servers
	ServedAs string
	Budget   budget.Budget // of all callers together; 0 USD for none
	Dialect  *reasoning.Dialect
	// TokenField is the field for a response limit that it accepts; empty for either.
	TokenField  string
	ContextRole prefix.Role // role of messages with contexts
	StreamUsage string      // when to request the usage of streams
	Messages    bool        // its servers speak the Messages API
	FirstByte   time.Duration
	Answer      time.Duration
	Gap         time.Duration
}

// Defaults is what models have in common.
type Defaults struct {
	// The timeouts of models that set none, and the connection timeout.
	FirstByte, Answer, Gap, Connect time.Duration
	// Board returns the board for a model's notices to other replicas.
	Board func(model string) affinity.Board
}

// New makes a model from valid options.
func New(o ModelOptions, defaults *Defaults) (*Model, error) {
	dialect, err := reasoning.New(&o.Reasoning)
	if err != nil {
		return nil, fmt.Errorf("reasoning.%w", err)
	}
	group, err := pool.New(o.Name, o.Endpoints, o.Health, o.Queue, func() framing.Transport { return framing.NewTransport(defaults.Connect) })
	if err != nil {
		return nil, err
	}
	where, err := newServers(&o, group, defaults.Board(o.Name))
	if err != nil {
		return nil, err
	}
	role, _ := contextRole(o.ContextRole)
	return &Model{
		Model:    &choose.Model{Name: o.Name, Window: o.ContextWindow, Price: o.Price, Skills: choose.NewSkills(o.Skills, o.SkillsFrom)},
		Group:    group,
		Servers:  where,
		Budget:   o.Budget.Of("model:" + o.Name),
		ServedAs: cmp.Or(o.ServedAs, o.Name), Dialect: dialect, TokenField: o.TokenField(),
		ContextRole: role, StreamUsage: o.StreamUsage, Messages: o.Messages == MessagesPass,
		FirstByte: cmp.Or(time.Duration(o.FirstByteTimeout), defaults.FirstByte),
		Answer:    cmp.Or(time.Duration(o.AnswerTimeout), defaults.Answer),
		Gap:       cmp.Or(time.Duration(o.GapTimeout), defaults.Gap),
	}, nil
}

// Sleeps reports whether requests for the model are refused because all of its endpoints that are
// up are asleep.
func (m *Model) Sleeps(now time.Time) bool {
	for _, e := range m.Endpoints {
		if e.Fitness(now) < pool.Asleep {
			return false
		}
	}
	return m.Asleep(now)
}

// Versioned reports whether the path of an endpoint's URL contains an API version such as /v1, as
// most servers' URLs do. It returns true for an invalid URL, which is reported elsewhere.
func Versioned(s string) bool { return pool.Versioned(s) }

// ContextWindow returns the context window reported to clients, in tokens: the configured one, or
// else the smallest one that a server reports; 0 if unknown.
func (m *Model) ContextWindow() int {
	if m.Window > 0 {
		return m.Window
	}
	least := int64(0)
	for i := range m.Servers.All {
		if n := m.Servers.All[i].ModelLen.Load(); n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	return int(least)
}

// The values of ModelOptions.Messages.
const (
	messagesTranslate = "translate"
	MessagesPass      = "pass"
)

// Provider returns gen_ai.provider.name: the value in the conventions for APIs that have one,
// otherwise the kind of server if known.
func (m *Model) Provider(e *pool.Endpoint) string {
	host := e.Chat.Hostname()
	for _, known := range [...]struct{ suffix, name string }{
		{"api.openai.com", "openai"},
		{".openai.azure.com", "azure.ai.openai"},
		{"api.anthropic.com", "anthropic"},
		{"api.mistral.ai", "mistral_ai"},
		{"api.deepseek.com", "deepseek"},
		{"api.groq.com", "groq"},
		{"api.x.ai", "x_ai"},
		{"api.cohere.com", "cohere"},
		{"api.perplexity.ai", "perplexity"},
		{"generativelanguage.googleapis.com", "gcp.gemini"},
		{"aiplatform.googleapis.com", "gcp.vertex_ai"},
	} {
		if strings.HasSuffix(host, known.suffix) {
			return known.name
		}
	}
	for i := range m.Servers.All {
		if m.Servers.All[i].Endpoint == e && m.Servers.All[i].Salted.Load() {
			return "vllm"
		}
	}
	return "openai_compatible"
}
