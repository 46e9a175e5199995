// Package modelserver identifies a model server by its responses: the program, the models it
// serves, and the length of their contexts. It recognises vLLM, SGLang, llama.cpp, Ollama and Text
// Generation Inference; every other server with a list of models counts as OpenAI-compatible.
//
// It is meant for interactive commands, not for the request path. It starts no goroutines.
// Responses of servers are limited in size and untrusted: they are used for output only.
package modelserver

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Kind is the program that a server runs.
type Kind string

// The kinds that are recognised.
const (
	VLLM      Kind = "vLLM"
	SGLang    Kind = "SGLang"
	LlamaCPP  Kind = "llama.cpp"
	Ollama    Kind = "Ollama"
	TGI       Kind = "TGI"
	Signalbox Kind = "signalbox"
	Other     Kind = "OpenAI-compatible"
)

// Server is the description of a server.
type Server struct {
	// Base is the base URL of the API, such as http://10.0.0.11:8000/v1.
	Base string
	Kind Kind
	// Version is the version that the server reports; empty if it reports none.
	Version string
	Models  []Model
	// Asleep reports that the server sleeps or is paused, and answers no request until it is woken
	// up.
	Asleep bool
	// Metrics reports that the server has vLLM-compatible load metrics at /metrics.
	Metrics bool
	// Clock is the offset of the server's clock from this machine's, in whole seconds, positive if
	// it is ahead; 0 if the server does not report the time.
	Clock time.Duration
}

// Model is one model of a server.
type Model struct {
	// ID is the name in requests.
	ID string
	// Window is the context window in tokens that the server is configured with; 0 if unknown.
	Window int
	// Embedding reports that the model computes embeddings and does not chat.
	Embedding bool
	// Thinking is the dialect that switches the model's reasoning, as in the configuration
	// (models[].reasoning.dialect); empty if unknown.
	Thinking string
}

// The reasons why a server cannot be identified.
var (
	// ErrUnreachable reports that the address does not respond.
	ErrUnreachable = errors.New("no response")
	// ErrScheme reports an address with another scheme than http and https.
	ErrScheme = errors.New("only http and https are spoken, not")
	// ErrOtherScheme reports a server that speaks https at an http address, or http at an https one.
	ErrOtherScheme = errors.New("the address has the wrong scheme")
	// ErrKey reports that the server requires a key, or rejects the given one.
	ErrKey = errors.New("the key was refused")
	// ErrNotReady reports a server that is still loading its model.
	ErrNotReady = errors.New("the server is not ready yet")
	// ErrNoModels reports a server without a list of models, which has no OpenAI-compatible API.
	ErrNoModels = errors.New("no list of models")
)

// longest limits the size of a response, in bytes.
const longest = 1 << 20

// asker queries one server.
type asker struct {
	client *http.Client
	bearer string
	root   url.URL // of the server, without the path of its API
}

// answer is a response of the server.
type answer struct {
	status int
	header http.Header
	body   []byte
	at     time.Time // time of arrival
}

// Look identifies a server. address is its URL, with or without the path of its API (/v1); key is
// sent as a bearer token unless it is empty. Errors wrap one of the errors of this package. It
// stops when ctx ends; client limits a single request.
func Look(ctx context.Context, client *http.Client, address, key string) (*Server, error) {
	given, err := parse(address)
	if err != nil {
		return nil, err
	}
	a := &asker{client: client, root: *given}
	a.root.Path = "/"
	if key != "" {
		a.bearer = "Bearer " + key
	}
	bases := []string{given.Path}
	if !strings.HasSuffix(given.Path, "/v1") {
		bases = []string{given.Path + "/v1", given.Path}
	}
	base, list, got, err := a.list(ctx, bases)
	if err != nil {
		return nil, err
	}
	s := &Server{Base: base}
	if at, err := http.ParseTime(got.header.Get("Date")); err == nil {
		// The header has whole seconds, rounded down.
		if d := at.Add(time.Second / 2).Sub(got.at).Round(time.Second); d.Abs() > time.Second {
			s.Clock = d
		}
	}
	a.identify(ctx, s, list, got)
	return s, nil
}

// Ask requests only the list of models at the base of an API; the result has no information beyond
// that list. Errors and limits are those of Look.
func Ask(ctx context.Context, client *http.Client, base, key string) (*Server, error) {
	given, err := parse(base)
	if err != nil {
		return nil, err
	}
	a := &asker{client: client, root: *given}
	if key != "" {
		a.bearer = "Bearer " + key
	}
	at, list, got, err := a.list(ctx, []string{given.Path})
	if err != nil {
		return nil, err
	}
	s := &Server{Base: at}
	switch owner := s.name(list); {
	case owner == "llamacpp" || got.header.Get("Server") == "llama.cpp":
		s.Kind = LlamaCPP
	case owner == "vllm":
		s.Kind = VLLM
	case owner == "sglang":
		s.Kind = SGLang
	case owner == "library":
		s.Kind = Ollama
	case owner == "signalbox":
		s.Kind = Signalbox
	default:
		s.Kind = Other
	}
	return s, nil
}

// Find returns the index in Models of the model that requests name id, or -1. Ollama adds a default
// tag, and Gemini lists its models with a path prefix that it omits elsewhere.
func (s *Server) Find(id string) int {
	return slices.IndexFunc(s.Models, func(m Model) bool {
		return m.ID == id || m.ID == id+":latest" || m.ID == "models/"+id
	})
}

// Names lists the models in one line.
func (s *Server) Names() string {
	ids := make([]string, len(s.Models))
	for i := range s.Models {
		ids[i] = s.Models[i].ID
	}
	return strings.Join(ids, ", ")
}

func parse(address string) (*url.URL, error) {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err == nil && u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%w %s", ErrScheme, u.Scheme)
	}
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("%w: %q is no URL of a server, such as http://10.0.0.11:8000/v1",
			ErrUnreachable, address)
	}
	if u.User != nil {
		return nil, fmt.Errorf("%w: the URL holds a user name; servers take a key", ErrUnreachable)
	}
	u.RawQuery, u.Fragment = "", ""
	u.Path = strings.TrimSuffix(u.Path, "/")
	return u, nil
}

// models is a list of models with the fields of all kinds of servers.
type models struct {
	Object string   `json:"object"`
	Data   []listed `json:"data"`
}

type listed struct {
	ID       string `json:"id"`
	OwnedBy  string `json:"owned_by"`
	Window   int    `json:"max_model_len"`  // vLLM, SGLang
	Context  int    `json:"context_length"` // some hosted APIs
	LlamaCPP struct {
		Window int `json:"n_ctx"`
	} `json:"meta"`
}

// read decodes a response and reports whether it is a list. Some hosted APIs send the list without
// an enclosing object.
func (m *models) read(body []byte) bool {
	if json.Unmarshal(body, &m.Data) == nil && m.Data != nil {
		return true
	}
	return json.Unmarshal(body, m) == nil && (m.Object == "list" || len(m.Data) > 0)
}

// list requests the list of models at several paths and uses the first one found.
func (a *asker) list(ctx context.Context, bases []string) (string, *models, *answer, error) {
	var worst error
	for _, path := range bases {
		got, err := a.get(ctx, path+"/models")
		if err != nil || got.status == http.StatusBadRequest || got.status == http.StatusBadGateway && a.proxy() != nil {
			if other := a.otherScheme(ctx, err); other != nil {
				return "", nil, nil, other
			}
		}
		if err != nil {
			return "", nil, nil, err
		}
		base := a.root
		base.Path = path
		switch {
		case got.status == http.StatusUnauthorized || got.status == http.StatusForbidden:
			return "", nil, nil, fmt.Errorf("%w: %s/models answered %d", ErrKey, base.String(), got.status)
		case got.status >= http.StatusInternalServerError:
			return "", nil, nil, fmt.Errorf("%w: %s/models answered %d", ErrNotReady, base.String(), got.status)
		case got.status != http.StatusOK:
			worst = cmp.Or(worst, fmt.Errorf("%w: %s/models answered %d", ErrNoModels, base.String(), got.status))
			continue
		}
		list := &models{}
		if !list.read(got.body) {
			worst = cmp.Or(worst, fmt.Errorf("%w: what %s/models answered is none", ErrNoModels, base.String()))
			continue
		}
		return base.String(), list, got, nil
	}
	return "", nil, nil, worst
}

// otherScheme reports that the server seems to speak http where the address says https, or the
// reverse, judging by a failed request, with or without an error.
func (a *asker) otherScheme(ctx context.Context, err error) error {
	if errors.Is(err, http.ErrSchemeMismatch) {
		return fmt.Errorf("%w: the server at %s speaks http, the URL says https", ErrOtherScheme, a.root.Host)
	}
	if a.root.Scheme != "http" || a.root.Port() == "" || errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	if !a.speaksTLS(ctx) {
		return nil
	}
	return fmt.Errorf("%w: the server at %s speaks https, the URL says http", ErrOtherScheme, a.root.Host)
}

// speaksTLS reports whether the server completes a TLS handshake, on the path that the client uses,
// through a proxy if it has one. Nothing is sent after the handshake.
func (a *asker) speaksTLS(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(a.client.Timeout, time.Minute))
	defer cancel()
	proxy, missing := a.proxy(), new(atomic.Int32) // handshakes
	if missing.Store(1); proxy != nil && proxy.Scheme == "https" {
		missing.Store(2)
	}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		TLSHandshakeDone: func(_ tls.ConnectionState, err error) {
			if err == nil && missing.Add(-1) == 0 {
				cancel()
			}
		},
	})
	at := a.root
	at.Scheme, at.Path = "https", "/"
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, at.String(), http.NoBody)
	if err != nil {
		return false
	}
	way := &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // nothing is sent
		Proxy:             http.ProxyURL(proxy),
		DisableKeepAlives: true,
	}
	defer way.CloseIdleConnections()
	if res, err := way.RoundTrip(req); err == nil {
		_ = res.Body.Close()
	}
	return missing.Load() == 0
}

// proxy returns the proxy between the client and the server; nil for none.
func (a *asker) proxy() *url.URL {
	//nolint:forbidigo // it is what a client without one goes by
	way, ok := cmp.Or(a.client.Transport, http.DefaultTransport).(*http.Transport)
	if !ok || way.Proxy == nil {
		return nil
	}
	at := a.root
	u, err := way.Proxy(&http.Request{URL: &at})
	if err != nil {
		return nil
	}
	return u
}

// get requests one page of the server; any status is a valid response.
func (a *asker) get(ctx context.Context, path string) (*answer, error) {
	return a.ask(ctx, http.MethodGet, path, nil)
}

func (a *asker) ask(ctx context.Context, method, path string, body []byte) (*answer, error) {
	at := a.root
	at.Path = path
	req, err := http.NewRequestWithContext(ctx, method, at.String(), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	if a.bearer != "" {
		req.Header.Set("Authorization", a.bearer)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := a.client.Do(req)
	if err != nil {
		if short := (*url.Error)(nil); errors.As(err, &short) { // the caller knows the URL
			err = short.Err
		}
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	defer func() { _ = res.Body.Close() }()
	got, err := io.ReadAll(io.LimitReader(res.Body, longest))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return &answer{res.StatusCode, res.Header, got, time.Now()}, nil
}

// read requests a page in JSON and reports whether the server has it.
func (a *asker) read(ctx context.Context, path string, into any) bool {
	got, err := a.get(ctx, path)
	return err == nil && got.status == http.StatusOK && json.Unmarshal(got.body, into) == nil
}
