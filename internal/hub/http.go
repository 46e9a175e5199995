package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	maxRedirects = 8
	maxJSON      = 64 << 20 // a listing; 100,000 files take about 30 MB

	// backoffFirst doubles with every attempt up to backoffMost.
	backoffFirst = time.Second
	backoffMost  = 30 * time.Second
	// waitMost is the longest wait that a server may ask for: the hub counts requests in windows of
	// five minutes (https://huggingface.co/docs/hub/rate-limits).
	waitMost = 5 * time.Minute
)

// reply is the last response in a chain of redirects. The caller closes its body.
type reply struct {
	*http.Response

	fromHub bool        // the response is from the hub itself, not from a storage host
	linked  http.Header // headers of the hub's redirect: X-Linked-Etag and others
}

// temporaryError is a temporary failure. wait is the wait that the server requested, 0 if none.
type temporaryError struct {
	err  error
	wait time.Duration
}

func (e *temporaryError) Error() string { return e.err.Error() }
func (e *temporaryError) Unwrap() error { return e.err }

// StatusError is an error response of a server.
type StatusError struct {
	Status int    // HTTP status
	Code   string // X-Error-Code of the hub, or empty
	Host   string // the responding host
	What   string // the requested object
	Hint   string // advice for the user
	Err    error  // one of the package's errors
}

// Error returns the request, the response and advice.
func (e *StatusError) Error() string {
	s := fmt.Sprintf("%s: %v (%s answered %d", e.What, e.Err, e.Host, e.Status)
	if e.Code != "" {
		s += " " + e.Code
	}
	s += ")"
	if e.Hint != "" {
		s += ": " + e.Hint
	}
	return s
}

// Unwrap returns the package's error.
func (e *StatusError) Unwrap() error { return e.Err }

// get sends a request, follows its redirects and returns a response with status 200 or 206. For
// HEAD it returns the redirect to a storage host, because the hub has already sent all metadata.
// Other responses are errors: *StatusError, inside a temporaryError if another attempt may help.
func (c *Client) get(ctx context.Context, a ask, header http.Header) (*reply, error) {
	r, err := c.follow(ctx, a, header)
	if err != nil {
		return nil, err
	}
	if r.StatusCode == http.StatusOK || r.StatusCode == http.StatusPartialContent || isRedirect(r.StatusCode) {
		return r, nil
	}
	defer drain(r.Body)
	return nil, c.refusal(r, a)
}

// ask describes the object of a request.
type ask struct {
	method string
	url    *url.URL
	repo   string
	rev    string
	file   string // empty for the API
}

func (a ask) String() string {
	if a.file != "" {
		return a.repo + "/" + a.file
	}
	if a.rev != "" {
		return a.repo + "@" + a.rev
	}
	return a.repo
}

// follow sends a request and follows its redirects, with the headers that each host may see.
func (c *Client) follow(ctx context.Context, a ask, header http.Header) (*reply, error) {
	u, linked := a.url, http.Header{}
	for range maxRedirects + 1 {
		resp, err := c.send(ctx, a, u, header) //nolint:bodyclose // the caller of get closes the last one, drain the others
		if err != nil {
			return nil, err
		}
		if c.isHub(u) {
			for _, k := range []string{"X-Linked-Etag", "X-Linked-Size"} {
				if v := resp.Header.Get(k); v != "" {
					linked.Set(k, v)
				}
			}
		}
		if !isRedirect(resp.StatusCode) {
			return &reply{Response: resp, fromHub: c.isHub(u), linked: linked}, nil
		}
		drain(resp.Body)
		next, err := target(u, resp.Header.Get("Location"))
		if err != nil {
			return nil, fmt.Errorf("%v: %w: %w", a, ErrProtocol, err)
		}
		if a.method == http.MethodHead && !c.isHub(next) {
			return &reply{Response: resp, fromHub: true, linked: linked}, nil
		}
		u = next
	}
	return nil, fmt.Errorf("%v: %w: more than %d redirects", a, ErrProtocol, maxRedirects)
}

func (c *Client) send(ctx context.Context, a ask, u *url.URL, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, a.method, u.String(), http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", a, bare(err))
	}
	maps.Copy(req.Header, header)
	req.Header.Set("User-Agent", c.o.UserAgent)
	req.Header.Set("Accept-Encoding", "identity")
	if c.sendsToken(u) {
		req.Header.Set("Authorization", "Bearer "+c.o.Token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.networkError(ctx, a, u, err)
	}
	return resp, nil
}

// target returns the address that a redirect leads to.
func target(from *url.URL, location string) (*url.URL, error) {
	next, err := from.Parse(location)
	if err != nil || location == "" || next.Host == "" || next.Scheme != "https" && next.Scheme != "http" {
		return nil, fmt.Errorf("%s redirects to no address", from.Host)
	}
	if from.Scheme == "https" && next.Scheme != "https" {
		return nil, fmt.Errorf("%s redirects from https to http", from.Host)
	}
	next.User = nil
	return next, nil
}

func isRedirect(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// drain reads the rest of a short body, so that its connection can be reused.
func drain(body io.ReadCloser) {
	_, _ = io.CopyN(io.Discard, body, 64<<10)
	_ = body.Close()
}

// bare removes the address from an error of net/http, because addresses of storage hosts carry
// signatures.
func bare(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

func (c *Client) networkError(ctx context.Context, a ask, u *url.URL, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	hint := ""
	if c.isHub(u) {
		hint = "; behind a firewall set HTTPS_PROXY, or a mirror with --endpoint"
	}
	return &temporaryError{err: fmt.Errorf("%v: %s cannot be reached: %w%s", a, u.Host, bare(err), hint)}
}

// refusal converts an unsuccessful response into an error.
func (c *Client) refusal(r *reply, a ask) error {
	e := &StatusError{
		Status: r.StatusCode, Code: clean(r.Header.Get("X-Error-Code")), Host: r.Request.URL.Host, What: a.String(), Err: ErrProtocol,
	}
	if !r.fromHub {
		// A storage host has no knowledge of tokens or terms. Its address is signed for a limited
		// time, so another attempt, which gets a new address from the hub, may help in any case.
		e.Hint = "the storage host behind the hub refused; a proxy in between may be the cause"
		return &temporaryError{err: e, wait: c.retryAfter(r.Header)}
	}
	switch r.StatusCode {
	case http.StatusTooManyRequests:
		e.Err, e.Hint = ErrBusy, "too many requests; a token (HF_TOKEN) raises the limit"
		return &temporaryError{err: e, wait: c.retryAfter(r.Header)}
	case http.StatusRequestTimeout, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		e.Err = ErrBusy
		return &temporaryError{err: e, wait: c.retryAfter(r.Header)}
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
		c.explain(e, a, r.Header.Get("X-Error-Message"))
	}
	return e
}

// explain finds the meaning of 401, 403 and 404. The hub sends X-Error-Code; for a private or
// missing repository it responds with 401 to a client without a token.
func (c *Client) explain(e *StatusError, a ask, message string) {
	page := c.endpoint.String() + "/" + a.repo
	switch {
	case e.Code == "GatedRepo":
		e.Err = ErrGated
		e.Hint = "accept its terms at " + page + " with the account of your token, and " + c.tokenHint()
	case e.Code == "RevisionNotFound":
		e.Err, e.Hint = ErrNoRevision, "want a branch, a tag or a commit of "+page
	case e.Code == "EntryNotFound", e.Code == "" && e.Status == http.StatusNotFound && a.file != "":
		e.Err, e.Hint = ErrNoFile, "see "+page+"/tree/"+a.rev
	case e.Status == http.StatusUnauthorized && strings.Contains(message, "Invalid credentials"):
		e.Err, e.Hint = ErrUnauthorized, "the hub does not know this token; make a new one at "+c.endpoint.String()+"/settings/tokens"
	case e.Code == "RepoNotFound" || e.Status == http.StatusNotFound:
		e.Err, e.Hint = ErrNoRepo, "check the spelling (ORG/NAME); if it is private, "+c.tokenHint()
	case e.Status == http.StatusUnauthorized:
		e.Err, e.Hint = ErrUnauthorized, "the repository does not exist or is private: check the spelling (ORG/NAME), or "+c.tokenHint()
	default:
		e.Err, e.Hint = ErrGated, "the token may not read it: "+c.tokenHint()
	}
}

func (c *Client) tokenHint() string {
	switch {
	case c.o.Token == "":
		return "set HF_TOKEN to a token that may read it"
	case !c.sendsToken(c.endpoint):
		return "use an https endpoint: the token in the environment was not sent, because this endpoint is not encrypted"
	}
	return "use a token that may read it (one was sent)"
}

// clean makes a header printable and short.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, s)
	return s[:min(len(s), 200)]
}

// retryAfter returns the wait that the server requests: Retry-After in seconds or as a date (RFC
// 9110, section 10.2.3), else the reset time t of the hub's RateLimit header
// (draft-ietf-httpapi-ratelimit-headers).
func (c *Client) retryAfter(h http.Header) time.Duration {
	v := h.Get("Retry-After")
	if n, err := strconv.Atoi(v); err == nil && n >= 0 {
		return seconds(n)
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(0, at.Sub(c.o.Now()))
	}
	for item := range strings.SplitSeq(h.Get("Ratelimit"), ";") {
		if t, ok := strings.CutPrefix(strings.TrimSpace(item), "t="); ok {
			if n, err := strconv.Atoi(t); err == nil && n >= 0 {
				return seconds(n)
			}
		}
	}
	return 0
}

// seconds limits n, so that the product does not overflow.
func seconds(n int) time.Duration { return time.Duration(min(n, 1<<30)) * time.Second }

// retry calls f until it succeeds, fails permanently or has used its attempts. An attempt that made
// progress does not count. note is called before every wait.
func (c *Client) retry(ctx context.Context, note func(error, time.Duration), f func() (progress bool, err error)) error {
	failed := 0
	for {
		progress, err := f()
		var temporary *temporaryError
		if err == nil || !errors.As(err, &temporary) || ctx.Err() != nil {
			return err
		}
		if failed++; progress {
			failed = 1
		}
		if failed >= c.o.Attempts {
			return fmt.Errorf("%w (gave up after %d attempts)", err, failed)
		}
		wait := min(backoffMost, backoffFirst<<(failed-1))
		wait = wait/2 + time.Duration(c.o.Random()*float64(wait/2))
		if temporary.wait > waitMost {
			return fmt.Errorf("%w (it asks to wait %v; try again then)", err, temporary.wait)
		}
		wait = max(wait, temporary.wait)
		note(err, wait)
		if err := c.o.Sleep(ctx, wait); err != nil {
			return fmt.Errorf("wait: %w", err)
		}
	}
}
