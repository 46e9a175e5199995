package proxy

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"

	"signalbox/internal/testkit"
	"signalbox/proxy/auth"
	"signalbox/proxy/recall"
)

func sumOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// withKeys admits callers with keys; each key is named like its value.
func withKeys(keys ...auth.KeyOptions) func(*setup) {
	return func(s *setup) {
		s.auth.Mode = auth.ModeKeys
		for _, k := range keys {
			k.SHA256 = sumOf(k.Name)
			s.auth.Keys = append(s.auth.Keys, k)
		}
	}
}

const okAnswer = `{"choices":[{"message":{"role":"assistant","content":"fine"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`

func TestCallersGetTheModelsTheyMayUse(t *testing.T) {
	t.Parallel()
	u := testkit.NewUpstream(t, testkit.JSON(http.StatusOK, okAnswer))
	b := start(t, oneModel(u), withKeys(
		auth.KeyOptions{Name: "all"}, auth.KeyOptions{Name: "little", Models: []string{"small"}}, auth.KeyOptions{Name: "odd", Models: []string{"effort"}},
	), caches(recall.ModeExact))
	chat := func(key, model, text string) answered {
		return b.chat(strings.Replace(ask(text), `"auto"`, `"`+model+`"`, 1), "Authorization", "Bearer "+key)
	}
	for _, tt := range []struct {
		name, key, model, text string
		status                 int
		went, code             string
	}{
		{"everything is allowed", "all", "big", "hello", 200, "big", ""},
		{"an allowed model", "little", "small", "hello", 200, "small", ""},
		{"a model that is not allowed is one that is not there", "little", "big", "hello", 404, "", "model_not_found"},
		{"the same with a tag", "little", "big:latest", "hello", 404, "", "model_not_found"},
		{"one that is not there", "little", "huge", "hello", 404, "", "model_not_found"},
		{"routing to the first of two", "all", "auto", "math", 200, "big", ""},
		{"routing to the one of two that is allowed", "little", "auto", "math", 200, "small", ""},
		{"routing to none that is allowed", "odd", "auto", "math", 403, "", "model_not_allowed"},
	} {
		got := chat(tt.key, tt.model, tt.text)
		if got.status != tt.status || got.header.Get("X-Signalbox-Model") != tt.went {
			t.Errorf("%s: status %d from %q: %s", tt.name, got.status, got.header.Get("X-Signalbox-Model"), got.body)
			continue
		}
		if tt.status == 200 {
			continue
		}
		if e := got.error(t); got.code(t) != tt.code || e.Param == nil || *e.Param != "model" {
			t.Errorf("%s: error %+v", tt.name, e)
		}
	}
	hidden, missing := chat("little", "big", "hello"), chat("little", "huge", "hello")
	if strings.ReplaceAll(hidden.body, "big", "huge") != missing.body {
		t.Errorf("a hidden model is told from a missing one:\n%s\n%s", hidden.body, missing.body)
	}
	first := chat("all", "auto", "math twice")
	if first.status != 200 {
		t.Fatalf("status %d with %s", first.status, first.body)
	}
	waitFor(t, "the answer to be kept", func() bool { return chat("all", "auto", "math twice").header.Get("X-Signalbox-Cache") == "exact" })
	if got := chat("odd", "auto", "math twice"); got.status != 403 {
		t.Errorf("an answer of a model that is not allowed was given from the cache: %d %s", got.status, got.body)
	}
}

func TestModelsAreListedAsFarAsTheCallerMayUseThem(t *testing.T) {
	t.Parallel()
	u := testkit.NewUpstream(t, testkit.JSON(http.StatusOK, okAnswer))
	b := start(t, oneModel(u), withKeys(auth.KeyOptions{Name: "all"}, auth.KeyOptions{Name: "little", Models: []string{"small"}}))
	for _, tt := range []struct {
		key  string
		want map[string]bool
	}{
		{"all", map[string]bool{"auto": true, "big": true, "small": true, "effort": true}},
		{"little", map[string]bool{"auto": true, "big": false, "small": true, "effort": false}},
	} {
		list := b.do(http.MethodGet, "/v1/models", "", "Authorization", "Bearer "+tt.key)
		for name, listed := range tt.want {
			one := b.do(http.MethodGet, "/v1/models/"+name, "", "Authorization", "Bearer "+tt.key)
			if strings.Contains(list.body, `"id":"`+name+`"`) != listed || (one.status == 200) != listed {
				t.Errorf("%s: listing of %s, alone with status %d: %s", tt.key, name, one.status, list.body)
			}
			if !listed && one.code(t) != "model_not_found" {
				t.Errorf("%s: %s", tt.key, one.body)
			}
		}
	}
}

func TestTokensThatCannotBeVerifiedYetAreNotTakenForWrongOnes(t *testing.T) {
	t.Parallel()
	u := testkit.NewUpstream(t, testkit.JSON(http.StatusOK, okAnswer))
	b := start(t, oneModel(u), func(s *setup) {
		s.auth.Mode = auth.ModeJWT
		s.auth.JWT.JWKSURL, s.auth.JWT.Issuer, s.auth.JWT.Audience = "http://127.0.0.1:1/jwks", "https://issuer.test", []string{"signalbox"}
	})
	const token = "eyJhbGciOiJSUzI1NiJ9.e30.c2ln" // well-formed and nothing more
	got := b.chat(ask("hello"), "Authorization", "Bearer "+token)
	if got.status != 503 || got.code(t) != "auth_unavailable" || got.header.Get("Retry-After") == "" {
		t.Errorf("status %d with %s", got.status, got.body)
	}
	if got := b.chat(ask("hello"), "Authorization", "Bearer nonsense"); got.status != 401 || got.code(t) != "invalid_api_key" {
		t.Errorf("no token at all: status %d with %s", got.status, got.body)
	}
	if ready, d := b.proxy.Ready(); ready || len(d.Degraded) == 0 {
		t.Errorf("ready %v: %+v", ready, d)
	}
}
