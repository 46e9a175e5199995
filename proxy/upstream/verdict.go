package upstream

import (
	"errors"
	"io"
	"net/http"
	"time"

	"signalbox/proxy/headers"
	"signalbox/proxy/pool"
	"signalbox/stream/response"
)

// restUnsaid is how long an endpoint is left alone that refuses with 429 and does not say for how
// long: as it counts as no failure, nothing else would keep requests from it. One request in this
// time is few enough for the budget of retries. One that gets the credentials of clients may have
// refused this client alone, and one that has said how long keeps its word.
const restUnsaid = 5 * time.Second

// tell tells the endpoint what its status means for it.
func (u *Response) tell(now time.Time) {
	switch u.Status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		wait, ok := headers.RetryAfter(u.Header, now)
		if e := u.Endpoint; !ok && u.Status == http.StatusTooManyRequests && !e.ForwardsAuth() &&
			e.Fitness(now) != pool.Resting {
			wait, ok = restUnsaid, true
		}
		if ok {
			u.Endpoint.Rest(now.Add(min(wait, u.MaxRetryAfter)))
		}
	}
	if u.Status >= http.StatusInternalServerError || u.useless {
		u.Erred(now)
	}
}

// Erred counts the response against its endpoint, as one that is an error or of no use. It counts
// once, whoever finds what.
func (u *Response) Erred(now time.Time) {
	if !u.counted {
		u.counted = true
		u.Model.Erred(u.Endpoint, now)
	}
}

// Counted reports that the endpoint was told how the response ended.
func (u *Response) Counted() bool { return u.counted }

// BrokeOff counts the response against its endpoint, as one that broke off, unless it has counted.
func (u *Response) BrokeOff(now time.Time) {
	if !u.counted {
		u.counted = true
		u.Model.Failed(u.Endpoint, now)
	}
}

// Refused reports a response that another endpoint may well not give: the endpoint is busy, or a
// gateway did not reach it. 500 and 504 are final: the work was done or may still be going on.
func (u *Response) Refused() bool {
	switch u.Status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable:
		return true
	}
	return false
}

// Useless reports a response with a status of success that is none, as another endpoint may well not
// give it: a stream that begins with an error of the server's own, or a body of which response.Useless
// is true, as far as it was read. Clients repeat a request that was answered with 500; what fails
// behind a status of success they do not.
func (u *Response) Useless() bool { return u.useless }

// beginsUseless is Useless of what Peek has read.
func (u *Response) beginsUseless() bool {
	b, whole := u.buf.bytes(), errors.Is(u.err, io.EOF)
	switch {
	case u.Stream != nil:
		return u.Stream.FailsFirst()
	case u.due && whole && len(b) == 0: // whatever its type
		return true
	case !u.readable():
		return false
	case whole:
		return response.Useless(b)
	}
	return response.BeginsUseless(b)
}

// readable reports that the body should be JSON, and can be read here.
func (u *Response) readable() bool { return u.due && u.JSON() && u.Plain() }

// Better returns the one of two refusals that helps the client more, and closes the other: one whose
// status says what it is, of two 429 the one that may be repeated sooner, else the later one. held
// may be nil.
func Better(held, u *Response) *Response {
	if held != nil && (u.useless && !held.useless || held.sooner(u)) {
		u.Close()
		return held
	}
	held.Close()
	return u
}

// sooner reports that both are 429, and u may be repeated sooner than o.
func (u *Response) sooner(o *Response) bool {
	return u.Status == http.StatusTooManyRequests && o.Status == http.StatusTooManyRequests &&
		retryAfter(u.Header) < retryAfter(o.Header)
}

// retryAfter reads Retry-After; a year when there is none that can be read.
func retryAfter(h http.Header) time.Duration {
	if d, ok := headers.RetryAfter(h, time.Now()); ok {
		return d
	}
	return 365 * 24 * time.Hour
}
