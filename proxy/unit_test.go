package proxy

import (
	"errors"
	"math"
	"strings"
	"testing"

	"signalbox/proxy/auth"
	"signalbox/proxy/backend"
	"signalbox/proxy/choose"
	"signalbox/proxy/lengths"
	"signalbox/proxy/pool"
	"signalbox/proxy/reasoning"
	"signalbox/proxy/settings"
)

func TestEveryBadOptionIsReported(t *testing.T) {
	t.Parallel()
	if err := errors.Join(settings.DefaultServer().Validate(), auth.DefaultOptions().Validate()); err != nil {
		t.Errorf("the defaults are refused: %v", err)
	}
	bad := []struct {
		err    error
		fields []string
	}{
		{settings.Server{Listen: "x", AdminListen: "h:99999", MaxBodyBytes: 1, GapTimeout: -1, RetryBudget: math.NaN(), AutoMaxTokens: lengths.DefaultOptions()}.Validate(), []string{
			"listen: ", "admin_listen: ", "drain_delay: ", "max_body_bytes: ", "read_header_timeout: ", "connect_timeout: ", "gap_timeout: ", "max_attempts: ", "retry_budget: ", "auto_models: ",
		}},
		{auth.Options{Mode: "open", Keys: []auth.KeyOptions{{Name: "a", SHA256: "12"}, {Name: "a"}}}.Validate(), []string{"mode: ", "keys[0].sha256: ", `keys[1].name: "a" is used twice`, "keys[1].sha256: "}},
		{backend.ModelOptions{
			ContextWindow: -1, Price: choose.Price{Input: -1}, Reasoning: reasoning.Options{Dialect: "x"}, Health: pool.HealthOptions{Path: "x", Interval: 1}, AnswerTimeout: -1,
			Endpoints: []pool.EndpointOptions{{Name: "a b", URL: "ftp://x", Weight: -1, APIKey: "a\nb"}, {Name: "c", URL: "http://u:p@h/v1"}, {Name: "c", URL: "http://h?q"}},
		}.Validate(), []string{
			"name: ", "endpoints[0].name: ", "endpoints[0].url: ", "endpoints[0].weight: ", "endpoints[0].api_key: ", "endpoints[1].url: ", "endpoints[2].name: ", "endpoints[2].url: ",
			"context_window: ", "price.input: ", "reasoning.dialect: ", "health.path: ", "health.interval: ", "answer_timeout: ",
		}},
		{backend.ModelOptions{Name: "a", Reasoning: reasoning.Options{Dialect: reasoning.DialectKwargs}}.Validate(), []string{"endpoints: ", "reasoning.key: "}},
		{(&StateOptions{Prompts: []settings.Prompt{{Name: "p"}}, Server: settings.DefaultServer()}).validate(), []string{"auth: mode: ", "models: ", "prompts[0].text: "}},
	}
	for i, tt := range bad {
		if tt.err == nil {
			t.Errorf("case %d: no problem found", i)
			continue
		}
		lines := strings.Split(tt.err.Error(), "\n")
		if len(lines) != len(tt.fields) {
			t.Errorf("case %d: %d problems, want %d:\n%v", i, len(lines), len(tt.fields), tt.err)
		}
		for _, f := range tt.fields {
			if !strings.Contains("\n"+tt.err.Error(), "\n"+f) {
				t.Errorf("case %d: %q is missing in\n%v", i, f, tt.err)
			}
		}
	}
	if err := (backend.ModelOptions{Name: "a", Endpoints: []pool.EndpointOptions{{Name: "e", URL: "http://h", APIKey: "top secret"}}}).Validate(); err == nil || strings.Contains(err.Error(), "top secret") {
		t.Errorf("a bad key gives %v", err)
	}
}
