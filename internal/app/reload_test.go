package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/config"
	"signalbox/proxy/decisionlog"
)

// thinking is how long the model server of these tests takes: requests are under way while the
// configuration changes, and 200 of them leave the machine time to read it.
const thinking = 100 * time.Millisecond

// echo is a model server that answers with what it was asked, so that a test sees what reached it.
func echo(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		think := time.NewTimer(thinking)
		defer think.Stop()
		select {
		case <-think.C:
		case <-r.Context().Done():
			return
		}
		seen, _ := json.Marshal(map[string]any{"body": json.RawMessage(body), "team": r.Header.Get("X-Team"), "host": r.Host})
		if strings.Contains(string(body), `"stream":true`) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = fmt.Fprintf(w, "data: %s\n\ndata: [DONE]\n\n", seen)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(seen)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// generation is a configuration in which everything carries one word: the route, the models and
// their endpoints, the prompt, the limit, what is set upstream, and the keyword that leads to all
// of it. Only the name of the keyword set, of one model and of the prompt are the same in all
// generations, so that an answer which took any of them from another generation shows.
//
// The client opens connections that it comes to use later, or never. One that the server closes for
// its silence while a request goes out on it costs that request, for a POST is not sent again.
func generation(word, backend, log string, limit int) string {
	return fmt.Sprintf(`
server: {connect_timeout: 60s, read_header_timeout: 1h} # a busy machine with the race detector is no slow network
models:
  - name: model-%[1]s
    served_as: org/%[1]s
    endpoints: [{name: endpoint-%[1]s, url: "%[2]s/v1"}]
    health: {path: "off"}
  - name: shared
    served_as: org/shared-%[1]s
    endpoints: [{name: shared-%[1]s, url: "%[2]s/v1"}]
    health: {path: "off"}
signals: {keywords: [{name: topic, any: ["word %[1]s"]}]}
prompts: [{name: role, text: "You speak for %[1]s."}]
routes:
  - name: route-%[1]s
    when: {all: [{keyword: topic}, {header: {name: X-Want, equals: own}}]}
    use: {models: [model-%[1]s], prompt: {name: role, mode: always}, max_tokens: %[4]d, set: {headers: {X-Team: %[1]s}, body: {label: %[1]s}}}
  - name: common
    when: {keyword: topic}
    use: {models: [shared], prompt: {name: role, mode: always}, max_tokens: %[4]d, set: {headers: {X-Team: %[1]s}, body: {label: %[1]s}}}
default: {models: [shared]}
telemetry: {log: error, decisions: {file: %[3]q}}
`, word, backend, log, limit)
}

// told is everything that an answer tells of the configuration that made it.
type told struct {
	Route, Model, Endpoint, Served, Prompt, Team, Label string
	Limit                                               int
}

func wanted(word string, limit int, own bool) told { //nolint:revive // own chooses the route that is asked for
	if own {
		return told{"route-" + word, "model-" + word, "endpoint-" + word, "org/" + word, "You speak for " + word + ".", word, word, limit}
	}
	return told{"common", "shared", "shared-" + word, "org/shared-" + word, "You speak for " + word + ".", word, word, limit}
}

func tell(h http.Header, body string) (told, error) {
	if s, ok := strings.CutPrefix(body, "data: "); ok {
		body, _, ok = strings.Cut(s, "\n\n")
		if !ok || !strings.HasSuffix(s, "data: [DONE]\n\n") {
			return told{}, fmt.Errorf("the stream is not whole: %q", s)
		}
	}
	var seen struct {
		Team string
		Body struct {
			Model     string
			Label     string
			MaxTokens int `json:"max_tokens"`
			Messages  []struct{ Role, Content string }
		}
	}
	if err := json.Unmarshal([]byte(body), &seen); err != nil {
		return told{}, fmt.Errorf("%w: %s", err, body)
	}
	out := told{
		Route: h.Get("X-Signalbox-Route"), Model: h.Get("X-Signalbox-Model"), Endpoint: h.Get("X-Signalbox-Endpoint"),
		Served: seen.Body.Model, Team: seen.Team, Label: seen.Body.Label, Limit: seen.Body.MaxTokens,
	}
	if len(seen.Body.Messages) > 0 {
		out.Prompt = seen.Body.Messages[0].Content
	}
	return out, nil
}

// flood sends requests from many clients, three a turn each, until it is over, and checks every
// answer.
type flood struct {
	t      *testing.T
	url    string
	client *http.Client
	limits map[string]int // of each generation
	count  map[string]*atomic.Int64
	pace   *pacer
}

// one sends one request whose text has the words of all generations.
func (f *flood) one(ctx context.Context, n int) {
	own, want := n%2 == 0, "none"
	if own {
		want = "own"
	}
	body := fmt.Sprintf(`{"model":"auto","stream":%v,"messages":[{"role":"user","content":"word amber, word blue"}]}`, n%3 == 0)
	var conn httptrace.GotConnInfo
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { conn = i }})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		f.t.Error(err)
		return
	}
	req.Header.Set("X-Want", want)
	resp, err := f.client.Do(req)
	if err != nil {
		f.t.Errorf("a request failed: %v (connection reused: %v, idle before: %s)", err, conn.Reused, conn.IdleTime)
		return
	}
	b, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil || resp.StatusCode != http.StatusOK {
		f.t.Errorf("a request failed: status %d, %v: %.300s", resp.StatusCode, err, b)
		return
	}
	got, err := tell(resp.Header, string(b))
	if err != nil {
		f.t.Error(err)
		return
	}
	limit, known := f.limits[got.Team]
	if !known {
		f.t.Errorf("an answer of no generation: %+v", got)
		return
	}
	if diff := cmp.Diff(wanted(got.Team, limit, own), got); diff != "" {
		f.t.Errorf("an answer that mixes two configurations (-one of %s +got):\n%s", got.Team, diff)
		return
	}
	f.count[got.Team].Add(1)
}

// run has clients send three requests each turn.
func (f *flood) run(ctx context.Context, clients int) *sync.WaitGroup {
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			for n := i; ; {
				next := f.pace.upcoming()
				for range 3 {
					f.one(ctx, n)
					n++
				}
				select {
				case <-next:
				case <-f.pace.over:
					return
				case <-ctx.Done():
					return
				}
			}
		})
	}
	return &wg
}

// TestReloadUnderLoadMixesNothing reloads the configuration again and again while 200 clients send
// requests. No request may fail, and each is answered by one configuration: what its headers tell
// and what reached the model all comes from the same file.
func TestReloadUnderLoadMixesNothing(t *testing.T) {
	const clients, reloads = 200, 12
	backend, dir := echo(t), t.TempDir()
	file, log := filepath.Join(dir, "config.yaml"), filepath.Join(dir, "decisions.jsonl")
	limits := map[string]int{"amber": 111, "blue": 222}
	install := func(word string) {
		if err := os.WriteFile(file+".new", []byte(generation(word, backend, log, limits[word])), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	install("amber")
	cfg, _, err := config.Load(file, os.LookupEnv, Catalog)
	if err != nil {
		t.Fatal(err)
	}
	var routes sync.Map // of each configuration, by its fingerprint
	routes.Store(cfg.Fingerprint, "amber")
	f := &flood{t: t, limits: limits, count: map[string]*atomic.Int64{"amber": {}, "blue": {}}, pace: newPacer()}
	t.Cleanup(func() { f.checkLog(log, &routes) }) // after the server has ended
	s := serve(t, cfg, flags(t))
	transport := &http.Transport{MaxIdleConnsPerHost: clients}
	defer transport.CloseIdleConnections()
	t.Cleanup(f.pace.end)
	f.url, f.client = s.url, &http.Client{Transport: transport}
	wg := f.run(t.Context(), clients)
	for i := range reloads {
		word := []string{"blue", "amber"}[i%2]
		install(word)
		before := f.count[word].Load()
		f.pace.turn()
		if got := do(t, http.MethodPost, s.admin+"/-/reload", ""); got.status != http.StatusNoContent {
			t.Errorf("reload: %d %s", got.status, got.body)
		}
		routes.Store(s.app.cfg.Load().Fingerprint, word)
		for f.count[word].Load() == before && !t.Failed() { // until the new configuration has answered
			f.one(t.Context(), i)
		}
	}
	f.pace.end()
	wg.Wait()
	amber, blue := f.count["amber"].Load(), f.count["blue"].Load()
	t.Logf("%d reloads, %d answers of one configuration, %d of the other", reloads, amber, blue)
	if amber+blue < clients+reloads || amber == 0 || blue == 0 {
		t.Errorf("%d and %d answers are too few to show anything", amber, blue)
	}
}

// checkLog reads the decision log, whose lines must tell of one configuration each as well.
func (f *flood) checkLog(log string, routes *sync.Map) {
	f.t.Helper()
	b, err := os.ReadFile(log)
	if err != nil {
		f.t.Fatal(err)
	}
	n := int64(0)
	for line := range strings.Lines(string(b)) {
		l, err := decisionlog.Parse([]byte(line))
		if err != nil {
			f.t.Fatalf("%s: %v", line, err)
		}
		n++
		word, ok := routes.Load(l.Config)
		if !ok || l.Route != "common" && l.Route != "route-"+word.(string) || !strings.HasSuffix(l.Endpoint, "-"+word.(string)) {
			f.t.Fatalf("a line that mixes two configurations (%v): %s", word, line)
		}
	}
	// A busy machine may drop lines, which the log counts; it never has one too many.
	if answers := f.count["amber"].Load() + f.count["blue"].Load(); n == 0 || n > answers {
		f.t.Errorf("%d lines for %d answers", n, answers)
	}
}

// TestReloadsCutNoStreams reloads a hundred times. At each reload 400 streams are open, of which
// each lasts for up to twenty reloads, and eight short requests are under way. The streams go on
// once a reload, in turn beside it and behind it, and twenty of them end: how much there is to do
// does not depend on how fast the machine is.
func TestReloadsCutNoStreams(t *testing.T) {
	const streams, short, reloads = 400, 8, 100
	p := newPacer()
	// A busy machine is no reload: nothing is given up for being slow.
	text := fmt.Sprintf("server: {first_byte_timeout: 0, gap_timeout: 0, answer_timeout: 0, connect_timeout: 3m, read_header_timeout: 1h}\n"+
		"models: [{name: m, endpoints: [{name: a, url: '%s/v1'}], health: {path: 'off'}}]\n"+
		"default: {models: [m]}\n", pacing(t, p, streams, 20))
	cfg := written(t, text)
	s := serve(t, cfg, config.Settings{})
	tr := &http.Transport{MaxIdleConnsPerHost: streams}
	defer tr.CloseIdleConnections()
	c := &http.Client{Transport: tr}
	patient, cancel := context.WithTimeoutCause(t.Context(), 30*time.Minute, errors.New("a stream stands still"))
	defer cancel()
	ctx, lost := context.WithCancelCause(patient)
	var long atomic.Int64
	var wg sync.WaitGroup
	ask := func(stream bool) {
		if err := whole(ctx, c, s.url, stream); err != nil {
			lost(err)
		}
	}
	for range streams {
		wg.Go(func() {
			for ctx.Err() == nil {
				ask(true)
				long.Add(1)
				select {
				case <-p.over:
					return
				default:
				}
			}
		})
	}
	for i := range reloads {
		for range streams {
			select {
			case <-p.arrived:
			case <-ctx.Done():
			}
		}
		if ctx.Err() != nil {
			break
		}
		next := text + fmt.Sprintf("prompts: [{name: p, text: 'generation %d'}]\n", i)
		if err := os.WriteFile(cfg.File, []byte(next), 0o600); err != nil {
			t.Fatal(err)
		}
		var beside sync.WaitGroup
		for range short {
			beside.Go(func() { ask(false) })
		}
		if i%2 == 0 {
			beside.Go(p.turn)
		}
		if err := s.app.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		beside.Wait()
		if i%2 != 0 {
			p.turn()
		}
	}
	p.end()
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		t.Fatalf("lost: %v", err)
	}
	t.Logf("%d reloads under %d streams: %d streams and %d short requests, none lost",
		reloads, streams, long.Load(), short*reloads)
}
