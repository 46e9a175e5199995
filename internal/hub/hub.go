// Package hub downloads models from a server that speaks the HTTP layout of the Hugging Face hub:
// huggingface.co itself or a mirror.
//
// A pull lists the files of one commit, takes only those that a classifier needs (one graph, the
// tokenizer, label mappings, the card), checks every byte against the digest of the listing and
// puts the files into a folder of models_dir when all of them are there. A pull that was cut short
// goes on where it stopped.
//
// What holds:
//   - The access token goes to the hub's own scheme, host and port, never to the storage host that
//     a download is redirected to, and never in clear text over a network.
//   - No file name of a listing leads out of the model's folder.
//   - A model folder changes only under its lock and only when every new file is complete and
//     verified.
//   - Nothing is taken whose digest the hub does not tell.
//
// A Client is safe for concurrent use. Pull starts at most Options.Connections goroutines and
// returns when all of them have ended; cancelling its context ends them.
package hub

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// DefaultEndpoint is the public hub.
const DefaultEndpoint = "https://huggingface.co"

// What can be wrong with a pull. Errors wrap one of these and say what to do.
var (
	// ErrUnauthorized: the hub wants a token, or does not know the one it got.
	ErrUnauthorized = errors.New("not authorised")
	// ErrGated: the terms of the repository have not been accepted with the account of the token.
	ErrGated = errors.New("access to this repository is restricted")
	// ErrNoRepo: the repository does not exist, or the token may not see it.
	ErrNoRepo = errors.New("no such repository")
	// ErrNoRevision: the repository has no such branch, tag or commit.
	ErrNoRevision = errors.New("no such revision")
	// ErrNoFile: the repository has no such file.
	ErrNoFile = errors.New("no such file")
	// ErrNoModel: the repository has no graph, or no tokenizer, that can be used.
	ErrNoModel = errors.New("no usable model")
	// ErrBusy: the hub kept answering that it is overloaded or that there were too many requests.
	ErrBusy = errors.New("the hub is busy")
	// ErrChecksum: a file arrived whole and is not what the listing says.
	ErrChecksum = errors.New("checksum mismatch")
	// ErrSize: a server sends more or fewer bytes than the listing says.
	ErrSize = errors.New("size mismatch")
	// ErrChanged: the file on the hub is no longer the one that was listed.
	ErrChanged = errors.New("changed on the hub during the download")
	// ErrDiskFull: there is no room for the files.
	ErrDiskFull = errors.New("not enough disk space")
	// ErrProtocol: the server does not speak the hub's layout, or redirects without end.
	ErrProtocol = errors.New("unexpected answer")
)

// Options are the tunables of a client.
type Options struct {
	// Endpoint is the URL of the hub or of a mirror, with an optional path. Default
	// DefaultEndpoint.
	Endpoint string
	// Token is the access token, or empty.
	Token string
	// UserAgent is sent with every request.
	UserAgent string
	// Connections is the most requests at the same time, in [1,16].
	Connections int
	// PartBytes is the size of the ranges that large files are fetched in, at least 1. It is also
	// the most that a killed process loses of each connection.
	PartBytes int64
	// Attempts is how often a request is tried that fails for a passing reason, in [1,20]. An
	// attempt that received new bytes does not count.
	Attempts int
	// Stall is how long a transfer may bring no byte before it is tried again, more than 0.
	Stall time.Duration
	// Transport sends the requests. Default: one with time limits that honours HTTPS_PROXY,
	// HTTP_PROXY and NO_PROXY.
	Transport http.RoundTripper
	// Sleep waits for d or until ctx ends, and returns the error of ctx then.
	Sleep func(ctx context.Context, d time.Duration) error
	// Now tells the time.
	Now func() time.Time
	// Random returns a number in [0,1); it spreads the retries of many clients.
	Random func() float64
	// Free returns the bytes free for this user on the file system of dir, or an error that wraps
	// errors.ErrUnsupported.
	Free func(dir string) (uint64, error)
}

// DefaultOptions returns the options of the command line, without a token.
func DefaultOptions() Options {
	return Options{
		Endpoint: DefaultEndpoint, UserAgent: "signalbox", Connections: 4, PartBytes: 32 << 20, Attempts: 6,
		Stall: 30 * time.Second, Transport: newTransport(), Sleep: sleep, Now: time.Now, Random: rand.Float64, Free: free,
	}
}

// Validate returns every problem, joined.
func (o Options) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if o.Connections < 1 || o.Connections > 16 {
		bad("connections: %d is not in [1,16]", o.Connections)
	}
	if o.PartBytes < 1 {
		bad("part bytes: %d is below 1", o.PartBytes)
	}
	if o.Attempts < 1 || o.Attempts > 20 {
		bad("attempts: %d is not in [1,20]", o.Attempts)
	}
	if o.Stall <= 0 {
		bad("stall: %v is not above 0", o.Stall)
	}
	if o.Transport == nil || o.Sleep == nil || o.Now == nil || o.Random == nil || o.Free == nil {
		bad("a function is missing: start from DefaultOptions")
	}
	if _, err := parseEndpoint(o.Endpoint); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Client downloads from one hub.
type Client struct {
	o        Options
	endpoint *url.URL
	http     *http.Client
}

// New makes a client. It opens no connection.
func New(o Options) (*Client, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("hub client: %w", err)
	}
	endpoint, err := parseEndpoint(o.Endpoint)
	if err != nil {
		return nil, err
	}
	return &Client{o: o, endpoint: endpoint, http: &http.Client{
		Transport: o.Transport,
		// Redirects are followed one by one in follow, which decides what each host may see.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

func parseEndpoint(s string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimRight(s, "/"))
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, fmt.Errorf("endpoint %q is not an http or https URL", s)
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("endpoint: a user, a query or a fragment does not belong in it; give a token in HF_TOKEN")
	}
	return u, nil
}

// The limits of one connection. A download itself has none: Options.Stall watches over it.
const (
	dialTimeout   = 10 * time.Second
	headerTimeout = 30 * time.Second
	idleTimeout   = 30 * time.Second
)

func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSHandshakeTimeout:   dialTimeout,
		ResponseHeaderTimeout: headerTimeout,
		IdleConnTimeout:       idleTimeout,
		MaxIdleConnsPerHost:   16,
		ForceAttemptHTTP2:     true,
		DisableCompression:    true, // sizes and digests are those of the bytes as stored
	}
}

// sendsToken reports whether a request to u may carry the token: to the hub itself, and over a
// network only when it is encrypted.
func (c *Client) sendsToken(u *url.URL) bool {
	return c.o.Token != "" && c.isHub(u) && (u.Scheme == "https" || isLoopback(u.Hostname()))
}

// isHub reports whether u has the scheme, host and port of the endpoint.
func (c *Client) isHub(u *url.URL) bool {
	return u.Scheme == c.endpoint.Scheme && strings.EqualFold(u.Hostname(), c.endpoint.Hostname()) && port(u) == port(c.endpoint)
}

func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "http":
		return "80"
	}
	return "443"
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// apiURL returns the address of a path of the API, and resolveURL that of a file. A revision may
// have slashes (refs/pr/1), which the hub wants escaped.
func (c *Client) apiURL(repo, what, rev, query string) (*url.URL, error) {
	return c.parse("/api/models/" + repo + "/" + what + "/" + url.PathEscape(rev) + query)
}

func (c *Client) resolveURL(repo, commit, name string) (*url.URL, error) {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return c.parse("/" + repo + "/resolve/" + url.PathEscape(commit) + "/" + strings.Join(parts, "/"))
}

func (c *Client) parse(path string) (*url.URL, error) {
	u, err := url.Parse(c.endpoint.String() + path)
	if err != nil {
		return nil, fmt.Errorf("address: %w", err)
	}
	return u, nil
}
