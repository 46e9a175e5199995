// Package hub downloads models from a server that speaks the HTTP layout of the Hugging Face hub:
// huggingface.co itself or a mirror.
//
// A pull lists the files of one commit and selects those that a classifier needs (one graph, the
// tokenizer, label mappings, the card). It checks every byte against the digest in the listing, and
// moves the files into a folder of models_dir when all of them are complete. An interrupted pull
// resumes where it stopped.
//
// Guarantees:
//   - The access token is sent to the hub's own scheme, host and port only, never to the storage host
//     that a download is redirected to, and never in clear text over a network.
//   - No file name in a listing leads out of the model's folder.
//   - A model folder changes only under its lock, and only when every new file is complete and
//     verified.
//   - Files without a digest in the listing are not downloaded.
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

// Errors of a pull. Returned errors wrap one of these and include advice.
var (
	// ErrUnauthorized: the hub requires a token, or rejects the given one.
	ErrUnauthorized = errors.New("not authorised")
	// ErrGated: the terms of the repository have not been accepted with the account of the token.
	ErrGated = errors.New("access to this repository is restricted")
	// ErrNoRepo: the repository does not exist, or the token may not see it.
	ErrNoRepo = errors.New("no such repository")
	// ErrNoRevision: the repository has no such branch, tag or commit.
	ErrNoRevision = errors.New("no such revision")
	// ErrNoFile: the repository has no such file.
	ErrNoFile = errors.New("no such file")
	// ErrNoModel: the repository has no usable graph or tokenizer.
	ErrNoModel = errors.New("no usable model")
	// ErrBusy: the hub kept responding that it is overloaded or that there were too many requests.
	ErrBusy = errors.New("the hub is busy")
	// ErrChecksum: a complete file does not match the digest in the listing.
	ErrChecksum = errors.New("checksum mismatch")
	// ErrSize: a server sends more or fewer bytes than the listing states.
	ErrSize = errors.New("size mismatch")
	// ErrChanged: the file on the hub is no longer the one that was listed.
	ErrChanged = errors.New("changed on the hub during the download")
	// ErrDiskFull: there is not enough space for the files.
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
	// Connections is the maximum of concurrent requests, in [1,16].
	Connections int
	// PartBytes is the size of the ranges that large files are fetched in, at least 1. It is also
	// the most that each connection loses if the process is killed.
	PartBytes int64
	// Attempts is the maximum of attempts for a request that fails temporarily, in [1,20]. An
	// attempt that received new bytes does not count.
	Attempts int
	// Stall is how long a transfer may receive no bytes before it is retried, more than 0.
	Stall time.Duration
	// Transport sends the requests. Default: one with timeouts that honours HTTPS_PROXY, HTTP_PROXY
	// and NO_PROXY.
	Transport http.RoundTripper
	// Sleep waits for d or until ctx ends, and then returns the error of ctx.
	Sleep func(ctx context.Context, d time.Duration) error
	// Now returns the current time.
	Now func() time.Time
	// Random returns a number in [0,1); it spreads the retries of many clients.
	Random func() float64
	// Free returns the bytes free for this user on the file system of dir, or an error that wraps
	// errors.ErrUnsupported.
	Free func(dir string) (uint64, error)
}

// DefaultOptions returns the options that the command line uses, without a token.
func DefaultOptions() Options {
	return Options{
		Endpoint: DefaultEndpoint, UserAgent: "signalbox", Connections: 4, PartBytes: 32 << 20, Attempts: 6,
		Stall: 30 * time.Second, Transport: newTransport(), Sleep: sleep, Now: time.Now, Random: rand.Float64, Free: free,
	}
}

// Validate returns all problems, joined.
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

// New creates a client. It opens no connection.
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
		// follow handles redirects one by one and decides what each host may see.
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

// The timeouts of a connection. Downloads have no total timeout; Options.Stall detects stalled
// ones.
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

// sendsToken reports whether a request to u may carry the token: only to the hub itself, and over a
// network only if it is encrypted.
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
// contain slashes (refs/pr/1), which the hub requires to be escaped.
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
