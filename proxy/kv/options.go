package kv

import (
	"cmp"
	"net"
	"strconv"
	"strings"
	"time"

	"signalbox/internal/option"
)

// The levels of an endpoint: what it supports beyond the API.
const (
	LevelOpenAI = "openai" // nothing
	// LevelAPC is vLLM with automatic prefix caching: it accepts cache_salt and reports its state at
	// /metrics.
	LevelAPC  = "apc"
	LevelAuto = "auto" // determined from /metrics; openai until then
)

// Options is the section `kv` of an endpoint.
type Options struct {
	// Level states what the endpoint supports beyond the OpenAI API. `openai` is nothing more.
	// `apc` is vLLM with automatic prefix caching: the proxy sends a cache_salt that separates
	// tenants, and polls the server's /metrics. `auto` detects this from /metrics and is treated as
	// openai until then. Default: the level of the model.
	Level string `yaml:"level" words:"openai apc auto"`
	// PrefillUsPerToken is the assumed prefill time per prompt token, in microseconds, until it has
	// been observed. Default: the value of the model.
	PrefillUsPerToken float64 `yaml:"prefill_us_per_token"`
	// Seats is the number of requests that the endpoint runs at once (--max-num-seqs of vLLM).
	// Default: the value of the model.
	Seats int `yaml:"seats"`
	// Tokens is the capacity of the endpoint's key-value cache, in tokens; vLLM logs it at startup
	// as `GPU KV cache size`. At levels apc and auto, the value that the endpoint reports takes
	// precedence. Default: the value of the model.
	Tokens int `yaml:"tokens"`
	// P2P is the address from which other endpoints of the model can fetch cached blocks of this
	// one, with vLLM's offloading connector and its p2p tier. If two endpoints have an address and
	// a request goes to the one that lacks its prefix, the request names the other. Default: none.
	P2P Peer `yaml:"p2p"`
}

// ModelOptions is the section `kv` of a model: defaults for its endpoints, and how the model's chat
// template begins.
type ModelOptions struct {
	// Level is the level of endpoints that set none: openai, apc or auto. Default openai.
	Level string `yaml:"level" words:"openai apc auto"`
	// PrefillUsPerToken is the assumed prefill time per prompt token of an endpoint, in
	// microseconds, until it has been observed. Default 60.
	PrefillUsPerToken float64 `yaml:"prefill_us_per_token"`
	// Seats is the number of requests that an endpoint runs at once. Default 0: unknown.
	Seats int `yaml:"seats"`
	// Tokens is the capacity of an endpoint's key-value cache, in tokens. Default 0: unknown, and
	// 400,000 is assumed.
	Tokens int `yaml:"tokens"`
	// EffortLeadsPrompt states that the chat template puts the reasoning effort before the system
	// prompt, as that of gpt-oss does. Prompts with different efforts then share no prefix. Default
	// false.
	EffortLeadsPrompt bool `yaml:"effort_leads_prompt"`
	// ToolsLeadPrompt states that the chat template puts the tools before the system prompt.
	// Prompts with different tools then share no prefix. Default false.
	ToolsLeadPrompt bool `yaml:"tools_lead_prompt"`
	// WarmTokensPerS limits the rate at which an endpoint is made to read contexts ahead of
	// requests, in tokens per second. Default 20000.
	WarmTokensPerS float64 `yaml:"warm_tokens_per_s"`
	// Scrape configures how the state of endpoints is polled. Endpoints at level openai are polled
	// only for whether they are asleep, unless `health.path` is `off`; if no vLLM answers there,
	// only every 5 minutes.
	Scrape ScrapeOptions `yaml:"scrape"`
}

// ScrapeOptions configures the polling of /metrics.
type ScrapeOptions struct {
	// Path is the path that is requested with GET on the endpoint's host. Default /metrics.
	Path string `yaml:"path"`
	// Interval is the time between two polls. At least 100ms. Default 2s.
	Interval option.Duration `yaml:"interval"`
	// Timeout limits one poll. Default 1s.
	Timeout option.Duration `yaml:"timeout"`
}

// Peer is the address of a server's p2p tier.
type Peer struct {
	// Host is the host name or address under which other endpoints reach this one. Required with
	// port.
	Host string `yaml:"host"`
	// Port is the port of the p2p tier. Required with host.
	Port int `yaml:"port"`
}

const (
	defaultPath     = "/metrics"
	defaultInterval = 2 * time.Second
	defaultTimeout  = time.Second
	minInterval     = 100 * time.Millisecond
	// maxPrefill is the upper limit for the time per prompt token, in microseconds, and for the
	// tokens read per second.
	maxPrefill = 1e6
)

// Check reports every bad option to p; at is the path of the section.
func (o *Options) Check(p *option.Problems, at string) {
	check(p, at, o.Level, o.PrefillUsPerToken, o.Seats, o.Tokens)
	if o.P2P == (Peer{}) {
		return
	}
	if o.P2P.Host == "" || strings.ContainsAny(o.P2P.Host, "/ \t\r\n@") {
		p.Addf(at+".p2p.host", "%q is not a host name or an address", o.P2P.Host)
	} else if _, _, err := net.SplitHostPort(o.P2P.Host); err == nil {
		p.Addf(at+".p2p.host", "%q holds a port, which has a key of its own", o.P2P.Host)
	}
	option.Between(p, at+".p2p.port", o.P2P.Port, 1, 65535)
}

// Check reports every bad option to p; at is the path of the section.
func (o *ModelOptions) Check(p *option.Problems, at string) {
	check(p, at, o.Level, o.PrefillUsPerToken, o.Seats, o.Tokens)
	if !(o.WarmTokensPerS >= 0 && o.WarmTokensPerS <= maxPrefill) {
		p.Addf(at+".warm_tokens_per_s", "%s is not between 0 and %d", strconv.FormatFloat(o.WarmTokensPerS, 'g', -1, 64), int(maxPrefill))
	}
	if o.Scrape.Path != "" && !strings.HasPrefix(o.Scrape.Path, "/") {
		p.Addf(at+".scrape.path", "%q must start with /", o.Scrape.Path)
	}
	if o.Scrape.Interval != 0 && o.Scrape.Interval < option.Duration(minInterval) {
		p.Addf(at+".scrape.interval", "%s is less than %s", o.Scrape.Interval, minInterval)
	}
	option.NotNegative(p, at+".scrape.timeout", o.Scrape.Timeout)
}

func check(p *option.Problems, at, level string, prefill float64, seats, tokens int) {
	switch level {
	case "", LevelOpenAI, LevelAPC, LevelAuto:
	default:
		p.Addf(at+".level", "%q is not one of %s, %s, %s", level, LevelOpenAI, LevelAPC, LevelAuto)
	}
	if !(prefill >= 0 && prefill <= maxPrefill) {
		p.Addf(at+".prefill_us_per_token", "%s is not between 0 and %d", strconv.FormatFloat(prefill, 'g', -1, 64), int(maxPrefill))
	}
	option.NotNegative(p, at+".seats", seats)
	option.NotNegative(p, at+".tokens", tokens)
}

// Over returns the options, with unset ones taken from m.
func (o *Options) Over(m *ModelOptions) Options {
	return Options{
		Level: cmp.Or(o.Level, m.Level, LevelOpenAI), PrefillUsPerToken: cmp.Or(o.PrefillUsPerToken, m.PrefillUsPerToken),
		Seats: cmp.Or(o.Seats, m.Seats), Tokens: cmp.Or(o.Tokens, m.Tokens), P2P: o.P2P,
	}
}

// Prefill returns PrefillUsPerToken as a duration; 0 if unset.
func (o *Options) Prefill() time.Duration {
	return time.Duration(o.PrefillUsPerToken * float64(time.Microsecond))
}
