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

// restUnsaid is how long an endpoint rests after a 429 without a Retry-After. A 429 is not counted
// as a failure, so nothing else would keep requests away. One request in this time is few enough
// for the retry budget. It does not apply to an endpoint that receives clients' credentials, which
// may have refused this client only, or to one that has sent a Retry-After, which is used instead.
const restUnsaid = 5 * time.Second

// tell reports to the endpoint what the response status means for it.
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

// Erred reports an error, or an unusable response, to its endpoint. A response is counted once,
// however often it is reported.
func (u *Response) Erred(now time.Time) {
	if !u.counted {
		u.counted = true
		u.Model.Erred(u.Endpoint, now)
	}
}

// Counted reports whether the result was already reported to the endpoint.
func (u *Response) Counted() bool { return u.counted }

// BrokeOff reports a response that broke off to its endpoint, unless it was already counted.
func (u *Response) BrokeOff(now time.Time) {
	if !u.counted {
		u.counted = true
		u.Model.Failed(u.Endpoint, now)
	}
}

// Refused reports whether another endpoint may well respond instead: this one is busy, or a gateway
// did not reach it. 500 and 504 are final, since the work was done or may still be in progress.
func (u *Response) Refused() bool {
	switch u.Status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable:
		return true
	}
	return false
}

// Useless reports whether a response with a success status is in fact an error, so that another
// endpoint may do better: a stream that begins with a server error, or a body for which
// response.Useless is true, as far as it was read. Clients retry a 500, but not what fails behind a
// success status.
func (u *Response) Useless() bool { return u.useless }

// beginsUseless is Useless for what Peek has read.
func (u *Response) beginsUseless() bool {
	b, whole := u.buf.bytes(), errors.Is(u.err, io.EOF)
	switch {
	case u.Stream != nil:
		return u.Stream.FailsFirst()
	case u.due && whole && len(b) == 0: // of any type
		return true
	case !u.readable():
		return false
	case whole:
		return response.Useless(b)
	}
	return response.BeginsUseless(b)
}

// readable reports whether the body should be JSON and can be read here.
func (u *Response) readable() bool { return u.due && u.JSON() && u.Plain() }

// Better returns the one of two refusals that is more useful to the client, and closes the other. A
// refusal by its status is better than a useless response; of two 429s, the one with the earlier
// retry is better; otherwise the later one is. held may be nil.
func Better(held, u *Response) *Response {
	if held != nil && (u.useless && !held.useless || held.sooner(u)) {
		u.Close()
		return held
	}
	held.Close()
	return u
}

// sooner reports whether both are 429 and u may be retried earlier than o.
func (u *Response) sooner(o *Response) bool {
	return u.Status == http.StatusTooManyRequests && o.Status == http.StatusTooManyRequests &&
		retryAfter(u.Header) < retryAfter(o.Header)
}

// retryAfter returns the wait in Retry-After; a year when it is missing or invalid.
func retryAfter(h http.Header) time.Duration {
	if d, ok := headers.RetryAfter(h, time.Now()); ok {
		return d
	}
	return 365 * 24 * time.Hour
}
