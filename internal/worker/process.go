package worker

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"time"

	"signalbox/gpu"
	"signalbox/internal/oip"
	"signalbox/internal/signal"
)

// down is an error with a reason.
type down struct{ msg string }

func (e *down) Error() string       { return e.msg }
func (*down) Reason() signal.Reason { return signal.ReasonNoModel }

// Is makes all of them match ErrDown.
func (*down) Is(target error) bool {
	_, ok := target.(*down)
	return ok
}

func downFor(cause error) error { return &down{"the worker of the models is down: " + cause.Error()} }

// ErrDown: the worker has ended and is being restarted. Reason no_model.
var ErrDown error = &down{"the worker of the models is down"}

// Options configure a Process. Command is required.
type Options struct {
	Command  []string // the command that runs Serve; --socket PATH is added
	GPU      gpu.Options
	Observer oip.Observer // notified of every run; may be nil
	Restart  func()       // called before each restart; may be nil
	Log      *slog.Logger // nil: no logging
	// Pause is the delay before the second start after a crash, doubled with every further start up
	// to 10 s. 0: 100 ms.
	Pause time.Duration

	once       bool          // do not restart
	quiet      bool          // discard the output of libraries
	closeLimit time.Duration // 0: closeLimit
}

const (
	firstPause = 100 * time.Millisecond
	lastPause  = 10 * time.Second
	steady     = 30 * time.Second // after this uptime, a worker that ends is restarted immediately
	startLimit = 3 * time.Minute  // for the library, the probes and the models
)

// Process is a worker that is kept running. It is safe for concurrent use and must be closed.
type Process struct {
	o          Options
	folder     folder
	stop       context.CancelFunc
	done       chan struct{} // closed when the worker has ended permanently
	closeLimit time.Duration

	mu       sync.Mutex // guards the fields below; not held while a model is opened
	client   *http.Client
	state    state
	pid      int           // of the latest worker
	fault    error         // why there is no worker; nil if there is one
	up       chan struct{} // closed when fault changes
	sessions map[*Session]struct{}
	names    int
}

// Start starts a worker and waits until it is ready. Its error wraps gpu.ErrUnavailable if the
// library cannot be used. A worker that crashes on start is not an error: it is restarted, and
// signals of its models are unknown meanwhile.
func Start(ctx context.Context, o Options) (*Process, error) {
	dir, err := newFolder()
	if err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.GPU.Logger, o.GPU.Observer = nil, nil // belong to this process
	o.Pause = cmp.Or(max(o.Pause, 0), firstPause)
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	p := &Process{
		o: o, folder: dir, stop: stop, done: make(chan struct{}), up: make(chan struct{}), sessions: map[*Session]struct{}{},
		fault: errStarting, closeLimit: cmp.Or(o.closeLimit, closeLimit),
	}
	go p.keep(run)
	if err := p.started(ctx); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

var errStarting = errors.New("it is starting")

// started waits for the first start to succeed or fail. Only an unusable library is an error.
func (p *Process) started(ctx context.Context) error {
	for {
		p.mu.Lock()
		fault, changed := p.fault, p.up
		p.mu.Unlock()
		switch {
		case errors.Is(fault, gpu.ErrUnavailable):
			return fault
		case !errors.Is(fault, errStarting):
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("worker: %w", ctx.Err())
		}
	}
}

// Probe starts a worker once, requests the working providers, and ends it. Its error reports that
// the worker ended before it could respond, or that the library cannot be used. The output of
// libraries is discarded.
func Probe(ctx context.Context, o Options) ([]gpu.Provider, error) {
	o.once, o.quiet = true, true
	p, err := Start(ctx, o)
	if err != nil {
		return nil, err
	}
	fault, found := p.Fault(), p.Providers()
	if err := errors.Join(fault, p.Close()); err != nil {
		return nil, err
	}
	return found, nil
}

// keep starts the worker, waits for its end and restarts it, until ctx ends. The goroutine is
// locked to its thread: the kernel treats the end of the thread that started a process as the end
// of the parent.
func (p *Process) keep(ctx context.Context) {
	defer close(p.done)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	pause := time.Duration(0)
	for n := 0; ; n++ {
		if n > 0 && p.o.Restart != nil {
			p.o.Restart()
		}
		begun := time.Now()
		err := p.once(ctx)
		if ctx.Err() != nil {
			return
		}
		p.fail(err)
		p.o.Log.ErrorContext(ctx, "the worker of the models ended: it is started again", slog.String("cause", err.Error()))
		if p.o.once || n == 0 && errors.Is(err, gpu.ErrUnavailable) {
			return
		}
		if time.Since(begun) > steady {
			pause = 0
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = min(max(2*pause, p.o.Pause), lastPause)
	}
}

// fail stores why there is no worker.
func (p *Process) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = err
	if p.client != nil {
		p.client.CloseIdleConnections()
		p.client = nil
	}
	for s := range p.sessions {
		s.end()
		s.lost = nil // fault reports it
	}
	close(p.up)
	p.up = make(chan struct{})
}

// once runs one worker to its end, and returns why it ended.
func (p *Process) once(ctx context.Context) error {
	path := p.folder.socket()
	_ = os.Remove(path)                                                                                                            // of the previous worker
	cmd := exec.CommandContext(ctx, p.o.Command[0], append(p.o.Command[1:len(p.o.Command):len(p.o.Command)], "--socket", path)...) //nolint:gosec // this program
	cmd.SysProcAttr = attributes()
	if !p.o.quiet {
		cmd.Stderr = os.Stderr
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Cancel = stdin.Close // it ends by itself
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	p.mu.Lock()
	p.pid = cmd.Process.Pid
	p.mu.Unlock()
	started := make(chan error, 1)
	go func() { started <- p.welcome(ctx, stdin, stdout, path) }()
	// An error of the start is only of interest if it is not caused by the end of the process,
	// which is reported separately.
	failed := <-started
	if failed != nil {
		_ = stdin.Close()
		if !errors.Is(failed, io.EOF) && !errors.Is(failed, gpu.ErrUnavailable) {
			_ = cmd.Process.Kill()
		}
	}
	mending, enough := context.WithCancel(ctx)
	mended := make(chan struct{})
	go func() {
		defer close(mended)
		if failed == nil {
			p.mend(mending)
		}
	}()
	err = cmd.Wait()
	enough()
	<-mended
	switch {
	case failed != nil && !errors.Is(failed, io.EOF):
		return failed
	case err != nil:
		return fmt.Errorf("it ended: %w", err)
	}
	return errors.New("it ended")
}

// welcome sends a new worker its options, waits until it is ready, and opens the models in use.
func (p *Process) welcome(ctx context.Context, stdin io.Writer, stdout io.Reader, path string) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	b, err := json.Marshal(p.o.GPU)
	if err != nil {
		return err
	}
	if _, err := stdin.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("%w: %w", io.EOF, err)
	}
	s, err := await(ctx, stdout)
	if err != nil {
		return err
	}
	if s.Error != "" {
		if s.Unavailable {
			return fmt.Errorf("%w: in the worker: %s", gpu.ErrUnavailable, s.Error)
		}
		return errors.New(s.Error)
	}
	client := &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
		},
		MaxIdleConnsPerHost: 64, DisableCompression: true,
	}}
	p.mu.Lock()
	p.client, p.state = client, s
	p.mu.Unlock()
	p.reopen(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = nil
	close(p.up)
	p.up = make(chan struct{})
	return nil
}

// reopen opens the models that the worker does not have, and reports whether it now has all of
// them.
func (p *Process) reopen(ctx context.Context) bool {
	p.mu.Lock()
	client, choices, missing := p.client, p.state.Choices, make([]*Session, 0, len(p.sessions))
	for s := range p.sessions {
		if u := s.use.Load(); u.ended.Load() {
			missing = append(missing, s)
		}
	}
	p.mu.Unlock()
	all := true
	for _, s := range missing {
		if err := s.reopen(ctx, client, choices); err != nil {
			all = false
			p.o.Log.ErrorContext(ctx, "a model cannot be opened again", slog.String("model", s.o.Name), slog.String("cause", err.Error()))
		}
	}
	return all
}

// mend opens models that could not be opened after a restart, for example because device memory was
// not free yet. It retries after pauses that double, until none is missing or ctx ends.
func (p *Process) mend(ctx context.Context) {
	for pause := p.o.Pause; p.Lost() != nil; pause = min(2*pause, lastPause) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		if p.reopen(ctx) {
			return
		}
	}
}

// await reads the line in which a worker reports that it is ready, or why not. io.EOF: it ended
// before.
func await(ctx context.Context, stdout io.Reader) (state, error) {
	type said struct {
		line []byte
		err  error
	}
	c := make(chan said, 1)
	go func() { // ends with the process; native libraries may print more
		r := bufio.NewReader(stdout)
		line, err := r.ReadBytes('\n')
		c <- said{line, err}
		_, _ = io.Copy(io.Discard, r)
	}()
	var s state
	select {
	case got := <-c:
		if got.err != nil {
			return s, io.EOF
		}
		if err := json.Unmarshal(got.line, &s); err != nil {
			return s, fmt.Errorf("it said %.100q: %w", got.line, err)
		}
		return s, nil
	case <-ctx.Done():
		return s, fmt.Errorf("not ready within %v", startLimit)
	}
}

// Close ends the worker and waits for it. Runs in flight fail.
func (p *Process) Close() error {
	p.stop()
	<-p.done
	p.fail(errors.New("it was closed"))
	return p.folder.remove()
}

// Version returns the version of ONNX Runtime in the worker; empty before the first start.
func (p *Process) Version() string { return p.now().Version }

// Library returns the path of the shared library in the worker; empty before the first start.
func (p *Process) Library() string { return p.now().Library }

// Providers lists the execution providers with the results of their probes in the latest worker.
func (p *Process) Providers() []gpu.Provider { return p.now().Providers }

// Choices returns the providers that a session may run on.
func (p *Process) Choices() []gpu.Choice { return p.now().Choices }

// Provider returns the provider of new sessions, and why it is not the configured one.
func (p *Process) Provider() (name, fallback string) {
	s := p.now()
	return s.Provider, s.Fallback
}

// PID returns the process id of the latest worker, 0 before the first.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pid
}

// Fault returns why no worker runs, nil if one does.
func (p *Process) Fault() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fault
}

// Lost reports which open models the current worker could not open again, sorted by name; nil if it
// has all.
func (p *Process) Lost() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var lost []*Session
	for s := range p.sessions {
		if s.lost != nil {
			lost = append(lost, s)
		}
	}
	slices.SortFunc(lost, func(a, b *Session) int { return cmp.Compare(a.o.Name, b.o.Name) })
	errs := make([]error, len(lost))
	for i, s := range lost {
		errs[i] = fmt.Errorf("model %q cannot be opened again: %w", s.o.Name, s.lost)
	}
	return errors.Join(errs...)
}

func (p *Process) now() state {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}
