package proxy

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// Options is the section `server`.
type Options struct {
	// Listen is the address that clients call, HOST:PORT. Default 127.0.0.1:8080. Restart needed.
	Listen string `yaml:"listen"`
	// AdminListen is the address of metrics and reload, HOST:PORT. Default 127.0.0.1:9090. Restart needed.
	AdminListen string `yaml:"admin_listen"`
	// MaxBodyBytes is the largest request body, as a number or with a unit such as 64MiB; a larger one is answered with 413. At least 1KiB. Default 64MiB. Reloadable.
	MaxBodyBytes Bytes `yaml:"max_body_bytes"`
	// DrainTimeout is how long requests in flight may take to end when the process stops. Default 30s. Restart needed.
	DrainTimeout Duration `yaml:"drain_timeout"`
	// ReadHeaderTimeout bounds the time in which a client sends the head of a request. At least 1s. Default 10s. Restart needed.
	ReadHeaderTimeout Duration `yaml:"read_header_timeout"`
	// IdleTimeout is how long a client's connection may stay open between requests. Default 120s. Restart needed.
	IdleTimeout Duration `yaml:"idle_timeout"`
	// BodyTimeout is how long a client may pause while it sends a body. Default 30s; 0 never gives up. Reloadable.
	BodyTimeout Duration `yaml:"body_timeout"`
	// WriteTimeout is how long a client may leave an answer unread before its connection is closed. Default 30s; 0 never gives up. Reloadable.
	WriteTimeout Duration `yaml:"write_timeout"`
	// ConnectTimeout bounds the connection to an endpoint. Default 2s. Restart needed.
	ConnectTimeout Duration `yaml:"connect_timeout"`
	// FirstByteTimeout bounds the time to the first byte of a streamed answer. Default 60s; 0 is no bound. Reloadable.
	FirstByteTimeout Duration `yaml:"first_byte_timeout"`
	// AnswerTimeout bounds the time to the head of an answer that is not streamed, which the upstream sends when the whole text is there. Default 10m; 0 is no bound. Reloadable.
	AnswerTimeout Duration `yaml:"answer_timeout"`
	// GapTimeout is how long an answer may pause between two reads. Default 300s; 0 is no bound. Reloadable.
	GapTimeout Duration `yaml:"gap_timeout"`
	// MaxAttempts is how often a request is sent upstream before it fails, the first time included. 1 to 10. Default 3. Reloadable.
	MaxAttempts int `yaml:"max_attempts"`
	// RetryBudget is the share of recent requests that may be sent a second time, so that retries cannot multiply the load on a failing pool. 0 to 1. Default 0.2. Reloadable.
	RetryBudget float64 `yaml:"retry_budget"`
	// AutoModels are the model names that ask for routing. Default [auto]. Reloadable.
	AutoModels []string `yaml:"auto_models"`
	// RouteNamedModels evaluates every route also for requests that name a configured model. Default false: such requests only meet routes that block. Reloadable.
	RouteNamedModels bool `yaml:"route_named_models"`
	// VaguePrompts are the system prompts that say nothing, which a route's prompt may replace. Case, spacing and closing punctuation do not matter. The default is a list of common ones. Reloadable.
	VaguePrompts []string `yaml:"vague_prompts"`
	// AutoMaxTokens says how `max_tokens: auto` finds its limit. Reloadable.
	AutoMaxTokens AutoMaxTokensOptions `yaml:"auto_max_tokens"`
}

// DefaultOptions returns the options of an empty section.
func DefaultOptions() Options {
	return Options{
		Listen:            "127.0.0.1:8080",
		AdminListen:       "127.0.0.1:9090",
		MaxBodyBytes:      64 << 20,
		DrainTimeout:      Duration(30 * time.Second),
		ReadHeaderTimeout: Duration(10 * time.Second),
		IdleTimeout:       Duration(120 * time.Second),
		BodyTimeout:       Duration(30 * time.Second),
		WriteTimeout:      Duration(30 * time.Second),
		ConnectTimeout:    Duration(2 * time.Second),
		FirstByteTimeout:  Duration(60 * time.Second),
		AnswerTimeout:     Duration(10 * time.Minute),
		GapTimeout:        Duration(300 * time.Second),
		MaxAttempts:       3,
		RetryBudget:       0.2,
		AutoModels:        []string{"auto"},
		VaguePrompts: []string{
			"You are a helpful assistant",
			"You are a helpful AI assistant",
			"You are a helpful, respectful and honest assistant",
			"You are an AI assistant",
			"You are an assistant",
			"You are a chatbot",
			"You are ChatGPT",
			"You are ChatGPT, a large language model trained by OpenAI",
			"You are a large language model",
			"Be helpful",
			"Assistant",
		},
		AutoMaxTokens: defaultAutoMaxTokens(),
	}
}

// Validate reports every bad option, one "field: problem" a line.
func (o Options) Validate() error {
	var p problems
	for _, a := range []struct{ field, addr string }{{"listen", o.Listen}, {"admin_listen", o.AdminListen}} {
		if _, port, err := net.SplitHostPort(a.addr); err != nil || !isPort(port) {
			p.addf(a.field, "%q is not HOST:PORT", a.addr)
		}
	}
	if o.MaxBodyBytes < 1<<10 {
		p.addf("max_body_bytes", "%d is less than 1KiB", o.MaxBodyBytes)
	}
	if o.ReadHeaderTimeout < Duration(time.Second) {
		p.addf("read_header_timeout", "%s is less than 1s", o.ReadHeaderTimeout)
	}
	if o.ConnectTimeout <= 0 {
		p.addf("connect_timeout", "%s is not positive", o.ConnectTimeout)
	}
	for _, d := range []struct {
		field string
		d     Duration
	}{
		{"drain_timeout", o.DrainTimeout},
		{"idle_timeout", o.IdleTimeout},
		{"body_timeout", o.BodyTimeout},
		{"write_timeout", o.WriteTimeout},
		{"first_byte_timeout", o.FirstByteTimeout},
		{"answer_timeout", o.AnswerTimeout},
		{"gap_timeout", o.GapTimeout},
	} {
		if d.d < 0 {
			p.addf(d.field, "%s is negative", d.d)
		}
	}
	if o.MaxAttempts < 1 || o.MaxAttempts > maxAttempts {
		p.addf("max_attempts", "%d is not between 1 and %d", o.MaxAttempts, maxAttempts)
	}
	if !(o.RetryBudget >= 0 && o.RetryBudget <= 1) {
		p.addf("retry_budget", "%v is not between 0 and 1", o.RetryBudget)
	}
	if len(o.AutoModels) == 0 {
		p.addf("auto_models", "the list is empty; a routed request needs a name")
	}
	o.AutoMaxTokens.validate(&p, "auto_max_tokens")
	for i, name := range o.AutoModels {
		p.name(fmt.Sprintf("auto_models[%d]", i), name)
	}
	return p.err()
}

// maxAttempts is the upper bound of Options.MaxAttempts.
const maxAttempts = 10

func isPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n <= 65535
}

// Duration is a time span in a configuration, where it carries a unit: 300ms, 5s, 1h30m.
type Duration time.Duration

// String returns the span as it may be written in a configuration.
func (d Duration) String() string { return time.Duration(d).String() }

// UnmarshalText reads a span with a unit. A bare number is an error, because its unit would be a
// guess; only 0 needs none.
func (d *Duration) UnmarshalText(b []byte) error {
	s := string(b)
	v, err := time.ParseDuration(s)
	if err != nil {
		if _, numErr := strconv.ParseFloat(s, 64); numErr == nil {
			return fmt.Errorf("found %s without a unit, expected a duration such as %ss", s, s)
		}
		return fmt.Errorf("found %q, expected a duration such as 300ms, 5s or 1h30m", s)
	}
	*d = Duration(v)
	return nil
}

// MarshalText is the inverse of UnmarshalText.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// Bytes is a size in a configuration: a number of bytes, or a number with a unit: 64KiB, 1MiB, 2GB.
type Bytes int64

// UnmarshalText reads a size. Units are powers of 1024 with i (KiB, MiB, GiB), of 1000 without (KB, MB, GB).
func (n *Bytes) UnmarshalText(b []byte) error {
	s := strings.TrimSpace(string(b))
	digits := strings.TrimRight(s, "KMGTiB ")
	var unit int64
	switch strings.TrimSpace(s[len(digits):]) {
	case "", "B":
		unit = 1
	case "KiB":
		unit = 1 << 10
	case "MiB":
		unit = 1 << 20
	case "GiB":
		unit = 1 << 30
	case "KB":
		unit = 1e3
	case "MB":
		unit = 1e6
	case "GB":
		unit = 1e9
	default:
		return fmt.Errorf("found %q, expected a size such as 65536 or 64MiB (units KiB, MiB, GiB, KB, MB, GB)", s)
	}
	v, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || v < 0 || v > (1<<62)/unit {
		return fmt.Errorf("found %q, expected a size such as 65536 or 64MiB", s)
	}
	*n = Bytes(v * unit)
	return nil
}

// MarshalText is the inverse of UnmarshalText.
func (n Bytes) MarshalText() ([]byte, error) {
	for _, u := range []struct {
		unit Bytes
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n > 0 && n%u.unit == 0 {
			return []byte(strconv.FormatInt(int64(n/u.unit), 10) + u.name), nil
		}
	}
	return []byte(strconv.FormatInt(int64(n), 10)), nil
}

// problems collects "field: problem" lines.
type problems struct{ list []error }

func (p *problems) addf(field, format string, args ...any) {
	p.list = append(p.list, fmt.Errorf("%s: %s", field, fmt.Sprintf(format, args...)))
}

// name checks a word that ends up in headers, paths and metric labels.
func (p *problems) name(field, name string) {
	switch {
	case name == "":
		p.addf(field, "a name is required")
	case len(name) > 200:
		p.addf(field, "the name is longer than 200 bytes")
	case !visibleASCII(name):
		p.addf(field, "%q may hold visible ASCII characters only", name)
	}
}

func (p *problems) err() error { return errors.Join(p.list...) }

func visibleASCII(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
