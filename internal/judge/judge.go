// Package judge classifies texts with models on other servers: classifiers of vLLM (/classify,
// /pooling) and of Text Embeddings Inference (/predict), and guard models with a chat API. It
// handles their requests and responses, and is independent of rules and configuration files.
//
// A Client is safe for concurrent use. It starts no goroutines. It caches results by the SHA-256 of
// the input and stores no text.
package judge

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"signalbox/internal/bounded"
	"signalbox/internal/signal"
)

// API is the API of a server.
type API string

// The interfaces.
const (
	Classify API = "classify" // POST /classify of vLLM
	Pooling  API = "pooling"  // POST /pooling of vLLM
	TEI      API = "tei"      // POST /predict of Text Embeddings Inference
	Chat     API = "chat"     // POST /chat/completions of any OpenAI-compatible server
)

// APIs lists the APIs.
func APIs() []string { return []string{string(Classify), string(Pooling), string(TEI), string(Chat)} }

// Options describe a model and its API.
type Options struct {
	URL      string // of the server, without the last part of the path, such as http://guard:8000/v1
	API      API
	Model    string   // the served name; not needed for TEI
	Template Template // for Chat
	Policy   string   // the policy for Chat, if the template includes one
	// Labels: for Classify, Pooling and TEI the labels of the model, in its order; for the template
	// Instruct the labels to choose from. The other templates have fixed labels.
	Labels    []string
	Timeout   time.Duration // of one request; 0: only that of the caller
	Key       string        // sent as bearer token when not empty
	Memo      int           // number of cached results; 0 for none
	MaxBytes  int           // of a text; of a longer one, start and end are sent. 0 means 32 KiB
	Threshold float64       // the probability at which a label applies, if labels are not mutually exclusive
	HTTP      *http.Client  // required; the caller closes its connections
}

// Client runs one model. Create it with New.
type Client struct {
	o    Options
	url  string
	chat *format
	memo *bounded.Cache[signal.Judgement] // nil for none
}

// Error is a failed or unusable response.
type Error struct {
	Msg string
	Why signal.Reason
	Err error // the cause, if there is one
}

// Error returns the message.
func (e *Error) Error() string { return e.Msg }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Reason is the reason why the classifier is unknown: no_model if the server is unreachable or has
// no such model, timeout, overload, or invalid_output for a response that cannot be read.
func (e *Error) Reason() signal.Reason { return e.Why }

const (
	defaultBytes = 32 << 10
	mostBody     = 4 << 20 // limit for the body of a response
	longestWord  = 300     // limit for the server's error message, which is logged
)

// New creates a Client. It opens no connection.
func New(o Options) (*Client, error) {
	c := &Client{o: o, url: strings.TrimSuffix(o.URL, "/")}
	c.o.MaxBytes = cmp.Or(max(c.o.MaxBytes, 0), defaultBytes)
	if !(c.o.Threshold > 0) {
		c.o.Threshold = 0.5
	}
	switch o.API {
	case Classify, Pooling: // vLLM serves them at the root, not below /v1
		c.url = strings.TrimSuffix(c.url, "/v1") + "/" + string(o.API)
	case TEI:
		c.url += "/predict"
	case Chat:
		c.url += "/chat/completions"
		f, ok := formats()[o.Template]
		if !ok {
			return nil, fmt.Errorf("template %q is not one of %s", o.Template,
				strings.Join(Templates(), ", "))
		}
		if len(f.labels) == 0 {
			f.labels = o.Labels
		}
		if len(f.labels) < 2 {
			return nil, errors.New("at least two labels are required")
		}
		c.chat = &f
	default:
		return nil, fmt.Errorf("api %q is not one of %s", o.API, strings.Join(APIs(), ", "))
	}
	if o.Memo > 0 {
		c.memo = bounded.New[signal.Judgement](o.Memo)
	}
	return c, nil
}

// Labels are the possible labels; empty if only the server knows them.
func (c *Client) Labels() []string {
	if c.chat != nil {
		return c.chat.labels
	}
	return c.o.Labels
}

// Judge classifies an exchange. Errors are *Error, or wrap ctx's.
func (c *Client) Judge(ctx context.Context, x signal.Exchange) (signal.Judgement, error) {
	var cut bool
	x, cut = c.fit(x)
	key := keyOf(x)
	if c.memo != nil {
		if j, ok := c.memo.Get(key); ok {
			return j, nil
		}
	}
	parent := ctx
	if c.o.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.o.Timeout)
		defer cancel()
	}
	body, err := c.post(ctx, c.request(x))
	if err != nil {
		if parent.Err() != nil {
			return signal.Judgement{}, fmt.Errorf("ask a classifier: %w", parent.Err())
		}
		return signal.Judgement{}, err
	}
	j, err := c.read(body)
	if err != nil {
		return signal.Judgement{}, &Error{Msg: err.Error(), Why: signal.ReasonInvalid, Err: err}
	}
	if j.Cut = cut; c.memo != nil {
		c.memo.Set(key, j)
	}
	return j, nil
}

func keyOf(x signal.Exchange) [sha256.Size]byte {
	prompt := sha256.Sum256([]byte(x.Prompt))
	return sha256.Sum256(append(prompt[:], x.Answer...))
}

// fit shortens texts that are too long. A model that judges responses only does not receive the
// prompt.
func (c *Client) fit(x signal.Exchange) (signal.Exchange, bool) {
	if c.chat == nil {
		x = signal.Exchange{Prompt: x.Judged()}
	}
	prompt, answer := ends(x.Prompt, c.o.MaxBytes), ends(x.Answer, c.o.MaxBytes)
	cut := len(prompt) < len(x.Prompt) || len(answer) < len(x.Answer)
	return signal.Exchange{Prompt: prompt, Answer: answer}, cut
}

// ends returns the start and the end of a text that is longer than n bytes.
func ends(text string, n int) string {
	if len(text) <= n {
		return text
	}
	head, tail := n/2, len(text)-(n-n/2)
	for head > 0 && !utf8.RuneStart(text[head]) {
		head--
	}
	for tail < len(text) && !utf8.RuneStart(text[tail]) {
		tail++
	}
	return text[:head] + text[tail:]
}

func (c *Client) request(x signal.Exchange) any {
	switch c.o.API {
	case TEI:
		return map[string]any{"inputs": x.Prompt, "truncate": true}
	case Chat:
		return c.chatRequest(x)
	case Classify, Pooling:
	}
	// Without -1, which means the context length of the model, vLLM rejects longer texts.
	body := map[string]any{"model": c.o.Model, "input": x.Prompt, "truncate_prompt_tokens": -1}
	if c.o.API == Pooling {
		body["task"] = "classify" // some versions use token_classify for a model that supports both
	}
	return body
}

func (c *Client) post(ctx context.Context, body any) ([]byte, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	if c.o.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.o.Key)
	}
	resp, err := c.o.HTTP.Do(req)
	if err != nil {
		return nil, fault(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err = io.ReadAll(io.LimitReader(resp.Body, mostBody+1))
	switch {
	case err != nil:
		return nil, fault(ctx, err)
	case len(b) > mostBody:
		return nil, &Error{Msg: "the answer is too long", Why: signal.ReasonInvalid}
	case resp.StatusCode == http.StatusOK:
		return b, nil
	}
	why := signal.ReasonInternal
	switch resp.StatusCode {
	case http.StatusNotFound:
		why = signal.ReasonNoModel
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		why = signal.ReasonOverload
	case http.StatusGatewayTimeout, http.StatusRequestTimeout:
		why = signal.ReasonTimeout
	}
	return nil, &Error{Msg: fmt.Sprintf("the server answered %d: %.*q", resp.StatusCode, longestWord, b), Why: why}
}

func fault(ctx context.Context, err error) error {
	if errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
		return &Error{Msg: "no answer in time", Why: signal.ReasonTimeout, Err: err}
	}
	return &Error{Msg: "the server cannot be reached: " + err.Error(), Why: signal.ReasonNoModel, Err: err}
}

func (c *Client) read(body []byte) (signal.Judgement, error) {
	switch c.o.API {
	case Chat:
		return c.readChat(body)
	case TEI:
		return c.readTEI(body)
	case Classify, Pooling:
	}
	return c.readData(body)
}

// readData reads {"data": [{"label", "probs"}]} of /classify or {"data": [{"data": [...]}]} of
// /pooling.
func (c *Client) readData(body []byte) (signal.Judgement, error) {
	var in struct {
		Data []struct {
			Label string          `json:"label"`
			Probs []float64       `json:"probs"`
			Data  json.RawMessage `json:"data"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return signal.Judgement{}, fmt.Errorf("read answer: %w", err)
	}
	if len(in.Data) != 1 {
		return signal.Judgement{}, fmt.Errorf("the answer has %d results, want one", len(in.Data))
	}
	d := &in.Data[0]
	if c.o.API == Pooling {
		if err := json.Unmarshal(d.Data, &d.Probs); err != nil {
			return signal.Judgement{}, fmt.Errorf("read answer: data[0].data: %w", err)
		}
	}
	if len(c.o.Labels) == 0 {
		if d.Label == "" || len(d.Probs) == 0 {
			return signal.Judgement{}, errors.New("the answer has no label, and none are configured")
		}
		top := slices.Max(d.Probs)
		return checked(signal.Judgement{
			Label: d.Label, Score: top, Labels: []string{d.Label}, Probs: []float32{float32(top)},
		})
	}
	return c.judgement(c.o.Labels, d.Probs)
}

// readTEI reads [{"label", "score"}, ...], which TEI nests in a list if the request had one.
func (c *Client) readTEI(body []byte) (signal.Judgement, error) {
	type score struct {
		Label string  `json:"label"`
		Score float64 `json:"score"`
	}
	var list []score
	if err := json.Unmarshal(body, &list); err != nil {
		var nested [][]score
		if json.Unmarshal(body, &nested) != nil || len(nested) != 1 {
			return signal.Judgement{}, fmt.Errorf("read answer: %w", err)
		}
		list = nested[0]
	}
	var labels []string
	var probs []float64
	for _, s := range list {
		labels, probs = append(labels, s.Label), append(probs, s.Score)
	}
	if len(labels) == 0 {
		return signal.Judgement{}, errors.New("the answer has no labels")
	}
	return c.judgement(labels, probs)
}

// judgement derives the labels from probabilities: the most probable label if they add up to 1,
// else those at or above the threshold.
func (c *Client) judgement(labels []string, probs []float64) (signal.Judgement, error) {
	if len(probs) != len(labels) {
		return signal.Judgement{}, fmt.Errorf("the answer has %d probabilities for %d labels",
			len(probs), len(labels))
	}
	j := signal.Judgement{Labels: labels, Probs: make([]float32, len(probs))}
	best, sum := 0, 0.0
	for i, p := range probs {
		j.Probs[i] = float32(p)
		sum += p
		if p > probs[best] {
			best = i
		}
	}
	if j.Score = probs[best]; sum > 0.98 && sum < 1.02 || j.Score >= c.o.Threshold {
		j.Label = labels[best]
	}
	return checked(j)
}

// checked rejects values that are not probabilities.
func checked(j signal.Judgement) (signal.Judgement, error) {
	for _, p := range j.Probs {
		if !(p >= 0 && p <= 1) {
			return j, fmt.Errorf("the answer has %v for a probability: the model gives logits", p)
		}
	}
	return j, nil
}
