package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestARefusedTokenIsNotCalledMissing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ token, message, want string }{
		{"", "the admin token (server.admin_token) is required\n", "set SIGNALBOX_ADMIN_TOKEN to it"},
		{"Bearer x", "the admin token (server.admin_token) is required\n", "the server has no server.admin_token"},
		{
			"Bearer x", "the admin token (server.admin_token) is required: a different token was sent\n",
			"SIGNALBOX_ADMIN_TOKEN has the wrong value",
		},
	} {
		req := &http.Request{Header: http.Header{"Authorization": {c.token}}}
		err := refusal(req, "403 Forbidden", []byte(c.message))
		if !strings.HasSuffix(err.Error(), "; "+c.want) {
			t.Errorf("with %q: %v", c.token, err)
		}
		if err := refusal(req, "404 Not Found", []byte("no such key")); strings.Contains(err.Error(), "ADMIN_TOKEN") {
			t.Errorf("with %q: %v", c.token, err)
		}
	}
}

func TestAKeyIsMeantByItsIDOrElseByItsName(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"keys": [{"id": "k1", "name": "app"}, {"id": "app2", "name": "k3"},
			{"id": "k3", "name": "other"}, {"id": "app3", "name": "k1"}]}`)
	}))
	defer s.Close()
	c := command{Streams: Streams{Env: func(string) (string, bool) { return "", false }}}
	for word, want := range map[string]string{"k1": "k1", "app": "k1", "k3": "k3", "nobody": "nobody", "other": "k3"} {
		got, err := c.keyID(t.Context(), s.URL, word)
		if got != want || err != nil {
			t.Errorf("%s means %q, %v; want %q", word, got, err, want)
		}
	}
}

// runKeys runs `signalbox keys` with args against an admin listener that has one key.
func runKeys(t *testing.T, args ...string) (code int, out, errors string) {
	t.Helper()
	const key = `"id": "u3bk", "name": "web", "state": "active", "tenant": "lab",
		"models": ["small", "old"], "unknown_models": ["old"], "hint": "did you mean lab2?",
		"expires_at": "2026-12-27T23:13:02Z"`
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/-/keys":
			if r.Method == http.MethodPost {
				_, _ = io.WriteString(w, `{"secret": "sk-1", `+key+`}`)
				return
			}
			_, _ = io.WriteString(w, `{"keys": [{`+key+`}]}`)
		case "/-/keys/u3bk":
			_, _ = io.WriteString(w, `{`+key+`, "usage": [
				{"of": "key", "what": "usd", "per": "month", "limit": 50, "used": 0.0000474, "left": 49.9999526,
					"resets_at": "2026-12-01T00:00:00Z", "replica_alone": true},
				{"of": "key", "what": "tokens", "per": "minute", "limit": 5000, "used": 52, "left": 4948,
					"resets_at": "2026-11-27T23:13:04Z", "replica_alone": true}]}`)
		default:
			http.NotFound(w, r)
		}
	}))
	defer s.Close()
	var stdout, stderr strings.Builder
	code = Main(t.Context(), "test", append([]string{"keys"}, append(args, "--admin", s.URL)...), Streams{
		Out: &stdout, Err: &stderr, Width: 80, Env: func(string) (string, bool) { return "", false },
	})
	return code, stdout.String(), stderr.String()
}

func TestAKeyIsShownByNameWithWhatIsUsed(t *testing.T) {
	t.Parallel()
	const want = `id       u3bk
name     web
state    active
tenant   lab
role     the default
models   small, old
expires  2026-12-27T23:13:02Z

the configuration does not have old

did you mean lab2?

of   what    per     limit     used        left      resets
key  usd     month   $50.0000  $0.0000474  $50.0000  2026-12-01T00:00:00Z
key  tokens  minute  5,000     52          4,948     2026-11-27T23:13:04Z
counted by this replica only: Redis is not configured or did not respond
`
	code, got, errors := runKeys(t, "show", "web")
	if code != 0 || got != want {
		t.Errorf("exit code %d, %s\n%s", code, errors, got)
	}
}

func TestAHintOnANewKeyIsBesideTheOutput(t *testing.T) {
	t.Parallel()
	code, out, errors := runKeys(t, "create", "web")
	if code != 0 || out != "u3bk\nsk-1\n" || errors != "signalbox: did you mean lab2?\n" {
		t.Errorf("exit code %d, %q, %q", code, out, errors)
	}
}

// What a program reads is what the admin listener answers, with what the tables leave out.
func TestKeysArePrintedAsTheAdminListenerTellsThem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"list", "--json"}, []string{"{\n  \"keys\": [\n", `"id": "u3bk"`, `"unknown_models": [`}},
		{
			[]string{"show", "web", "--json"},
			[]string{"{\n  \"id\": \"u3bk\"", `"expires_at": "2026-12-27T23:13:02Z"`, `"left": 49.9999526`},
		},
	} {
		code, out, errors := runKeys(t, c.args...)
		if code != 0 || !json.Valid([]byte(out)) {
			t.Errorf("%q: exit code %d, %s\n%s", c.args, code, errors, out)
		}
		for _, want := range c.want {
			if !strings.Contains(out, want) {
				t.Errorf("%q: no %s in %s", c.args, want, out)
			}
		}
	}
}

func TestAWrongCommandLineOfKeysSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"usage", "web"}, `keys has no command "usage"; it has create, list, new, revoke, rotate and show`},
		{
			[]string{"lsit"},
			`keys has no command "lsit", did you mean "list"? It has create, list, new, revoke, rotate and show`,
		},
		{[]string{"list", "web"}, `keys list takes no argument, found "web"`},
		{[]string{"show"}, "missing key: signalbox keys show (ID | NAME)"},
		{[]string{"revoke", "a", "b"}, `keys revoke takes one key, found "b" besides "a"`},
		{[]string{"list", "--bogus"}, "unknown flag: --bogus; `signalbox keys list --help` lists its flags"},
		{nil, "unknown flag: --admin; `signalbox keys --help` lists its flags"},
	} {
		code, _, errors := runKeys(t, c.args...)
		if code != 2 || errors != "signalbox: "+c.want+"\n" {
			t.Errorf("%q: exit code %d, %s", c.args, code, errors)
		}
	}
}

// Whoever has the file of a proxy need not look up where its admin listener is.
func TestAKeyIsMadeByTheConfigurationOfTheProxy(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.URL.Path == "/-/keys" {
			_, _ = io.WriteString(w, `{"id": "u3bk", "name": "web", "secret": "sk-1"}`)
		}
	}))
	defer s.Close()
	_, port, _ := strings.Cut(strings.TrimPrefix(s.URL, "http://"), ":")
	dir := t.TempDir()
	write := func(name, listen string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		text := "server: {admin_listen: \"" + listen + "\", admin_token: \"${ADMIN}\"}\nmodels:\n" +
			"  - {name: a, endpoints: [{name: e, url: \"http://127.0.0.1:9/v1\"}]}\ndefault: {models: [a]}\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	here, every := write("here.yaml", "127.0.0.1:"+port), write("every.yaml", ":"+port)
	unnamed := write("unnamed.yaml", "127.0.0.1:0")
	for name, tt := range map[string]struct {
		args []string
		code int
		want string
	}{
		"the address":         {[]string{"--config", here}, 0, "u3bk\nsk-1\n"},
		"every address":       {[]string{"--config", every}, 0, "u3bk\nsk-1\n"},
		"a port that is open": {[]string{"--config", unnamed}, 2, "signalbox keys create --admin http://127.0.0.1:9090"},
		"two addresses":       {[]string{"--config", here, "--admin", s.URL}, 2, "takes --config or --admin, not both"},
		"no file":             {[]string{"--config", filepath.Join(dir, "none.yaml")}, 1, "read configuration: open "},
	} {
		var stdout, stderr strings.Builder
		code := Main(t.Context(), "test", append([]string{"keys", "create", "web"}, tt.args...), Streams{
			Out: &stdout, Err: &stderr, Width: 80, Env: func(string) (string, bool) { return "", false },
		})
		if code != tt.code || !strings.Contains(stdout.String()+stderr.String(), tt.want) {
			t.Errorf("%s: exit code %d, %s%s", name, code, stdout.String(), stderr.String())
		}
	}
}
