package settings

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"time"

	"signalbox/internal/openai"
	"signalbox/internal/option"
	"signalbox/proxy/engine"
	"signalbox/proxy/lengths"
)

// Server is the section `server`.
type Server struct {
	// Listen is the address on which the proxy serves clients, as HOST:PORT. Default
	// 127.0.0.1:8080. Restart needed.
	Listen string `yaml:"listen"`
	// AdminListen is the address of the admin listener, as HOST:PORT. It serves metrics, the
	// console and reloads. Default 127.0.0.1:9090. Restart needed.
	AdminListen string `yaml:"admin_listen"`
	// AdminToken is the bearer token that the admin listener requires for reloads, profiles and the
	// data of the console. A reference, ${NAME} or file:PATH. Default: none. Without a token, these
	// requests are served if admin_listen is on loopback and refused otherwise. Restart needed.
	AdminToken string `yaml:"admin_token" secret:"true"`
	// Pprof serves Go profiles of the process at /debug/pprof on the admin listener. Default false.
	// Restart needed.
	Pprof bool `yaml:"pprof"`
	// TLS enables HTTPS on the main listener. Default: the listener serves plain HTTP.
	TLS TLS `yaml:"tls"`
	// MaxBodyBytes is the maximum size of a request body, as a number or with a unit such as 64MiB.
	// A larger body is rejected with a 413. At least 1KiB. Default 64MiB. Reloadable.
	MaxBodyBytes option.Bytes `yaml:"max_body_bytes"`
	// DrainDelay is how long a stopping process continues to accept requests while /readyz returns
	// 503, so that load balancers can take it out of rotation. Responses carry Connection: close
	// during this time. 1s to 5m. Default 1s. Restart needed.
	DrainDelay option.Duration `yaml:"drain_delay"`
	// DrainTimeout is the maximum time that requests in flight get to finish when the process
	// stops. Default 30s. Restart needed.
	DrainTimeout option.Duration `yaml:"drain_timeout"`
	// ReadHeaderTimeout limits how long a client may take to send the headers of a request, and how
	// long a new connection may stay silent. Avoid low values: clients open spare connections, and
	// a request sent just as such a connection is closed is lost. At least 1s. Default 1m. Restart
	// needed.
	ReadHeaderTimeout option.Duration `yaml:"read_header_timeout"`
	// IdleTimeout is how long a client connection may stay idle between requests before it is
	// closed. Default 120s. Restart needed.
	IdleTimeout option.Duration `yaml:"idle_timeout"`
	// BodyTimeout is the longest pause that a client may make while it sends a request body. 0
	// disables the timeout. Default 30s. Reloadable.
	BodyTimeout option.Duration `yaml:"body_timeout"`
	// WriteTimeout is how long a client may stop reading a response before its connection is
	// closed. 0 disables the timeout. Default 30s. Reloadable.
	WriteTimeout option.Duration `yaml:"write_timeout"`
	// ConnectTimeout limits the time to connect to an endpoint. Default 2s. Restart needed.
	ConnectTimeout option.Duration `yaml:"connect_timeout"`
	// FirstByteTimeout limits the time to the first byte of a streamed response. 0 disables the
	// timeout. Default 60s. Reloadable.
	FirstByteTimeout option.Duration `yaml:"first_byte_timeout"`
	// AnswerTimeout limits the time to the headers of a response that is not streamed. The upstream
	// sends them only when it has generated the whole text. 0 disables the timeout. Default 10m.
	// Reloadable.
	AnswerTimeout option.Duration `yaml:"answer_timeout"`
	// GapTimeout is the longest pause allowed within a response: between two events of a stream, or
	// between two reads of any other response. 0 disables the timeout. Default 300s. Reloadable.
	GapTimeout option.Duration `yaml:"gap_timeout"`
	// KeepaliveAfter is how long a stream may be silent before the proxy sends a comment to the
	// client, and the interval between further comments, so that load balancers do not close the
	// connection. The time counts from the arrival of the request. A comment may be sent before the
	// response begins; after that, no other endpoint is tried. Default 0: no comments are sent.
	// Reloadable.
	KeepaliveAfter option.Duration `yaml:"keepalive_after"`
	// CommentsAreProgress selects whether comments in the stream of a model server reset
	// first_byte_timeout and gap_timeout as events do. Some servers send comments to signal that
	// they are still working. Default true. Reloadable.
	CommentsAreProgress bool `yaml:"comments_are_progress"`
	// MaxRetryAfter is the longest Retry-After of a model server that the proxy waits for and
	// passes on. A longer one is reduced to this value. Default 60s. Reloadable.
	MaxRetryAfter option.Duration `yaml:"max_retry_after"`
	// MaxAttempts is the maximum number of times that a request is sent upstream, including the
	// first. 1 to 10. Default 3. Reloadable.
	MaxAttempts int `yaml:"max_attempts"`
	// RetryBudget is the share of recent requests that may be retried, so that retries cannot
	// multiply the load on a failing pool. 0 to 1. Default 0.2. Reloadable.
	RetryBudget float64 `yaml:"retry_budget"`
	// AutoModels lists the model names that request routing. Default [auto]. Reloadable.
	AutoModels []string `yaml:"auto_models"`
	// AllowEngineParams lists body fields and headers that callers may send to control the model
	// servers, such as transfers of cached blocks, priority and ranks. Otherwise a request with
	// such a field is refused, and such a header is removed. Default: none are allowed. Reloadable.
	AllowEngineParams []engine.Param `yaml:"allow_engine_params"`
	// RouteNamedModels evaluates all routes also for requests that name a configured model. Default
	// false: for such requests, only routes that block are evaluated. Reloadable.
	RouteNamedModels bool `yaml:"route_named_models"`
	// Placement selects how an endpoint of a model is chosen. `auto` sends a prompt to the endpoint
	// that is expected to have most of it in its cache, weighed against the load there; other
	// prompts go to the less loaded of two endpoints. `off` uses the less loaded of two for all
	// prompts. Default auto. Reloadable.
	Placement string `yaml:"placement" words:"auto off"`
	// VaguePrompts lists generic system prompts that a route's prompt may replace. Case, spacing
	// and closing punctuation are ignored. Default: a list of common ones. Reloadable.
	VaguePrompts []string `yaml:"vague_prompts"`
	// AutoMaxTokens configures how `max_tokens: auto` computes its limit. Reloadable.
	AutoMaxTokens lengths.Options `yaml:"auto_max_tokens"`
}

// TLS secures the main listener. Its files are read again when one of them changes, without a
// restart. A file that cannot be used makes the configuration invalid, and the files read before
// stay in use. Turning TLS on or off takes a restart.
type TLS struct {
	// CertFile is the file with the server's certificate and its intermediates, in PEM.
	CertFile string `yaml:"cert_file" path:"true"`
	// KeyFile is the file with the private key of cert_file, in PEM.
	KeyFile string `yaml:"key_file" path:"true"`
	// ClientCAFile is the file with the certificates of the authorities that client certificates
	// may come from, in PEM. If it is set, a connection without a valid client certificate is
	// refused.
	ClientCAFile string `yaml:"client_ca_file" path:"true"`
}

// Files returns the files that are set.
func (o *TLS) Files() []string {
	return slices.DeleteFunc([]string{o.CertFile, o.KeyFile, o.ClientCAFile}, func(f string) bool { return f == "" })
}

// Config reads the files and returns the TLS configuration of a listener. An error has the form
// "field: problem".
func (o *TLS) Config() (*tls.Config, error) {
	cert, err := os.ReadFile(o.CertFile)
	if err != nil {
		return nil, fmt.Errorf("cert_file: %w", err)
	}
	key, err := os.ReadFile(o.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("key_file: %w", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("cert_file: %s with %s: %w", o.CertFile, o.KeyFile, err)
	}
	c := &tls.Config{
		Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
	}
	if o.ClientCAFile == "" {
		return c, nil
	}
	pem, err := os.ReadFile(o.ClientCAFile)
	if err != nil {
		return nil, fmt.Errorf("client_ca_file: %w", err)
	}
	c.ClientCAs, c.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
	if !c.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, errors.New("client_ca_file: " + o.ClientCAFile + " contains no PEM certificate")
	}
	return c, nil
}

func (o *TLS) check(p *option.Problems) {
	if (o.CertFile == "") != (o.KeyFile == "") {
		p.Addf("tls", "cert_file and key_file must be set together")
	}
	if o.ClientCAFile != "" && o.CertFile == "" {
		p.Addf("tls.client_ca_file", "client certificates require TLS on the listener: set cert_file and key_file")
	}
}

// DefaultServer returns the defaults, those of an empty section.
func DefaultServer() Server {
	return Server{
		Listen:              "127.0.0.1:8080",
		AdminListen:         "127.0.0.1:9090",
		MaxBodyBytes:        64 << 20,
		DrainDelay:          option.Duration(time.Second),
		DrainTimeout:        option.Duration(30 * time.Second),
		ReadHeaderTimeout:   option.Duration(time.Minute),
		IdleTimeout:         option.Duration(120 * time.Second),
		BodyTimeout:         option.Duration(30 * time.Second),
		WriteTimeout:        option.Duration(30 * time.Second),
		ConnectTimeout:      option.Duration(2 * time.Second),
		FirstByteTimeout:    option.Duration(60 * time.Second),
		AnswerTimeout:       option.Duration(10 * time.Minute),
		GapTimeout:          option.Duration(300 * time.Second),
		CommentsAreProgress: true,
		MaxRetryAfter:       option.Duration(60 * time.Second),
		MaxAttempts:         3,
		RetryBudget:         0.2,
		AutoModels:          []string{"auto"},
		Placement:           PlacementAuto,
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
		AutoMaxTokens: lengths.DefaultOptions(),
	}
}

// Validate reports every bad option, one "field: problem" per line.
func (o Server) Validate() error {
	var p option.Problems
	for _, a := range []struct{ field, addr string }{{"listen", o.Listen}, {"admin_listen", o.AdminListen}} {
		if _, port, err := net.SplitHostPort(a.addr); err != nil || !isPort(port) {
			p.Addf(a.field, "%q is not HOST:PORT, with a port of 0 to 65535", a.addr)
		}
	}
	option.Between(&p, "drain_delay", time.Duration(o.DrainDelay), time.Second, 5*time.Minute)
	o.TLS.check(&p)
	if o.MaxBodyBytes < 1<<10 {
		p.Addf("max_body_bytes", "%d is less than 1KiB", o.MaxBodyBytes)
	}
	option.AtLeast(&p, "read_header_timeout", time.Duration(o.ReadHeaderTimeout), time.Second)
	if o.ConnectTimeout <= 0 {
		p.Addf("connect_timeout", "%s is not positive", o.ConnectTimeout)
	}
	for _, d := range []struct {
		field string
		d     option.Duration
	}{
		{"drain_timeout", o.DrainTimeout},
		{"idle_timeout", o.IdleTimeout},
		{"body_timeout", o.BodyTimeout},
		{"write_timeout", o.WriteTimeout},
		{"first_byte_timeout", o.FirstByteTimeout},
		{"answer_timeout", o.AnswerTimeout},
		{"gap_timeout", o.GapTimeout},
		{"keepalive_after", o.KeepaliveAfter},
		{"max_retry_after", o.MaxRetryAfter},
	} {
		option.NotNegative(&p, d.field, d.d)
	}
	option.Between(&p, "max_attempts", o.MaxAttempts, 1, maxAttempts)
	option.Between(&p, "retry_budget", o.RetryBudget, 0, 1)
	if len(o.AutoModels) == 0 {
		p.Addf("auto_models", "the list is empty; a routed request needs a name")
	}
	if !slices.Contains([]string{"", PlacementAuto, PlacementOff}, o.Placement) {
		p.Addf("placement", "%q is neither %s nor %s", o.Placement, PlacementAuto, PlacementOff)
	}
	o.AutoMaxTokens.Check(&p, "auto_max_tokens")
	engine.CheckParams(&p, o.AllowEngineParams)
	for i, name := range o.AutoModels {
		p.Name(fmt.Sprintf("auto_models[%d]", i), name)
	}
	return p.Err()
}

// The values of Server.Placement.
const (
	PlacementAuto = "auto"
	PlacementOff  = "off"
)

// maxAttempts is the upper limit of Server.MaxAttempts.
const maxAttempts = 10

func isPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n <= 65535
}

// Prompt is one item of the list `prompts`.
type Prompt struct {
	// Name is the name by which routes refer to the prompt. Required, unique.
	Name string `yaml:"name"`
	// Text is the text of the system prompt. Required.
	Text string `yaml:"text"`
}

// Limits is the section `limits`: bounds that keep requests from exhausting the process. Limits of
// individual callers are in `auth`.
type Limits struct {
	// MaxConnections is the maximum number of client connections. When one more arrives, the
	// connection that has been idle longest is closed, or one that has been silent for a second. If
	// all connections have requests in flight, the new one waits. 0 to 1000000. Default 0: half of
	// the process's limit on open files (ulimit -n), less 96, and at most 65536. Restart needed.
	MaxConnections int `yaml:"max_connections"`
	// MaxBytesInFlight limits the total size of the bodies of all requests in flight. A request
	// that does not fit gets a 503. At least server.max_body_bytes. Default 1GiB. Reloadable.
	MaxBytesInFlight option.Bytes `yaml:"max_bytes_in_flight"`
	// MaxMessages is the maximum number of messages or input items in a request. 1 to 1000000.
	// Default 16384. Reloadable.
	MaxMessages int `yaml:"max_messages"`
	// MaxDepth is the maximum nesting depth of objects and arrays in a request body. 8 to 1000.
	// Default 128. Reloadable.
	MaxDepth int `yaml:"max_depth"`
	// MinBodyRate is the minimum average rate, in bytes per second, at which a client must send a
	// request body, enforced after the first five seconds. 0 disables the check. Default 1KiB.
	// Reloadable.
	MinBodyRate option.Bytes `yaml:"min_body_rate"`
}

// DefaultLimits returns the defaults, those of an empty section.
func DefaultLimits() Limits {
	d := openai.DefaultLimits()
	return Limits{MaxBytesInFlight: 1 << 30, MaxMessages: d.MaxMessages, MaxDepth: d.MaxDepth, MinBodyRate: 1 << 10}
}

// Validate reports every bad option, one "field: problem" per line. largest is the maximum size of
// an accepted body.
func (o Limits) Validate(largest option.Bytes) error {
	var p option.Problems
	option.Between(&p, "max_connections", o.MaxConnections, 0, 1_000_000)
	if o.MaxBytesInFlight < largest {
		p.Addf("max_bytes_in_flight", "%d is less than server.max_body_bytes, %d: a request of that size would never fit", o.MaxBytesInFlight, largest)
	}
	option.Between(&p, "max_messages", o.MaxMessages, 1, 1_000_000)
	option.Between(&p, "max_depth", o.MaxDepth, 8, 1000)
	return p.Err()
}

// OfBody returns the limits for parsing a body.
func (o Limits) OfBody() openai.Limits {
	return openai.Limits{MaxMessages: o.MaxMessages, MaxDepth: o.MaxDepth}
}
