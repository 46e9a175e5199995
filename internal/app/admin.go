package app

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"signalbox/internal/console"
	"signalbox/internal/option"
	"signalbox/proxy"
	"signalbox/proxy/keyring"
)

// admin serves what operators need and clients must not see. Only what tells of the process is open
// to everyone who reaches the listener; what changes it, or looks into its memory or at requests,
// is for this machine or for the token.
func (a *App) admin() *gate {
	open, guarded := http.NewServeMux(), http.NewServeMux()
	open.Handle("GET /console/{$}", console.Pages())
	open.Handle("GET /console/{file}", console.Pages())
	open.Handle("GET /console", http.RedirectHandler("console/", http.StatusPermanentRedirect))
	open.Handle("GET /{$}", http.RedirectHandler("console/", http.StatusFound))
	live := console.New(consoleSource{a})
	guarded.Handle("/console/api/", live)
	open.Handle("GET /metrics", a.tel.Handler())
	open.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	open.HandleFunc("GET /readyz", a.detail)
	open.Handle("/", guarded)
	guarded.HandleFunc("POST /-/reload", func(w http.ResponseWriter, r *http.Request) {
		if err := a.Reload(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if names := a.waiting(); len(names) > 0 {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			_, _ = io.WriteString(w, "reloaded; these settings require a restart to change: "+
				strings.Join(names, ", ")+"\n")
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	guarded.HandleFunc("GET /-/outcomes", a.exportOutcomes)
	guarded.HandleFunc("DELETE /-/outcomes", a.forgetOutcomes)
	keys := keyring.Handler(a.keys)
	guarded.Handle(keyring.Path, keys)
	guarded.Handle(keyring.Path+"/", keys)
	o := a.cfg.Load().Server
	if o.Pprof {
		guarded.HandleFunc("/debug/pprof/", pprof.Index)
		guarded.HandleFunc("/debug/pprof/profile", pprof.Profile)
		guarded.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		guarded.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	host, _, _ := net.SplitHostPort(o.AdminListen) // was checked
	return &gate{
		open: open, guarded: guarded, live: live, local: option.Loopback(host),
		token: sha256.Sum256([]byte(o.AdminToken)), hasToken: o.AdminToken != "", log: a.tel.Log,
	}
}

// adminServer serves the admin listener. Streams of the console end when it shuts down.
func (a *App) adminServer() *http.Server {
	g := a.admin()
	s := a.server(g)
	s.RegisterOnShutdown(g.live.Close)
	return s
}

// detail tells operators what /readyz of the main listener tells, and why the configuration could
// not be read again.
func (a *App) detail(w http.ResponseWriter, _ *http.Request) {
	ready, d := a.proxy.Ready()
	w.Header().Set("Content-Type", "application/json")
	if !ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	problem, _ := a.problem.Load().(string)
	_ = json.NewEncoder(w).Encode(struct {
		proxy.Detail

		Reload  string   `json:"reload_problem"` // of the last attempt; empty when it went well
		Waiting []string `json:"restart_needed,omitempty"`
	}{d, problem, a.waiting()})
}

// gate stands before the admin listener. It is safe for concurrent use.
type gate struct {
	open, guarded *http.ServeMux
	live          *console.Endpoints
	local         bool // the listener is on loopback
	hasToken      bool
	token         [sha256.Size]byte
	log           *slog.Logger

	wrong atomic.Int64 // tokens that were refused and are not in the log yet
	told  atomic.Int64 // when the log was last written to, in Unix milliseconds
}

// toldEvery is the least time between two lines of the log about tokens that were refused.
const toldEvery = 1000 // milliseconds

// ServeHTTP refuses what a web page could send on behalf of its reader: requests of other origins
// than the console's own (CSRF), and, on loopback, those to a name that leads here by somebody
// else's DNS.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	name := net.ParseIP(strings.Trim(host, "[]")) == nil && host != "localhost"
	if foreign(r) || g.local && name {
		http.Error(w, "requests from web pages are refused", http.StatusForbidden)
		return
	}
	if _, pattern := g.open.Handler(r); pattern == "/" && !g.admits(r) {
		problem := "the admin token (server.admin_token) is required"
		if g.hasToken && r.Header.Get("Authorization") != "" {
			problem += ": a different token was sent"
			g.logWrong(r)
		}
		http.Error(w, problem, http.StatusForbidden)
		return
	}
	g.open.ServeHTTP(w, r)
}

// logWrong writes to the log that tokens were refused, with where the last came from.
func (g *gate) logWrong(r *http.Request) {
	n, now, last := g.wrong.Add(1), time.Now().UnixMilli(), g.told.Load()
	if now-last < toldEvery || !g.told.CompareAndSwap(last, now) {
		return
	}
	g.wrong.Add(-n)
	g.log.WarnContext(r.Context(), "invalid token for the admin listener refused", slog.String("remote", r.RemoteAddr),
		slog.String("path", r.URL.Path), slog.Int64("times", n))
}

// foreign reports whether a web page of another origin sent a request, as far as the browser tells
// (Fetch, section 3.2; Fetch Metadata, section 2.4).
func foreign(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
	default:
		return true
	}
	origins := r.Header["Origin"]
	if len(origins) == 0 {
		return false
	}
	at, err := url.Parse(origins[0])
	web := err == nil && (at.Scheme == "http" || at.Scheme == "https")
	return len(origins) > 1 || !web || !strings.EqualFold(at.Host, r.Host)
}

// admits reports whether a request may change the process: with the token where there is one, else
// from a loopback listener.
func (g *gate) admits(r *http.Request) bool {
	if !g.hasToken {
		return g.local
	}
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	sum := sha256.Sum256([]byte(token))
	return ok && subtle.ConstantTimeCompare(sum[:], g.token[:]) == 1
}
