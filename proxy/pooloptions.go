package proxy

import (
	"encoding/hex"
	"fmt"
	"math"
	"net/url"
	"strings"
)

// ModelOptions is one item of the list `models`.
type ModelOptions struct {
	// Name is what routes name and clients may ask for. Required, unique. Reloadable, as everything here.
	Name string `yaml:"name"`
	// ServedAs is the model name sent upstream. Default: Name.
	ServedAs string `yaml:"served_as"`
	// Endpoints are the servers that serve the model. At least one.
	Endpoints []EndpointOptions `yaml:"endpoints"`
	// ContextWindow is the model's context length in tokens, prompt and answer together. Default 0: not known, nothing is clamped or refused.
	ContextWindow int `yaml:"context_window"`
	// Price is what the model's tokens cost, for the cost metrics and for `by: cost`.
	Price PriceOptions `yaml:"price"`
	// Skills says how well the model answers, for `by: quality` and `quality_margin`: a share of right answers in [0,1] for each domain, and under `default` for all others, such as {default: 0.5, math: 0.8}. Without a default, other domains get the mean of those given. Default: not known.
	Skills map[string]float64 `yaml:"skills"`
	// SkillsFrom takes the skills from the results of a public model on MMLU-Pro that are built in, such as Meta-Llama-3_1-8B-Instruct; entries of skills stand over them. Default: none.
	SkillsFrom string `yaml:"skills_from"`
	// Reasoning says how the model is told to think more or less.
	Reasoning ReasoningOptions `yaml:"reasoning"`
	// MaxTokensField is the field in which a limit on the answer is sent, max_tokens or max_completion_tokens; a client's limit in the other one is moved there when the request was routed. OpenAI's o-series and gpt-5 take max_completion_tokens only. Default max_tokens; max_completion_tokens with reasoning dialect openai.
	MaxTokensField string `yaml:"max_tokens_field"`
	// Tags are words that routes may select models by.
	Tags []string `yaml:"tags"`
	// Health configures the active checks of the endpoints.
	Health HealthOptions `yaml:"health"`
	// FirstByteTimeout replaces server.first_byte_timeout for this model. Default 0: not replaced.
	FirstByteTimeout Duration `yaml:"first_byte_timeout"`
	// AnswerTimeout replaces server.answer_timeout for this model. Default 0: not replaced.
	AnswerTimeout Duration `yaml:"answer_timeout"`
	// GapTimeout replaces server.gap_timeout for this model. Default 0: not replaced.
	GapTimeout Duration `yaml:"gap_timeout"`
}

// EndpointOptions is one server of a model.
type EndpointOptions struct {
	// Name appears in headers, metrics and logs. Required, unique within the model.
	Name string `yaml:"name"`
	// URL is the base of the API, such as http://10.0.0.11:8000/v1. Required.
	URL string `yaml:"url"`
	// Weight is the endpoint's share of the load relative to the others. 1 to 1000. Default 1.
	Weight int `yaml:"weight"`
	// APIKey is sent as a bearer token. A reference, ${NAME} or file:PATH. Default: none is sent.
	APIKey string `yaml:"api_key" secret:"true"`
}

// PriceOptions is a price in USD per million tokens. When both are 0 the price is not known; a model
// that costs nothing, and is to win by cost, says so with a price next to nothing.
type PriceOptions struct {
	// Input is the price of a million prompt tokens. Default 0.
	Input float64 `yaml:"input"`
	// Output is the price of a million completion tokens. Default 0.
	Output float64 `yaml:"output"`
}

// HealthOptions configures active checks. An endpoint is down after two checks in a row that were
// refused, timed out or answered with a status of 500 or above, and up again after one that was not.
type HealthOptions struct {
	// Path is asked with GET on the endpoint's host. `off` turns the checks off. Default /health.
	Path string `yaml:"path"`
	// Interval is the time between two checks. At least 10ms. Default 5s.
	Interval Duration `yaml:"interval"`
	// Timeout bounds one check. Default 2s.
	Timeout Duration `yaml:"timeout"`
}

// healthOff is the Path that turns active checks off.
const healthOff = "off"

// PromptOptions is one item of the list `prompts`.
type PromptOptions struct {
	// Name is what routes name. Required, unique.
	Name string `yaml:"name"`
	// Text is the system prompt. Required.
	Text string `yaml:"text"`
}

// The modes of authentication.
const (
	// AuthNone lets everyone in.
	AuthNone = "none"
	// AuthKeys asks for one of the configured keys.
	AuthKeys = "keys"
)

// AuthOptions is the section `auth`.
type AuthOptions struct {
	// Mode is none or keys. Default none. Reloadable, as everything here.
	Mode string `yaml:"mode"`
	// Keys are the keys that mode keys accepts.
	Keys []KeyOptions `yaml:"keys"`
	// AdminRoles are the roles that may see explanations and call the classify endpoint when mode is not none. Default [admin].
	AdminRoles []string `yaml:"admin_roles"`
	// DefaultRole is the role of a request without a key's role. Default empty.
	DefaultRole string `yaml:"default_role"`
	// DefaultTenant is the tenant of a request without a key's tenant. Default: default.
	DefaultTenant string `yaml:"default_tenant"`
}

// KeyOptions is one API key. The key itself is nowhere in the configuration.
type KeyOptions struct {
	// Name appears in logs. Required, unique.
	Name string `yaml:"name"`
	// SHA256 is the hash of the key as 64 hexadecimal digits: printf %s KEY | sha256sum.
	SHA256 string `yaml:"sha256"`
	// Tenant is whom the caller belongs to. Default: default_tenant.
	Tenant string `yaml:"tenant"`
	// Role is what rules may read as the caller's role. Default: default_role.
	Role string `yaml:"role"`
}

// DefaultAuthOptions returns the options of an empty section.
func DefaultAuthOptions() AuthOptions {
	return AuthOptions{Mode: AuthNone, AdminRoles: []string{"admin"}, DefaultTenant: "default"}
}

// Validate reports every bad option, one "field: problem" a line.
func (o AuthOptions) Validate() error {
	var p problems
	if o.Mode != AuthNone && o.Mode != AuthKeys {
		p.addf("mode", "%q is neither %s nor %s", o.Mode, AuthNone, AuthKeys)
	}
	if o.Mode == AuthKeys && len(o.Keys) == 0 {
		p.addf("keys", "mode keys needs at least one")
	}
	seen := unique{}
	hashes := unique{}
	for i, k := range o.Keys {
		at := fmt.Sprintf("keys[%d]", i)
		p.name(at+".name", k.Name)
		seen.check(&p, at+".name", k.Name)
		if b, err := hex.DecodeString(k.SHA256); err != nil || len(b) != 32 {
			p.addf(at+".sha256", "expected the 64 hexadecimal digits of a SHA-256 hash")
			continue
		}
		hashes.check(&p, at+".sha256", strings.ToLower(k.SHA256))
	}
	return p.err()
}

// Validate reports every bad option, one "field: problem" a line.
func (o ModelOptions) Validate() error {
	var p problems
	p.name("name", o.Name)
	if o.ServedAs != "" && strings.TrimSpace(o.ServedAs) == "" {
		p.addf("served_as", "the name is blank")
	}
	if len(o.Endpoints) == 0 {
		p.addf("endpoints", "at least one is required")
	}
	seen := unique{}
	for i, e := range o.Endpoints {
		at := fmt.Sprintf("endpoints[%d]", i)
		p.name(at+".name", e.Name)
		seen.check(&p, at+".name", e.Name)
		if _, err := endpointURL(e.URL); err != nil {
			p.addf(at+".url", "%v", err)
		}
		if e.Weight < 0 || e.Weight > 1000 {
			p.addf(at+".weight", "%d is not between 1 and 1000", e.Weight)
		}
		if !visibleASCII(e.APIKey) {
			p.addf(at+".api_key", "the key holds characters that a header cannot carry")
		}
	}
	if o.ContextWindow < 0 {
		p.addf("context_window", "%d is negative", o.ContextWindow)
	}
	if !isPrice(o.Price.Input) || !isPrice(o.Price.Output) {
		p.addf("price", "a price is negative or not a number")
	}
	o.validateSkills(&p)
	o.Reasoning.validate(&p)
	o.validateTokenField(&p)
	o.validateTimes(&p)
	return p.err()
}

func isPrice(usd float64) bool { return usd >= 0 && usd <= math.MaxFloat32 }

func (o ModelOptions) validateTimes(p *problems) {
	if h := o.Health.Path; h != "" && h != healthOff && !strings.HasPrefix(h, "/") {
		p.addf("health.path", "%q must start with / or be %s", h, healthOff)
	}
	if o.Health.Interval != 0 && o.Health.Interval < Duration(minHealthInterval) {
		p.addf("health.interval", "%s is less than %s", o.Health.Interval, minHealthInterval)
	}
	for _, d := range []struct {
		field string
		d     Duration
	}{
		{"health.timeout", o.Health.Timeout},
		{"first_byte_timeout", o.FirstByteTimeout},
		{"answer_timeout", o.AnswerTimeout},
		{"gap_timeout", o.GapTimeout},
	} {
		if d.d < 0 {
			p.addf(d.field, "%s is negative", d.d)
		}
	}
}

// endpointURL reads the base URL of an endpoint.
func endpointURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%q is not a URL", s)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("%q must start with http:// or https://", s)
	case u.Host == "":
		return nil, fmt.Errorf("%q names no host", s)
	case u.User != nil:
		return nil, fmt.Errorf("the URL holds a user name; use api_key")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("%q has a query or a fragment", s)
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	u.RawPath = ""
	return u, nil
}

// unique finds names that occur twice.
type unique map[string]bool

func (u unique) check(p *problems, field, name string) {
	if u[name] && name != "" {
		p.addf(field, "%q is used twice", name)
	}
	u[name] = true
}
