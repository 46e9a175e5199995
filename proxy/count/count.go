package count

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"signalbox/proxy/backend"
	"signalbox/proxy/framing"
	"signalbox/proxy/pool"
)

// MaxBytes limits the texts that model servers are asked to count, in bytes, and MaxModels the
// models asked for one text. Estimates are used for the rest.
const (
	MaxBytes  = 4 << 20
	MaxModels = 8
)

// Of returns an endpoint of a model that may count tokens; nil if there is none.
func (c *Servers) Of(m *backend.Model) *pool.Endpoint {
	now := time.Now()
	for _, e := range m.Endpoints {
		if e.Fitness(now) == pool.Fit && c.asks(e.Chat.String(), now) {
			return e
		}
	}
	return nil
}

// Count asks an endpoint for the tokens of a text, given as a JSON string.
func (c *Servers) Count(ctx context.Context, e *pool.Endpoint, model string, quoted []byte) (int, bool) {
	name, err := json.Marshal(model)
	if err != nil {
		return 0, false
	}
	body := slices.Concat([]byte(`{"model":`), name, []byte(`,"add_special_tokens":false,"prompt":`), quoted, []byte{'}'})
	return c.Tokenize(ctx, e, Path, bytes.NewReader(body))
}

// Path is vLLM's path for counting tokens.
const Path = "tokenize"

// Tokenize asks an endpoint, at a path that counts tokens, for the tokens of the prompt in a body.
func (c *Servers) Tokenize(
	ctx context.Context, e *pool.Endpoint, path string, body io.Reader,
) (int, bool) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL(path).String(), body)
	if err != nil {
		return 0, false
	}
	req.Header.Set("Content-Type", "application/json")
	if e.Bearer != "" {
		req.Header.Set("Authorization", e.Bearer)
	}
	res, err := e.Via(c.transport).RoundTrip(req)
	if err != nil {
		return 0, false
	}
	defer func() { _ = res.Body.Close() }()
	n, err := countOf(res)
	if err != nil && ctx.Err() == nil && !passing(res.StatusCode) {
		c.mute(e.Chat.String(), time.Now())
	}
	return n, err == nil
}

// passing reports whether a status says something about the prompt, or about the server at the
// moment, and not that the server cannot count.
func passing(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusTooManyRequests,
		http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// maxCountBody limits the response, which lists every token, relative to the size of the text.
const maxCountBody = 16 * MaxBytes

// countOf reads the response of an endpoint completely, so that its connection can be reused.
func countOf(res *http.Response) (int, error) {
	b, err := io.ReadAll(io.LimitReader(res.Body, maxCountBody))
	if err != nil {
		return 0, err
	}
	var out struct {
		Count *int `json:"count"`
		Input *int `json:"input_tokens"` // of the Messages API
	}
	if res.StatusCode != http.StatusOK || json.Unmarshal(b, &out) != nil {
		return 0, fmt.Errorf("tokenize: status %d", res.StatusCode)
	}
	if out.Count == nil {
		out.Count = out.Input
	}
	if out.Count == nil || *out.Count < 0 {
		return 0, fmt.Errorf("tokenize: status %d, without a count", res.StatusCode)
	}
	return *out.Count, nil
}

// Servers asks endpoints to count the tokens of texts, and remembers which ones do not support it,
// so that they are not asked each time. It is safe for concurrent use.
type Servers struct {
	transport framing.Transport

	mu    sync.Mutex           // guards mutes
	mutes map[string]time.Time // by URL: when to ask again
}

// New returns a Servers that sends through transport.
func New(transport framing.Transport) *Servers { return &Servers{transport: transport} }

// muted is how long an endpoint without the path is not asked: it may be replaced by one that has
// it.
const muted = 10 * time.Minute

func (c *Servers) asks(at string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !now.Before(c.mutes[at])
}

func (c *Servers) mute(at string, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mutes == nil {
		c.mutes = map[string]time.Time{}
	}
	c.mutes[at] = now.Add(muted)
}
