package oip

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"signalbox/internal/signal"
	"signalbox/internal/tensor"
)

// reasonHeader carries, in error responses of a server of this product, the reason why a signal is
// unknown.
const reasonHeader = "X-Signalbox-Reason"

const (
	mostBody    = 256 << 20 // limit for a response
	mostRefusal = 64 << 10  // limit for an error response
	longestWord = 400       // limit for the server's error message, which is logged
)

// Error is a failed or unusable response.
type Error struct {
	Model string
	Msg   string
	Why   signal.Reason
	Err   error // the cause, if there is one
}

// Error names the model and the problem.
func (e *Error) Error() string { return fmt.Sprintf("remote model %q: %s", e.Model, e.Msg) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Reason is the reason why the model's signals are unknown: no_model if the server is unreachable
// or has no such model, timeout, overload, invalid_output for a response that violates the
// protocol, internal for a request that the server rejects or fails.
func (e *Error) Reason() signal.Reason { return e.Why }

// Observer is notified of every successful run, on the goroutine of the run. It must not block.
type Observer interface {
	// ModelRun: elapsed is the time from the request to the complete response, rows the first
	// dimension of the first input.
	ModelRun(session, provider string, elapsed time.Duration, rows int)
}

// Options describe a model on a server. URL and Model are required.
type Options struct {
	URL     string        // of the server, with the path before /v2 if any
	Model   string        // the name on the server
	Version string        // empty: the server's choice
	Timeout time.Duration // of one request; 0: only that of the caller
	Key     string        // sent as bearer token when not empty
	HTTP    *http.Client  // required; the caller closes its connections
	// Name and Provider are passed to the observer.
	Name, Provider string
	Observer       Observer // nil: no notifications
}

// Client runs one model of a server. It is safe for concurrent use. It needs no closing.
type Client struct {
	o               Options
	base            string // .../v2/models/NAME[/versions/V]
	inputs, outputs []tensor.Spec
	types           map[string]string // of the inputs
	binary          bool
}

// Dial requests the server's capabilities and the inputs and outputs of the model. Errors are
// *Error, or wrap ctx's.
func Dial(ctx context.Context, o Options) (*Client, error) {
	root := strings.TrimSuffix(o.URL, "/") + "/v2"
	c := &Client{o: o, base: root + "/models/" + url.PathEscape(o.Model), types: map[string]string{}}
	if o.Version != "" {
		c.base += "/versions/" + url.PathEscape(o.Version)
	}
	c.o.Name, c.o.Provider = cmp.Or(o.Name, o.Model), cmp.Or(o.Provider, "remote")
	var server serverMetadata
	if err := c.get(ctx, root, &server); err != nil {
		return nil, err
	}
	c.binary = slices.Contains(server.Extensions, binaryExtension)
	if err := c.Ready(ctx); err != nil {
		return nil, err
	}
	var m Metadata
	if err := c.get(ctx, c.base, &m); err != nil {
		return nil, err
	}
	var err error
	if c.inputs, err = specsOf(m.Inputs); err == nil {
		c.outputs, err = specsOf(m.Outputs)
	}
	if err != nil {
		return nil, c.fail(signal.ReasonNoModel, err)
	}
	for _, in := range m.Inputs {
		c.types[in.Name] = in.Datatype
	}
	return c, nil
}

func specsOf(details []TensorDetail) ([]tensor.Spec, error) {
	if len(details) == 0 {
		return nil, errors.New("a model without inputs or outputs")
	}
	out := make([]tensor.Spec, len(details))
	for i, d := range details {
		out[i] = tensor.Spec{Name: d.Name, DType: dtypeOf(d.Datatype), Shape: slices.Clone(d.Shape)}
		if out[i].DType == tensor.Invalid {
			return nil, fmt.Errorf("tensor %q has type %q, which cannot cross", d.Name, d.Datatype)
		}
		for k, n := range out[i].Shape {
			if n < 1 {
				out[i].Shape[k] = tensor.Dynamic
			}
		}
	}
	return out, nil
}

// Inputs lists the inputs of Run.
func (c *Client) Inputs() []tensor.Spec { return c.inputs }

// Outputs lists the outputs that Run can return.
func (c *Client) Outputs() []tensor.Spec { return c.outputs }

// Provider returns the provider in Options.
func (c *Client) Provider() string { return c.o.Provider }

// Close does nothing: the connections belong to the creator of the HTTP client.
func (*Client) Close() error { return nil }

// Ready checks whether the model can run.
func (c *Client) Ready(ctx context.Context) error { return c.get(ctx, c.base+"/ready", nil) }

// Run sends the input tensors and returns the named outputs in that order, or all if outputs is
// nil. It returns soon after ctx ends, with an error that wraps ctx's; other errors are *Error.
func (c *Client) Run(ctx context.Context, in []tensor.Tensor, outputs []string) ([]tensor.Tensor, error) {
	start := time.Now()
	body, header, err := c.request(in, outputs)
	if err != nil {
		return nil, c.fail(signal.ReasonInternal, err)
	}
	answer, length, err := c.do(ctx, http.MethodPost, c.base+"/infer", body, header)
	if err != nil {
		return nil, err
	}
	out, err := c.read(answer, length, outputs)
	if err != nil {
		return nil, c.fail(signal.ReasonInvalid, err)
	}
	if c.o.Observer != nil && len(in) > 0 && len(in[0].Shape) > 0 {
		c.o.Observer.ModelRun(c.o.Name, c.o.Provider, time.Since(start), int(in[0].Shape[0]))
	}
	return out, nil
}

// request builds the body of a run, and returns the length of its JSON if binary data follows.
func (c *Client) request(in []tensor.Tensor, outputs []string) (body []byte, jsonBytes int, err error) {
	types := make([]string, len(in))
	for i := range in {
		types[i] = cmp.Or(c.types[in[i].Name], datatypeOf(in[i].DType()))
	}
	req := inferRequest{}
	var blobs []byte
	if req.Inputs, blobs, err = wrap(in, types, func(int) bool { return c.binary }); err != nil {
		return nil, 0, err
	}
	if c.binary {
		req.Parameters = &parameters{BinaryOutputs: true}
	}
	for _, name := range outputs {
		w := wireTensor{Name: name}
		if c.binary {
			w.Parameters = &parameters{Binary: true}
		}
		req.Outputs = append(req.Outputs, w)
	}
	if body, err = json.Marshal(req); err != nil {
		return nil, 0, err
	}
	if !c.binary {
		return body, 0, nil
	}
	n := len(body)
	return append(body, blobs...), n, nil
}

// read extracts the named outputs from a response.
func (c *Client) read(answer []byte, length string, names []string) ([]tensor.Tensor, error) {
	header, blobs, err := splitBody(answer, length)
	if err != nil {
		return nil, err
	}
	var resp inferResponse
	if err := json.Unmarshal(header, &resp); err != nil {
		return nil, err
	}
	all, err := readTensors(resp.Outputs, blobs)
	if err != nil {
		return nil, err
	}
	if names == nil {
		for _, s := range c.outputs {
			names = append(names, s.Name)
		}
	}
	out := make([]tensor.Tensor, len(names))
	for i, name := range names {
		at := slices.IndexFunc(all, func(t tensor.Tensor) bool { return t.Name == name })
		if at < 0 {
			return nil, fmt.Errorf("no output %q in the answer", name)
		}
		out[i] = all[at]
	}
	return out, nil
}

func (c *Client) get(ctx context.Context, to string, into any) error {
	body, _, err := c.do(ctx, http.MethodGet, to, nil, 0)
	if err != nil || into == nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return c.fail(signal.ReasonNoModel, fmt.Errorf("GET %s: %w", to, err))
	}
	return nil
}

// do sends a request and reads the response, and the length of its JSON if binary data follows.
func (c *Client) do(ctx context.Context, method, to string, body []byte, jsonBytes int) (answer []byte, length string, err error) {
	inner := ctx
	if c.o.Timeout > 0 {
		var cancel context.CancelFunc
		inner, cancel = context.WithTimeout(ctx, c.o.Timeout)
		defer cancel()
	}
	req, err := http.NewRequestWithContext(inner, method, to, bytes.NewReader(body))
	if err != nil {
		return nil, "", c.fail(signal.ReasonInternal, err)
	}
	req.Header.Set("Content-Type", "application/json")
	if jsonBytes > 0 {
		req.Header.Set("Content-Type", "application/octet-stream")
		req.Header.Set(headerLength, strconv.Itoa(jsonBytes))
	}
	if c.o.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.o.Key)
	}
	resp, err := c.o.HTTP.Do(req)
	if err != nil {
		return nil, "", c.lost(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode/100 != 2 {
		said, _ := io.ReadAll(io.LimitReader(resp.Body, mostRefusal)) // a truncated error response is used as well
		return nil, "", c.refused(resp, said)
	}
	answer, err = io.ReadAll(io.LimitReader(resp.Body, mostBody+1))
	switch {
	case err != nil:
		return nil, "", c.lost(ctx, err)
	case len(answer) > mostBody:
		return nil, "", c.fail(signal.ReasonInvalid, fmt.Errorf("an answer of more than %d bytes", mostBody))
	}
	return answer, resp.Header.Get(headerLength), nil
}

// lost distinguishes the end of the caller's context from the timeout of a request, and both from
// an unreachable server.
func (c *Client) lost(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("remote model %q: %w", c.o.Model, ctx.Err())
	case errors.Is(err, context.DeadlineExceeded):
		return c.fail(signal.ReasonTimeout, fmt.Errorf("no answer within %v", c.o.Timeout))
	}
	return c.fail(signal.ReasonNoModel, err)
}

// refused converts an unsuccessful response into an error.
func (c *Client) refused(resp *http.Response, body []byte) error {
	why := signal.Reason(resp.Header.Get(reasonHeader))
	if !slices.Contains([]signal.Reason{signal.ReasonTimeout, signal.ReasonOverload, signal.ReasonNoModel, signal.ReasonInvalid, signal.ReasonInternal}, why) {
		switch resp.StatusCode {
		case http.StatusNotFound, http.StatusUnauthorized, http.StatusForbidden:
			why = signal.ReasonNoModel
		case http.StatusTooManyRequests, http.StatusServiceUnavailable:
			why = signal.ReasonOverload
		case http.StatusGatewayTimeout, http.StatusRequestTimeout:
			why = signal.ReasonTimeout
		default:
			why = signal.ReasonInternal
		}
	}
	var said wireError
	msg := resp.Status
	if json.Unmarshal(body, &said) == nil && said.Error != "" {
		msg += ": " + said.Error
	}
	if len(msg) > longestWord {
		msg = strings.ToValidUTF8(msg[:longestWord], "") + " ..."
	}
	return &Error{Model: c.o.Model, Msg: msg, Why: why}
}

func (c *Client) fail(why signal.Reason, err error) *Error {
	return &Error{Model: c.o.Model, Msg: err.Error(), Why: why, Err: err}
}
