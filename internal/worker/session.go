package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"

	"signalbox/gpu"
	"signalbox/internal/oip"
	"signalbox/internal/tensor"
)

// SessionOptions say what a session runs.
type SessionOptions struct {
	// Name is used in errors, logs and metrics.
	Name string
	// Graph reads the graph for a provider. It is called again after every start of a worker.
	Graph func(c gpu.Choice) ([]byte, error)
	// Pad gives the padding of inputs: see gpu.SessionOptions.
	Pad map[string]int64
}

// Session is a model in the worker. It is safe for concurrent use, and stays itself when the worker is started
// again.
type Session struct {
	p               *Process
	o               SessionOptions
	id              string
	inputs, outputs []tensor.Spec
	client          atomic.Pointer[oip.Client] // nil while there is no worker
	opened          atomic.Pointer[opened]
	fallback        atomic.Pointer[string] // why it does not run on the first choice
}

// Open opens a model in the worker, on the first of its providers that can load it. Errors: ErrDown, and what the
// worker says, with its reason.
func (p *Process) Open(ctx context.Context, o SessionOptions) (*Session, error) {
	p.mu.Lock()
	client, fault, choices := p.client, p.fault, p.state.Choices
	p.names++
	s := &Session{p: p, o: o, id: "m" + strconv.Itoa(p.names)}
	p.mu.Unlock()
	if fault != nil {
		return nil, downFor(fault)
	}
	if err := s.reopen(ctx, client, choices); err != nil {
		return nil, err
	}
	c := s.client.Load()
	s.inputs, s.outputs = c.Inputs(), c.Outputs()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sessions[s] = struct{}{}
	if p.client != client { // it ended meanwhile; the next one opens the model again
		s.client.Store(nil)
	}
	return s, nil
}

// reopen opens the model in a worker that has just started.
func (s *Session) reopen(ctx context.Context, client *http.Client, choices []gpu.Choice) error {
	var lost error
	for _, c := range choices {
		got, err := s.send(ctx, client, c)
		if err != nil {
			lost = errors.Join(lost, fmt.Errorf("%s: %w", c.Provider, err))
			continue
		}
		oc, err := oip.Dial(ctx, oip.Options{
			URL: "http://worker", Model: s.id, HTTP: client, Name: s.o.Name, Provider: got.Provider, Observer: s.p.o.Observer,
		})
		if err != nil {
			return err
		}
		why := got.Fallback
		if lost != nil {
			why = lost.Error()
		}
		s.fallback.Store(&why)
		s.opened.Store(got)
		s.client.Store(oc)
		return nil
	}
	return lost
}

// refused is a graph that the worker could not open, in its words.
type refused struct{ msg string }

func (e *refused) Error() string { return e.msg }

// send gives the worker a graph.
func (s *Session) send(ctx context.Context, client *http.Client, c gpu.Choice) (*opened, error) {
	graph, err := s.o.Graph(c)
	if err != nil {
		return nil, err
	}
	how, err := json.Marshal(load{Name: s.o.Name, Provider: c.Provider, Pad: s.o.Pad})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://worker/v2/models/"+s.id, bytes.NewReader(graph))
	if err != nil {
		return nil, err
	}
	req.Header.Set(loadHeader, string(how))
	resp, err := client.Do(req)
	if err != nil {
		return nil, downFor(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return nil, downFor(err)
	}
	if resp.StatusCode != http.StatusOK {
		var said struct {
			Error string `json:"error"`
		}
		if err := json.Unmarshal(body, &said); err != nil || said.Error == "" {
			return nil, &refused{resp.Status}
		}
		return nil, &refused{said.Error}
	}
	got := new(opened)
	return got, json.Unmarshal(body, got)
}

// Run implements classify.Session.
func (s *Session) Run(ctx context.Context, in []tensor.Tensor, outputs []string) ([]tensor.Tensor, error) {
	c := s.client.Load()
	if c == nil {
		return nil, fmt.Errorf("run session %q: %w", s.o.Name, ErrDown)
	}
	return c.Run(ctx, in, outputs)
}

// Inputs lists what Run needs.
func (s *Session) Inputs() []tensor.Spec { return s.inputs }

// Outputs lists what Run can return.
func (s *Session) Outputs() []tensor.Spec { return s.outputs }

// Provider is the execution provider in the worker.
func (s *Session) Provider() string { return s.opened.Load().Provider }

// Fallback says why Provider is not the one asked for; empty when it is.
func (s *Session) Fallback() string { return *s.fallback.Load() }

// Close closes the model. Closing one of a worker that has ended does nothing.
func (s *Session) Close() error {
	p := s.p
	p.mu.Lock()
	_, open := p.sessions[s]
	delete(p.sessions, s)
	client := p.client
	p.mu.Unlock()
	s.client.Store(nil)
	if !open || client == nil {
		return nil
	}
	req, err := http.NewRequestWithContext(context.Background(), http.MethodDelete, "http://worker/v2/models/"+s.id, nil)
	if err != nil {
		return fmt.Errorf("close session %q: %w", s.o.Name, err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil //nolint:nilerr // a worker that has ended holds no models
	}
	return resp.Body.Close()
}
