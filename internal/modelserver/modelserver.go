// Package modelserver finds out what a model server is by asking it: which program it runs, which
// models it serves, and how long their contexts are. It tells vLLM, SGLang, llama.cpp, Ollama and
// Text Generation Inference apart; every other server with a list of models is an OpenAI-compatible
// one.
//
// It is for a person who waits at a terminal, not for the request path. Nothing here starts
// goroutines, and what a server answers is bounded and believed no further than it is printed.
package modelserver

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
	"strings"
	"time"
)

// Kind is the program that a server runs.
type Kind string

// The kinds that are told apart.
const (
	VLLM      Kind = "vLLM"
	SGLang    Kind = "SGLang"
	LlamaCPP  Kind = "llama.cpp"
	Ollama    Kind = "Ollama"
	TGI       Kind = "TGI"
	Signalbox Kind = "signalbox"
	Other     Kind = "OpenAI-compatible"
)

// Server is what a server tells of itself.
type Server struct {
	// Base is where its API is, such as http://10.0.0.11:8000/v1.
	Base string
	Kind Kind
	// Version is what it calls its version; empty where it does not tell.
	Version string
	Models  []Model
	// Asleep: it sleeps or is paused, and answers no request until it is woken up.
	Asleep bool
	// Metrics: it tells its load at /metrics in vLLM's words.
	Metrics bool
	// Clock is by how much its clock is ahead of this machine's, to the second; 0 where it does not
	// tell the time.
	Clock time.Duration
}

// Model is one model of a server.
type Model struct {
	// ID is what requests call it.
	ID string
	// Window is its context window in tokens as the server runs it; 0 where it does not tell.
	Window int
	// Embedding: it makes vectors and answers no chat.
	Embedding bool
	// Thinking is how a request turns its reasoning on and off, in a word of the product's
	// configuration (models[].reasoning.dialect); empty where that is not known.
	Thinking string
}

// The reasons why a server cannot be looked at.
var (
	// ErrUnreachable reports that nothing answers at the address.
	ErrUnreachable = errors.New("nothing answers")
	// ErrScheme reports an address of another kind than http and https.
	ErrScheme = errors.New("only http and https are spoken, not")
	// ErrKey reports that the server wants another key, or one at all.
	ErrKey = errors.New("the key was refused")
	// ErrNotReady reports a server that is still loading its model.
	ErrNotReady = errors.New("the server is not ready yet")
	// ErrNoModels reports a server that has no list of models: no OpenAI-compatible API is there.
	ErrNoModels = errors.New("no list of models")
)

// longest bounds what is read of one answer, in bytes.
const longest = 1 << 20

// asker asks one server.
type asker struct {
	client *http.Client
	bearer string
	root   url.URL // of the server, without the path of its API
}

// answer is what a server said.
type answer struct {
	status int
	header http.Header
	body   []byte
	at     time.Time // when it had come
}

// Look asks a server what it is. address is its URL, with or without the path of its API (/v1); key
// is sent as a bearer token unless it is empty. Errors wrap one of those of this package. It stops
// with ctx; client bounds a single request.
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
	base, list, got, err := a.list(ctx, given)
	if err != nil {
		return nil, err
	}
	s := &Server{Base: base}
	if at, err := http.ParseTime(got.header.Get("Date")); err == nil {
		// The header has whole seconds, cut off.
		if d := at.Add(time.Second / 2).Sub(got.at).Round(time.Second); d.Abs() > time.Second {
			s.Clock = d
		}
	}
	a.identify(ctx, s, list, got)
	return s, nil
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

// models is a list of models in the words of all servers.
type models struct {
	Object string `json:"object"`
	Data   []struct {
		ID       string `json:"id"`
		OwnedBy  string `json:"owned_by"`
		Window   int    `json:"max_model_len"`  // vLLM, SGLang
		Context  int    `json:"context_length"` // some hosted APIs
		LlamaCPP struct {
			Window int `json:"n_ctx"`
		} `json:"meta"`
	} `json:"data"`
}

// list finds the list of models: below the address as it was given, or below /v1 where that is
// missing.
func (a *asker) list(ctx context.Context, given *url.URL) (string, *models, *answer, error) {
	bases := []string{given.Path}
	if !strings.HasSuffix(given.Path, "/v1") {
		bases = []string{given.Path + "/v1", given.Path}
	}
	var worst error
	for _, path := range bases {
		got, err := a.get(ctx, path+"/models")
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
		if json.Unmarshal(got.body, list) != nil || list.Object != "list" && len(list.Data) == 0 {
			worst = cmp.Or(worst, fmt.Errorf("%w: what %s/models answered is none", ErrNoModels, base.String()))
			continue
		}
		return base.String(), list, got, nil
	}
	return "", nil, nil, worst
}

// get asks for one page of the server; any status is an answer.
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
		if short := (*url.Error)(nil); errors.As(err, &short) { // whoever asks knows the URL
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

// read asks for a page in JSON and reports whether the server has it.
func (a *asker) read(ctx context.Context, path string, into any) bool {
	got, err := a.get(ctx, path)
	return err == nil && got.status == http.StatusOK && json.Unmarshal(got.body, into) == nil
}
