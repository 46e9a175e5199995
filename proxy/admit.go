package proxy

import (
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"

	"signalbox/internal/anthropic"
	"signalbox/internal/openai"
	"signalbox/proxy/auth"
	"signalbox/proxy/downstream"
	"signalbox/proxy/fault"
	"signalbox/proxy/headers"
)

// Principal is who makes a request.
type Principal = auth.Principal

// admit lets a request in: headers that can be read in one way only, a caller that is known and
// within its limits, and a body within bounds, read to its end. The body is the caller's to keep.
func (st *State) admit(w *downstream.Writer, r *http.Request) (Principal, []byte, error) {
	who, err := st.identify(w, r)
	if err != nil {
		return Principal{}, nil, err
	}
	if err := checkMedia(r.Header); err != nil {
		return Principal{}, nil, err
	}
	body, err := st.readBody(w, r)
	return who, body, err
}

// checkMedia refuses a body that is not UTF-8 as it stands, or said not to be: a model server that
// unpacks it, or reads it in the character set that the client names, would read another text than
// is checked here. Nothing is unpacked here.
func checkMedia(h http.Header) error {
	for coding := range strings.SplitSeq(strings.Join(h["Content-Encoding"], ","), ",") {
		if coding = strings.TrimSpace(coding); coding != "" && !strings.EqualFold(coding, "identity") {
			return fault.ErrMedia
		}
	}
	kind := h.Get("Content-Type")
	if kind == "" || kind == "application/json" {
		return nil
	}
	_, params, err := mime.ParseMediaType(kind)
	if err != nil && strings.Contains(strings.ToLower(kind), "charset") { // what names none is read as it is; a form says what it lacks
		return fault.ErrMedia
	}
	switch strings.ToLower(params["charset"]) {
	case "", "utf-8", "utf8", "us-ascii", "ascii":
		return nil
	}
	return fault.ErrMedia
}

// identify finds who makes a request, from headers that can be read in one way only, and counts it.
func (st *State) identify(w *downstream.Writer, r *http.Request) (Principal, error) {
	if err := st.checkHeaders(r.Header); err != nil {
		return Principal{}, err
	}
	adoptKey(r.Header)
	who, err := st.auth.Identify(r.Context(), r.Header)
	if err != nil {
		return Principal{}, err
	}
	return who, w.Count(r, &who)
}

// ownPrefix starts the headers that only the proxy writes, two that clients may send aside.
const ownPrefix = headers.OwnPrefix

// checkHeaders refuses what a reader behind us could take for another header: many servers fold an
// underscore into a dash, and which of two values counts differs from server to server.
func (st *State) checkHeaders(h http.Header) error {
	for _, name := range []string{
		"Authorization", "X-Api-Key", "Content-Type", "X-Signalbox-Session", "X-Signalbox-Context",
	} {
		if len(h[name]) > 1 {
			return &fault.HeaderError{Name: name}
		}
	}
	lines := 0
	for name, values := range h {
		if lines += len(values); lines > maxHeaders {
			return fault.ErrManyHeaders
		}
		if !strings.Contains(name, "_") {
			continue
		}
		twin := http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-"))
		if strings.HasPrefix(twin, ownPrefix) || slices.Contains(st.ReadHeaders, twin) {
			return &fault.HeaderError{Name: twin}
		}
	}
	return nil
}

// firstRead bounds the memory that a client gets for announcing a length, in bytes.
const firstRead = 1 << 20

// readBody reads the body to its end. The transport never sees the client's own body: handing it
// over cut 39 of 2,000 fast streams of a stock reverse proxy with `use of closed network
// connection`, and a request that was read can be sent twice.
func (st *State) readBody(w *downstream.Writer, r *http.Request) ([]byte, error) {
	limit := int64(st.opts.MaxBodyBytes)
	if r.ContentLength > limit {
		return nil, fault.ErrBodyTooLarge
	}
	size := int64(4 << 10)
	if r.ContentLength >= 0 {
		size = min(r.ContentLength, firstRead) + 1 // one more than the body, so that its end is seen without growing
	}
	if !w.Hold(max(r.ContentLength, size), st.limits.MaxBytesInFlight) {
		return nil, fault.ErrTooManyBytes
	}
	buf := make([]byte, 0, size)
	pace := st.pace(w)
	for {
		if len(buf) == cap(buf) {
			more := min(len(buf), int(limit)-len(buf)) + 1
			if !w.Hold(int64(len(buf)+more), st.limits.MaxBytesInFlight) {
				return nil, fault.ErrTooManyBytes
			}
			buf = slices.Grow(buf, more)
		}
		pace.renew(w, len(buf))
		n, err := r.Body.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if int64(len(buf)) > limit {
			return nil, fault.ErrBodyTooLarge
		}
		if err == nil {
			continue
		}
		if !errors.Is(err, io.EOF) {
			return nil, bodyError(err) // the deadline stays: the server reads on before it answers
		}
		pace.lift(w)
		return buf, nil
	}
}

func bodyError(err error) error {
	var network *net.OpError
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fault.ErrBodyTimeout
	case errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &network):
		return fault.ErrClientGone
	}
	return fault.ErrBodyBroken
}

// adoptKey takes the key that clients of this API show for the bearer token that others show. A
// client that shows both is known by the token.
func adoptKey(h http.Header) {
	if key := h["X-Api-Key"]; len(key) == 1 && len(h["Authorization"]) == 0 {
		h["Authorization"] = []string{"Bearer " + key[0]}
	}
}

// maxHeaders is how many header lines a request may have: no client sends half as many, and each
// costs every hop.
const maxHeaders = 128

// decode reads the body of a request.
func (st *State) decode(w *downstream.Writer, s *surface, h http.Header, body []byte) (*openai.Request, error) {
	l := st.limits.OfBody()
	if s.messages {
		return st.translate(w, body, anthropic.Options{Limits: l})
	}
	if s.form {
		kind := h["Content-Type"]
		if len(kind) != 1 {
			kind = []string{""} // refused: of two, another reader may take the other
		}
		return openai.ParseForm(kind[0], body, l)
	}
	return openai.Parse(s.api, body, l)
}

// translate reads a request as the chat completion that it amounts to.
func (st *State) translate(w *downstream.Writer, body []byte, o anthropic.Options) (*openai.Request, error) {
	t, err := anthropic.ToChat(body, o)
	if err != nil {
		return nil, err
	}
	if !w.Hold(int64(len(body)+len(t.Chat)), st.limits.MaxBytesInFlight) {
		return nil, fault.ErrTooManyBytes
	}
	req, err := openai.ParseChat(t.Chat, o.Limits)
	if err != nil {
		return nil, err
	}
	req.Translated, req.ThinkingBudget = true, t.Budget
	w.Messages.Thinking, w.Messages.Prompt = t.Thinking, req.EstimateTokens()
	if len(t.LeftOut) > 0 {
		w.Header()["X-Signalbox-Left-Out"] = []string{strings.Join(t.LeftOut, ",")}
	}
	if t.Exact {
		w.Messages.Raw, w.Messages.Model = body, t.Model
	}
	return req, nil
}
