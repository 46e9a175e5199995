package app

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"signalbox/internal/config"
	"signalbox/internal/disk"
	"signalbox/internal/testkit"
	"signalbox/proxy/backend"
	"signalbox/proxy/pool"
)

// said lists findings as "level area subject: text -> do".
func said(found []Finding) string {
	var out strings.Builder
	for _, f := range found {
		fmt.Fprintf(&out, "%s %s %s: %s -> %s\n", f.Level, f.Area, f.Subject, f.Text, f.Do)
	}
	return out.String()
}

func TestTheDoctorFindsWhatIsWrongAndSaysWhatToDo(t *testing.T) {
	t.Parallel()
	list := `{"object":"list","data":[{"id":"served","owned_by":"vllm","max_model_len":4096}]}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/v1/models" && r.Header.Get("Authorization") == "Bearer right":
			_, _ = io.WriteString(w, list)
		case r.URL.Path == "/v1/models":
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/version":
			_, _ = io.WriteString(w, `{"version":"0.32.0"}`)
		case r.URL.Path == "/is_sleeping":
			_, _ = io.WriteString(w, `{"is_sleeping":true}`)
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	redis := testkit.NewRedis(t, "--maxmemory", "8mb", "--maxmemory-policy", "allkeys-lru")
	taken, err := listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	file := filepath.Join(t.TempDir(), "signalbox.yaml")
	text := strings.NewReplacer("SERVER", server.URL, "REDIS", redis.URL(), "TAKEN", taken.Addr().String()).Replace(`
server: {listen: "TAKEN", admin_listen: "127.0.0.1:0"}
models:
  - name: served
    context_window: 8192
    endpoints:
      - {name: refused, url: "SERVER/v1"}
      - {name: short, url: "SERVER", api_key: "${RIGHT}"}
  - name: other
    endpoints:
      - {name: a, url: "SERVER/v1", api_key: "${WRONG}"}
      - {name: b, url: "SERVER/v1", api_key: "${RIGHT}"}
memory: {redis: {url: "REDIS"}}
default: {models: [served, other]}
`)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	env := func(name string) (string, bool) { return strings.ToLower(name), true }
	got := said(Examine(t.Context(), file, Options{Env: env, Log: io.Discard}))
	for _, want := range []string{
		"problem ports server.listen: listen on " + taken.Addr().String(),
		"problem endpoints served/refused: the key was refused",
		`-> set api_key: "${NAME}" in the configuration`,
		"problem endpoints served/short: its API is at " + server.URL + "/v1, but requests would go to " + server.URL + "/chat/completions -> set url to",
		"problem endpoints served/short: context_window is 8192, but the server rejects prompts longer than 4096 -> set context_window to 4096",
		"problem endpoints served/short: the server is asleep or paused and does not respond -> wake it up",
		"problem endpoints other/a: the key was refused",
		"-> set the variable or file that api_key references",
		`problem endpoints other/b: it serves served, not "other" -> set served_as to "served"`,
		"warning redis memory.redis: it may evict contexts: maxmemory-policy is allkeys-lru -> CONFIG SET maxmemory-policy noeviction",
		"ok clock this machine",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("not found: %s", want)
		}
	}
	if t.Failed() {
		t.Log(got)
	}
}

// older stands in front of a Redis and makes it look like one of version 6.
func older(t *testing.T, server *testkit.Redis) string {
	t.Helper()
	to, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	l, err := listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			upstream, err := new(net.Dialer).DialContext(t.Context(), "tcp", to.Host)
			if err != nil {
				_ = client.Close()
				continue
			}
			go func() { _, _ = io.Copy(upstream, client); _ = upstream.Close() }()
			go func() {
				defer func() { _ = client.Close() }()
				b := make([]byte, 64<<10)
				for {
					n, err := upstream.Read(b)
					if err != nil {
						return
					}
					out := regexp.MustCompile(`redis_version:[0-9]`).ReplaceAll(b[:n], []byte("redis_version:6"))
					if _, err := client.Write(out); err != nil {
						return
					}
				}
			}()
		}
	}()
	return "redis://" + l.Addr().String()
}

// Each fault that docs/start.md says the doctor finds is made, and found.
func TestTheDoctorFindsEachFault(t *testing.T) {
	t.Parallel()
	plain := func(h http.HandlerFunc) string {
		server := httptest.NewServer(h)
		t.Cleanup(server.Close)
		return server.URL
	}
	models := func(w http.ResponseWriter, r *http.Request, id string) {
		if r.URL.Path != "/v1/models" {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"`+id+`","object":"model","max_model_len":4096}]}`)
	}
	sound := plain(func(w http.ResponseWriter, r *http.Request) { models(w, r, "m") })
	late := plain(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat))
		models(w, r, "m")
	})
	loading := plain(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	page := plain(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>hello</html>") })
	server := testkit.NewRedis(t)
	replica := testkit.NewRedis(t, "--replicaof", "127.0.0.1", "1")
	full := testkit.NewRedis(t, "--maxmemory", "1mb", "--maxmemory-policy", "noeviction")
	forgets := testkit.NewRedis(t, "--appendonly", "no")
	saves := testkit.NewRedis(t, "--appendonly", "no", "--save", "60 1")
	user := []string{"--appendonly", "no", "--user", "default", "on", "nopass", "~*", "&*", "+@all"}
	guarded := testkit.NewRedis(t, append(slices.Clone(user), "-config")...)
	silent := testkit.NewRedis(t, append(slices.Clone(user), "-@dangerous", "-@admin")...)
	keys := func(redis string) string {
		return "auth: {mode: keys, virtual: {redis: true}}\nmemory: {redis: {url: '" + redis + "'}}\n"
	}
	aside := serve(t, configure(t, ""), config.Settings{})
	const m = "models: [{name: m, MORE endpoints: [{name: a, url: 'URL/v1'}]}]\ndefault: {models: [m]}\n"
	at := func(address string, more ...string) string {
		return strings.NewReplacer("URL", address, "MORE", strings.Join(more, "")).Replace(m)
	}
	for name, c := range map[string]struct {
		file string
		want string // a finding begins so: LEVEL AREA SUBJECT: ...
		do   string // what to do
	}{
		"a mistake in the file": {"modls: []\n", "problem configuration signalbox.yaml:1:1", "correct this line of the file"},
		"a model that is not there": {
			at(sound) + "classify: {models_dir: /none, tasks: [{name: domain, model: acme/topics}]}\n",
			"problem configuration signalbox.yaml:3:61 classify.tasks[0].model: folder /none/acme--topics does not exist: " +
				"download the model with `signalbox models pull acme/topics`",
			"fix the folder of the model",
		},
		"no library":              {at(sound), "problem runtime ONNX Runtime: ", "make onnxruntime"},
		"nobody at an endpoint":   {at("http://127.0.0.1:1"), "problem endpoints m/a: no response", "check that the server is running"},
		"a server that loads":     {at(loading), "problem endpoints m/a: ", "wait until it has loaded"},
		"a page":                  {at(page), "problem endpoints m/a: ", "http://HOST:PORT/v1"},
		"another signalbox":       {at(aside.url), "problem endpoints m/a: ", "set url to the model server behind it"},
		"a window that is longer": {at(sound, "context_window: 9000,"), "problem endpoints m/a: context_window is 9000", "set context_window to 4096"},
		"a shorter one":           {at(sound, "context_window: 90,"), "warning endpoints m/a: context_window is 90", "set context_window to 4096"},
		"another name":            {at(sound, "served_as: n,"), `problem endpoints m/a: it serves m, not "n"`, `set served_as to "m"`},
		"a clock that is wrong":   {at(late), "warning clock this machine: its clock is 1h0m0s ahead of", "synchronise"},
		"no redis":                {at(sound) + "memory: {redis: {url: 'redis://127.0.0.1:1'}}\n", "problem redis memory.redis: ", "check that it is running"},
		"an old redis":            {at(sound) + "memory: {redis: {url: '" + older(t, server) + "'}}\n", "problem redis memory.redis: version 6", "run Redis 7 or newer"},
		"a replica":               {at(sound) + "memory: {redis: {url: '" + replica.URL() + "'}}\n", "problem redis memory.redis: it is a replica", "use the primary"},
		"a full redis":            {at(sound) + "memory: {redis: {url: '" + full.URL() + "'}}\n", "warning redis memory.redis: ", "give it more memory"},
		"a redis that keeps nothing": {
			at(sound) + keys(forgets.URL()), "warning redis memory.redis: it does not persist to disk", "set appendonly yes",
		},
		"one that does not tell": {
			at(sound) + keys(guarded.URL()), "warning redis memory.redis: whether it persists to disk is not known",
			"set appendonly yes",
		},
		"one that keeps its keys": {at(sound) + keys(server.URL()), "ok redis memory.redis: ", ""},
		"one that saves":          {at(sound) + keys(saves.URL()), "ok redis memory.redis: ", ""},
		"one that is silent": {
			at(sound) + "memory: {redis: {url: '" + silent.URL() + "'}}\n", "warning redis memory.redis: it responds in ", "+info",
		},
		"the other scheme": {
			at(strings.Replace(sound, "http:", "https:", 1)), "problem endpoints m/a: the address has the wrong scheme",
			"correct the scheme",
		},
		"a log nobody can write": {at(sound) + "telemetry: {decisions: {file: /proc/none/x}}\n", "problem files telemetry.decisions.file: ", "permit the user of the process to write there"},
		"a log in no folder":     {at(sound) + "telemetry: {decisions: {file: none/x}}\n", "problem files telemetry.decisions.file: ", "create the folder "},
		"outcomes in no folder": {
			at(sound) + "outcomes: {learn: feedback, path: none/x}\n", "problem files outcomes.path: ", "create the folder ",
		},
		"outcomes in a folder's place": {
			at(sound) + "outcomes: {learn: feedback, path: " + t.TempDir() + "}\n", "problem files outcomes.path: ", "",
		},
		"outcomes of another": {
			at(sound) + "outcomes: {learn: feedback, path: " + strings.TrimSuffix(held(t, "x.lock"), ".lock") + "}\n",
			"warning files outcomes.path: another process is writing ", "use a separate file for each process",
		},
		"a log of another": {
			at(sound) + "telemetry: {decisions: {file: " + held(t, "x") + "}}\n",
			"warning files telemetry.decisions.file: another process is writing ", "use a separate file for each process",
		},
		"outcomes of its own": {at(sound) + "outcomes: {learn: feedback, path: x}\n", "ok files outcomes.path: ", ""},
		"keys nobody can write": {
			at(sound) + "auth: {mode: keys, virtual: {file: /proc/x}}\n", "problem files auth.virtual.file: ",
			"permit the user of the process to write there",
		},
		"one other clock":        {at(sound), "ok clock this machine: its clock agrees with that of another", ""},
		"an open admin listener": {"server: {admin_listen: '0.0.0.0:0'}\n" + at(sound), "warning configuration server.admin_token: ", "set it, or listen on a loopback"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := filepath.Join(dir, "signalbox.yaml")
			if err := os.WriteFile(file, []byte(c.file), 0o600); err != nil {
				t.Fatal(err)
			}
			none := func(string) (string, bool) { return "", false }
			o := Options{Env: none, Log: io.Discard, Settings: config.Settings{Listen: "127.0.0.1:0", Library: filepath.Join(dir, "none.so")}}
			if !strings.Contains(c.file, "admin_listen") {
				o.Settings.AdminListen = "127.0.0.1:0"
			}
			for _, f := range Examine(t.Context(), file, o) {
				line := strings.ReplaceAll(said([]Finding{f}), dir+string(filepath.Separator), "")
				if strings.HasPrefix(line, c.want) && strings.Contains(f.Do, c.do) {
					return
				}
			}
			t.Errorf("not found: %s -> %s in\n%s", c.want, c.do, said(Examine(t.Context(), file, o)))
		})
	}
}

// held makes a file that is locked.
func held(t *testing.T, name string) string {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if err := disk.Try(f); err != nil {
		t.Skipf("this system has no locks: %v", err)
	}
	return f.Name()
}

func TestAProbeAsksRedis(t *testing.T) {
	t.Parallel()
	redis := testkit.NewRedis(t)
	asked := func(address string) error {
		cfg := config.Default()
		cfg.Memory.Redis.URL = address
		for _, p := range Probe(t.Context(), &cfg, config.Settings{Library: filepath.Join(t.TempDir(), "none.so")}) {
			if p.Name == "memory.redis" {
				return p.Err
			}
		}
		t.Errorf("%s was not asked", address)
		return nil
	}
	if err := asked(redis.URL()); err != nil {
		t.Error(err)
	}
	silent := testkit.NewRedis(t, "--user", "default", "on", "nopass", "~*", "&*", "+@all", "-@dangerous", "-@admin")
	if err := asked(silent.URL()); err != nil {
		t.Errorf("a Redis that does not tell about itself: %v", err)
	}
	if asked("redis://127.0.0.1:1") == nil {
		t.Error("a Redis that nothing answers for is reachable")
	}
}

func TestAProbeOfAnEndpointLooksForItsModel(t *testing.T) {
	t.Parallel()
	const owned = `,"owned_by":"vllm"`
	list := `{"object":"list","data":[{"id":"m"` + owned + `},{"id":"tagged:latest"` + owned +
		`},{"id":"models/flash"` + owned + `}]}`
	server := testkit.NewUpstream(t, testkit.JSON(http.StatusOK, list))
	gateway := testkit.NewUpstream(t, testkit.JSON(http.StatusOK, strings.ReplaceAll(list, owned, "")))
	detail, err := probeEndpoint(t.Context(), &backend.ModelOptions{Name: "m:nitro"},
		&pool.EndpointOptions{Name: "a", URL: gateway.URL()})
	if err != nil || !strings.Contains(detail, `not "m:nitro": see served_as`) {
		t.Errorf("a name that a gateway does not list: %q, %v", detail, err)
	}
	for served, want := range map[string]string{
		"": "", "tagged": "", "flash": "", "models/flash": "",
		"n": `it serves m, tagged:latest, models/flash, not "n": correct served_as`,
	} {
		m := &backend.ModelOptions{Name: "m", ServedAs: served}
		detail, err := probeEndpoint(t.Context(), m, &pool.EndpointOptions{Name: "a", URL: server.URL()})
		if got := fmt.Sprint(err); want == "" && err != nil || want != "" && got != want || err == nil && detail == "" {
			t.Errorf("served as %q: %q, %v", served, detail, err)
		}
	}
}

func TestTheDoctorKnowsARunningSignalboxByTLS(t *testing.T) {
	t.Parallel()
	ca := testkit.NewAuthority(t)
	cert, key := ca.Issue("proxy.internal")
	secure := fmt.Sprintf("tls: {cert_file: %q, key_file: %q}", cert, key)
	s := serve(t, configure(t, "server: {"+secure+"}\n"), config.Settings{})
	at := strings.TrimPrefix(s.url, "http://")
	file := filepath.Join(t.TempDir(), "signalbox.yaml")
	text := fmt.Sprintf("server: {listen: %q, admin_listen: '127.0.0.1:0', %s}\n", at, secure) +
		"models: [{name: m, endpoints: [{name: a, url: 'http://127.0.0.1:1/v1'}]}]\ndefault: {models: [m]}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got := said(Examine(t.Context(), file, Options{Env: os.LookupEnv, Log: io.Discard}))
	if want := "ok ports server.listen: signalbox is running on " + at; !strings.Contains(got, want) {
		t.Errorf("want %s in\n%s", want, got)
	}
}

// TestTheDoctorKnowsARunningSignalboxThatRequiresCertificates checks that the doctor finds a
// signalbox that it has no client certificate for by its admin listener.
func TestTheDoctorKnowsARunningSignalboxThatRequiresCertificates(t *testing.T) {
	t.Parallel()
	ca := testkit.NewAuthority(t)
	cert, key := ca.Issue("proxy.internal")
	secure := fmt.Sprintf("tls: {cert_file: %q, key_file: %q, client_ca_file: %q}", cert, key, ca.File)
	s := serve(t, configure(t, "server: {"+secure+"}\n"), config.Settings{})
	at, admin := strings.TrimPrefix(s.url, "http://"), strings.TrimPrefix(s.admin, "http://")
	file := filepath.Join(t.TempDir(), "signalbox.yaml")
	text := fmt.Sprintf("server: {listen: %q, admin_listen: %q, %s}\n", at, admin, secure) +
		"models: [{name: m, endpoints: [{name: a, url: 'http://127.0.0.1:1/v1'}]}]\ndefault: {models: [m]}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got := said(Examine(t.Context(), file, Options{Env: os.LookupEnv, Log: io.Discard}))
	if want := "ok ports server.listen: " + at + " is in use, and signalbox is running on " + admin; !strings.Contains(got, want) {
		t.Errorf("want %s in\n%s", want, got)
	}
}

func TestTheDoctorGoesOnWithoutAFile(t *testing.T) {
	t.Parallel()
	got := said(Examine(t.Context(), filepath.Join(t.TempDir(), "none.yaml"), Options{Env: os.LookupEnv, Log: io.Discard, Settings: config.Settings{}}))
	if !strings.Contains(got, "problem configuration") || !strings.Contains(got, "signalbox init") || !strings.Contains(got, "open files") {
		t.Error(got)
	}
}

// A model is opened by those who look at a configuration as it is by those who serve from it.
func TestModelsThatCannotBeLoadedAreFoundBeforehand(t *testing.T) {
	needModels(t)
	t.Parallel()
	for name, tt := range map[string]struct {
		task   string
		breaks func(t *testing.T, dir string)
		want   string
	}{
		"a graph of half precision alone": {
			"{name: complexity, model: bert-complexity}",
			func(t *testing.T, dir string) {
				t.Helper()
				rename(t, filepath.Join(dir, "model.onnx"), "model_fp16.onnx")
			},
			"bundle bert-complexity: ",
		},
		"a tokenizer that is none": {
			"{name: complexity, model: bert-complexity}",
			func(t *testing.T, dir string) {
				t.Helper()
				if err := os.WriteFile(filepath.Join(dir, "tokenizer.json"), []byte("{}"), 0o600); err != nil {
					t.Fatal(err)
				}
			},
			"bundle bert-complexity: ",
		},
		"one that judges claims": {
			"{name: grounding, model: bert-nli}",
			func(t *testing.T, dir string) {
				t.Helper()
				if err := os.WriteFile(filepath.Join(dir, "tokenizer.json"), []byte("{}"), 0o600); err != nil {
					t.Fatal(err)
				}
			},
			"bundle bert-nli: ",
		},
		"one that is sound": {"{name: complexity, model: bert-complexity}", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for _, model := range []string{"bert-complexity", "bert-nli"} {
				if to := copyModel(t, dir, model); tt.breaks != nil && strings.Contains(tt.task, model) {
					tt.breaks(t, to)
				}
			}
			file := filepath.Join(t.TempDir(), "signalbox.yaml")
			text := "models: [{name: small, endpoints: [{name: a, url: 'http://127.0.0.1:9/v1'}]}]\n" +
				taskLines(dir, tt.task) + "default: {models: [small]}\n"
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			cfg, err := load(t, taskLines(dir, tt.task))
			if err != nil {
				t.Fatal(err)
			}
			s := memoryOnly(flags(t))
			var unusable string
			for _, p := range Probe(t.Context(), cfg, s) {
				if p.Local && p.Err != nil {
					unusable += p.Name + ": " + p.Err.Error()
				}
			}
			if !strings.HasPrefix(unusable, tt.want) || tt.want == "" && unusable != "" {
				t.Errorf("the probe finds %q, want %q", unusable, tt.want)
			}
			s.Listen, s.AdminListen = "127.0.0.1:0", "127.0.0.1:0"
			found := said(Examine(t.Context(), file, Options{Settings: s, Env: os.LookupEnv, Log: io.Discard}))
			if strings.Contains(found, "problem models "+tt.want) != (tt.want != "") {
				t.Errorf("the doctor says\n%s", found)
			}
		})
	}
}
