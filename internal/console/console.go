// Package console is the web page that shows operators a running proxy, and the endpoints that the
// page reads. Its files are embedded and complete: no build step, no other origin. They hold no
// secrets. Access to the data of the endpoints is checked by the admin listener before it calls
// this package.
//
// The package makes no decisions about requests and stores nothing: a Source provides the data.
// Everything here is safe for concurrent use. It starts no goroutines; Close ends the open streams.
package console

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"sync"
	"time"

	"signalbox/proxy"
	"signalbox/proxy/placement"
	"signalbox/proxy/recent"
)

//go:embed static
var static embed.FS

// Source provides the data of a console. Implementations are safe for concurrent use.
type Source interface {
	// Proxy returns the proxy that the main listener serves.
	Proxy() *proxy.Proxy
	// Overview returns the state of the process.
	Overview() *Overview
	// Configuration returns the configuration in use, and how the file differs from it.
	Configuration(ctx context.Context) *Configuration
	// Preview reports the effect that a text would have as the configuration. It changes nothing.
	Preview(ctx context.Context, text []byte) *Preview
}

// Overview is the state of the process.
type Overview struct {
	Version    string    `json:"version"`
	Now        time.Time `json:"now"`
	Started    time.Time `json:"started"`
	Ready      bool      `json:"ready"`
	Draining   bool      `json:"draining"`
	Generation uint64    `json:"generation"` // of the configuration
	Degraded   []string  `json:"degraded"`   // features that do not work as configured
	Signals    []string  `json:"signals"`    // signals that can be computed
	Prompts    bool      `json:"prompts"`    // whether the text of requests is shown
	Marker     string    `json:"guard_marker"`
	// the model that costs are compared with; empty if no price is known
	Dearest  string                `json:"dearest"`
	Models   []placement.ModelLoad `json:"models"`
	Tally    recent.Tally          `json:"tally"`
	Contexts []Tier                `json:"contexts"` // empty where contexts are turned off
	Redis    string                `json:"redis"`    // none, reachable or unreachable
}

// Tier describes the contexts in one tier of the store.
type Tier struct {
	Name     string `json:"name"` // hot, l2 or l3
	Contexts int64  `json:"contexts"`
	Bytes    int64  `json:"bytes"` // as stored in that tier
}

// Configuration is the configuration in use.
type Configuration struct {
	File       string   `json:"file"` // empty without a file
	Generation uint64   `json:"generation"`
	Text       string   `json:"text"`              // as read; secrets are references
	Warnings   []Note   `json:"warnings"`          // warnings about the configuration
	Problem    string   `json:"problem"`           // why the last reload failed; empty if it succeeded
	Restart    []string `json:"restart,omitempty"` // changed settings that take effect after a restart
	Disk       *Preview `json:"disk,omitempty"`    // preview of the current file; absent if it is the one in use
}

// Preview is the effect that a text would have as the configuration.
type Preview struct {
	Valid    bool     `json:"valid"`
	Problems []Note   `json:"problems"` // including warnings
	Restart  []string `json:"restart"`  // settings whose changes need a restart
	Diff     string   `json:"diff"`     // unified, against the configuration in use; empty without differences
}

// Note is a problem of a configuration, or a warning.
type Note struct {
	Line    int    `json:"line"` // from 1; 0 if there is none
	Column  int    `json:"column"`
	Path    string `json:"path"`
	Text    string `json:"text"`
	Warning bool   `json:"warning"`
}

// Pages serves the static files below /console/.
func Pages() http.Handler {
	files, err := fs.Sub(static, "static")
	if err != nil {
		panic(err) // cannot happen: the name is constant
	}
	serve := http.StripPrefix("/console/", http.FileServerFS(files))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-cache")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		serve.ServeHTTP(w, r)
	})
}

// policy lets the page load only its own files and forbids frames. In browsers that support it, it
// also forbids creating markup from strings (W3C Content Security Policy, Trusted Types).
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'"

// Endpoints are the endpoints that the page reads.
type Endpoints struct {
	source Source
	api    http.Handler
	mux    *http.ServeMux
	closed chan struct{}
	once   sync.Once
}

// New returns the endpoints below /console/api/. The caller must check who may use them.
func New(s Source) *Endpoints {
	e := &Endpoints{source: s, api: s.Proxy().Handler(), mux: http.NewServeMux(), closed: make(chan struct{})}
	e.mux.HandleFunc("GET /console/api/live", e.live)
	e.mux.HandleFunc("GET /console/api/decisions/{id}", e.decision)
	e.mux.HandleFunc("POST /console/api/ask", e.ask)
	e.mux.HandleFunc("GET /console/api/overview", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, s.Overview())
	})
	e.mux.HandleFunc("GET /console/api/conversations", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, s.Proxy().Recent().Talks())
	})
	e.mux.HandleFunc("GET /console/api/prefixes", e.prefixes)
	e.mux.HandleFunc("GET /console/api/configuration", func(w http.ResponseWriter, r *http.Request) {
		reply(w, s.Configuration(r.Context()))
	})
	e.mux.HandleFunc("POST /console/api/preview", e.preview)
	return e
}

// prefixes lists the prompt prefixes that an endpoint of a model is expected to hold.
func (e *Endpoints) prefixes(w http.ResponseWriter, r *http.Request) {
	list, ok := e.source.Proxy().Prefixes(r.FormValue("model"), r.FormValue("endpoint"))
	if !ok {
		http.Error(w, "no endpoint of the configuration is called so", http.StatusNotFound)
		return
	}
	reply(w, list)
}

// Close ends streams of decisions, so that the listener can drain.
func (e *Endpoints) Close() { e.once.Do(func() { close(e.closed) }) }

// ServeHTTP implements http.Handler.
func (e *Endpoints) ServeHTTP(w http.ResponseWriter, r *http.Request) { e.mux.ServeHTTP(w, r) }

// Line is one line of the stream of decisions.
type Line struct {
	Decisions []*recent.Seen `json:"decisions"`
	Skipped   uint64         `json:"skipped"` // decisions that were never recorded, since the process started
}

const (
	liveLines = 200              // decisions at the beginning of a stream, and per batch
	liveBeat  = 15 * time.Second // interval of empty lines in an idle stream
	liveWrite = 10 * time.Second // time that a client may take to read a line
)

// live streams decisions as JSON lines: first the recent ones after ?after=SEQ, then each as it is
// made. An idle stream sends lines without decisions.
func (e *Endpoints) live(w http.ResponseWriter, r *http.Request) {
	after, err := strconv.ParseUint(cmp.Or(r.FormValue("after"), "0"), 10, 64)
	if err != nil {
		http.Error(w, "after: not a whole number from 0 on", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Cache-Control", "no-store")
	out, rc := json.NewEncoder(w), http.NewResponseController(w)
	beat := time.NewTimer(liveBeat)
	defer beat.Stop()
	for {
		list, skipped, more := e.source.Proxy().Recent().After(after, liveLines)
		if len(list) > 0 {
			after = list[len(list)-1].Seq
		}
		deadline := rc.SetWriteDeadline(time.Now().Add(liveWrite))
		if err := errors.Join(deadline, out.Encode(Line{list, skipped}), rc.Flush()); err != nil {
			return
		}
		beat.Reset(liveBeat)
		select {
		case <-more:
		case <-beat.C:
		case <-r.Context().Done():
			return
		case <-e.closed:
			return
		}
	}
}

// settle is how long a request for a decision waits for it: a response ends shortly before its
// record exists.
const settle = 2 * time.Second

// decision returns a complete decision, by the x-request-id of its request.
func (e *Endpoints) decision(w http.ResponseWriter, r *http.Request) {
	patience := time.After(settle)
	for {
		_, _, more := e.source.Proxy().Recent().After(0, 0)
		if s := e.source.Proxy().Recent().Find(r.PathValue("id")); s != nil {
			reply(w, s)
			return
		}
		select {
		case <-more:
			continue
		case <-r.Context().Done():
		case <-patience:
		case <-e.closed:
		}
		http.Error(w, "no decision is kept of this request", http.StatusNotFound)
		return
	}
}

// KeyHeader carries the API key that a request of the playground uses.
const KeyHeader = "X-Signalbox-Console-Key"

// ask sends a chat completion like a client of the main listener. The browser's own headers are not
// forwarded.
func (e *Endpoints) ask(w http.ResponseWriter, r *http.Request) {
	to := r.Clone(recent.Shown(r.Context()))
	to.URL.Path, to.URL.RawPath, to.URL.RawQuery = "/v1/chat/completions", "", ""
	to.Header = http.Header{"Content-Type": {"application/json"}, "User-Agent": {"signalbox-console"}}
	if key := r.Header.Get(KeyHeader); key != "" {
		to.Header.Set("Authorization", "Bearer "+key)
	}
	e.api.ServeHTTP(w, to)
}

// maxText is the largest configuration text that is accepted.
const maxText = 1 << 20

func (e *Endpoints) preview(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxText))
	if err != nil {
		http.Error(w, fmt.Sprintf("the configuration could not be read: %v", err), http.StatusBadRequest)
		return
	}
	reply(w, e.source.Preview(r.Context(), text))
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_ = json.NewEncoder(w).Encode(v) // fails if the client has gone
}
