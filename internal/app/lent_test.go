package app

import (
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"signalbox/classify/tokenize"
	"signalbox/gpu"
	"signalbox/internal/telemetry"
	"signalbox/internal/tensor"
	"signalbox/internal/worker"
	"signalbox/models"
)

// library keeps the sessions of the embedded graphs and their tokenizers for all tests: each test
// runs a product of its own, and opening the models of each took most of the time of this package.
type library struct {
	mu         sync.Mutex // guards what follows
	runtime    *gpu.Runtime
	sessions   map[[sha256.Size]byte]*gpu.Session
	tokenizers []tokenize.Engine // in use, so that every engine shares them
}

// Of all tests; TestMain closes it.
var lending library

// session is the one of a graph, opened at the first call.
func (l *library) session(
	ctx context.Context, o gpu.Options, graph []byte, s gpu.SessionOptions,
) (*gpu.Session, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.runtime == nil {
		if err := l.open(o); err != nil {
			return nil, err
		}
	}
	key := sha256.Sum256(graph)
	if known := l.sessions[key]; known != nil {
		return known, nil
	}
	opened, err := l.runtime.NewSession(ctx, graph, s)
	if err == nil {
		l.sessions[key] = opened
	}
	return opened, err
}

func (l *library) open(o gpu.Options) error {
	for _, folder := range []string{defaultFolder, foreignFolder} { // groundingFolder has the tokenizer of the first
		file, err := models.FS.ReadFile(folder + "/tokenizer.json")
		if err != nil {
			return err
		}
		e, err := tokenize.Open(tokenize.Native, file)
		if err != nil {
			return err
		}
		l.tokenizers = append(l.tokenizers, e)
	}
	rt, err := gpu.Open(o)
	if err != nil {
		return err
	}
	l.runtime, l.sessions = rt, map[[sha256.Size]byte]*gpu.Session{}
	return nil
}

func (l *library) close() error {
	var errs []error
	for _, s := range l.sessions {
		errs = append(errs, s.Close())
	}
	if l.runtime != nil {
		errs = append(errs, l.runtime.Close())
	}
	return errors.Join(errs...)
}

// borrower is a host of this process whose sessions of the embedded graphs are those of the
// library.
type borrower struct {
	inProcess

	options gpu.Options
	metrics *atomic.Pointer[telemetry.Metrics] // of the product that borrows, once it is built
}

// borrow puts a borrower around a host that runs models on the CPU of this process, as far as o
// asks for nothing special.
func borrow(o gpu.Options, metrics *atomic.Pointer[telemetry.Metrics]) func(host) host {
	return func(h host) host {
		here, ok := h.(inProcess)
		if plain := gpu.DefaultOptions(); !ok || len(here.Choices()) > 1 || here.found().fallback != "" ||
			o.IntraOpThreads != plain.IntraOpThreads || o.QueueDepth != plain.QueueDepth ||
			o.MaxConcurrent != plain.MaxConcurrent || o.Batch != plain.Batch {
			return h
		}
		return borrower{here, o, metrics}
	}
}

func (b borrower) open(ctx context.Context, o worker.SessionOptions) (session, error) {
	if !strings.HasPrefix(o.Name, "signalbox-") {
		return b.inProcess.open(ctx, o)
	}
	graph, err := o.Graph(b.Choices()[0])
	if err != nil {
		return b.inProcess.open(ctx, o) // which fails in its own words
	}
	opts := gpu.SessionOptions{Name: o.Name, Provider: gpu.ProviderCPU, Pad: o.Pad}
	s, err := lending.session(ctx, b.options, graph, opts)
	if err != nil {
		return b.inProcess.open(ctx, o)
	}
	return &lent{Session: s, name: o.Name, metrics: b.metrics}, nil
}

// lent is a session of the library in the hands of one product, whose runs it counts. After Close
// it runs no more.
type lent struct {
	*gpu.Session

	name    string
	metrics *atomic.Pointer[telemetry.Metrics]
	closed  atomic.Bool
}

func (l *lent) Run(ctx context.Context, in []tensor.Tensor, outputs []string) ([]tensor.Tensor, error) {
	if l.closed.Load() {
		return nil, gpu.ErrClosed
	}
	begun := time.Now()
	out, err := l.Session.Run(ctx, in, outputs)
	if m := l.metrics.Load(); err == nil && m != nil {
		m.ModelRun(l.name, l.Provider(), time.Since(begun), int(in[0].Shape[0]))
	}
	return out, err
}

func (l *lent) Close() error {
	l.closed.Store(true)
	return nil
}
