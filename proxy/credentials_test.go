package proxy

import (
	"net/http"
	"strings"
	"testing"

	"signalbox/internal/testkit"
	"signalbox/proxy/backend"
	"signalbox/proxy/downstream"
	"signalbox/proxy/reasoning"
)

// notTaken returns a response that refuses a key.
func notTaken(status int) testkit.Answer {
	return testkit.JSON(status, `{"error":{"message":"Incorrect API key provided: backend-secret","type":"x",`+
		`"param":null,"code":"invalid_api_key"}}`, "Www-Authenticate", `Basic realm="theirs"`)
}

// Who is informed depends on whose credentials an endpoint refuses: a client can do nothing about
// those in the configuration.
func TestCredentialsOfTheProxyThatAreRefusedAreNoAffairOfTheClient(t *testing.T) {
	t.Parallel()
	const status = http.StatusUnauthorized
	for path, body := range map[string]string{
		chatPath:                strings.Replace(ask("hi"), "auto", "small", 1),
		"/v1/completions":       `{"model":"small","prompt":"hi"}`,
		"/v1/responses":         `{"model":"small","input":"hi","stream":true}`,
		downstream.MessagesPath: strings.Replace(askMessage("hi", `,"stream":true`), "auto", "small", 1),
		"/v1/embeddings":        `{"model":"small","input":"hi"}`,
		"/v1/audio/speech":      `{"model":"small","input":"hi","voice":"a"}`,
	} {
		up := testkit.NewUpstream(t, notTaken(status))
		b := start(t, oneModel(up))
		got := b.post(path, body)
		if got.status != http.StatusBadGateway || strings.Contains(got.body, "backend-secret") ||
			!strings.Contains(got.body, "rejected the credentials") ||
			got.header.Get("Www-Authenticate") != "" || got.header.Get("X-Should-Retry") != "false" {
			t.Errorf("%d at %s: %d %v %s", status, path, got.status, got.header, got.body)
		}
		if path != downstream.MessagesPath && got.code(t) != "upstream_auth_failed" {
			t.Errorf("%d at %s: code %s", status, path, got.code(t))
		}
		if n := len(up.Requests()); n != 1 {
			t.Errorf("%d at %s: the request was sent %d times", status, path, n)
		}

		theirs := start(t, oneModel(up), passesOn)
		if got := theirs.post(path, body, "Authorization", "Bearer mine"); got.status != status ||
			got.header.Get("Www-Authenticate") == "" {
			t.Errorf("the client's own: %d at %s: %d %s", status, path, got.status, got.body)
		}
	}
}

// The candidate after a model with a wrong key is asked, and the log and /readyz name the endpoint.
func TestTheNextModelAnswersWhereCredentialsAreRefused(t *testing.T) {
	t.Parallel()
	bad := testkit.NewUpstream(t, notTaken(http.StatusUnauthorized))
	good := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
	models := oneModel(good)
	models[0] = modelOptions("big", "Org/Big-70B", reasoning.Options{}, bad)
	b := start(t, models)
	for range 3 {
		if got := b.chat(ask("math")); got.status != 200 || got.header.Get("X-Signalbox-Model") != "small" {
			t.Errorf("got %d of %s: %s", got.status, got.header.Get("X-Signalbox-Model"), got.body)
		}
	}
	warned := 0
	for line := range strings.Lines(b.log.String()) {
		if strings.Contains(line, "rejected the proxy's credentials") {
			warned++
			for _, part := range []string{`"level":"WARN"`, `"model":"big"`, `"endpoint":"big-a"`} {
				if !strings.Contains(line, part) {
					t.Errorf("the log line lacks %s: %s", part, line)
				}
			}
		}
	}
	if warned != 3 || strings.Contains(b.log.String(), "backend-secret") {
		t.Errorf("%d warnings of 3 refusals in\n%s", warned, b.log)
	}
	if got := stateOf(t, b, "big-a"); got != "suspect" {
		t.Errorf("the endpoint is %s", got)
	}
}

// A server that is only busy may answer later. That is more useful to a client than the error of
// another server's wrong credentials.
func TestABusyServerIsTheAnswerBesideOneThatRefusesCredentials(t *testing.T) {
	t.Parallel()
	bad := testkit.NewUpstream(t, notTaken(http.StatusUnauthorized))
	busy := testkit.NewUpstream(t, testkit.JSON(http.StatusTooManyRequests, `{"error":"slow"}`, "Retry-After", "3"))
	none := reasoning.Options{}
	for name, models := range map[string][]backend.ModelOptions{
		"asked first": {modelOptions("big", "", none, bad), modelOptions("small", "", none, busy)},
		"asked last":  {modelOptions("big", "", none, busy), modelOptions("small", "", none, bad)},
	} {
		b := start(t, append(models, modelOptions("effort", "", reasoning.Options{}, busy)))
		if got := b.chat(ask("math")); got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") != "3" {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
}

// stateOf returns the state of an endpoint in /readyz.
func stateOf(t *testing.T, b *bench, endpoint string) string {
	t.Helper()
	_, d := b.proxy.Ready()
	for _, m := range d.Models {
		for _, e := range m.Endpoints {
			if e.Name == endpoint {
				return e.State
			}
		}
	}
	t.Fatalf("there is no endpoint %s", endpoint)
	return ""
}
