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

// down is an error that knows its reason.
type down struct{ msg string }

func (e *down) Error() string       { return e.msg }
func (*down) Reason() signal.Reason { return signal.ReasonNoModel }

// Is makes every one of them ErrDown.
func (*down) Is(target error) bool {
	_, ok := target.(*down)
	return ok
}

func downFor(cause error) error { return &down{"the worker of the models is down: " + cause.Error()} }

// ErrDown: the worker has ended and is being started again. Reason no_model.
var ErrDown error = &down{"the worker of the models is down"}

// Options are what a Process needs. Command is required.
type Options struct {
	Command  []string // that runs Serve; --socket PATH is added
	GPU      gpu.Options
	Observer oip.Observer // told of every run; nil: nobody is
	Restart  func()       // called before each start but the first; nil: nobody is told
	Log      *slog.Logger // nil: nothing is logged
	// Pause is how long to wait before the second start after a crash, doubled with every further
	// one up to 10 s. 0: 100 ms.
	Pause time.Duration

	once       bool          // it is not started again
	quiet      bool          // what libraries print is thrown away
	closeLimit time.Duration // 0: closeLimit
}

const (
	firstPause = 100 * time.Millisecond
	lastPause  = 10 * time.Second
	steady     = 30 * time.Second // up for so long, a worker that ends is started at once again
	startLimit = 3 * time.Minute  // for the library, the probes and the models
)

// Process is a worker that is kept running. It is safe for concurrent use. Close it.
type Process struct {
	o          Options
	folder     folder
	stop       context.CancelFunc
	done       chan struct{} // closed when the worker has ended for good
	closeLimit time.Duration

	mu       sync.Mutex // guards what follows; not held while a model is opened
	client   *http.Client
	state    state
	pid      int           // of the worker that started last
	fault    error         // why there is no worker; nil: there is one
	up       chan struct{} // closed when fault changes
	sessions map[*Session]struct{}
	names    int
}

// Start starts a worker and waits until it is ready. Its error wraps gpu.ErrUnavailable when the
// library cannot be used. A worker that crashes when it starts is no error: it is started again,
// and the models that need it are unknown.
func Start(ctx context.Context, o Options) (*Process, error) {
	dir, err := newFolder()
	if err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.GPU.Logger, o.GPU.Observer = nil, nil // are of this process
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

// started waits for the first start to succeed or fail. Only a library that cannot be used is an
// error.
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

// Probe starts a worker once, asks which providers work, and ends it. Its error says that the
// worker ended before it could tell, or that the library cannot be used. What libraries print is
// thrown away.
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

// keep starts the worker, waits for its end and starts it again, until ctx ends. The goroutine
// keeps its thread: the kernel takes the end of the thread that started a process for the end of
// the parent.
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

// fail notes why there is no worker.
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
		s.lost = nil // told by fault
	}
	close(p.up)
	p.up = make(chan struct{})
}

// once runs one worker to its end, and says why it ended.
func (p *Process) once(ctx context.Context) error {
	path := p.folder.socket()
	_ = os.Remove(path)                                                                                                            // of the worker before
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
	// Of the error of a start only what is not the process's own end is of interest: it comes with
	// the end.
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

// welcome gives a new worker its options, waits until it is ready, and opens the models that are in
// use.
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

// reopen opens the models that the worker does not have, and reports whether it has all of them
// now.
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

// mend opens models that could not be opened when the worker came back, such as for memory of a
// device that was not free yet, after pauses that double, until none is missing or ctx ends.
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

// await reads the line in which a worker says that it is ready, or why not. io.EOF: it ended
// before.
func await(ctx context.Context, stdout io.Reader) (state, error) {
	type said struct {
		line []byte
		err  error
	}
	c := make(chan said, 1)
	go func() { // ends with the process; native libraries may say more
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

// Version is that of ONNX Runtime in the worker, and Library its path; empty before the first
// start.
func (p *Process) Version() string { return p.now().Version }

// Library is the path of the shared library in the worker.
func (p *Process) Library() string { return p.now().Library }

// Providers lists the execution providers with what their probes found in the worker that started
// last.
func (p *Process) Providers() []gpu.Provider { return p.now().Providers }

// Choices are the providers that a session may run on.
func (p *Process) Choices() []gpu.Choice { return p.now().Choices }

// Provider is that of new sessions, and why it is not the configured one.
func (p *Process) Provider() (name, fallback string) {
	s := p.now()
	return s.Provider, s.Fallback
}

// PID is the process id of the worker that started last, 0 before.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pid
}

// Fault says why no worker runs, nil when one does.
func (p *Process) Fault() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fault
}

// Lost says which of the open models the worker that runs could not open again, in the order of
// their names; nil when it has all.
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
