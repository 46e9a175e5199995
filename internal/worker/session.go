package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"signalbox/gpu"
	"signalbox/internal/oip"
	"signalbox/internal/tensor"
)

// SessionOptions describe a session.
type SessionOptions struct {
	// Name is used in errors, logs and metrics.
	Name string
	// Graph returns the graph for a provider. It is called again after every start of a worker.
	Graph func(c gpu.Choice) ([]byte, error)
	// Pad sets the padding of inputs: see gpu.SessionOptions.
	Pad map[string]int64
	// CPU makes the session run on the CPU, even if there are other devices. Small models are
	// faster there.
	CPU bool
}

// Choices returns those providers of all that the model may run on.
func (o *SessionOptions) Choices(all []gpu.Choice) []gpu.Choice {
	if !o.CPU {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all),
		func(c gpu.Choice) bool { return c.Provider != gpu.ProviderCPU })
}

// Session is a model in the worker. It is safe for concurrent use and stays valid when the worker
// is restarted.
type Session struct {
	p               *Process
	o               SessionOptions
	id              string
	inputs, outputs []tensor.Spec
	use             atomic.Pointer[use] // of the worker that opened it last; nil before
	lost            error               // why the current worker does not have it; guarded by Process.mu
}

// use is a session in one worker.
type use struct {
	*oip.Client

	opened   opened
	fallback string // why it does not run on the first choice
	ended    atomic.Bool
}

// Open opens a model in the worker, on the first of its providers that can load it. Errors are
// ErrDown and those that the worker reports, with their reasons. It times out after three minutes,
// in case the worker hangs.
func (p *Process) Open(ctx context.Context, o SessionOptions) (*Session, error) {
	p.mu.Lock()
	client, fault, choices := p.client, p.fault, p.state.Choices
	p.names++
	s := &Session{p: p, o: o, id: "m" + strconv.Itoa(p.names)}
	p.mu.Unlock()
	if fault != nil {
		return nil, downFor(fault)
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	u, err := s.load(ctx, client, choices)
	if err != nil {
		return nil, err
	}
	s.inputs, s.outputs = u.Inputs(), u.Outputs()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.client != client {
		return nil, fmt.Errorf("model %q: %w", o.Name, ErrDown)
	}
	s.use.Store(u)
	p.sessions[s] = struct{}{}
	return s, nil
}

// reopen opens the model in a newly started worker. If the session was closed meanwhile, the model
// is removed from the worker.
func (s *Session) reopen(ctx context.Context, client *http.Client, choices []gpu.Choice) error {
	u, err := s.load(ctx, client, choices)
	s.p.mu.Lock()
	_, open := s.p.sessions[s]
	if s.lost = err; err == nil && open && s.p.client == client {
		s.use.Store(u)
	}
	s.p.mu.Unlock()
	if err == nil && !open {
		return s.unload(client) //nolint:contextcheck // also when ctx has ended
	}
	return err
}

// load opens the model in a worker.
func (s *Session) load(ctx context.Context, client *http.Client, choices []gpu.Choice) (*use, error) {
	var lost error
	for _, c := range s.o.Choices(choices) {
		got, err := s.send(ctx, client, c)
		if err != nil {
			lost = errors.Join(lost, fmt.Errorf("%s: %w", c.Provider, err))
			continue
		}
		u := &use{opened: *got, fallback: got.Fallback}
		u.Client, err = oip.Dial(ctx, oip.Options{
			URL: "http://worker", Model: s.id, HTTP: client, Name: s.o.Name, Provider: got.Provider, Observer: s.p.o.Observer,
		})
		if err != nil {
			return nil, errors.Join(err, s.unload(client)) //nolint:contextcheck // as above
		}
		if lost != nil {
			u.fallback = lost.Error()
		}
		return u, nil
	}
	return nil, lost
}

// refused is the worker's error for a graph that it could not open.
type refused struct{ msg string }

func (e *refused) Error() string { return e.msg }

// send sends a graph to the worker.
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
	u := s.use.Load()
	if u == nil || u.ended.Load() {
		return nil, fmt.Errorf("run session %q: %w", s.o.Name, ErrDown)
	}
	return u.Run(ctx, in, outputs)
}

// Inputs lists the inputs of Run.
func (s *Session) Inputs() []tensor.Spec { return s.inputs }

// Outputs lists the outputs that Run can return.
func (s *Session) Outputs() []tensor.Spec { return s.outputs }

// Provider returns the execution provider in the worker.
func (s *Session) Provider() string { return s.use.Load().opened.Provider }

// Fallback returns why Provider is not the requested one; empty if it is.
func (s *Session) Fallback() string { return s.use.Load().fallback }

// closeLimit limits how long a worker may take to close a model: it waits for the runs in flight,
// which a hung driver may never end.
const closeLimit = 10 * time.Second

// Close closes the model. Closing a session of a worker that has ended does nothing.
func (s *Session) Close() error {
	p := s.p
	p.mu.Lock()
	_, open := p.sessions[s]
	delete(p.sessions, s)
	client := p.client
	s.end()
	p.mu.Unlock()
	if !open || client == nil {
		return nil
	}
	return s.unload(client)
}

// end makes runs return ErrDown.
func (s *Session) end() {
	if u := s.use.Load(); u != nil {
		u.ended.Store(true)
	}
}

// unload removes the model from a worker. A worker that has ended holds none.
func (s *Session) unload(client *http.Client) error {
	ctx, cancel := context.WithTimeout(context.Background(), s.p.closeLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, "http://worker/v2/models/"+s.id, http.NoBody)
	if err != nil {
		return fmt.Errorf("close session %q: %w", s.o.Name, err)
	}
	resp, err := client.Do(req)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("close session %q: the worker has not closed it within %v", s.o.Name, s.p.closeLimit)
	}
	if err != nil {
		return nil
	}
	return resp.Body.Close()
}
