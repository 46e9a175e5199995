package app

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"signalbox/internal/config"
	"signalbox/internal/option"
	"signalbox/internal/testkit"
)

// requests is how many requests TestRollingRestartLosesNothing sends: go test ./internal/app -run
// RollingRestart -args -requests 20000.
var requests = flag.Int("requests", 1500, "requests of the test of restarts")

// configure writes a configuration and reads it. %s in it is the address of a model server that
// answers at once.
func configure(t *testing.T, text string) *config.Config {
	t.Helper()
	base := "models: [{name: m, endpoints: [{name: a, url: '" + instant(t) + "/v1'}], health: {path: 'off'}}]\ndefault: {models: [m]}\n"
	if !strings.Contains(text, "telemetry:") {
		base += "telemetry: {log: error}\n" // as the program that is tested has it
	}
	return written(t, base+text)
}

// written is a configuration as a file of its own, loaded.
func written(t *testing.T, text string) *config.Config {
	t.Helper()
	file := filepath.Join(t.TempDir(), "signalbox.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, _, err := config.Load(file, os.LookupEnv, Catalog)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func dialing(t *testing.T, c *tls.Config, protocols func(*http.Protocols)) *http.Client {
	t.Helper()
	p := new(http.Protocols)
	protocols(p)
	tr := &http.Transport{TLSClientConfig: c, Protocols: p}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: testkit.Patience}
}

func http1Only(p *http.Protocols) { p.SetHTTP1(true) }
func http2Only(p *http.Protocols) { p.SetHTTP2(true) }
func h2cOnly(p *http.Protocols)   { p.SetUnencryptedHTTP2(true) }

// ask sends one request and returns the protocol of its answer, and the certificate that the server
// showed.
func ask(t *testing.T, c *http.Client, url string) (proto, serial string, err error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/chat/completions", strings.NewReader(plainRequest))
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.Do(req)
	if err != nil {
		return "", "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return "", "", err
	}
	if res.StatusCode != http.StatusOK {
		return "", "", fmt.Errorf("status %d with %s", res.StatusCode, body)
	}
	if res.TLS != nil {
		serial = res.TLS.PeerCertificates[0].SerialNumber.String()
	}
	return res.Proto, serial, nil
}

func TestHTTP2IsServedWithAndWithoutTLS(t *testing.T) {
	t.Parallel()
	ca := testkit.NewAuthority(t)
	cert, key := ca.Issue("proxy.internal")
	plain := serve(t, configure(t, ""), config.Settings{})
	secure := serve(t, configure(t, fmt.Sprintf("server: {tls: {cert_file: %q, key_file: %q}}\n", cert, key)), config.Settings{})
	at := strings.Replace(secure.url, "http://", "https://", 1)
	trust := &tls.Config{RootCAs: ca.Pool(), MinVersion: tls.VersionTLS12}
	for _, tt := range []struct {
		name, url string
		client    *http.Client
		want      string
	}{
		{"HTTP/1.1", plain.url, dialing(t, nil, http1Only), "HTTP/1.1"},
		{"h2c", plain.url, dialing(t, nil, h2cOnly), "HTTP/2.0"},
		{"HTTP/1.1 over TLS", at, dialing(t, trust, http1Only), "HTTP/1.1"},
		{"h2", at, dialing(t, trust.Clone(), http2Only), "HTTP/2.0"},
	} {
		if proto, _, err := ask(t, tt.client, tt.url); err != nil || proto != tt.want {
			t.Errorf("%s: %s, %v", tt.name, proto, err)
		}
	}
	old := &tls.Config{RootCAs: ca.Pool(), MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10} // must be refused
	if _, _, err := ask(t, dialing(t, old, http1Only), at); err == nil {
		t.Error("TLS 1.1 was accepted")
	}
}

// S34: certificates are renewed while the process runs, and who has none of the right authority
// stays out.
func TestCertificatesAreReadAgainWithoutARestart(t *testing.T) {
	t.Parallel()
	ca, clients := testkit.NewAuthority(t), testkit.NewAuthority(t)
	cert, key := ca.Issue("proxy.internal")
	s := serve(t, configure(t, fmt.Sprintf("server: {tls: {cert_file: %q, key_file: %q, client_ca_file: %q}}\n", cert, key, clients.File)), config.Settings{})
	at := strings.Replace(s.url, "http://", "https://", 1)
	trust := &tls.Config{RootCAs: ca.Pool(), Certificates: []tls.Certificate{clients.Pair("client")}, MinVersion: tls.VersionTLS12}
	long := dialing(t, trust, http1Only)
	_, first, err := ask(t, long, at)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]*tls.Config{
		"no certificate":         {RootCAs: ca.Pool(), MinVersion: tls.VersionTLS12},
		"one of another's":       {RootCAs: ca.Pool(), Certificates: []tls.Certificate{testkit.NewAuthority(t).Pair("client")}, MinVersion: tls.VersionTLS12},
		"one that servers trust": {RootCAs: ca.Pool(), Certificates: []tls.Certificate{ca.Pair("someone")}, MinVersion: tls.VersionTLS12},
	} {
		if _, _, err := ask(t, dialing(t, c, http1Only), at); err == nil {
			t.Errorf("%s: let in", name)
		}
	}
	ca.Issue("proxy.internal") // takes the place of the first
	fresh := func() string {
		_, serial, err := ask(t, dialing(t, trust.Clone(), http1Only), at)
		if err != nil {
			t.Fatalf("a new connection: %v", err)
		}
		return serial
	}
	for end := time.Now().Add(testkit.Patience); fresh() == first; {
		if time.Now().After(end) {
			t.Fatal("the new certificate is not shown")
		}
	}
	if _, serial, err := ask(t, long, at); err != nil || serial != first {
		t.Errorf("the old connection: %s, %v", serial, err)
	}
	if err := os.WriteFile(key, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.app.Reload(t.Context()); err == nil {
		t.Error("a reload with a broken key goes well")
	}
	if fresh() == first {
		t.Error("an older certificate is back")
	}
}

func TestAReloadThatFailsIsToldToOperators(t *testing.T) {
	t.Parallel()
	cfg := configure(t, "")
	good, err := os.ReadFile(cfg.File)
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, cfg, config.Settings{})
	ready := func(at string) (status int, degraded []string, problem string) {
		t.Helper()
		a := do(t, http.MethodGet, at+"/readyz", "")
		var d struct {
			Degraded []string `json:"degraded"`
			Reload   string   `json:"reload_problem"`
		}
		if err := json.Unmarshal([]byte(a.body), &d); err != nil {
			t.Fatalf("%v: %s", err, a.body)
		}
		return a.status, d.Degraded, d.Reload
	}
	for name, broken := range map[string]string{
		"a word that is not known": string(good) + "modles: []\n", "nothing": "", "half a file": string(good[:len(good)/2]), "tabs": "models:\n\t- x\n",
		"a bomb": "a: &a [x,x]\nb: &b [*a,*a]\n", "two documents": string(good) + "---\n" + string(good), "junk": "\x00\x01\x02",
	} {
		if err := os.WriteFile(cfg.File, []byte(broken), 0o600); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(testkit.Patience); ; { // the watcher sees it without being told
			if _, degraded, _ := ready(s.url); strings.Contains(strings.Join(degraded, " "), "changed configuration is invalid") {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%s: /readyz tells nothing", name)
			}
		}
		status, degraded, problem := ready(s.admin)
		if status != http.StatusOK || len(degraded) == 0 || !strings.Contains(problem, filepath.Base(cfg.File)) {
			t.Errorf("%s: status %d, %v, %q", name, status, degraded, problem)
		}
		if a := s.post(t, "/v1/chat/completions", plainRequest); a.status != http.StatusOK {
			t.Errorf("%s: requests are answered with %d %s", name, a.status, a.body)
		}
		if a := do(t, http.MethodGet, s.url+"/readyz", ""); strings.Contains(a.body, cfg.File) {
			t.Errorf("%s: clients learn of files: %s", name, a.body)
		}
		if err := os.WriteFile(cfg.File, good, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := s.app.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, degraded, problem := ready(s.admin); problem != "" || strings.Contains(strings.Join(degraded, " "), "configuration") {
			t.Errorf("%s: told after the repair: %v %q", name, degraded, problem)
		}
	}
}

// Tokens that are tried are in the log, some in one line, without what was tried.
func TestWrongAdminTokensAreInTheLog(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	g := &gate{
		open: http.NewServeMux(), guarded: http.NewServeMux(), hasToken: true,
		log: slog.New(slog.NewTextHandler(&log, nil)),
	}
	g.open.Handle("/", g.guarded)
	for i := range 5 {
		if i == 4 {
			g.told.Store(0) // as a second later
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/-/keys", http.NoBody)
		r.Header.Set("Authorization", "Bearer guess")
		w := httptest.NewRecorder()
		if g.ServeHTTP(w, r); w.Code != http.StatusForbidden {
			t.Fatalf("status %d", w.Code)
		}
	}
	sum := 0
	for line := range strings.Lines(log.String()) {
		var n int
		_, times, _ := strings.Cut(line, "times=")
		if _, err := fmt.Sscan(times, &n); err != nil || !strings.Contains(line, "path=/-/keys") {
			t.Errorf("a line: %s", line)
		}
		sum += n
	}
	if sum != 5 || strings.Contains(log.String(), "guess") {
		t.Errorf("%d of 5 are in the log:\n%s", sum, log.String())
	}
}

// S25: what changes the process or looks into it is on the admin listener alone, for its operators
// and not for their browsers, and takes nothing from a request.
func TestTheAdminListenerIsSafe(t *testing.T) {
	t.Parallel()
	local := serve(t, configure(t, "server: {pprof: true}\n"), config.Settings{})
	const secret = "0123456789"
	tokenFile := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(tokenFile, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	guarded := serve(t, configure(t, "server: {pprof: true, admin_token: 'file:"+tokenFile+"'}\n"), config.Settings{})
	for token, want := range map[string]string{
		"":             "the admin token (server.admin_token) is required\n",
		"Bearer wrong": "the admin token (server.admin_token) is required: a different token was sent\n",
	} {
		a := do(t, http.MethodPost, guarded.admin+"/-/reload", "", "Authorization", token)
		if a.status != http.StatusForbidden || a.body != want {
			t.Errorf("with %q: status %d with %s", token, a.status, a.body)
		}
	}
	plain := serve(t, configure(t, ""), config.Settings{})
	const other = "models: [{name: other, endpoints: [{name: a, url: 'http://127.0.0.1:1/v1'}]}]\ndefault: {models: [other]}\n"
	if a := do(t, http.MethodPost, local.admin+"/-/reload?config=/dev/null&file=/dev/null", other); a.status != http.StatusNoContent {
		t.Errorf("a reload with a configuration of its own: status %d with %s", a.status, a.body)
	}
	if a := local.post(t, "/v1/chat/completions", plainRequest); a.status != http.StatusOK {
		t.Errorf("what a request brought along is served from: %d %s", a.status, a.body)
	}
	for _, tt := range []struct {
		name, method, url string
		host              string
		headers           []string
		want              int
	}{
		{"metrics", "GET", local.admin + "/metrics", "", nil, 200},
		{"metrics for a web page", "GET", local.admin + "/metrics", "", []string{"Origin", "http://127.0.0.1:9090"}, 403},
		{"metrics for the console", "GET", local.admin + "/metrics", "", []string{"Origin", local.admin, "Sec-Fetch-Site", "same-origin"}, 200},
		{"reload by the console", "POST", local.admin + "/-/reload", "", []string{"Origin", local.admin}, 204},
		{"another port of this host", "POST", local.admin + "/-/reload", "", []string{"Origin", local.url}, 403},
		{"a page that is a file", "POST", local.admin + "/-/reload", "", []string{"Origin", "null"}, 403},
		{"another scheme of the origin", "POST", local.admin + "/-/reload", "", []string{"Origin", strings.Replace(local.admin, "http", "ftp", 1)}, 403},
		{"an origin that its browser calls another", "POST", local.admin + "/-/reload", "", []string{"Origin", local.admin, "Sec-Fetch-Site", "same-site"}, 403},
		{"an origin with a name that leads here", "POST", local.admin + "/-/reload", "evil.example", []string{"Origin", "http://evil.example"}, 403},
		{"the console", "GET", local.admin + "/console/", "", nil, 200},
		{"its files", "GET", local.admin + "/console/console.js", "", nil, 200},
		{"no file of it", "GET", local.admin + "/console/%2e%2e%2fconsole.go", "", nil, 404},
		{"its data", "GET", local.admin + "/console/api/overview", "", nil, 200},
		{"its data for a web page", "GET", local.admin + "/console/api/overview", "", []string{"Origin", "https://evil.example"}, 403},
		{"the console needs no token", "GET", guarded.admin + "/console/", "", nil, 200},
		{"its data need it", "GET", guarded.admin + "/console/api/overview", "", nil, 403},
		{"its data with it", "GET", guarded.admin + "/console/api/overview", "", []string{"Authorization", "Bearer " + secret}, 200},
		{"its decisions need it", "GET", guarded.admin + "/console/api/live", "", nil, 403},
		{"its playground needs it", "POST", guarded.admin + "/console/api/ask", "", nil, 403},
		{"its configuration needs it", "GET", guarded.admin + "/console/api/configuration", "", nil, 403},
		{"the console on the main listener", "GET", local.url + "/console/", "", nil, 404},
		{"metrics without a host", "GET", local.admin + "/metrics", " ", nil, 403},
		{"a name that begins like loopback", "GET", local.admin + "/metrics", "127.0.0.1.evil.example:9090", nil, 403},
		{"a name that looks like localhost", "POST", local.admin + "/-/reload", "localhost.evil.example", nil, 403},
		{"any other path", "POST", local.admin + "/config", "", nil, 404},
		{"the API", "POST", local.admin + "/v1/chat/completions", "", nil, 404},
		{"reload", "POST", local.admin + "/-/reload", "", nil, 204},
		{"reload by GET", "GET", local.admin + "/-/reload", "", nil, 405},
		{"profiles", "GET", local.admin + "/debug/pprof/goroutine", "", nil, 200},
		{"a web page", "POST", local.admin + "/-/reload", "", []string{"Origin", "https://evil.example"}, 403},
		{"a web page without an origin", "POST", local.admin + "/-/reload", "", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"a name that leads to loopback", "GET", local.admin + "/metrics", "evil.example", nil, 403},
		{"localhost", "GET", local.admin + "/metrics", "localhost:9090", nil, 200},
		{"profiles are off by default", "GET", plain.admin + "/debug/pprof/heap", "", nil, 404},
		{"without the token", "POST", guarded.admin + "/-/reload", "", nil, 403},
		{"with another", "POST", guarded.admin + "/-/reload", "", []string{"Authorization", "Bearer 012345678"}, 403},
		{"with the token", "POST", guarded.admin + "/-/reload", "", []string{"Authorization", "Bearer " + secret}, 204},
		{"profiles without the token", "GET", guarded.admin + "/debug/pprof/heap", "", nil, 403},
		{"metrics need none", "GET", guarded.admin + "/metrics", "", nil, 200},
		{"an admin path on the main listener", "POST", local.url + "/-/reload", "", nil, 404},
		{"metrics on the main listener", "GET", local.url + "/metrics", "", nil, 404},
		{"profiles on the main listener", "GET", local.url + "/debug/pprof/heap", "", nil, 404},
		{"all profiles on the main listener", "GET", local.url + "/debug/pprof/", "", nil, 404},
		{"a command line on the main listener", "GET", local.url + "/debug/pprof/cmdline", "", nil, 404},
		{"a trace on the main listener", "GET", local.url + "/debug/pprof/trace", "", nil, 404},
		{"variables on the main listener", "GET", local.url + "/debug/vars", "", nil, 404},
		{"an admin path with the token on the main listener", "POST", guarded.url + "/-/reload", "", []string{"Authorization", "Bearer " + secret}, 404},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			req, err := http.NewRequestWithContext(t.Context(), tt.method, tt.url, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			req.Host = tt.host
			for i := 0; i+1 < len(tt.headers); i += 2 {
				req.Header.Set(tt.headers[i], tt.headers[i+1])
			}
			res, err := dialing(t, nil, http1Only).Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if res.StatusCode != tt.want {
				b, _ := io.ReadAll(res.Body)
				t.Errorf("status %d, want %d: %s", res.StatusCode, tt.want, b)
			}
		})
	}
}

// slot is one of several replicas behind a balancer. It is empty while its replica is restarted.
type slot struct {
	url   atomic.Pointer[string]
	ready atomic.Bool
}

// TestRollingRestartLosesNothing restarts two replicas in turn, again and again, behind a balancer
// that asks /readyz, while clients with open connections send requests and read streams.
func TestRollingRestartLosesNothing(t *testing.T) {
	const clients = 16
	model := streaming(t)
	var slots [2]slot
	boot := func(i int) (stop func()) {
		cfg := configure(t, "")
		cfg.Models[0].Endpoints[0].URL = model + "/v1"
		cfg.Server.Listen, cfg.Server.AdminListen, cfg.Telemetry.Log = "127.0.0.1:0", "127.0.0.1:0", "error"
		cfg.Server.ReadHeaderTimeout = option.Duration(time.Hour) // for connections that are not used yet
		a, err := Build(context.Background(), cfg, Options{Version: "test", Log: io.Discard, Env: os.LookupEnv})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done, up := make(chan error, 1), make(chan string, 1)
		go func() { done <- a.Serve(ctx, nil, func(main, _ net.Addr) { up <- "http://" + main.String() }) }()
		at := <-up
		slots[i].url.Store(&at)
		return func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("replica %d: %v", i, err)
			}
			if err := a.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}
	}
	stops := [2]func(){boot(0), boot(1)}
	tr := &http.Transport{MaxIdleConnsPerHost: clients}
	defer tr.CloseIdleConnections()
	c := &http.Client{Transport: tr}
	ctx, cancel := context.WithCancel(t.Context())
	var prober sync.WaitGroup
	for i := range slots {
		prober.Go(func() { probe(ctx, c, &slots[i]) })
	}
	var sent, lost atomic.Int64
	var wg sync.WaitGroup
	for n := range clients {
		wg.Go(func() {
			for k := n; sent.Add(1) <= int64(*requests); k++ {
				s := &slots[k%2]
				for !s.ready.Load() {
					k++
					s = &slots[k%2]
				}
				if err := whole(ctx, c, *s.url.Load(), k%4 == 0); err != nil {
					lost.Add(1)
					t.Errorf("request %d: %v", k, err)
				}
			}
		})
	}
	restarts := 0
	for sent.Load() < int64(*requests) && !t.Failed() {
		i := restarts % 2
		for !slots[1-i].ready.Load() {
			time.Sleep(5 * time.Millisecond)
		}
		stops[i]()
		stops[i] = boot(i)
		restarts++
	}
	wg.Wait()
	cancel()
	prober.Wait()
	stops[0]()
	stops[1]()
	t.Logf("%d requests, %d restarts, %d lost", *requests, restarts, lost.Load())
	if restarts == 0 {
		t.Error("nothing was restarted")
	}
}

// probe asks a replica ten times a second whether it is ready.
func probe(ctx context.Context, c *http.Client, s *slot) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		ok := false
		if url := s.url.Load(); url != nil {
			req, _ := http.NewRequestWithContext(ctx, http.MethodGet, *url+"/readyz", http.NoBody)
			req.Close = true
			if res, err := c.Do(req); err == nil {
				_ = res.Body.Close()
				ok = res.StatusCode == http.StatusOK
			}
		}
		s.ready.Store(ok)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// whole sends a request and reports anything but a whole answer.
func whole(ctx context.Context, c *http.Client, url string, stream bool) error {
	body := fmt.Sprintf(`{"model":"m","stream":%v,"messages":[{"role":"user","content":"hello"}]}`, stream)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		return err
	}
	res, err := c.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d, %v: %.200s", res.StatusCode, err, b) //nolint:errorlint // it may be nil
	}
	end := map[bool]string{true: "data: [DONE]\n\n"}[stream]
	if !strings.HasSuffix(string(b), end) {
		return fmt.Errorf("a stream was cut: %.200s", b)
	}
	return nil
}

// streaming is a model server whose streams take half a second, longer than one look of a balancer.
func streaming(t *testing.T) string {
	t.Helper()
	return speaking(t, func(ctx context.Context, say func()) {
		tick := time.NewTicker(25 * time.Millisecond)
		defer tick.Stop()
		for range 20 {
			say()
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
}

// TestASecretInAFileIsReadAgain changes nothing but a file that the configuration refers to, in a
// folder that is never quiet.
func TestASecretInAFileIsReadAgain(t *testing.T) {
	t.Parallel()
	shown := make(chan string, 1)
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		shown <- r.Header.Get("Authorization")
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"choices":[{"message":{"role":"assistant","content":"fine"},"finish_reason":"stop"}]}`)
	}))
	t.Cleanup(model.Close)
	dir := t.TempDir()
	file, secret := filepath.Join(dir, "signalbox.yaml"), filepath.Join(dir, "key")
	text := fmt.Sprintf("models: [{name: m, endpoints: [{name: a, url: '%s/v1', api_key: 'file:key'}], health: {path: 'off'}}]\ndefault: {models: [m]}\n", model.URL)
	for name, content := range map[string]string{file: text, secret: "first"} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg, _, err := config.Load(file, os.LookupEnv, Catalog)
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, cfg, config.Settings{})
	ask := func() string {
		t.Helper()
		if a := s.post(t, "/v1/chat/completions", plainRequest); a.status != http.StatusOK {
			t.Fatalf("status %d: %s", a.status, a.body)
		}
		return <-shown
	}
	if got := ask(); got != "Bearer first" {
		t.Fatalf("the first secret is shown as %q", got)
	}
	ctx, stop := context.WithCancel(t.Context())
	var noise sync.WaitGroup
	defer noise.Wait()
	defer stop()
	noise.Go(func() { // a log in the same folder
		tick := time.NewTicker(settle / 5)
		defer tick.Stop()
		for ctx.Err() == nil {
			_ = os.WriteFile(filepath.Join(dir, "log"), []byte(time.Now().String()), 0o600)
			<-tick.C
		}
	})
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	until := func(want string) {
		t.Helper()
		for end := time.Now().Add(testkit.Patience); ask() != "Bearer "+want; {
			if time.Now().After(end) {
				t.Fatalf("the %s secret was never shown", want)
			}
			time.Sleep(settle)
		}
	}
	write(secret, "second")
	until("second")
	stop()
	noise.Wait()
	// One that comes after the configuration that names it, and is empty for a while.
	later := filepath.Join(t.TempDir(), "later")
	write(file, strings.Replace(text, "file:key", "file:"+later, 1))
	told := func(what string) {
		t.Helper()
		for end := time.Now().Add(testkit.Patience); ; time.Sleep(settle) {
			if problem, _ := s.app.problem.Load().(string); strings.Contains(problem, what) {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("no reload failed for what says %q", what)
			}
		}
	}
	told("later")
	write(later, "\n")
	told("empty")
	if got := ask(); got != "Bearer second" {
		t.Errorf("without a secret the old one has to stay: %q", got)
	}
	write(later, "third")
	until("third")
}

// S24: a trace or its baggage that is longer than a head may be is refused at the door, and what
// fits goes no further.
func TestS24FloodsOfBaggageAreRefused(t *testing.T) {
	t.Parallel()
	var reached atomic.Int64
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached.Add(1)
		if r.Header.Get("Baggage") != "" {
			t.Errorf("the model got %d bytes of baggage", len(r.Header.Get("Baggage")))
		}
		_, _ = io.WriteString(w, `{"choices":[{"message":{"role":"assistant","content":"fine"},"finish_reason":"stop"}]}`)
	}))
	t.Cleanup(model.Close)
	cfg := configure(t, "")
	cfg.Models[0].Endpoints[0].URL = model.URL + "/v1"
	s := serve(t, cfg, config.Settings{})
	for _, name := range []string{"Baggage", "Tracestate", "Traceparent"} {
		if a := s.post(t, "/v1/chat/completions", plainRequest, name, "k="+strings.Repeat("v", 1<<20)); a.status != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("1 MiB of %s: status %d with %s", name, a.status, a.body)
		}
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("%d of them reached the model", n)
	}
	if a := s.post(t, "/v1/chat/completions", plainRequest, "Baggage", "k="+strings.Repeat("v", 60<<10)); a.status != http.StatusOK || reached.Load() != 1 {
		t.Errorf("60 KiB of baggage: status %d with %s, %d reached the model", a.status, a.body, reached.Load())
	}
}
