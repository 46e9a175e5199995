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
	// Name appears in headers, metrics and logs. Required, unique within the model.
	Name string `yaml:"name"`
	// URL is the base of the API, such as http://10.0.0.11:8000/v1. Required.
	URL string `yaml:"url"`
	// Weight is the endpoint's share of the load relative to the others. 1 to 1000. Default 1. An
	// endpoint that is to get no requests is taken out of the list, and finishes those that it has.
	Weight int `yaml:"weight" zero:"is not between 1 and 1000; take the endpoint out: it finishes what it has"`
	// Resolve makes one endpoint of each server behind the name in the URL, and looks every 10s
	// whether they have changed: `a` takes the addresses of the host, as a headless Kubernetes
	// service has them, `srv` the records of a service, named as in _http._tcp.vllm.default.svc,
	// with their ports and weights, `endpointslice` the Pods of a Kubernetes service, SERVICE or
	// SERVICE.NAMESPACE, that are ready, by the API server. Default off: the name is one endpoint.
	Resolve string `yaml:"resolve" words:"off a srv endpointslice"`
	// MaxInflight is how many requests the server may have at once; further ones wait, see queue. 0
	// to 100000. Default 0: no bound.
	MaxInflight int `yaml:"max_inflight"`
	// APIKey is sent as a bearer token. A reference, ${NAME} or file:PATH. Default: none is sent.
	APIKey string `yaml:"api_key" secret:"true"`
	// ForwardAuth sends the client's own header Authorization on to this endpoint, which then knows
	// who asks. It stands in place of api_key. Answers of the cache are then kept apart by that
	// header. Default false: what clients authenticate with ends here.
	ForwardAuth bool `yaml:"forward_auth"`
	// TLS says how a server with an https URL is trusted, and as whom it knows the proxy. Default:
	// the system's authorities, and no certificate of one's own.
	TLS TLSOptions `yaml:"tls"`
	// Protocol is what the server is spoken to in: http1, h2 (over TLS), or h2c (HTTP/2 without
	// TLS, for servers known to speak it). Default http1.
	Protocol string `yaml:"protocol" words:"http1 h2 h2c"`
	// KV says what is known of the server's key-value cache. Default: what the model's section kv
	// says.
	KV kv.Options `yaml:"kv"`
}

// The values of EndpointOptions.Resolve.
const (
	ResolveOff = "off"
	ResolveA   = "a"
	ResolveSRV = "srv"
	// ResolveSlices asks the API server of Kubernetes.
	ResolveSlices = "endpointslice"
)

// Check reports every bad option to p, at being the path of the endpoint. That names are unique is
// for the caller to check.
func (o *EndpointOptions) Check(p *option.Problems, at string) {
	p.Name(at+".name", o.Name)
	if _, err := baseURL(o.URL); err != nil {
		p.Addf(at+".url", "%v", err)
	}
	if o.Weight < 0 || o.Weight > 1000 {
		p.Addf(at+".weight", "%d is not between 1 and 1000", o.Weight)
	}
	switch o.Resolve {
	case "", ResolveOff, ResolveA, ResolveSRV, ResolveSlices:
	default:
		p.Addf(at+".resolve", "%q is neither %s, %s, %s nor %s", o.Resolve, ResolveOff, ResolveA, ResolveSRV, ResolveSlices)
	}
	option.Between(p, at+".max_inflight", o.MaxInflight, 0, 100_000)
	if !option.VisibleASCII(o.APIKey) {
		p.Addf(at+".api_key", "the key holds characters that a header cannot carry")
	}
	if o.ForwardAuth && o.APIKey != "" {
		p.Addf(at+".forward_auth", "an endpoint gets either the client's credentials or api_key")
	}
	o.checkWire(p, at)
	o.KV.Check(p, at+".kv")
}

// HealthOptions configures active checks. An endpoint is down after two checks in a row that were
// refused, timed out or answered with a status of 500 or above, and up again after one that was
// not.
type HealthOptions struct {
	// Path is asked with GET on the endpoint's host. `off` turns the checks off. Default /health,
	// and where a server has no such path, the list of models of its API.
	Path string `yaml:"path"`
	// Interval is the time between two checks. While the server is down it doubles with each, up to
	// 30s. At least 10ms. Default 5s.
	Interval option.Duration `yaml:"interval"`
	// Timeout bounds one check. Default 2s.
	Timeout option.Duration `yaml:"timeout"`
}

// healthOff is the Path that turns active checks off.
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

// Versioned reports whether the path of an endpoint's URL names a version of the API, such as /v1,
// as those of most servers do. A URL that cannot be read is not told of.
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

// callOf returns the path of the API that a path ends in, empty for that of a base URL.
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

// baseURL reads the base URL of an endpoint.
func baseURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case strings.Contains(s, "@") && (err != nil || u.User != nil || !strings.Contains(s, "://")): // perhaps with a password, which no error tells
		return nil, fmt.Errorf("the URL holds a user name; use api_key")
	case s != "" && !strings.Contains(s, "://"):
		return nil, fmt.Errorf("%q must start with http:// or https://, as in http://%s", s, s)
	case err != nil:
		return nil, fmt.Errorf("%q is not a URL", s)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("%q must start with http:// or https://", s)
	case u.Host == "":
		return nil, fmt.Errorf("%q names no host", s)
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("%q has a query or a fragment", s)
	}
	if err := option.Port(u); err != nil {
		return nil, fmt.Errorf("%q: %w", s, err)
	}
	if call := callOf(u.Path); call != "" {
		return nil, fmt.Errorf("%q names a call; %s is added to the URL by itself", s, call)
	}
	if u.Path = strings.TrimSuffix(u.Path, "/"); u.Path == "" {
		u.Path = "/" // what is joined to no path begins without a slash, which no server takes
	}
	u.RawPath = ""
	return u, nil
}
