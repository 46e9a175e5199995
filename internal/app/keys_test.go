package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"signalbox/internal/config"
	"signalbox/internal/testkit"
	"signalbox/proxy/keyring"
)

// keysAt is a configuration with virtual keys. %s are the address of a model server, and where keys
// are kept.
const keysAt = `
models:
  - {name: m, price: {input: 1, output: 1000000}, endpoints: [{name: a, url: "%s/v1"}], health: {path: "off"}}
  - {name: other, endpoints: [{name: a, url: "http://127.0.0.1:9/v1"}], health: {path: "off"}}
default: {models: [m]}
server: {admin_token: "${ADMIN}"}
`

// withKeys reads it, with sections besides.
func withKeys(t *testing.T, upstream, more string) *config.Config {
	t.Helper()
	cfg, _, err := config.Parse("test.yaml", []byte(fmt.Sprintf(keysAt, upstream)+more), keyEnv, Catalog)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func keyEnv(name string) (string, bool) {
	switch name {
	case "ADMIN":
		return "admin-token", true
	case "SALT":
		return "0123456789abcdef0123456789abcdef", true
	}
	return os.LookupEnv(name)
}

// virtual asks the admin listener about keys.
func (s *server) virtual(t *testing.T, method, path, body string) answer {
	t.Helper()
	return do(t, method, s.admin+"/-/keys"+path, body, "Authorization", "Bearer admin-token")
}

// newKey makes a key and returns it.
func (s *server) newKey(t *testing.T, body string) (id, secret string) {
	t.Helper()
	got := s.virtual(t, http.MethodPost, "", body)
	if got.status != http.StatusCreated {
		t.Fatalf("create: %d %s", got.status, got.body)
	}
	if c := got.header.Get("Cache-Control"); c != "no-store" {
		t.Errorf("a secret may be cached: %q", c)
	}
	return memberOf(t, got.body, "id"), memberOf(t, got.body, "secret")
}

// with sends a chat with a key, and returns status and code of the error.
func (s *server) with(t *testing.T, secret, model string) (status int, code string) {
	t.Helper()
	got := s.post(t, "/v1/chat/completions", `{"model":"`+model+`","max_tokens":1,"messages":[{"role":"user","content":"hello"}]}`,
		"Authorization", "Bearer "+secret)
	var e struct{ Error struct{ Code string } }
	_ = json.Unmarshal([]byte(got.body), &e)
	return got.status, e.Error.Code
}

func (s *server) wants(t *testing.T, what, secret, model string, status int, code string) {
	t.Helper()
	if got, told := s.with(t, secret, model); got != status || told != code {
		t.Errorf("%s: %d %q, want %d %q", what, got, told, status, code)
	}
}

func TestOperatorsMakeKeysWhileTheProxyRuns(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys.json")
	auth := "auth: {mode: keys, virtual: {file: '" + file + "'}, tenants: [{name: lab, models: [m]}]}\n"
	up := instant(t)
	clock := testkit.NewClock()
	var id, secret string
	t.Run("before", func(t *testing.T) {
		s := serveWith(t, withKeys(t, up, auth), Options{Settings: flags(t), now: clock.Now})
		s.wants(t, "nobody's key", "sk-sbv-aaaaaaaaaaaaaaaa-AAAA", "m", 401, "invalid_api_key")
		for what, got := range map[string]answer{
			"no token": do(t, http.MethodPost, s.admin+"/-/keys", `{"name":"x"}`), "a wrong one": do(t, http.MethodGet, s.admin+"/-/keys", "", "Authorization", "Bearer x"),
			"a web page": do(t, http.MethodGet, s.admin+"/-/keys", "", "Authorization", "Bearer admin-token", "Origin", "http://evil.example"),
		} {
			if got.status != http.StatusForbidden {
				t.Errorf("%s: %d %s", what, got.status, got.body)
			}
		}
		if got := do(t, http.MethodGet, s.url+"/-/keys", "", "Authorization", "Bearer admin-token"); got.status != http.StatusUnauthorized && got.status != http.StatusNotFound {
			t.Errorf("the main listener answers: %d %s", got.status, got.body)
		}
		if got := s.virtual(t, http.MethodPost, "", `{"name":"x","models":["othr"]}`); got.status != 400 || !strings.Contains(got.body, `did you mean \"other\"`) {
			t.Errorf("an unknown model: %d %s", got.status, got.body)
		}
		id, secret = s.newKey(t, `{"name":"web"}`)
		s.wants(t, "a new key", secret, "m", 200, "")
		_, few := s.newKey(t, `{"name":"few","rate":{"rpm":1}}`)
		s.wants(t, "one a minute", few, "m", 200, "")
		s.wants(t, "the second in a minute", few, "m", 429, "rate_limit_exceeded")
		_, narrow := s.newKey(t, `{"name":"narrow","models":["m"]}`)
		s.wants(t, "a model that it may not use", narrow, "other", 404, "model_not_found")
		_, lab := s.newKey(t, `{"name":"lab","tenant":"lab"}`)
		s.wants(t, "a model that its tenant may not use", lab, "other", 404, "model_not_found")
		_, poor := s.newKey(t, `{"name":"poor","budget":{"usd":0.5,"period":"day"}}`) // a token of the answer is a dollar
		s.wants(t, "a budget that is too small", poor, "m", 429, "insufficient_quota")
		briefID, brief := s.newKey(t, `{"name":"brief","ttl":"1h"}`)
		s.wants(t, "before it expires", brief, "m", 200, "")
		clock.Pass(time.Hour)
		s.wants(t, "when it has expired", brief, "m", 401, "invalid_api_key")
		if got := s.virtual(t, http.MethodGet, "/"+briefID, ""); memberOf(t, got.body, "state") != "expired" {
			t.Errorf("expired: %s", got.body)
		}
		got := s.virtual(t, http.MethodPost, "/"+id+"/rotate", `{"grace":"1h"}`)
		second := memberOf(t, got.body, "secret")
		s.wants(t, "the old secret, in its grace", secret, "m", 200, "")
		s.wants(t, "the new secret", second, "m", 200, "")
		clock.Pass(time.Hour)
		s.wants(t, "the old secret, after it", secret, "m", 401, "invalid_api_key")
		s.wants(t, "the new secret, after it", second, "m", 200, "")
		secret = second
		doomed, revoked := s.newKey(t, `{"name":"doomed"}`)
		s.wants(t, "before it is revoked", revoked, "m", 200, "")
		if got := s.virtual(t, http.MethodDelete, "/"+doomed, ""); got.status != http.StatusOK {
			t.Errorf("revoke: %d %s", got.status, got.body)
		}
		s.wants(t, "revoked", revoked, "m", 401, "invalid_api_key")
	})
	t.Run("after a restart", func(t *testing.T) {
		s := serveWith(t, withKeys(t, up, auth), Options{Settings: flags(t), now: clock.Now})
		s.wants(t, "a key of before", secret, "m", 200, "")
		if got := s.virtual(t, http.MethodGet, "", ""); strings.Count(got.body, `"id"`) != 6 {
			t.Errorf("list: %s", got.body)
		}
	})
}

func TestNamesOfKeysDoNotCollide(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "signalbox.yaml")
	up := instant(t)
	write := func(names ...string) {
		text := fmt.Sprintf(keysAt, up) + "auth:\n  mode: keys\n  virtual: {file: keys.json}\n  keys:\n"
		for _, name := range names {
			text += "    - {name: " + name + ", sha256: 9a2ef6f4d4ef25f8df1e9a8a1f8b7a90e8bd3c5d0aa1f14e8f3a53ab8f6f3c11}\n"
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("own")
	cfg, _, err := config.Load(file, keyEnv, Catalog)
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, cfg, flags(t))
	s.app.opts.Env = keyEnv
	if got := s.virtual(t, http.MethodPost, "", `{"name":"own"}`); got.status != http.StatusConflict {
		t.Errorf("the name of a key of the file: %d %s", got.status, got.body)
	}
	_, secret := s.newKey(t, `{"name":"web"}`)
	if _, err := os.Stat(filepath.Join(dir, "keys.json")); err != nil {
		t.Errorf("the path is not that beside the configuration: %v", err)
	}
	write("web")
	if err := s.app.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), `"web" is already the name of a virtual key`) {
		t.Errorf("reload: %v", err)
	}
	s.wants(t, "with the configuration that is kept", secret, "m", 200, "")
	write("later")
	if err := s.app.Reload(t.Context()); err != nil {
		t.Errorf("reload: %v", err)
	}
	s.wants(t, "after a reload", secret, "m", 200, "")
	if got := s.virtual(t, http.MethodPost, "", `{"name":"later"}`); got.status != http.StatusConflict {
		t.Errorf("the name of a key that came with a reload: %d %s", got.status, got.body)
	}
}

// A reload that takes a model away tells of the keys that name it.
func TestAReloadTellsOfKeysWhoseModelIsGone(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "signalbox.yaml")
	write := func(text string) {
		text += "auth: {mode: keys, virtual: {file: keys.json}}\ntelemetry: {log: warn}\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text := fmt.Sprintf(keysAt, "http://127.0.0.1:9")
	write(text)
	cfg, _, err := config.Load(file, keyEnv, Catalog)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	a, err := Build(t.Context(), cfg, Options{Version: "test", Log: &log, Env: keyEnv})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close(context.Background()) })
	k, _, err := a.keys.Create(t.Context(), "web", &keyring.Grants{Models: []string{"m", "other"}}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	for _, gone := range []bool{false, true} {
		log.Reset()
		now := text
		if gone {
			now = strings.Replace(text, "name: other", "name: new", 1)
		}
		write(now)
		if err := a.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		if told := strings.Contains(log.String(), "keys=1 key_ids="+k.ID); told != gone {
			t.Errorf("the model is gone: %t, the log says %s", gone, log.String())
		}
	}
}

func TestASlipInTheRoleOfAVirtualKeyIsTold(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys.json")
	s := serve(t, withKeys(t, instant(t), "auth: {mode: keys, virtual: {file: "+path+"}, "+
		"roles: [{name: staff, models: [m]}], tenants: [{name: acme}, {name: team-a}]}\n"), flags(t))
	for body, want := range map[string]string{
		`{"name": "a", "role": "staff", "tenant": "acme"}`:   "",
		`{"name": "b", "role": "guest", "tenant": "team-b"}`: "",
		`{"name": "c", "role": "stafff"}`:                    `nothing is configured for role "stafff", did you mean "staff"?`,
		`{"name": "d", "role": "admni", "tenant": "amce"}`: `nothing is configured for role "admni", did you mean "admin"?; ` +
			`nothing is configured for tenant "amce", did you mean "acme"?`,
	} {
		var k struct{ Hint string }
		got := s.virtual(t, http.MethodPost, "", body)
		if err := json.Unmarshal([]byte(got.body), &k); err != nil || got.status != http.StatusCreated || k.Hint != want {
			t.Errorf("%s: %d, hint %q, want %q", body, got.status, k.Hint, want)
		}
	}
}

func TestWithoutVirtualKeysTheAPISaysSo(t *testing.T) {
	t.Parallel()
	s := serve(t, withKeys(t, instant(t), ""), flags(t))
	if got := s.virtual(t, http.MethodGet, "", ""); got.status != http.StatusNotFound || !strings.Contains(got.body, "virtual_keys_off") {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// eventually asks until ok, since replicas look for changes from time to time.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(testkit.Patience); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

func TestReplicasShareVirtualKeys(t *testing.T) {
	t.Parallel()
	redis := testkit.NewRedis(t)
	more := "auth: {mode: keys, virtual: {redis: true, refresh: 100ms, max: 3}}\n" +
		"memory: {salt_secret: '${SALT}', redis: {url: '" + redis.URL() + "', blob_timeout: 5s}}\n"
	up := instant(t)
	a, b := serve(t, withKeys(t, up, more), flags(t)), serve(t, withKeys(t, up, more), flags(t))
	let := func(s *server, secret string) bool {
		status, _ := s.with(t, secret, "m")
		return status == http.StatusOK
	}
	id, secret := a.newKey(t, `{"name":"web"}`)
	if !let(a, secret) {
		t.Error("the replica that made it refuses it")
	}
	eventually(t, "the other replica lets a new key in", func() bool { return let(b, secret) })
	if got := b.virtual(t, http.MethodPost, "", `{"name":"web"}`); got.status != http.StatusConflict {
		t.Errorf("the same name on the other replica: %d %s", got.status, got.body)
	}
	if got := b.virtual(t, http.MethodDelete, "/"+id, ""); got.status != http.StatusOK {
		t.Errorf("revoke: %d %s", got.status, got.body)
	}
	if let(b, secret) {
		t.Error("the replica that revoked it lets it in")
	}
	eventually(t, "the other replica refuses a revoked key", func() bool { return !let(a, secret) })
	kept, steady := a.newKey(t, `{"name":"steady"}`)
	_, _ = b.newKey(t, `{"name":"second"}`) // which has read all before
	_, _ = a.newKey(t, `{"name":"third"}`)
	if got := b.virtual(t, http.MethodPost, "", `{"name":"fourth"}`); got.status != http.StatusConflict || !strings.Contains(got.body, "too_many_keys") {
		t.Errorf("one too many: %d %s", got.status, got.body)
	}
	eventually(t, "both replicas let it in", func() bool { return let(a, steady) && let(b, steady) })

	redis.Kill()
	if !let(a, steady) || !let(b, steady) {
		t.Error("without Redis a known key is refused")
	}
	if got := a.virtual(t, http.MethodDelete, "/"+kept, ""); got.status != http.StatusServiceUnavailable || !strings.Contains(got.body, "keys_unavailable") {
		t.Errorf("without Redis a key is revoked: %d %s", got.status, got.body)
	}
	eventually(t, "it tells that it is blind to changes", func() bool {
		return strings.Contains(do(t, http.MethodGet, a.admin+"/readyz", "").body, "virtual keys cannot be reloaded")
	})
	late := serve(t, withKeys(t, up, more), flags(t)) // it has never read them
	late.wants(t, "a replica that knows no keys", steady, "m", 503, "auth_unavailable")
	late.wants(t, "a replica that knows no keys", "sk-other", "m", 401, "invalid_api_key")
	if got := do(t, http.MethodGet, late.url+"/readyz", ""); got.status != http.StatusServiceUnavailable || !strings.Contains(got.body, "virtual keys are not loaded yet") {
		t.Errorf("it is ready: %d %s", got.status, got.body)
	}
	for _, path := range []string{"", "/" + kept} {
		got := late.virtual(t, http.MethodGet, path, "")
		if got.status != http.StatusServiceUnavailable || !strings.Contains(got.body, "so no key is known yet") {
			t.Errorf("it is asked for keys: %d %s", got.status, got.body)
		}
	}

	redis.Start()
	eventually(t, "a replica that began without Redis reads the keys", func() bool { return let(late, steady) })
	eventually(t, "keys can be changed again", func() bool {
		return a.virtual(t, http.MethodDelete, "/"+kept, "").status == http.StatusOK
	})
	for name, s := range map[string]*server{"a": a, "b": b, "late": late} {
		eventually(t, name+" refuses the revoked key", func() bool { return !let(s, steady) })
	}
}

func TestAKeyTellsWhatIsUsedOfItsBounds(t *testing.T) {
	t.Parallel()
	auth := fmt.Sprintf(`auth:
  mode: keys
  virtual: {file: %q}
  tenants: [{name: lab, budget: {usd: 90, period: day}, rate: {tpm: 300}}]
`, filepath.Join(t.TempDir(), "keys.json"))
	s := serve(t, withKeys(t, instant(t), auth), flags(t))
	id, secret := s.newKey(t, `{"name":"web","tenant":"lab","rate":{"rpm":5},"budget":{"usd":50},"ttl":"30d"}`)
	s.wants(t, "the first request", secret, "m", 200, "")
	var got struct {
		Expires time.Time `json:"expires_at"`
		Usage   []struct {
			Of, What, Per     string
			Limit, Used, Left float64
			Resets            time.Time `json:"resets_at"`
			Alone             bool      `json:"replica_alone"`
		}
	}
	text := s.virtual(t, http.MethodGet, "/"+id, "").body
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	if left := time.Until(got.Expires); left < 29*24*time.Hour || left > 31*24*time.Hour {
		t.Errorf("a ttl of 30 days ends in %s", left)
	}
	var found []string
	for _, u := range got.Usage {
		found = append(found, u.Of+" "+u.What+" a "+u.Per)
		if u.Used <= 0 || u.Left <= 0 || u.Used+u.Left != u.Limit || !u.Alone ||
			u.Resets.Before(time.Now().Add(-time.Second)) {
			t.Errorf("%+v", u)
		}
	}
	slices.Sort(found)
	want := []string{"key requests a minute", "key usd a month", "tenant tokens a minute", "tenant usd a day"}
	if !slices.Equal(found, want) {
		t.Errorf("%q in %s", found, text)
	}
	if again := s.virtual(t, http.MethodGet, "/"+id, "").body; !strings.Contains(again, `"used":1,"left":4`) {
		t.Errorf("looking uses up: %s", again)
	}
	bad := s.virtual(t, http.MethodPost, "", `{"name":"x","ttl":"30x"}`)
	if bad.status != http.StatusBadRequest || !strings.Contains(bad.body, `"param":"ttl"`) ||
		!strings.Contains(bad.body, "30d") {
		t.Errorf("a ttl that is none: %d %s", bad.status, bad.body)
	}
}

// What a replica counts alone are requests: an operator who looks at a key is none.
func TestLookingAtAKeyIsNoRequest(t *testing.T) {
	t.Parallel()
	redis := testkit.NewRedis(t)
	more := fmt.Sprintf("auth: {mode: keys, virtual: {file: %q}}\n"+
		"memory: {salt_secret: '${SALT}', redis: {url: %q}}\n", filepath.Join(t.TempDir(), "keys.json"), redis.URL())
	s := serve(t, withKeys(t, instant(t), more), flags(t))
	id, _ := s.newKey(t, `{"name":"web","rate":{"rpm":5,"tpm":100},"budget":{"usd":50}}`)
	redis.Kill()
	if got := s.virtual(t, http.MethodGet, "/"+id, "").body; strings.Count(got, `"replica_alone":true`) != 3 {
		t.Errorf("without Redis: %s", got)
	}
	page := do(t, http.MethodGet, s.admin+"/metrics", "").body
	if got := regexp.MustCompile(`limits_local_total\{.*\} [1-9].*`).FindString(page); got != "" {
		t.Error(got)
	}
}
