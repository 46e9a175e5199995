package worker

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"signalbox/gpu"
	"signalbox/internal/oip"
)

// state is the first line of the worker's standard output.
type state struct {
	Error       string         `json:"error,omitempty"`       // why it is not ready
	Unavailable bool           `json:"unavailable,omitempty"` // the library is unavailable; restarting will not help
	Version     string         `json:"version"`               // of ONNX Runtime
	Library     string         `json:"library"`
	Provider    string         `json:"provider"`
	Fallback    string         `json:"fallback"`
	Providers   []gpu.Provider `json:"providers"`
	Choices     []gpu.Choice   `json:"choices"`
}

// opened is the response to PUT /v2/models/NAME.
type opened struct {
	Provider string `json:"provider"`
	Fallback string `json:"fallback"`
	Devices  int    `json:"devices"`
}

// Headers: how to open a graph, as JSON, and the kind of error if it cannot be opened.
const (
	loadHeader  = "X-Signalbox-Session"
	faultHeader = "X-Signalbox-Fault"
	faultDevice = "provider" // the provider could not load it; another one may
)

// mostGraph limits the size of a graph.
const mostGraph = 2 << 30

// server is the state inside a worker.
type server struct {
	rt *gpu.Runtime

	mu       sync.Mutex // guards sessions; not held while one is opened or closed
	sessions map[string]*gpu.Session
}

// Serve is the worker's side. It reads its options from the first line of in, opens the library,
// serves models on the unix socket at path, reports this on out, and returns when in ends. Errors
// on opening are reported on out and returned. If a run hangs, Serve returns an error immediately:
// only the end of the process ends such a run.
func Serve(ctx context.Context, in io.Reader, out io.Writer, path, version string, log *slog.Logger) error {
	lines := bufio.NewReader(in)
	var o gpu.Options
	line, err := lines.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &o)
	}
	if err != nil {
		return fmt.Errorf("worker: options: %w", err)
	}
	hung := make(chan string, 1) // the session of the first hung run
	o.Logger, o.Hung = log, func(session string) {
		select {
		case hung <- session:
		default:
		}
	}
	rt, err := gpu.Open(o) //nolint:contextcheck // a probe is bounded by its own time
	if err != nil {
		return errors.Join(err, tell(out, &state{Error: err.Error(), Unavailable: errors.Is(err, gpu.ErrUnavailable)}))
	}
	w := &server{rt: rt, sessions: map[string]*gpu.Session{}}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "unix", path)
	if err != nil {
		return errors.Join(err, rt.Close(), tell(out, &state{Error: err.Error()}))
	}
	ready := state{Version: rt.Version(), Library: rt.Library(), Providers: rt.Providers(), Choices: rt.Choices()}
	ready.Provider, ready.Fallback = rt.Provider()
	if err := tell(out, &ready); err != nil {
		return errors.Join(err, l.Close(), rt.Close())
	}
	hs := &http.Server{Handler: w.handler(version), ReadHeaderTimeout: time.Minute, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	ended := make(chan error, 1)
	go func() { ended <- hs.Serve(l) }()
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = io.Copy(io.Discard, lines) // until the parent closes it or dies
	}()
	select {
	case <-over:
	case session := <-hung:
		return fmt.Errorf("worker: a run of model %q does not end", session)
	}
	err = errors.Join(hs.Close(), <-ended)
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return errors.Join(err, rt.Close())
}

func tell(out io.Writer, s *state) error {
	b, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	if _, err := out.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("worker: tell the parent: %w", err)
	}
	return nil
}

func (w *server) handler(version string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /v2/models/{model}", w.open)
	mux.HandleFunc("DELETE /v2/models/{model}", w.close)
	mux.Handle("/", oip.NewHandler("signalbox worker", version, w.model))
	return mux
}

// model finds an open model by its name in the protocol.
func (w *server) model(name string) oip.Model {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.sessions[name]; s != nil {
		return s
	}
	return nil
}

// load describes how a session is opened.
type load struct {
	Name     string           `json:"name"` // for metrics and errors
	Provider string           `json:"provider"`
	Pad      map[string]int64 `json:"pad"`
}

// open opens the graph in the body under the name in the path, and replaces one with the same name.
func (w *server) open(rw http.ResponseWriter, r *http.Request) {
	var l load
	if err := json.Unmarshal([]byte(r.Header.Get(loadHeader)), &l); err != nil {
		oip.Fail(rw, http.StatusBadRequest, fmt.Errorf("%s: %w", loadHeader, err))
		return
	}
	graph, err := io.ReadAll(http.MaxBytesReader(rw, r.Body, mostGraph))
	if err != nil {
		oip.Fail(rw, http.StatusBadRequest, err)
		return
	}
	s, err := w.rt.NewSession(r.Context(), graph, gpu.SessionOptions{Name: l.Name, Provider: l.Provider, Pad: l.Pad})
	if err != nil {
		if _, device := errors.AsType[*gpu.ProviderError](err); device {
			rw.Header().Set(faultHeader, faultDevice)
		}
		oip.Fail(rw, http.StatusUnprocessableEntity, err)
		return
	}
	if err := w.put(r.PathValue("model"), s); err != nil {
		oip.Fail(rw, http.StatusInternalServerError, err)
		return
	}
	_ = json.NewEncoder(rw).Encode(opened{s.Provider(), s.Fallback(), s.Devices()}) // fails if the parent is gone
}

// put assigns a name to a session and closes the one that had it; nil removes the name.
func (w *server) put(name string, s *gpu.Session) error {
	w.mu.Lock()
	old := w.sessions[name]
	if s != nil {
		w.sessions[name] = s
	} else {
		delete(w.sessions, name)
	}
	w.mu.Unlock()
	if old == nil {
		return nil
	}
	return old.Close()
}

func (w *server) close(rw http.ResponseWriter, r *http.Request) {
	if err := w.put(r.PathValue("model"), nil); err != nil {
		oip.Fail(rw, http.StatusInternalServerError, err)
		return
	}
	rw.WriteHeader(http.StatusNoContent)
}
