package app

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"signalbox/internal/config"
	"signalbox/internal/console"
	"signalbox/internal/testkit"
	placing "signalbox/proxy/placement"
	"signalbox/proxy/recent"
)

// read decodes what an endpoint of the console answers.
func read[T any](t *testing.T, a answer) *T {
	t.Helper()
	var out T
	if a.status != http.StatusOK {
		t.Fatalf("status %d with %s", a.status, a.body)
	}
	if err := json.Unmarshal([]byte(a.body), &out); err != nil {
		t.Fatalf("%v: %s", err, a.body)
	}
	return &out
}

// stream reads decisions as the console does.
type stream struct {
	*testing.T

	lines *bufio.Scanner
}

func (s *server) stream(t *testing.T, query string) *stream {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.admin+"/console/api/live"+query, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	if res.StatusCode != http.StatusOK {
		t.Fatalf("status %d", res.StatusCode)
	}
	return &stream{t, bufio.NewScanner(res.Body)}
}

// next returns the decisions of the next line; false at the end.
func (s *stream) next() (*console.Line, bool) {
	s.Helper()
	if !s.lines.Scan() {
		return nil, false
	}
	var out console.Line
	if err := json.Unmarshal(s.lines.Bytes(), &out); err != nil {
		s.Fatalf("%v: %s", err, s.lines.Text())
	}
	return &out, true
}

// decisions collects n decisions.
func (s *stream) decisions(n int) (all []*recent.Seen) {
	s.Helper()
	for len(all) < n {
		line, ok := s.next()
		if !ok {
			s.Fatalf("the stream ends after %d decisions", len(all))
		}
		all = append(all, line.Decisions...)
	}
	return all
}

func TestDecisionsAreStreamedAsTheyAreMade(t *testing.T) {
	t.Parallel()
	s := serve(t, configure(t, "routes: [{name: staff, when: {role: staff}, use: {models: [m]}}]\n"), config.Settings{})
	live := s.stream(t, "")
	if line, ok := live.next(); !ok || len(line.Decisions) != 0 {
		t.Fatalf("before any request: %+v, %v", line, ok)
	}
	s.post(t, "/v1/chat/completions", chat("auto", "a secret thing"), "X-Request-Id", "r-1")
	first := live.decisions(1)[0]
	if d := first.Decision; d.ID != "r-1" || d.Model != "m" || d.Status != http.StatusOK || d.Prompt != nil {
		t.Errorf("the first: %+v", d)
	}
	s.post(t, "/v1/chat/completions", chat("auto", "another"), "X-Request-Id", "r-2")
	if d := live.decisions(1)[0].Decision; d.ID != "r-2" {
		t.Errorf("the second: %+v", d)
	}
	if late := s.stream(t, "?after=1").decisions(1); late[0].Decision.ID != "r-2" {
		t.Errorf("behind the first: %+v", late[0].Decision)
	}
	a := do(t, http.MethodGet, s.admin+"/console/api/decisions/r-1", "")
	if one := read[recent.Seen](
		t,
		a,
	); len(one.Routes) != 1 || one.Routes[0].Name != "staff" ||
		one.Routes[0].Tree.Value != "false" {
		t.Errorf("opened: %+v", one.Routes)
	}
	if strings.Contains(a.body, "secret thing") {
		t.Errorf("the text of a request is shown: %s", a.body)
	}
	if a := do(t, http.MethodGet, s.admin+"/console/api/decisions/r-none", ""); a.status != http.StatusNotFound {
		t.Errorf("one that is not: %d %s", a.status, a.body)
	}
	if a := do(t, http.MethodGet, s.admin+"/console/api/live?after=x", ""); a.status != http.StatusBadRequest {
		t.Errorf("a bad place: %d %s", a.status, a.body)
	}
}

func TestPrefixesAndConversationsAreListed(t *testing.T) {
	t.Parallel()
	s := serve(t, configure(t, ""), config.Settings{})
	body := chat("auto", "a secret thing "+strings.Repeat("and so on ", 500))
	for range 2 {
		s.post(t, "/v1/chat/completions", body, "X-Request-Id", "r-1", "X-Signalbox-Session", "my-name")
	}
	s.stream(t, "").decisions(2)
	held := do(t, http.MethodGet, s.admin+"/console/api/prefixes?model=m&endpoint=a", "")
	if list := *read[[]placing.HeldPrefix](t, held); len(list) != 1 || list[0].By != "session" || list[0].ID != "r-1" {
		t.Errorf("prefixes: %s", held.body)
	}
	talks := do(t, http.MethodGet, s.admin+"/console/api/conversations", "")
	if list := *read[[]recent.Followed](t, talks); len(list) != 1 || list[0].Kept != 1 || !list[0].Named {
		t.Errorf("conversations: %s", talks.body)
	}
	if all := held.body + talks.body; strings.Contains(all, "secret") || strings.Contains(all, "my-name") {
		t.Errorf("what clients say is shown: %s", all)
	}
	if a := do(t, http.MethodGet, s.admin+"/console/api/prefixes?model=m&endpoint=none", ""); a.status != http.StatusNotFound {
		t.Errorf("of no endpoint: %d %s", a.status, a.body)
	}
}

func TestTextOfRequestsIsShownWhereItIsRecorded(t *testing.T) {
	t.Parallel()
	s := serve(t, configure(t, "telemetry: {record_prompts: true}\n"), config.Settings{})
	s.post(t, "/v1/chat/completions", chat("auto", "shown to operators"), "X-Request-Id", "r-1")
	if d := s.stream(t, "").decisions(1)[0].Decision; d.Prompt == nil || d.Prompt.LastUser != "shown to operators" {
		t.Errorf("in the stream: %+v", d)
	}
	if !read[console.Overview](t, do(t, http.MethodGet, s.admin+"/console/api/overview", "")).Prompts {
		t.Error("the overview does not say so")
	}
}

// A stream that is read must not keep a process from ending.
func TestAReadStreamEndsWithTheProcess(t *testing.T) {
	var live *stream
	t.Run("process", func(inner *testing.T) {
		s := serve(inner, configure(inner, "server: {drain_delay: 1s, drain_timeout: 20s}\n"), config.Settings{})
		live = s.stream(t, "")
		if _, ok := live.next(); !ok {
			inner.Fatal("no stream")
		}
	}) // fails where it takes longer than drain_timeout
	if live == nil {
		return
	}
	if _, ok := live.next(); ok {
		t.Error("the stream goes on")
	}
}

func TestThePlaygroundAsksAsAClient(t *testing.T) {
	t.Parallel()
	var seen atomic.Pointer[http.Header]
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Store(&r.Header)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write(
			[]byte(
				"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"}," +
					"\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
			),
		)
	}))
	t.Cleanup(up.Close)
	secret := func(name, value string) string {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	cfg := configure(
		t,
		fmt.Sprintf(
			"auth: {mode: keys, keys: [{name: k, sha256: %x, tenant: acme}]}\nserver: {admin_token: 'file:%s'}\n",
			sha256.Sum256([]byte("sk-of-a-client-0123456789")),
			secret("token", "the-admin-token"),
		),
	)
	cfg.Models[0].Endpoints[0].URL = up.URL + "/v1"
	s := serve(t, cfg, config.Settings{})
	const body = `{"model":"auto","stream":true,"messages":[{"role":"user","content":"hello"}]}`
	ask := func(headers ...string) answer {
		return do(
			t,
			http.MethodPost,
			s.admin+"/console/api/ask?x=1",
			body,
			append(headers, "Authorization", "Bearer the-admin-token", "Cookie", "a=b", "Origin", s.admin)...)
	}
	if a := ask(); a.status != http.StatusUnauthorized || !strings.Contains(a.body, "invalid_api_key") {
		t.Errorf("without a key of the API: %d %s", a.status, a.body)
	}
	a := ask(console.KeyHeader, "sk-of-a-client-0123456789")
	if a.status != http.StatusOK || !strings.Contains(a.body, "[DONE]") ||
		a.header.Get("X-Signalbox-Route") != "default" {
		t.Fatalf("status %d, %v: %s", a.status, a.header, a.body)
	}
	for name, values := range *seen.Load() {
		if text := strings.Join(
			values,
			" ",
		); strings.Contains(text, "token") || name == "Cookie" || name == "Origin" ||
			strings.Contains(text, "sk-of") {
			t.Errorf("the model server got %s: %s", name, text)
		}
	}
	at := s.admin + "/console/api/decisions/" + a.header.Get("X-Request-Id")
	if d := read[recent.Seen](
		t,
		do(t, http.MethodGet, at, "", "Authorization", "Bearer the-admin-token"),
	).Decision; d.Request.Tenant != "acme" {
		t.Errorf("the decision: %+v", d)
	}
}

func TestAChangeOfTheConfigurationIsPreviewed(t *testing.T) {
	t.Parallel()
	cfg := configure(t, "")
	s := serve(t, cfg, config.Settings{})
	get := func() *console.Configuration {
		return read[console.Configuration](t, do(t, http.MethodGet, s.admin+"/console/api/configuration", ""))
	}
	before := get()
	if before.File != cfg.File || before.Generation != 1 || before.Disk != nil ||
		!strings.Contains(before.Text, "name: m") {
		t.Errorf("as it is: %+v", before)
	}
	preview := func(text string) *console.Preview {
		return read[console.Preview](t, do(t, http.MethodPost, s.admin+"/console/api/preview", text))
	}
	if p := preview(before.Text); !p.Valid || p.Diff != "" || len(p.Problems) > 0 {
		t.Errorf("no change: %+v", p)
	}
	wrong := preview(before.Text + "modles: []\n")
	last := strings.Count(before.Text, "\n") + 1
	if len(wrong.Problems) != 1 || wrong.Valid || wrong.Problems[0].Line != last ||
		!strings.Contains(wrong.Problems[0].Text, "models") ||
		!strings.Contains(wrong.Diff, "+modles: []") {
		t.Errorf("a word that is not known: %+v", wrong)
	}
	right := preview(before.Text + "server: {drain_timeout: 7s}\n")
	if !right.Valid || !slices.Contains(right.Restart, "server.drain_timeout") ||
		!strings.Contains(right.Diff, "+server: {drain_timeout: 7s}") {
		t.Errorf("a change that takes a restart: %+v", right)
	}
	if a := do(
		t,
		http.MethodPost,
		s.admin+"/console/api/preview",
		strings.Repeat("#", 1<<20+1),
	); a.status != http.StatusBadRequest {
		t.Errorf("too long: %d", a.status)
	}
	if after := get(); after.Generation != 1 || after.Text != before.Text {
		t.Errorf("a preview has changed something: %+v", after)
	}
	if err := os.WriteFile(cfg.File, []byte(before.Text+"modles: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(testkit.Patience); ; { // the watcher reads it, and refuses it
		c := get()
		if c.Problem != "" && c.Disk != nil && !c.Disk.Valid {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the file that is refused is not told of: %+v", c)
		}
	}
}

func TestTheOverviewTellsOfEndpointsAndTiers(t *testing.T) {
	t.Parallel()
	s := serve(t, configure(t, ""), config.Settings{})
	s.post(t, "/v1/chat/completions", chat("auto", "hello"))
	s.stream(t, "").decisions(1)
	o := read[console.Overview](t, do(t, http.MethodGet, s.admin+"/console/api/overview", ""))
	if !o.Ready || o.Version != "test" || o.Started.IsZero() || o.Redis != "none" || len(o.Contexts) != 2 ||
		o.Contexts[0].Name != "hot" {
		t.Errorf("overview: %+v", o)
	}
	if len(o.Models) != 1 || o.Models[0].Endpoints[0].State != "up" || o.Models[0].Endpoints[0].Prefix == nil {
		t.Errorf("models: %+v", o.Models)
	}
	if o.Tally.Decided != 1 || o.Tally.Routes["default"] != 1 || o.Tally.Conversations["new"] != 1 {
		t.Errorf("tally: %+v", o.Tally)
	}
}

// An admin listener that others reach serves what tells, and nothing that changes, unless there is
// a token.
func TestAnAdminListenerThatOthersReachNeedsAToken(t *testing.T) {
	t.Parallel()
	a := build(t, "")
	a.cfg.Load().Server.AdminListen = "0.0.0.0:9090"
	for path, want := range map[string]int{"/metrics": 200, "/-/reload": 403, "/console/": 200, "/console/api/overview": 403} {
		method := http.MethodGet
		if path == "/-/reload" {
			method = http.MethodPost
		}
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), method, "http://signalbox.monitoring:9090"+path, http.NoBody)
		if a.admin().ServeHTTP(w, r); w.Code != want {
			t.Errorf("%s: status %d, want %d", path, w.Code, want)
		}
	}
}

func TestTheRootOfTheAdminListenerLeadsToTheConsole(t *testing.T) {
	t.Parallel()
	s := serve(t, configure(t, ""), config.Settings{})
	if a := do(t, http.MethodGet, s.admin+"/", ""); a.status != http.StatusOK || !strings.Contains(a.body, "<html") {
		t.Errorf("status %d with %.100s", a.status, a.body)
	}
}
