package hub

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/hub/hubtest"
	"signalbox/internal/hub/local"
)

func TestRefusalsSayWhatToDo(t *testing.T) {
	private := func(token string) *hubtest.Repo {
		r := classifier()
		r.Token = token
		return r
	}
	gated := classifier()
	gated.Gated = true
	noTokenizer := classifier()
	noTokenizer.Files = noTokenizer.Files[:5]
	tests := map[string]struct {
		repo  *hubtest.Repo
		token string
		ask   Request
		want  error
		text  []string
	}{
		"a private repository without a token": {
			private("hf_right"), "",
			Request{Repo: "org/intent"},
			ErrUnauthorized,
			[]string{"answered 401", "check the spelling", "set HF_TOKEN"},
		},
		"a token that the hub does not know": {
			private("hf_right"), "hf_wrong",
			Request{Repo: "org/intent"},
			ErrUnauthorized,
			[]string{"does not know this token", "/settings/tokens"},
		},
		"a repository whose terms were not accepted": {
			gated, "hf_right",
			Request{Repo: "org/intent"},
			ErrGated,
			[]string{"answered 403 GatedRepo", "accept its terms at", "/org/intent"},
		},
		"no such repository": {
			classifier(), "hf_right",
			Request{Repo: "org/intend"},
			ErrNoRepo,
			[]string{"org/intend@main", "RepoNotFound", "check the spelling"},
		},
		"no such revision": {
			classifier(), "",
			Request{Repo: "org/intent", Revision: "v9"},
			ErrNoRevision,
			[]string{"org/intent@v9", "want a branch, a tag or a commit"},
		},
		"a name that is no repository": {
			classifier(), "",
			Request{Repo: "../intent"},
			local.ErrName,
			[]string{`"../intent"`},
		},
		"a precision that is none": {
			classifier(), "",
			Request{Repo: "org/intent", Selection: Selection{Precision: "int4"}},
			nil,
			[]string{`precision "int4" is not one of`},
		},
		"a precision that the repository does not have": {
			classifier(), "",
			Request{Repo: "org/intent", Selection: Selection{Precision: "int8"}},
			ErrNoModel,
			[]string{"no graph of precision int8", "onnx/model.onnx, onnx/model_sdpa_fp16.onnx"},
		},
		"a repository without a graph": {
			noTokenizer, "",
			Request{Repo: "org/intent"},
			ErrNoModel,
			[]string{"no ONNX graph"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, func(o *Options) { o.Token = tt.token }, tt.repo)
			tt.ask.ModelsDir = f.dir
			_, err := f.client.Pull(t.Context(), tt.ask)
			if err == nil || tt.want != nil && !errors.Is(err, tt.want) {
				t.Fatalf("error %v, want %v", err, tt.want)
			}
			for _, s := range tt.text {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("error %q does not say %q", err, s)
				}
			}
			if len(f.waits) != 0 {
				t.Errorf("tried again after %v", f.waits)
			}
			if got, _ := filepath.Glob(filepath.Join(f.dir, "*")); got != nil {
				t.Errorf("folders were left behind: %v", got)
			}
		})
	}
}

func TestAFileThatIsGoneIsNamed(t *testing.T) {
	f := newFixture(t, nil, classifier())
	f.hub.Intercept = func(_ string, w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/config.json") {
			return false
		}
		hubtest.Refuse(w, http.StatusNotFound, "EntryNotFound", "Entry not found")
		return true
	}
	_, err := f.pull(t)
	if !errors.Is(err, ErrNoFile) || !strings.Contains(err.Error(), "config.json") {
		t.Errorf("error %v, want ErrNoFile with the name", err)
	}
}

func TestTheTokenStaysWithTheHub(t *testing.T) {
	repo := classifier()
	repo.Token = "hf_secret"
	f := newFixture(t, func(o *Options) { o.Token = "hf_secret" }, repo)
	f.mustPull(t)
	seen := map[string]int{}
	for _, r := range f.hub.Requests() {
		seen[r.Host]++
		want := ""
		if r.Host == hubtest.HubHost {
			want = "Bearer hf_secret"
		}
		if r.Authorization != want {
			t.Errorf("%s %s: authorization %q, want %q", r.Host, r.Path, r.Authorization, want)
		}
	}
	if seen[hubtest.HubHost] == 0 || seen[hubtest.CDNHost] == 0 {
		t.Errorf("requests by host: %v", seen)
	}
}

func TestWhoMayGetTheToken(t *testing.T) {
	tests := map[string]struct {
		endpoint, url string
		want          bool
	}{
		"the hub":                                 {"https://hub.example", "https://hub.example/a", true},
		"the hub with its port written out":       {"https://hub.example", "https://HUB.example:443/a", true},
		"a host below the hub's":                  {"https://hub.example", "https://cdn.hub.example/a", false},
		"another port of the hub":                 {"https://hub.example", "https://hub.example:8443/a", false},
		"the hub without encryption":              {"https://hub.example", "http://hub.example/a", false},
		"a mirror that is never encrypted":        {"http://10.0.0.1:8080", "http://10.0.0.1:8080/a", false},
		"a mirror on this machine":                {"http://127.0.0.1:8080", "http://127.0.0.1:8080/a", true},
		"a mirror on this machine under v6":       {"http://[::1]:8080", "http://[::1]:8080/a", true},
		"a mirror on this machine under a name":   {"http://localhost", "http://localhost:80/a", true},
		"another name of the mirror's own host":   {"http://127.0.0.1:8080", "http://localhost:8080/a", false},
		"a host whose name begins with the hub's": {"https://hub.example", "https://hub.example.evil.org/a", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			o := DefaultOptions()
			o.Endpoint, o.Token = tt.endpoint, "hf_secret"
			c, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			u, err := url.Parse(tt.url)
			if err != nil {
				t.Fatal(err)
			}
			if got := c.sendsToken(u); got != tt.want {
				t.Errorf("sends the token: %v, want %v", got, tt.want)
			}
		})
	}
}

func TestABusyHubIsAskedAgainWhenItSays(t *testing.T) {
	tests := map[string]struct {
		status int
		header [2]string
		want   time.Duration // the injected randomness makes a wait of n at least n/2
	}{
		"after seconds":                {429, [2]string{"Retry-After", "7"}, 7 * time.Second},
		"after a date":                 {503, [2]string{"Retry-After", now.Add(90 * time.Second).Format(http.TimeFormat)}, 90 * time.Second},
		"after a date in the past":     {503, [2]string{"Retry-After", now.Add(-time.Hour).Format(http.TimeFormat)}, 500 * time.Millisecond},
		"when the hub's window resets": {429, [2]string{"RateLimit", `"api";r=0;t=55`}, 55 * time.Second},
		"without a word":               {502, [2]string{"X-Nothing", "1"}, 500 * time.Millisecond},
		"with a word that is none":     {429, [2]string{"Retry-After", "soon"}, 500 * time.Millisecond},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, nil, classifier())
			var asked atomic.Int32
			f.hub.Intercept = func(_ string, w http.ResponseWriter, r *http.Request) bool {
				if !strings.Contains(r.URL.Path, "/revision/") || asked.Add(1) > 1 {
					return false
				}
				w.Header().Set(tt.header[0], tt.header[1])
				hubtest.Refuse(w, tt.status, "", "later")
				return true
			}
			f.mustPull(t)
			if d := cmp.Diff([]time.Duration{tt.want}, f.waits); d != "" {
				t.Errorf("waits (-want +got):\n%s", d)
			}
			if e := f.events[0]; e.Kind != Retrying || !errors.Is(e.Err, ErrBusy) || e.Wait != tt.want {
				t.Errorf("first event %+v", e)
			}
		})
	}
}

func TestAHubThatStaysBusyIsGivenUp(t *testing.T) {
	f := newFixture(t, nil, classifier())
	f.hub.Intercept = func(_ string, w http.ResponseWriter, _ *http.Request) bool {
		hubtest.Refuse(w, http.StatusServiceUnavailable, "", "later")
		return true
	}
	_, err := f.pull(t)
	if !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "gave up after 6 attempts") {
		t.Errorf("error %v", err)
	}
	half := 500 * time.Millisecond
	if d := cmp.Diff([]time.Duration{half, 2 * half, 4 * half, 8 * half, 16 * half}, f.waits); d != "" {
		t.Errorf("waits (-want +got):\n%s", d)
	}
}

func TestAWaitThatIsTooLongIsNotWaited(t *testing.T) {
	f := newFixture(t, nil, classifier())
	f.hub.Intercept = func(_ string, w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Retry-After", "86400")
		hubtest.Refuse(w, http.StatusTooManyRequests, "", "later")
		return true
	}
	if _, err := f.pull(t); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "24h0m0s") || f.waits != nil {
		t.Errorf("error %v, waits %v", err, f.waits)
	}
}

func TestAWaitEndsWithItsContext(t *testing.T) {
	f := newFixture(t, nil, classifier())
	ctx, stop := context.WithCancel(t.Context())
	f.client.o.Sleep = func(ctx context.Context, _ time.Duration) error { stop(); return ctx.Err() }
	f.hub.Intercept = func(_ string, w http.ResponseWriter, _ *http.Request) bool {
		hubtest.Refuse(w, http.StatusServiceUnavailable, "", "later")
		return true
	}
	if _, err := f.client.Pull(ctx, f.request()); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want cancelled", err)
	}
}

func TestAStorageHostThatRefusesIsTriedThroughTheHubAgain(t *testing.T) {
	repo := classifier()
	f := newFixture(t, nil, repo)
	var refused atomic.Int32
	f.hub.Intercept = func(host string, w http.ResponseWriter, _ *http.Request) bool {
		if host == hubtest.CDNHost && refused.Add(1) <= 2 {
			http.Error(w, "expired", http.StatusForbidden)
			return true
		}
		return false
	}
	f.mustPull(t)
	checkContent(t, filepath.Join(f.dir, "org--intent"), repo)
	if len(f.waits) != 2 {
		t.Errorf("waited %v", f.waits)
	}
}

func TestMessagesKeepSignedAddressesToThemselves(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"a refusal":              func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) },
		"a connection that ends": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, func(o *Options) { o.Attempts = 2 }, classifier())
			f.hub.Intercept = func(host string, w http.ResponseWriter, r *http.Request) bool {
				if host == hubtest.CDNHost {
					answer(w, r)
					return true
				}
				return false
			}
			_, err := f.pull(t)
			if err == nil {
				t.Fatal("no error")
			}
			if strings.Contains(err.Error(), f.hub.Signature()) {
				t.Errorf("error %q has the signature", err)
			}
			for _, e := range f.events {
				if e.Err != nil && strings.Contains(e.Err.Error(), f.hub.Signature()) {
					t.Errorf("event %q has the signature", e.Err)
				}
			}
		})
	}
}

func TestRedirectsAreBounded(t *testing.T) {
	tests := map[string]struct {
		location string
		want     string
	}{
		"a circle":                {"/org/intent/resolve/main/loop/config.json", "more than 8 redirects"},
		"an address that is none": {"", "redirects to no address"},
		"another protocol":        {"file:///etc/passwd", "redirects to no address"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, nil, classifier())
			f.hub.Intercept = func(_ string, w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasSuffix(r.URL.Path, "config.json") {
					return false
				}
				w.Header().Set("Location", tt.location)
				w.WriteHeader(http.StatusFound)
				return true
			}
			_, err := f.pull(t)
			if !errors.Is(err, ErrProtocol) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

// answers is a transport that sends no request.
type answers func(*http.Request) *http.Response

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	resp := a(r)
	resp.Request, resp.Body = r, http.NoBody
	return resp, nil
}

func TestAnEncryptedHubDoesNotRedirectInClearText(t *testing.T) {
	o := DefaultOptions()
	o.Transport = answers(func(*http.Request) *http.Response {
		return &http.Response{StatusCode: http.StatusFound, Header: http.Header{"Location": {"http://huggingface.co/x"}}}
	})
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.list(t.Context(), "org/intent", "", func(Event) {}); !errors.Is(err, ErrProtocol) || !strings.Contains(err.Error(), "from https to http") {
		t.Errorf("error %v", err)
	}
}

func TestATransferThatStallsIsTriedAgain(t *testing.T) {
	repo := classifier()
	f := newFixture(t, func(o *Options) { o.Stall = 50 * time.Millisecond }, repo)
	var stalled atomic.Int32
	f.hub.Intercept = func(host string, _ http.ResponseWriter, r *http.Request) bool {
		if host == hubtest.CDNHost && r.Header.Get("Range") == "bytes=0-999" && stalled.Add(1) == 1 {
			<-r.Context().Done() // sends nothing, ever
			return true
		}
		return false
	}
	f.mustPull(t)
	checkContent(t, filepath.Join(f.dir, "org--intent"), repo)
	found := false
	for _, e := range f.events {
		found = found || e.Kind == Retrying && errors.Is(e.Err, errStalled)
	}
	if !found {
		t.Error("no event tells of the stall")
	}
}

func TestServersThatAreNoHubAreToldApart(t *testing.T) {
	for name, body := range map[string]string{
		"a web page":                 "<html>",
		"JSON of another kind":       `{"hello": "world"}`,
		"a commit that is none":      `{"sha": "main", "siblings": []}`,
		"siblings of the wrong type": `{"sha": 1}`,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, nil, classifier())
			f.hub.Intercept = func(_ string, w http.ResponseWriter, _ *http.Request) bool {
				_, _ = w.Write([]byte(body))
				return true
			}
			if _, err := f.client.list(t.Context(), "org/intent", "", func(Event) {}); !errors.Is(err, ErrProtocol) {
				t.Errorf("error %v, want ErrProtocol", err)
			}
		})
	}
}

func TestAHubThatCannotBeReachedIsNamed(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.Endpoint, o.Attempts = "http://127.0.0.1:1", 2 }, classifier())
	_, err := f.pull(t)
	if err == nil || !strings.Contains(err.Error(), "127.0.0.1:1 cannot be reached") || !strings.Contains(err.Error(), "HTTPS_PROXY") {
		t.Errorf("error %v", err)
	}
	if len(f.waits) != 1 {
		t.Errorf("waits %v, want one", f.waits)
	}
}

func TestEndpointsThatAreNone(t *testing.T) {
	for _, endpoint := range []string{"", "huggingface.co", "ftp://x", "https://", "https://user:pw@hub.example", "https://hub.example?x=1", "://"} {
		o := DefaultOptions()
		o.Endpoint = endpoint
		if _, err := New(o); err == nil {
			t.Errorf("endpoint %q was accepted", endpoint)
		} else if strings.Contains(err.Error(), "pw") {
			t.Errorf("error %q shows the password", err)
		}
	}
}

func TestOptionsReportEveryProblem(t *testing.T) {
	_, err := New(Options{})
	for _, want := range []string{"connections: 0", "part bytes: 0", "attempts: 0", "stall: 0s", "a function is missing", "endpoint"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not say %q", err, want)
		}
	}
}

func TestWhereTheTokenComesFrom(t *testing.T) {
	home := t.TempDir()
	write := func(name, content string) string {
		file := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	write(".cache/huggingface/token", "hf_home\n")
	write("xdg/huggingface/token", "hf_xdg")
	write("hf/token", "hf_folder")
	named := write("named", "hf_named")
	broken := write("broken", "hf_a\nhf_b")
	tests := map[string]struct {
		env  map[string]string
		want string
		err  string
	}{
		"HF_TOKEN wins":                       {map[string]string{"HF_TOKEN": " hf_a \n", "HUGGING_FACE_HUB_TOKEN": "hf_b", "HOME": home}, "hf_a", ""},
		"the older name":                      {map[string]string{"HUGGING_FACE_HUB_TOKEN": "hf_b", "HOME": home}, "hf_b", ""},
		"an empty variable is none":           {map[string]string{"HF_TOKEN": " ", "HOME": home}, "hf_home", ""},
		"a file that is named":                {map[string]string{"HF_TOKEN_PATH": named, "HF_HOME": home + "/hf", "HOME": home}, "hf_named", ""},
		"the hub's folder":                    {map[string]string{"HF_HOME": home + "/hf", "XDG_CACHE_HOME": home + "/xdg", "HOME": home}, "hf_folder", ""},
		"the cache folder":                    {map[string]string{"XDG_CACHE_HOME": home + "/xdg", "HOME": home}, "hf_xdg", ""},
		"no file":                             {map[string]string{"HF_HOME": home + "/none", "HOME": home}, "", ""},
		"no home":                             {nil, "", ""},
		"files are left aside when told so":   {map[string]string{"HF_HUB_DISABLE_IMPLICIT_TOKEN": "1", "HOME": home}, "", ""},
		"two lines are no token":              {map[string]string{"HF_TOKEN_PATH": broken}, "", "the token in " + broken},
		"a variable with a space is no token": {map[string]string{"HF_TOKEN": "Bearer hf_a"}, "", "the token in HF_TOKEN"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := FindToken(func(k string) (string, bool) { v, ok := tt.env[k]; return v, ok })
			if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("token %q, error %v; want %q, %q", got, err, tt.want, tt.err)
			}
			if err != nil && strings.Contains(err.Error(), "hf_a") {
				t.Errorf("error %q shows the token", err)
			}
		})
	}
}
