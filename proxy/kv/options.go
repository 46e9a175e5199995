package kv

import (
	"cmp"
	"net"
	"strconv"
	"strings"
	"time"

	"signalbox/internal/option"
)

// The levels of an endpoint: what can be asked of it beyond the API.
const (
	LevelOpenAI = "openai" // nothing
	LevelAPC    = "apc"    // vLLM with automatic prefix caching: it takes cache_salt and tells its state at /metrics
	LevelAuto   = "auto"   // as its /metrics says; openai until then
)

// Options is the section `kv` of an endpoint.
type Options struct {
	// Level says what the endpoint can do beyond the OpenAI API: `openai` nothing; `apc`, vLLM with
	// automatic prefix caching, gets a cache_salt that keeps tenants apart and is asked for its
	// /metrics; `auto` finds out from /metrics and counts as openai until then. Default: that of
	// the model.
	Level string `yaml:"level" words:"openai apc auto"`
	// PrefillUsPerToken is what the endpoint takes for a token of a prompt before that was
	// observed, in microseconds. Default: that of the model.
	PrefillUsPerToken float64 `yaml:"prefill_us_per_token"`
	// Seats is how many requests the endpoint runs at once, vLLM's --max-num-seqs. Default: that of
	// the model.
	Seats int `yaml:"seats"`
	// Tokens is how many tokens the endpoint's key-value cache holds; vLLM logs it at start as `GPU
	// KV cache size`. At levels apc and auto the endpoint's own word counts. Default: that of the
	// model.
	Tokens int `yaml:"tokens"`
	// P2P is where other endpoints of the model can take cached blocks from this one, vLLM's
	// offloading connector with the p2p tier. Where two endpoints both have one, a request that
	// goes to the one that lacks its prefix names the other. Default: none.
	P2P Peer `yaml:"p2p"`
}

// ModelOptions is the section `kv` of a model: what holds for its endpoints unless they say
// otherwise, and how the model's chat template begins.
type ModelOptions struct {
	// Level is the level of endpoints that name none: openai, apc or auto. Default openai.
	Level string `yaml:"level" words:"openai apc auto"`
	// PrefillUsPerToken is what an endpoint takes for a token of a prompt before that was observed,
	// in microseconds. Default 60.
	PrefillUsPerToken float64 `yaml:"prefill_us_per_token"`
	// Seats is how many requests an endpoint runs at once. Default 0: not known.
	Seats int `yaml:"seats"`
	// Tokens is how many tokens the key-value cache of an endpoint holds. Default 0: not known,
	// 400,000 are assumed.
	Tokens int `yaml:"tokens"`
	// EffortLeadsPrompt says that the chat template puts the reasoning effort in front of the
	// system prompt, as that of gpt-oss does: then prompts with different efforts share nothing.
	// Default false.
	EffortLeadsPrompt bool `yaml:"effort_leads_prompt"`
	// ToolsLeadPrompt says that the chat template puts the tools in front of the system prompt:
	// then prompts with different tools share nothing. Default false.
	ToolsLeadPrompt bool `yaml:"tools_lead_prompt"`
	// WarmTokensPerS bounds how many tokens of contexts an endpoint is made to read ahead of need,
	// in a second. Default 20000.
	WarmTokensPerS float64 `yaml:"warm_tokens_per_s"`
	// Scrape says how endpoints are asked what they do. Those of level openai are asked for sleep
	// alone, unless `health.path` is `off`, and where no vLLM answers every 5 minutes only.
	Scrape ScrapeOptions `yaml:"scrape"`
}

// ScrapeOptions configures the reading of /metrics.
type ScrapeOptions struct {
	// Path is asked with GET on the endpoint's host. Default /metrics.
	Path string `yaml:"path"`
	// Interval is the time between two readings. At least 100ms. Default 2s.
	Interval option.Duration `yaml:"interval"`
	// Timeout bounds one reading. Default 1s.
	Timeout option.Duration `yaml:"timeout"`
}

// Peer is the address of a server's p2p tier.
type Peer struct {
	// Host is the name or address under which other endpoints reach this one. Required with port.
	Host string `yaml:"host"`
	// Port is the port of the p2p tier. Required with host.
	Port int `yaml:"port"`
}

const (
	defaultPath     = "/metrics"
	defaultInterval = 2 * time.Second
	defaultTimeout  = time.Second
	minInterval     = 100 * time.Millisecond
	// maxPrefill bounds what a token of a prompt may be said to take, in microseconds, and how many
	// of them are read a second.
	maxPrefill = 1e6
)

// Check reports every bad option to p, at being the path of the section.
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

// Check reports every bad option to p, at being the path of the section.
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

// Over returns the options with what m says where they say nothing.
func (o *Options) Over(m *ModelOptions) Options {
	return Options{
		Level: cmp.Or(o.Level, m.Level, LevelOpenAI), PrefillUsPerToken: cmp.Or(o.PrefillUsPerToken, m.PrefillUsPerToken),
		Seats: cmp.Or(o.Seats, m.Seats), Tokens: cmp.Or(o.Tokens, m.Tokens), P2P: o.P2P,
	}
}

// Prefill is PrefillUsPerToken as a duration; 0 when it is not given.
func (o *Options) Prefill() time.Duration {
	return time.Duration(o.PrefillUsPerToken * float64(time.Microsecond))
}
