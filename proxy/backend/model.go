// Package backend holds models as requests are served from them: their options, prices and limits,
// their endpoints, and what placement knows of each. It sends nothing.
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
	// Name is what routes name and clients may ask for. Required, unique. Reloadable, as everything
	// here.
	Name string `yaml:"name"`
	// ServedAs is the model name sent upstream. Default: name.
	ServedAs string `yaml:"served_as"`
	// Endpoints are the servers that serve the model. At least one.
	Endpoints []pool.EndpointOptions `yaml:"endpoints"`
	// ContextWindow is the model's context length in tokens, prompt and answer together. Prompts
	// are refused that no tokenizer, or not the model's own, could fit into it. Default 0: not
	// known, nothing is clamped or refused; clients are told what the servers say.
	ContextWindow int `yaml:"context_window"`
	// Price is what the model's tokens cost, for the cost metrics and for `by: cost`.
	Price choose.Price `yaml:"price"`
	// Budget bounds what all requests to the model may cost by its price. Those that do not fit go
	// to the next candidate of their route; a request without another one is answered with 429.
	Budget budget.Options `yaml:"budget"`
	// Skills says how well the model answers, for `by: quality` and `quality_margin`: a share of
	// right answers in [0,1] for each domain, and under `default` for all others, such as {default:
	// 0.5, math: 0.8}. Without a default, other domains get the mean of those given. Default: not
	// known.
	Skills map[string]float64 `yaml:"skills"`
	// SkillsFrom takes the skills from the results of a public model on MMLU-Pro that are built in,
	// such as Meta-Llama-3_1-8B-Instruct; entries of skills stand over them. Default: none.
	SkillsFrom string `yaml:"skills_from"`
	// Reasoning says how the model is told to think more or less.
	Reasoning reasoning.Options `yaml:"reasoning"`
	// MaxTokensField is the field in which a limit on the answer is sent, max_tokens or
	// max_completion_tokens; a client's limit in the other one is moved there, or goes where the
	// client gave both, unless the client asked for this very model. OpenAI's o-series and gpt-5
	// take max_completion_tokens only, older servers max_tokens only. Default max_completion_tokens
	// with reasoning dialect openai; else max_tokens for limits of routes, and a client's limit
	// stays in the field that it has.
	MaxTokensField string `yaml:"max_tokens_field" words:"max_tokens max_completion_tokens"`
	// StreamUsage says when the servers are asked how many tokens a stream took although its client
	// did not ask, who does not see it then: auto, where a limit on tokens a minute or a budget is
	// settled by it; always, also for metrics, costs and the lengths that automatic limits learn
	// from; never, for servers that refuse stream_options. Default auto.
	StreamUsage string `yaml:"stream_usage" words:"auto always never"`
	// Messages says what becomes of requests to /v1/messages, Anthropic's API: translate makes chat
	// completions of them, which every server takes; pass sends them on as they came, to servers
	// with a /messages of their own, as vLLM has, wherever neither the request nor its answer has
	// to be changed or looked at, and translates the rest. Default translate.
	Messages string `yaml:"messages" words:"translate pass"`
	// ContextRole is who says the stored contexts that a request names, at the start of the prompt:
	// system, or user for models whose template takes no system message. Default system.
	ContextRole string `yaml:"context_role" words:"system user"`
	// Health configures the active checks of the endpoints.
	Health pool.HealthOptions `yaml:"health"`
	// Queue bounds the requests that wait while all endpoints have max_inflight requests.
	Queue pool.QueueOptions `yaml:"queue"`
	// KV says what is known of the key-value caches of the endpoints, which decide where a prompt
	// is answered soonest.
	KV kv.ModelOptions `yaml:"kv"`
	// FirstByteTimeout replaces server.first_byte_timeout for this model. Default 0: not replaced.
	FirstByteTimeout option.Duration `yaml:"first_byte_timeout"`
	// AnswerTimeout replaces server.answer_timeout for this model. Default 0: not replaced.
	AnswerTimeout option.Duration `yaml:"answer_timeout"`
	// GapTimeout replaces server.gap_timeout for this model. Default 0: not replaced.
	GapTimeout option.Duration `yaml:"gap_timeout"`
}

// The values of ModelOptions.StreamUsage.
const (
	usageAuto   = "auto"
	UsageAlways = "always"
	UsageNever  = "never"
)

// Validate reports every bad option, one "field: problem" a line.
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
		p.Addf("budget.usd", "a model without a price costs nothing: the budget needs one")
	}
	choose.CheckSkills(&p, o.Skills, o.SkillsFrom)
	o.Reasoning.Check(&p, "reasoning")
	o.validateTokenField(&p)
	switch o.StreamUsage {
	case "", usageAuto, UsageAlways, UsageNever:
	default:
		p.Addf("stream_usage", "%q is none of %s, %s, %s", o.StreamUsage, usageAuto, UsageAlways, UsageNever)
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

// contextRole reads a role; the empty one is that of the system.
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

// HasEfforts reports whether the model can be told so in more ways than one.
func (o ModelOptions) HasEfforts() bool {
	d, err := reasoning.New(&o.Reasoning)
	return err == nil && len(d.Efforts()) > 1
}

// TokenField is the field in which the model takes a limit; empty where either will do, and a limit
// of the proxy is sent as max_tokens.
func (o ModelOptions) TokenField() string {
	switch {
	case o.MaxTokensField != "":
		return o.MaxTokensField
	case o.Reasoning.Dialect == reasoning.DialectOpenAI:
		return openai.FieldMaxCompletionTokens
	}
	return ""
}

// Model is one configured model: what is chosen by, the endpoints that serve it, and how it is
// spoken to. It is immutable but for what endpoints know of themselves.
type Model struct {
	*choose.Model
	*pool.Group

	Servers  *Servers
	ServedAs string
	Budget   budget.Budget // of all callers together; 0 USD for none
	Dialect  *reasoning.Dialect
	// TokenField is the field in which it takes a limit on the answer; empty where either will do.
	TokenField  string
	ContextRole prefix.Role // who says contexts
	StreamUsage string      // when servers are asked for the usage of streams
	Messages    bool        // its servers have the Messages API themselves
	FirstByte   time.Duration
	Answer      time.Duration
	Gap         time.Duration
}

// Defaults are what models have in common.
type Defaults struct {
	// The timeouts of models that set none, and the time to connect.
	FirstByte, Answer, Gap, Connect time.Duration
	// Board takes the notices of one model to other replicas.
	Board func(model string) affinity.Board
}

// New makes a model from options that are valid.
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

// Sleeps reports whether requests for the model are refused because what is up of its endpoints is
// asleep.
func (m *Model) Sleeps(now time.Time) bool {
	for _, e := range m.Endpoints {
		if e.Fitness(now) < pool.Asleep {
			return false
		}
	}
	return m.Asleep(now)
}

// Versioned reports whether the path of an endpoint's URL names a version of the API, such as /v1,
// as those of most servers do. A URL that cannot be read is not told of.
func Versioned(s string) bool { return pool.Versioned(s) }

// ContextWindow is the context window in tokens that clients are told: the configured one, else the
// smallest that a server has told; 0 when neither is known.
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

// Provider is gen_ai.provider.name: a word of the conventions for the APIs that they name, else
// what the server is known to be.
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
