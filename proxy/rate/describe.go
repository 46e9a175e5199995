package rate

import (
	"net/http"
	"strconv"
	"time"
)

// Describe sets the x-ratelimit-* headers, named as in OpenAI's API, to the state of the caller's
// limits. A nil lease, or a kind without a limit, sets none.
func (s *Lease) Describe(h http.Header) {
	for _, kind := range [...]Kind{Requests, Tokens} {
		if left := s.Left(kind); left.Limit > 0 {
			describe(h, kind, left.Limit, left.Left, left.Reset)
		}
	}
}

// Describe sets the headers that tell the client when to retry, and the x-ratelimit-* headers of
// the exceeded limit. As in OpenAI's API, and as for admitted requests, these report when the limit
// is full again.
func (e *ExceededError) Describe(h http.Header) {
	if e.Wait == 0 {
		h["X-Should-Retry"] = []string{"false"}
		return
	}
	h["Retry-After"] = []string{strconv.Itoa(int((e.Wait + time.Second - 1) / time.Second))}
	h["Retry-After-Ms"] = []string{strconv.FormatInt(e.Wait.Milliseconds(), 10)}
	if e.Kind != Parallel {
		describe(h, e.Kind, e.Limit, max(e.Limit-e.Used, 0), e.Reset)
	}
}

// describe sets the three headers for one kind of limit.
func describe(h http.Header, kind Kind, limit, left int, reset time.Duration) {
	name := "Requests"
	if kind == Tokens {
		name = "Tokens"
	}
	h["X-Ratelimit-Limit-"+name] = []string{strconv.Itoa(limit)}
	h["X-Ratelimit-Remaining-"+name] = []string{strconv.Itoa(left)}
	h["X-Ratelimit-Reset-"+name] = []string{reset.String()}
}
