package proxy

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"signalbox/internal/signal"
)

// stays reports whether a header of the client ends here: the headers of one connection (RFC 9110, section 7.6.1), and those that belong to the
// client's side of this proxy: its credentials, its cookies, and its word about where it comes from.
func stays(name string) bool {
	switch name {
	case "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
		"Http2-Settings", "Content-Length", "Expect", "Host", "Accept-Encoding",
		"Authorization", "Cookie", "X-Api-Key", "Api-Key",
		"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Real-Ip", "True-Client-Ip",
		"X-Request-Id":
		return true
	}
	return strings.HasPrefix(name, ownPrefix)
}

// upstreamHeader makes the head of the upstream request. Values are shared with in and must not be
// changed. Accept-Encoding stays here: streams are read on their way, and a compressed one could not
// be checked for its end.
func upstreamHeader(in http.Header, id, bearer string) http.Header {
	out := make(http.Header, len(in)+4)
	listed := connectionListed(in)
	for name, values := range in {
		if !stays(name) && !slices.Contains(listed, name) {
			out[name] = values
		}
	}
	out["X-Request-Id"] = []string{id}
	if bearer != "" {
		out["Authorization"] = []string{bearer}
	}
	if _, ok := out["User-Agent"]; !ok {
		out["User-Agent"] = nil // or the transport adds its own
	}
	// Present but empty, it is not sent, and tells the transport that it may repeat the request on a
	// fresh connection when a reused one ended without a byte of an answer (net/http, Request.isReplayable).
	if _, ok := out["X-Idempotency-Key"]; !ok {
		out["X-Idempotency-Key"] = nil
	}
	return out
}

// connectionListed returns the header names that Connection makes hop-by-hop.
func connectionListed(h http.Header) []string {
	var out []string
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			out = append(out, http.CanonicalHeaderKey(strings.TrimSpace(name)))
		}
	}
	return out
}

// copyAnswerHeader passes an upstream's head on, less what belongs to its connection, its cookies and
// what only we may say.
func copyAnswerHeader(dst, src http.Header) {
	listed := connectionListed(src)
	for name, values := range src {
		switch name {
		case "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
			"Set-Cookie", "Alt-Svc", "Server-Timing", "X-Request-Id", "X-Accel-Buffering":
			continue
		}
		if strings.HasPrefix(name, ownPrefix) || slices.Contains(listed, name) {
			continue
		}
		dst[name] = values
	}
}

// describe writes the headers that say what the decision was. It leaves out what is known only once
// an endpoint answers.
func (d *decision) describe(h http.Header) {
	h["X-Signalbox-Route"] = []string{d.Route}
	h["X-Signalbox-Cache"] = []string{"off"}
	h["X-Signalbox-Guard"] = []string{"off"}
	if v := &d.set.Values[signal.Domain]; v.State == signal.Known {
		h["X-Signalbox-Domain"] = []string{headerText(v.Label)}
		h["X-Signalbox-Confidence"] = []string{strconv.FormatFloat(v.Score, 'f', 3, 64)}
	}
	if lost := d.degraded(); len(lost) > 0 {
		h["X-Signalbox-Degraded"] = []string{strings.Join(lost, ",")}
	}
	h["Server-Timing"] = []string{d.timing(0, 0)}
}

// describePlace writes the headers that say where the request went; first is where it should have.
func (d *decision) describePlace(h http.Header, m *model, e *endpoint, effort string, first *model) {
	h["X-Signalbox-Model"] = []string{m.name}
	h["X-Signalbox-Endpoint"] = []string{e.name}
	h["X-Signalbox-Reasoning"] = []string{effort}
	lost := d.degraded()
	if m != first {
		lost = append(lost, "fallback")
	}
	delete(h, "X-Signalbox-Degraded") // an attempt before this one may have set it
	if len(lost) > 0 {
		h["X-Signalbox-Degraded"] = []string{strings.Join(lost, ",")}
	}
}

// timing is the value of Server-Timing, in milliseconds with one decimal. queue is the time between
// the decision and the attempt that was answered, upstream that attempt's time to its head.
func (d *decision) timing(queue, upstream time.Duration) string {
	b := make([]byte, 0, 96)
	for i, part := range [...]struct {
		name string
		d    time.Duration
	}{{"decide;dur=", d.elapsed}, {"classify;dur=", d.classified}, {"queue;dur=", queue}, {"upstream;dur=", upstream}} {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = strconv.AppendFloat(append(b, part.name...), float64(part.d.Microseconds())/1000, 'f', 1, 64)
	}
	return string(b)
}

// headerText makes a label fit for a header; labels come from model files.
func headerText(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
}
