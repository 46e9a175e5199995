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
	// Listen is the address that clients call, HOST:PORT. Default 127.0.0.1:8080. Restart needed.
	Listen string `yaml:"listen"`
	// AdminListen is the address of metrics, console and reload, HOST:PORT. Default 127.0.0.1:9090.
	// Restart needed.
	AdminListen string `yaml:"admin_listen"`
	// AdminToken is what requests to the admin listener show as a bearer token to reload, to
	// profile or to read the console's data. A reference, ${NAME} or file:PATH. Default: none,
	// which is enough on loopback; on another address these are refused without it. Restart needed.
	AdminToken string `yaml:"admin_token" secret:"true"`
	// Pprof serves profiles of the process at /debug/pprof of the admin listener. Default false.
	// Restart needed.
	Pprof bool `yaml:"pprof"`
	// TLS makes the main listener speak HTTPS. Default: it speaks HTTP.
	TLS TLS `yaml:"tls"`
	// MaxBodyBytes is the largest request body, as a number or with a unit such as 64MiB; a larger
	// one is answered with 413. At least 1KiB. Default 64MiB. Reloadable.
	MaxBodyBytes option.Bytes `yaml:"max_body_bytes"`
	// DrainDelay is how long new requests are still served when the process stops and /readyz says
	// 503, each with Connection: close, until load balancers have seen it. 1s to 5m. Default 1s.
	// Restart needed.
	DrainDelay option.Duration `yaml:"drain_delay"`
	// DrainTimeout is how long requests in flight may take to end when the process stops. Default
	// 30s. Restart needed.
	DrainTimeout option.Duration `yaml:"drain_timeout"`
	// ReadHeaderTimeout bounds the time in which a client sends the head of a request, and how long a
	// new connection may say nothing: clients open spare ones, and a request that goes out as one is
	// closed is lost to them. At least 1s. Default 1m. Restart needed.
	ReadHeaderTimeout option.Duration `yaml:"read_header_timeout"`
	// IdleTimeout is how long a client's connection may stay open between requests. Default 120s.
	// Restart needed.
	IdleTimeout option.Duration `yaml:"idle_timeout"`
	// BodyTimeout is how long a client may pause while it sends a body. Default 30s; 0 never gives
	// up. Reloadable.
	BodyTimeout option.Duration `yaml:"body_timeout"`
	// WriteTimeout is how long a client may leave an answer unread before its connection is closed.
	// Default 30s; 0 never gives up. Reloadable.
	WriteTimeout option.Duration `yaml:"write_timeout"`
	// ConnectTimeout bounds the connection to an endpoint. Default 2s. Restart needed.
	ConnectTimeout option.Duration `yaml:"connect_timeout"`
	// FirstByteTimeout bounds the time to the first byte of a streamed answer. Default 60s; 0 is no
	// bound. Reloadable.
	FirstByteTimeout option.Duration `yaml:"first_byte_timeout"`
	// AnswerTimeout bounds the time to the head of an answer that is not streamed, which the
	// upstream sends when the whole text is there. Default 10m; 0 is no bound. Reloadable.
	AnswerTimeout option.Duration `yaml:"answer_timeout"`
	// GapTimeout is how long an answer may pause: a stream between two events, another between two
	// reads. Default 300s; 0 is no bound. Reloadable.
	GapTimeout option.Duration `yaml:"gap_timeout"`
	// KeepaliveAfter is how long a stream is silent, from the request on, before a comment is sent
	// to the client, and again after each: load balancers close connections that say nothing. The
	// first one may go out before an answer begins, and then no other endpoint is tried. Default 0:
	// none are sent. Reloadable.
	KeepaliveAfter option.Duration `yaml:"keepalive_after"`
	// CommentsAreProgress says whether comments that a model server sends in a stream, as some do
	// to say that they still work, count for first_byte_timeout and gap_timeout as events do.
	// Default true. Reloadable.
	CommentsAreProgress bool `yaml:"comments_are_progress"`
	// MaxRetryAfter is the longest Retry-After of a model server that is waited for and passed on;
	// a longer one is cut to it. Default 60s. Reloadable.
	MaxRetryAfter option.Duration `yaml:"max_retry_after"`
	// MaxAttempts is how often a request is sent upstream before it fails, the first time included.
	// 1 to 10. Default 3. Reloadable.
	MaxAttempts int `yaml:"max_attempts"`
	// RetryBudget is the share of recent requests that may be sent a second time, so that retries
	// cannot multiply the load on a failing pool. 0 to 1. Default 0.2. Reloadable.
	RetryBudget float64 `yaml:"retry_budget"`
	// AutoModels are the model names that ask for routing. Default [auto]. Reloadable.
	AutoModels []string `yaml:"auto_models"`
	// AllowEngineParams lets callers steer the model servers by fields of bodies and headers that
	// are otherwise kept from them: transfers of cached blocks, priority, ranks and the like.
	// Default: none. Reloadable.
	AllowEngineParams []engine.Param `yaml:"allow_engine_params"`
	// RouteNamedModels evaluates every route also for requests that name a configured model.
	// Default false: such requests only meet routes that block. Reloadable.
	RouteNamedModels bool `yaml:"route_named_models"`
	// Placement says how an endpoint is picked among those of a model: `auto` sends a prompt where
	// most of it should be in the cache, weighed against the load there, and any other to the less
	// loaded of two; `off` is the latter for all. Default auto. Reloadable.
	Placement string `yaml:"placement" words:"auto off"`
	// VaguePrompts are the system prompts that say nothing, which a route's prompt may replace.
	// Case, spacing and closing punctuation do not matter. The default is a list of common ones.
	// Reloadable.
	VaguePrompts []string `yaml:"vague_prompts"`
	// AutoMaxTokens says how `max_tokens: auto` finds its limit. Reloadable.
	AutoMaxTokens lengths.Options `yaml:"auto_max_tokens"`
}

// TLS is how the main listener is secured. Files are read again when one of them changes, without a
// restart. One that cannot be used makes the configuration invalid: what was read before stays.
// Whether there is TLS at all takes a restart to change.
type TLS struct {
	// CertFile holds the certificate of the server, in PEM, with its intermediates.
	CertFile string `yaml:"cert_file" path:"true"`
	// KeyFile holds the key of cert_file, in PEM.
	KeyFile string `yaml:"key_file" path:"true"`
	// ClientCAFile holds the certificates, in PEM, of the authorities that certificates of clients
	// may come from. With it a client without a certificate gets no connection.
	ClientCAFile string `yaml:"client_ca_file" path:"true"`
}

// Files lists the files that are named.
func (o *TLS) Files() []string {
	return slices.DeleteFunc([]string{o.CertFile, o.KeyFile, o.ClientCAFile}, func(f string) bool { return f == "" })
}

// Config reads the files into what a listener shows to clients, and whom it lets in. An error is
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
		return nil, errors.New("client_ca_file: " + o.ClientCAFile + " holds no certificate in PEM")
	}
	return c, nil
}

func (o *TLS) check(p *option.Problems) {
	if (o.CertFile == "") != (o.KeyFile == "") {
		p.Addf("tls", "cert_file and key_file go together")
	}
	if o.ClientCAFile != "" && o.CertFile == "" {
		p.Addf("tls.client_ca_file", "clients have certificates only where the listener has one: set cert_file and key_file")
	}
}

// DefaultServer returns the options of an empty section.
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

// Validate reports every bad option, one "field: problem" a line.
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

// maxAttempts is the upper bound of Server.MaxAttempts.
const maxAttempts = 10

func isPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n <= 65535
}

// Prompt is one item of the list `prompts`.
type Prompt struct {
	// Name is what routes name. Required, unique.
	Name string `yaml:"name"`
	// Text is the system prompt. Required.
	Text string `yaml:"text"`
}

// Limits is the section `limits`: what keeps requests from using up the process. Limits of
// callers are in `auth`.
type Limits struct {
	// MaxConnections is how many clients may be connected at a time. When one more comes, the
	// connection that has been idle longest is closed for it, or one that has said nothing for a
	// second; when all have requests under way, it waits. 0 to 1000000. Default 0: half of the
	// files that the process may have open (ulimit -n), less 96, and at most 65536. Restart needed.
	MaxConnections int `yaml:"max_connections"`
	// MaxBytesInFlight bounds the bodies of all requests that are under way, together; one that
	// does not fit is answered with 503. At least server.max_body_bytes. Default 1GiB. Reloadable.
	MaxBytesInFlight option.Bytes `yaml:"max_bytes_in_flight"`
	// MaxMessages is the most messages or input items of a request. 1 to 1000000. Default 16384.
	// Reloadable.
	MaxMessages int `yaml:"max_messages"`
	// MaxDepth is how deep objects and arrays of a body may be nested. 8 to 1000. Default 128.
	// Reloadable.
	MaxDepth int `yaml:"max_depth"`
	// MinBodyRate is how many bytes a second a client must send of a body, on average, once the
	// first five seconds are over. 0 is no bound. Default 1KiB. Reloadable.
	MinBodyRate option.Bytes `yaml:"min_body_rate"`
}

// DefaultLimits returns the options of an empty section.
func DefaultLimits() Limits {
	d := openai.DefaultLimits()
	return Limits{MaxBytesInFlight: 1 << 30, MaxMessages: d.MaxMessages, MaxDepth: d.MaxDepth, MinBodyRate: 1 << 10}
}

// Validate reports every bad option, one "field: problem" a line. largest is the largest body that
// is accepted.
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

// OfBody returns what bounds the reading of a body.
func (o Limits) OfBody() openai.Limits {
	return openai.Limits{MaxMessages: o.MaxMessages, MaxDepth: o.MaxDepth}
}
