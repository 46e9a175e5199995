package keyring_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"signalbox/internal/testkit"
	"signalbox/proxy/auth"
	"signalbox/proxy/keyring"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// desk is a ring with its API over real HTTP.
type desk struct {
	ring  *keyring.Ring
	file  *keyring.File
	path  string
	clock *testkit.Clock
	url   string
	log   *bytes.Buffer // read it when no request is under way
}

func newDesk(t *testing.T, path string, change ...func(*keyring.Options)) *desk {
	t.Helper()
	if path == "" {
		path = filepath.Join(t.TempDir(), "keys.json")
	}
	d := &desk{path: path, clock: testkit.NewClock(), log: new(bytes.Buffer)}
	o := keyring.Options{
		Max: 100, Refresh: time.Second, Now: d.clock.Now, Log: slog.New(slog.NewJSONHandler(d.log, nil)),
		Taken: func(name string) bool { return name == "yaml" },
		Check: func(k *auth.KeyOptions) error {
			if len(k.Models) > 0 && k.Models[0] != "small" {
				return errors.New(`models[0]: there is no model "` + k.Models[0] + `"`)
			}
			return nil
		},
	}
	for _, f := range change {
		f(&o)
	}
	var err error
	if d.file, err = keyring.OpenFile(path); err != nil {
		t.Fatal(err)
	}
	d.ring = keyring.New(d.file, o)
	if err := d.ring.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(keyring.Handler(d.ring))
	t.Cleanup(s.Close)
	d.url = s.URL + keyring.Path
	return d
}

// made is the API's response about a key.
type made struct {
	ID, Name, State, Secret, Tenant, Role string
	Models                                []string
	Unknown                               []string `json:"unknown_models"`
	Rate                                  struct{ RPM int }
	Budget                                struct {
		USD    float64
		Period string
	}
	Expires time.Time `json:"expires_at"`
	Until   time.Time `json:"previous_until"`
	Error   struct {
		Message, Type string
		Param, Code   *string
	}
}

func (d *desk) call(t *testing.T, method, path, body string) (status int, got made, text string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, d.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: testkit.Patience}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") {
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatalf("%v in %s", err, b)
		}
	}
	return res.StatusCode, got, string(b)
}

// well makes a call that must succeed.
func (d *desk) well(t *testing.T, method, path, body string) made {
	t.Helper()
	status, got, text := d.call(t, method, path, body)
	if status >= 300 {
		t.Fatalf("%s %s: %d %s", method, path, status, text)
	}
	return got
}

// admits reports whether a ring admits a caller with a key.
func admits(t *testing.T, r *keyring.Ring, secret string) bool {
	t.Helper()
	sum := sha256.Sum256([]byte(secret))
	k, err := r.Find(secret, &sum)
	if err != nil {
		t.Fatal(err)
	}
	return k != nil
}

func TestAKeyLivesFromCreationToRevocation(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "")
	k := d.well(t, "POST", "", `{"name":"web","tenant":"lab","role":"staff","models":["small"],"rate":{"rpm":7},"budget":{"usd":1.5,"period":"day"}}`)
	if k.State != "active" || k.Name != "web" || k.Tenant != "lab" || k.Rate.RPM != 7 || k.Budget.USD != 1.5 || !admits(t, d.ring, k.Secret) {
		t.Errorf("made: %+v", k)
	}
	sum := sha256.Sum256([]byte(k.Secret))
	got, err := d.ring.Find(k.Secret, &sum)
	want := &auth.KeyOptions{
		Name: "web", Tenant: "lab", Role: "staff", Models: []string{"small"}, Rate: auth.RateOptions{RPM: 7},
		Budget: auth.BudgetOptions{USD: 1.5, Period: "day"},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("found %+v, %v", got, err)
	}
	for _, wrong := range []string{
		k.Secret[:len(k.Secret)-1], k.Secret + "x", strings.ToUpper(k.Secret), "sk-sbv-" + k.ID + "-", "sk-sbv-" + k.ID,
		"sk-sbv-aaaaaaaaaaaaaaaa-AAAA", "sk-sbv-", "", fmt.Sprintf("%x", sum),
	} {
		if admits(t, d.ring, wrong) {
			t.Errorf("%q is let in", wrong)
		}
	}
	d.well(t, "PATCH", "/"+k.ID, `{"rate":{"rpm":9},"models":null}`)
	if p := d.well(t, "GET", "/"+k.ID, ""); p.Rate.RPM != 9 || p.Models != nil || p.Role != "staff" || p.Budget.USD != 1.5 {
		t.Errorf("changed: %+v", p)
	}
	if status, _, text := d.call(t, "GET", "", ""); status != 200 || !strings.Contains(text, k.ID) ||
		strings.Contains(text, "sha256") || strings.Contains(text, fmt.Sprintf("%x", sum)) || strings.Contains(text, k.Secret) {
		t.Errorf("list: %d %s", status, text)
	}
	if _, _, text := d.call(t, "GET", "?tenant=other", ""); strings.Contains(text, k.ID) {
		t.Errorf("listed for another tenant: %s", text)
	}
	d.well(t, "DELETE", "/"+k.ID, "")
	if admits(t, d.ring, k.Secret) {
		t.Error("a revoked key is let in")
	}
	if status, got, _ := d.call(t, "DELETE", "/"+k.ID, ""); status != 404 || *got.Error.Code != "key_not_found" {
		t.Errorf("revoked again: %d %+v", status, got.Error)
	}
	again := d.well(t, "POST", "", `{"name":"web"}`) // the name is free again
	if again.ID == k.ID || again.Secret == k.Secret {
		t.Error("a new key is the old one")
	}
}

func TestASecretIsToldOnceAndNeverKeptOrLogged(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "")
	k := d.well(t, "POST", "", `{"name":"web","tenant":"lab","ttl":"1h"}`)
	second := d.well(t, "POST", "/"+k.ID+"/rotate", `{"grace":"1m"}`)
	d.well(t, "PATCH", "/"+k.ID, `{"role":"staff"}`)
	d.well(t, "DELETE", "/"+k.ID, "")
	third := d.well(t, "POST", "", `{"name":"kept"}`)
	file, err := os.ReadFile(d.path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(d.path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	log := d.log.String()
	for _, secret := range []string{k.Secret, second.Secret, third.Secret} {
		tail := secret[len("sk-sbv-")+17:]
		sum := fmt.Sprintf("%x", sha256.Sum256([]byte(secret)))
		if strings.Contains(log, tail) || strings.Contains(string(file), tail) || strings.Contains(log, sum) {
			t.Errorf("a secret or its hash is in the log, or a secret in the file:\n%s\n%s", log, file)
		}
	}
	if !strings.Contains(string(file), fmt.Sprintf("%x", sha256.Sum256([]byte(third.Secret)))) {
		t.Errorf("the file has no hash: %s", file)
	}
	var actions []string
	for line := range strings.Lines(log) {
		var l struct {
			Action, By, Remote, Tenant string
			ID                         string `json:"key_id"`
			Name                       string `json:"key_name"`
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		if l.By != "admin" || l.Remote == "" || l.ID == "" || l.Name == "web" && (l.ID != k.ID || l.Tenant != "lab") {
			t.Errorf("line %s", line)
		}
		actions = append(actions, l.Action)
	}
	if got := strings.Join(actions, " "); got != "create rotate change revoke create" {
		t.Errorf("audited: %s", got)
	}
}

func TestARotatedSecretWorksForItsGraceAndNoLonger(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "")
	one := d.well(t, "POST", "", `{"name":"web"}`)
	two := d.well(t, "POST", "/"+one.ID+"/rotate", `{"grace":"1h"}`)
	if !admits(t, d.ring, one.Secret) || !admits(t, d.ring, two.Secret) || two.ID != one.ID {
		t.Error("within the grace one of both is refused")
	}
	d.clock.Pass(time.Hour - time.Nanosecond)
	if !admits(t, d.ring, one.Secret) {
		t.Error("refused before the grace is over")
	}
	d.clock.Pass(time.Nanosecond)
	if admits(t, d.ring, one.Secret) || !admits(t, d.ring, two.Secret) {
		t.Error("when the grace is over the wrong one is let in")
	}
	three := d.well(t, "POST", "/"+one.ID+"/rotate", "")
	if admits(t, d.ring, two.Secret) || !admits(t, d.ring, three.Secret) {
		t.Error("without a grace the old one works")
	}
	four := d.well(t, "POST", "/"+one.ID+"/rotate", `{"grace":"1h"}`)
	five := d.well(t, "POST", "/"+one.ID+"/rotate", `{"grace":"1h"}`)
	if admits(t, d.ring, three.Secret) || !admits(t, d.ring, four.Secret) || !admits(t, d.ring, five.Secret) {
		t.Error("after two rotations, not the last two work")
	}
}

func TestAKeyExpires(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "")
	k := d.well(t, "POST", "", `{"name":"brief","ttl":"10m"}`)
	at := d.well(t, "POST", "", `{"name":"dated","expires_at":"2026-01-01T00:10:00Z"}`)
	if !k.Expires.Equal(at.Expires) {
		t.Errorf("%s and %s", k.Expires, at.Expires)
	}
	rotated := d.well(t, "POST", "/"+k.ID+"/rotate", `{"grace":"720h"}`)
	d.clock.Pass(10*time.Minute - time.Nanosecond)
	if !admits(t, d.ring, k.Secret) || !admits(t, d.ring, at.Secret) {
		t.Error("refused too early")
	}
	d.clock.Pass(time.Nanosecond)
	if admits(t, d.ring, k.Secret) || admits(t, d.ring, rotated.Secret) || admits(t, d.ring, at.Secret) {
		t.Error("let in after its end")
	}
	if got := d.well(t, "GET", "/"+k.ID, ""); got.State != "expired" {
		t.Errorf("state %s", got.State)
	}
	d.well(t, "PATCH", "/"+k.ID, `{"ttl":"1h"}`)
	if !admits(t, d.ring, rotated.Secret) {
		t.Error("refused after its end was moved")
	}
	d.well(t, "PATCH", "/"+k.ID, `{"expires_at":"2020-01-01T00:00:00Z"}`)
	if admits(t, d.ring, rotated.Secret) {
		t.Error("let in although it was ended")
	}
	d.well(t, "PATCH", "/"+k.ID, `{"expires_at":null}`)
	if !admits(t, d.ring, rotated.Secret) {
		t.Error("refused without an end")
	}
}

func TestBadRequestsAreToldWhatIsWrong(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "", func(o *keyring.Options) { o.Max = 2 })
	d.well(t, "POST", "", `{"name":"web"}`)
	k := d.well(t, "POST", "", `{"name":"other","rate":{"rpm":3}}`)
	one, before := "/"+k.ID, d.well(t, "GET", "/"+k.ID, "")
	deep := strings.Repeat(`{"rate":`, 20_000) + "1" + strings.Repeat("}", 20_000)
	for _, tt := range []struct {
		name, method, path, body string
		status                   int
		param, code              string
	}{
		{"no name", "POST", "", `{}`, 400, "name", ""},
		{"no body", "POST", "", "", 400, "name", ""},
		{"no object", "POST", "", `[]`, 400, "", ""},
		{"null", "POST", "", `null`, 400, "", ""},
		{"no JSON", "POST", "", `name: web`, 400, "", ""},
		{"two objects", "POST", "", `{"name":"a"}{"name":"b"}`, 400, "", ""},
		{"a field twice", "POST", "", `{"name":"a","name":"b"}`, 400, "name", ""},
		{"an unknown field", "POST", "", `{"name":"a","modles":["small"]}`, 400, "modles", ""},
		{"a field in other letters", "POST", "", `{"Name":"a"}`, 400, "Name", ""},
		{"an unknown field below", "POST", "", `{"name":"a","rate":{"rps":1}}`, 400, "rate.rps", ""},
		{"a hash of one's own", "POST", "", `{"name":"a","sha256":"00"}`, 400, "sha256", ""},
		{"a secret of one's own", "POST", "", `{"name":"a","secret":"sk-1"}`, 400, "secret", ""},
		{"a text for a number", "POST", "", `{"name":"a","rate":{"rpm":"1"}}`, 400, "rate.rpm", ""},
		{"a number that is too large", "POST", "", `{"name":"a","rate":{"rpm":1e30}}`, 400, "rate.rpm", ""},
		{"a rate below zero", "POST", "", `{"name":"a","rate":{"rpm":-1}}`, 400, "rate.rpm", ""},
		{"a budget below zero", "POST", "", `{"name":"a","budget":{"usd":-1}}`, 400, "budget.usd", ""},
		{"an unknown period", "POST", "", `{"name":"a","budget":{"usd":1,"period":"week"}}`, 400, "budget.period", ""},
		{"an unknown model", "POST", "", `{"name":"a","models":["lagre"]}`, 400, "models[0]", ""},
		{"a name with a line break", "POST", "", `{"name":"a\nb"}`, 400, "name", ""},
		{"a name that is too long", "POST", "", `{"name":"` + strings.Repeat("a", 201) + `"}`, 400, "name", ""},
		{"a name that is no UTF-8", "POST", "", "{\"name\":\"a\xff\"}", 400, "", ""},
		{"a tenant with a line break", "POST", "", `{"name":"a","tenant":"b\nc"}`, 400, "tenant", ""},
		{"a role that is too long", "POST", "", `{"name":"a","role":"` + strings.Repeat("a", 201) + `"}`, 400, "role", ""},
		{"an end that has passed", "POST", "", `{"name":"a","expires_at":"2025-12-31T23:59:59Z"}`, 400, "expires_at", ""},
		{"an end that is no time", "POST", "", `{"name":"a","expires_at":"tomorrow"}`, 400, "expires_at", ""},
		{"a time without a unit", "POST", "", `{"name":"a","ttl":"5"}`, 400, "ttl", ""},
		{"a time below zero", "POST", "", `{"name":"a","ttl":"-5m"}`, 400, "ttl", ""},
		{"two ends", "POST", "", `{"name":"a","ttl":"5m","expires_at":"2027-01-01T00:00:00Z"}`, 400, "ttl", ""},
		{"too deep", "POST", "", deep, 413, "", "request_too_large"},
		{"too long", "POST", "", `{"name":"` + strings.Repeat("a", 1<<20) + `"}`, 413, "", "request_too_large"},
		{"a name that is taken", "POST", "", `{"name":"web"}`, 409, "name", "key_name_taken"},
		{"a name of the configuration", "POST", "", `{"name":"yaml"}`, 409, "name", "key_name_taken"},
		{"one too many", "POST", "", `{"name":"third"}`, 409, "", "too_many_keys"},
		{"a change of the name", "PATCH", one, `{"name":"b"}`, 400, "name", ""},
		{"a change to nothing", "PATCH", one, " null\n", 400, "", ""},
		{"a bad change", "PATCH", one, `{"rate":{"rpm":-1}}`, 400, "rate.rpm", ""},
		{"a change of none", "PATCH", "/aaaaaaaaaaaaaaaa", `{}`, 404, "", "key_not_found"},
		{"a rotation of none", "POST", "/../x/rotate", `{}`, 404, "", ""},
		{"a rotation with null", "POST", one + "/rotate", `null`, 400, "", ""},
		{"a grace that is too long", "POST", one + "/rotate", `{"grace":"721h"}`, 400, "grace", ""},
		{"a grace below zero", "POST", one + "/rotate", `{"grace":"-1s"}`, 400, "grace", ""},
	} {
		status, got, text := d.call(t, tt.method, tt.path, tt.body)
		param, code := "", ""
		if got.Error.Param != nil {
			param = *got.Error.Param
		}
		if got.Error.Code != nil {
			code = *got.Error.Code
		}
		if status != tt.status || param != tt.param || code != tt.code {
			t.Errorf("%s: %d, param %q, code %q: %s", tt.name, status, param, code, text)
		}
	}
	if after := d.well(t, "GET", one, ""); !reflect.DeepEqual(before, after) {
		t.Errorf("it has changed: %+v, was %+v", after, before)
	}
}

// The removal of a model from the configuration does not prevent other changes of a key.
func TestAKeyOfAModelThatIsGoneCanBeChanged(t *testing.T) {
	t.Parallel()
	var gone atomic.Bool
	d := newDesk(t, "", func(o *keyring.Options) {
		o.Unknown = func(models []string) []string {
			if gone.Load() && slices.Contains(models, "small") {
				return []string{"small"}
			}
			return nil
		}
		o.Check = func(k *auth.KeyOptions) error {
			if len(o.Unknown(k.Models)) > 0 {
				return errors.New("models[0]: there is no model")
			}
			return nil
		}
	})
	k := d.well(t, "POST", "", `{"name":"web","models":["small"]}`)
	if len(k.Unknown) > 0 || len(d.ring.Lost()) > 0 {
		t.Errorf("of a model that is there: %q, %q", k.Unknown, d.ring.Lost())
	}
	gone.Store(true)
	one := "/" + k.ID
	if got := d.well(t, "PATCH", one, `{"ttl":"1h"}`); got.Expires.IsZero() {
		t.Errorf("changed: %+v", got)
	}
	d.well(t, "POST", one+"/rotate", "")
	got := d.well(t, "GET", one, "")
	if !slices.Equal(got.Unknown, []string{"small"}) || !slices.Equal(d.ring.Lost(), []string{k.ID}) {
		t.Errorf("told: %+v, %q", got, d.ring.Lost())
	}
	status, got, _ := d.call(t, "PATCH", one, `{"models":["other","small"]}`)
	if status != 400 || *got.Error.Param != "models[0]" {
		t.Errorf("a change that names it: %d %+v", status, got.Error)
	}
	if got := d.well(t, "PATCH", one, `{"models":["other"]}`); len(got.Unknown) > 0 {
		t.Errorf("of a model that is there: %q", got.Unknown)
	}
}

func TestAnUnknownFieldIsAnsweredWithThoseThereAre(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "")
	for body, want := range map[string]string{
		`{"name":"a","rate":{"rmp":1}}`: "rate.rmp: unknown field, expected one of rpm, tpm, concurrency",
		`{"names":"a"}`: "names: unknown field, " +
			"expected one of tenant, role, models, rate, budget, name, expires_at, ttl",
	} {
		if _, _, text := d.call(t, "POST", "", body); !strings.Contains(text, want) {
			t.Errorf("%s: %s, want %s", body, text, want)
		}
	}
}

func TestKeysOutliveTheProcess(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "")
	k := d.well(t, "POST", "", `{"name":"web","rate":{"rpm":3}}`)
	gone := d.well(t, "POST", "", `{"name":"gone"}`)
	d.well(t, "DELETE", "/"+gone.ID, "")
	next := newDesk(t, d.path)
	if !admits(t, next.ring, k.Secret) || admits(t, next.ring, gone.Secret) {
		t.Error("not the keys of before")
	}
	if got := next.well(t, "GET", "/"+k.ID, ""); got.Rate.RPM != 3 {
		t.Errorf("read again: %+v", got)
	}
}

// away is an unreachable Store.
type away struct{}

func (away) Load(context.Context, string) (map[string]string, string, error) {
	return nil, "", keyring.ErrUnavailable
}

func (away) Swap(context.Context, string, string, string, int) error { return keyring.ErrUnavailable }

func TestBeforeKeysAreReadNobodyIsRefusedForGood(t *testing.T) {
	t.Parallel()
	keys, err := auth.New(auth.Options{Mode: auth.ModeKeys, Keys: []auth.KeyOptions{{Name: "yaml", SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte("k")))}}})
	if err != nil {
		t.Fatal(err)
	}
	keys.Accept(keyring.New(away{}, keyring.Options{Max: 1, Refresh: time.Second}))
	for shown, want := range map[string]error{
		"k": nil, "other": auth.ErrBadKey, "sk-sbv-aaaaaaaaaaaaaaaa-AAAA": auth.ErrNoKeySet,
	} {
		if _, err := keys.Identify(t.Context(), http.Header{"Authorization": {"Bearer " + shown}}); !errors.Is(err, want) {
			t.Errorf("%s: %v", shown, err)
		}
	}
	if what, blind := keys.Lacking(); what == "" || !blind {
		t.Errorf("lacking %q, blind %v", what, blind)
	}
}

// A virtual key behaves like the same entry in the configuration, which takes precedence over one
// with its name.
func TestAVirtualKeyIsWhatAKeyOfTheConfigurationIs(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "")
	g := &keyring.Grants{
		Role: "staff", Models: []string{"small"}, Rate: auth.RateOptions{TPM: 9, Concurrency: 2}, Budget: auth.BudgetOptions{USD: 3},
	}
	_, secret, err := d.ring.Create(t.Context(), "web", g, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	o := auth.Options{
		Mode: auth.ModeKeys, DefaultTenant: "default",
		Roles:   []auth.RoleOptions{{Name: "staff", Models: []string{"small", "large"}, Rate: auth.RateOptions{RPM: 1}}},
		Tenants: []auth.TenantOptions{{Name: "default", Rate: auth.RateOptions{RPM: 50}, Budget: auth.BudgetOptions{USD: 9, Period: "day"}}},
	}
	identify := func(o auth.Options, shown string) (auth.Principal, error) {
		keys, err := auth.New(o)
		if err != nil {
			t.Fatal(err)
		}
		keys.Accept(d.ring)
		return keys.Identify(t.Context(), http.Header{"Authorization": {"Bearer " + shown}})
	}
	virtual, err := identify(o, secret)
	if err != nil {
		t.Fatal(err)
	}
	own := auth.KeyOptions{Name: "web", SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte("k"))), Role: g.Role, Models: g.Models, Rate: g.Rate, Budget: g.Budget}
	o.Keys = []auth.KeyOptions{own}
	static, err := identify(o, "k")
	if err != nil || !reflect.DeepEqual(virtual, static) || len(virtual.Limits) != 2 || len(virtual.Budgets) != 2 {
		t.Errorf("virtual %+v\nstatic  %+v, %v", virtual, static, err)
	}
	if who, err := identify(o, secret); !errors.Is(err, auth.ErrBadKey) {
		t.Errorf("with a key of its name in the configuration it is %+v, %v", who, err)
	}
}

func TestAKeyWhoseNameTheConfigurationTakesIsTold(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "")
	k := d.well(t, "POST", "", `{"name":"web"}`)
	next := newDesk(t, d.path, func(o *keyring.Options) { o.Taken = func(name string) bool { return name == "web" } })
	if got := next.well(t, "GET", "/"+k.ID, ""); got.State != "shadowed" {
		t.Errorf("state %s", got.State)
	}
	if !strings.Contains(next.log.String(), "the configuration has a key with the same name") {
		t.Errorf("nobody is told: %s", next.log)
	}
	if next.ring.Collision([]string{"other", "web"}) != "web" || next.ring.Collision([]string{"other"}) != "" {
		t.Error("the collision is not found")
	}
	for name, want := range map[string]bool{"web": true, "other": false} {
		if got, err := next.ring.Taken(name); got != want || err != nil {
			t.Errorf("%s is taken: %v, %v", name, got, err)
		}
	}
	if _, err := keyring.New(away{}, keyring.Options{Max: 1}).Taken("web"); err == nil {
		t.Error("a name is free though no key was read")
	}
}

// A field added to configured keys must be added to Grants, with the same name.
func TestVirtualKeysHaveEveryFieldOfAKey(t *testing.T) {
	t.Parallel()
	var same func(own, virtual reflect.Type)
	same = func(own, virtual reflect.Type) {
		for f := range own.Fields() {
			if f.Name == "Name" || f.Name == "SHA256" {
				continue
			}
			v, ok := virtual.FieldByName(f.Name)
			name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			member, _, _ := strings.Cut(v.Tag.Get("json"), ",")
			if !ok || v.Type != f.Type || member != name {
				t.Errorf("%s.%s: there is no such field %q in %s", own, f.Name, name, virtual)
			}
			if f.Type.Kind() == reflect.Struct {
				same(f.Type, f.Type)
			}
		}
	}
	same(reflect.TypeFor[auth.KeyOptions](), reflect.TypeFor[keyring.Grants]())
}

func TestRequestsReadWhileKeysChange(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "")
	k := d.well(t, "POST", "", `{"name":"steady","models":["small"]}`)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			sum := sha256.Sum256([]byte(k.Secret))
			for ctx.Err() == nil {
				if found, err := d.ring.Find(k.Secret, &sum); err != nil || found == nil || found.Models[0] != "small" {
					t.Errorf("found %v, %v", found, err)
					return
				}
			}
		})
	}
	wg.Go(func() { _ = d.ring.Run(ctx) })
	for i := range 20 {
		d.well(t, "PATCH", "/"+k.ID, fmt.Sprintf(`{"rate":{"rpm":%d},"models":["small"]}`, i+1))
		other := d.well(t, "POST", "", fmt.Sprintf(`{"name":"other-%d"}`, i))
		d.well(t, "DELETE", "/"+other.ID, "")
	}
	stop()
	wg.Wait()
}

func TestLookingForAKeyAllocatesNothing(t *testing.T) {
	d := newDesk(t, "")
	k := d.well(t, "POST", "", `{"name":"web"}`)
	sum := sha256.Sum256([]byte(k.Secret))
	if n := testing.AllocsPerRun(100, func() { _, _ = d.ring.Find(k.Secret, &sum) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
