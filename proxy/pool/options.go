package pool

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"signalbox/internal/option"
	"signalbox/proxy/kv"
)

// EndpointOptions is one server of a model.
type EndpointOptions struct {
	// Name identifies the endpoint in headers, metrics and logs. Required, unique within the model.
	Name string `yaml:"name"`
	// URL is the base URL of the API, such as http://10.0.0.11:8000/v1. Required.
	URL string `yaml:"url"`
	// Weight is the endpoint's share of the load relative to the others. 1 to 1000. Default 1. To
	// send an endpoint no more requests, remove it from the list; it finishes those in flight.
	Weight int `yaml:"weight" zero:"is not between 1 and 1000; take the endpoint out: it finishes what it has"`
	// Resolve expands the name in the URL to one endpoint per server, and looks for changes every
	// 10s. `a` uses the addresses of the host, as a headless Kubernetes service has them. `srv`
	// uses the SRV records of a service, named as in _http._tcp.vllm.default.svc, with their ports
	// and weights. `endpointslice` uses the ready Pods of a Kubernetes service, SERVICE or
	// SERVICE.NAMESPACE, as the API server lists them. Default off: the name is one endpoint.
	Resolve string `yaml:"resolve" words:"off a srv endpointslice"`
	// MaxInflight is the maximum number of requests in flight at the server. Further ones wait, see
	// queue. 0 to 100000. Default 0: unlimited.
	MaxInflight int `yaml:"max_inflight"`
	// APIKey is sent as a bearer token. A reference, ${NAME} or file:PATH. Default: none is sent.
	APIKey string `yaml:"api_key" secret:"true"`
	// ForwardAuth forwards the client's Authorization header to this endpoint, which then knows who
	// asks. It cannot be combined with api_key. Cached responses are then separated by that header.
	// Default false: credentials of clients are not forwarded.
	ForwardAuth bool `yaml:"forward_auth"`
	// TLS configures how the certificate of a server with an https URL is verified, and which
	// client certificate the proxy presents. Default: the system's authorities, and no client
	// certificate.
	TLS TLSOptions `yaml:"tls"`
	// Protocol is the HTTP version spoken with the server: http1, h2 (over TLS) or h2c (HTTP/2
	// without TLS, for servers known to speak it). Default http1.
	Protocol string `yaml:"protocol" words:"http1 h2 h2c"`
	// KV describes the server's key-value cache. Default: the section kv of the model.
	KV kv.Options `yaml:"kv"`
}

// The values of EndpointOptions.Resolve.
const (
	ResolveOff = "off"
	ResolveA   = "a"
	ResolveSRV = "srv"
	// ResolveSlices queries the Kubernetes API server for EndpointSlices.
	ResolveSlices = "endpointslice"
)

// MaxWeight is the greatest EndpointOptions.Weight.
const MaxWeight = 1000

// Check reports every bad option to p; at is the path of the endpoint. The caller checks that names
// are unique.
func (o *EndpointOptions) Check(p *option.Problems, at string) {
	p.Name(at+".name", o.Name)
	if _, err := baseURL(o.URL); err != nil {
		p.Addf(at+".url", "%v", err)
	}
	if o.Weight < 0 || o.Weight > MaxWeight {
		p.Addf(at+".weight", "%d is not between 1 and 1000", o.Weight)
	}
	switch o.Resolve {
	case "", ResolveOff, ResolveA, ResolveSRV, ResolveSlices:
	default:
		p.Addf(at+".resolve", "%q is neither %s, %s, %s nor %s", o.Resolve, ResolveOff, ResolveA, ResolveSRV, ResolveSlices)
	}
	option.Between(p, at+".max_inflight", o.MaxInflight, 0, 100_000)
	if !option.VisibleASCII(o.APIKey) {
		p.Addf(at+".api_key", "the key contains characters that are not allowed in a header")
	}
	if o.ForwardAuth && o.APIKey != "" {
		p.Addf(at+".forward_auth", "forward_auth and api_key are mutually exclusive")
	}
	o.checkWire(p, at)
	o.KV.Check(p, at+".kv")
}

// HealthOptions configures active health checks. An endpoint is down after two consecutive checks
// that were refused, timed out or returned a status of 500 or above, and up again after one check
// that did not.
type HealthOptions struct {
	// Path is the path that is requested with GET on the endpoint's host. `off` disables the
	// checks. Default /health; for a server without that path, the list of models of its API.
	Path string `yaml:"path"`
	// Interval is the time between two checks. While the server is down, it doubles after each
	// check, up to 30s. At least 10ms. Default 5s.
	Interval option.Duration `yaml:"interval"`
	// Timeout limits one check. Default 2s.
	Timeout option.Duration `yaml:"timeout"`
}

// healthOff is the Path that disables active checks.
const healthOff = "off"

const (
	defaultHealthPath     = "/health"
	defaultHealthInterval = 5 * time.Second
	defaultHealthTimeout  = 2 * time.Second
	minHealthInterval     = 10 * time.Millisecond
)

// Check reports every bad option to p; at is the path of the section.
func (o *HealthOptions) Check(p *option.Problems, at string) {
	if o.Path != "" && o.Path != healthOff && !strings.HasPrefix(o.Path, "/") {
		p.Addf(at+".path", "%q must start with / or be %s", o.Path, healthOff)
	}
	if o.Interval != 0 && o.Interval < option.Duration(minHealthInterval) {
		p.Addf(at+".interval", "%s is less than %s", o.Interval, minHealthInterval)
	}
	option.NotNegative(p, at+".timeout", o.Timeout)
}

// Versioned reports whether the path of an endpoint's URL contains an API version such as /v1, as
// most servers' URLs do. It returns true for an invalid URL, which is reported elsewhere.
func Versioned(s string) bool {
	u, err := baseURL(s)
	if err != nil {
		return true
	}
	for part := range strings.SplitSeq(u.Path, "/") {
		if len(part) > 1 && part[0] == 'v' && part[1] >= '0' && part[1] <= '9' {
			return true
		}
	}
	return false
}

// callOf returns the API path that a URL path ends in, such as chat/completions; empty for a base
// URL.
func callOf(path string) string {
	path = strings.TrimSuffix(path, "/")
	for _, call := range [...]string{
		"/chat/completions", "/completions", "/responses", "/embeddings",
	} {
		if strings.HasSuffix(path, call) {
			return call
		}
	}
	return ""
}

// baseURL parses the base URL of an endpoint.
func baseURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case strings.Contains(s, "@") && (err != nil || u.User != nil || !strings.Contains(s, "://")):
		// may contain a password, which an error must not show
		return nil, fmt.Errorf("the URL contains a user name; use api_key")
	case s != "" && !strings.Contains(s, "://"):
		return nil, fmt.Errorf("%q must start with http:// or https://, as in http://%s", s, s)
	case err != nil:
		return nil, fmt.Errorf("%q is not a URL", s)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("%q must start with http:// or https://", s)
	case u.Host == "":
		return nil, fmt.Errorf("%q has no host", s)
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("%q has a query or a fragment", s)
	}
	if err := option.Port(u); err != nil {
		return nil, fmt.Errorf("%q: %w", s, err)
	}
	if call := callOf(u.Path); call != "" {
		return nil, fmt.Errorf("%q includes the path of an API call; set the base URL, %s is appended to it", s, call)
	}
	if u.Path = strings.TrimSuffix(u.Path, "/"); u.Path == "" {
		// joining to an empty path yields one without a leading slash, which no server accepts
		u.Path = "/"
	}
	u.RawPath = ""
	return u, nil
}
