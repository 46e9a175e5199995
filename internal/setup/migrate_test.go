package setup

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// What can be kept is, what cannot is told, and no secret of the file is in what is written.
func TestOtherRoutersAreKeptAsFarAsTheyCan(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]struct{ kept, told []string }{
		"litellm.yaml": {
			kept: []string{
				"price: {input: 2.5, output: 10}", "context_window: 128000", `api_key: "${OPENAI_API_KEY}"`,
				"served_as: meta-llama/Llama-3.1-8B-Instruct", "url: http://10.0.0.1:8000/v1, weight: 3", "url: http://localhost:11434/v1",
				"max_attempts: 3", "answer_timeout: 120s", "when: {model: llama}\n    use: {models: [llama, gpt-4o]}", "cache: {mode: exact}",
			},
			told: []string{
				`"claude": anthropic does not speak`, `"*": a pattern`, "rpm and tpm", "LLAMA_API_KEY", "master_key", "routing_strategy",
				"guardrails", "router_settings.redis_host", "litellm_settings.callbacks", "general_settings.database_url",
			},
		},
		"vllm-sr.yaml": {
			kept: []string{
				"served_as: openai/gpt-oss-20b", "url: http://172.28.0.21:8002/v1, weight: 2", "dialect: qwen3", "dialect: reasoning_effort",
				"price: {input: 0.5, output: 1.5}", `in: [math], min_score: 0.5}}` + "\n    use: {models: [qwen3, gpt-oss-20b], reasoning: medium, prompt: math}",
				"in: [law, history]", "use: {models: [gpt-oss-20b], reasoning: none}", `mathematician: show each step."`, "cache: {mode: semantic, ttl: 3600s}",
				"was prompt_guard", "default: {models: [qwen3, gpt-oss-20b]}",
			},
			told: []string{`"cooking"`, `"keyworded"`, "plugin jailbreak", "pii_policy", "not kept: tools", "threshold 0.7"},
		},
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			b, err := os.ReadFile("testdata/" + file)
			if err != nil {
				t.Fatal(err)
			}
			p, err := FromFile(file, b)
			if err != nil {
				t.Fatal(err)
			}
			text, err := p.YAML()
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range want.kept {
				if !strings.Contains(string(text), w) {
					t.Errorf("not kept: %s", w)
				}
			}
			notes := strings.Join(p.Notes, "\n")
			for _, w := range want.told {
				if !strings.Contains(notes, w) {
					t.Errorf("not told: %s in\n%s", w, notes)
				}
			}
			if strings.Contains(string(text), "canary") {
				t.Errorf("a secret was written:\n%s", text)
			}
			if t.Failed() {
				t.Logf("%s", text)
			}
		})
	}
}

// A file may say a setting in two places: that of the router counts, and it is written once.
func TestASettingThatIsSaidTwiceIsWrittenOnce(t *testing.T) {
	t.Parallel()
	p, err := FromFile("f.yaml", []byte(`
model_list: [{model_name: a, litellm_params: {model: openai/a}}, {model_name: b, litellm_params: {model: openai/b}}]
router_settings: {timeout: 30, num_retries: 1, fallbacks: [{a: [b]}]}
litellm_settings: {request_timeout: 60, num_retries: 2}
`))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(p.Server, ", "), "route_named_models: true, answer_timeout: 30s, max_attempts: 2"; got != want {
		t.Errorf("server has %s, want %s", got, want)
	}
}

func TestATimeoutIsWrittenAsADuration(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{"30": "30s", "0.5": "0.5s", "1000000": "604800s", "1e12": "604800s"} {
		p, err := FromFile("f.yaml", []byte("model_list: [{model_name: a, litellm_params: {model: openai/a}}]\nrouter_settings: {timeout: "+given+"}"))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(p.Server, ", "); got != "answer_timeout: "+want {
			t.Errorf("a timeout of %s becomes %s", given, got)
		}
	}
}

// An address does not make a provider speak another API, and what a deployment says besides is told
// by its name alone.
func TestDeploymentsThatCannotBeKeptAreTold(t *testing.T) {
	t.Parallel()
	p, err := FromFile("f.yaml", []byte(`
model_list:
  - {model_name: a, litellm_params: {model: openai/a, api_base: "http://h/v1", timeout: 600, max_retries: 1, extra_headers: {x: canary}}}
  - {model_name: custom, litellm_params: {model: mine/b, api_base: "http://h/v1"}}
  - {model_name: az, litellm_params: {model: azure/gpt, api_base: "https://x.openai.azure.com", api_version: "1"}}
  - {model_name: cl, litellm_params: {model: anthropic/claude, api_base: "https://gateway"}}
  - {model_name: bare, litellm_params: {model: claude-sonnet-4}}
  - {model_name: given, litellm_params: {model: Org/M-7B, custom_llm_provider: openai, api_base: "http://h/v1"}}
  - {model_name: twice, litellm_params: {model: gemini/flash, custom_llm_provider: gemini, api_base: "http://h/v1"}}
`))
	if err != nil {
		t.Fatal(err)
	}
	var kept []string
	for _, m := range p.Models {
		kept = append(kept, m.Name+"="+m.ServedAs)
	}
	if got := strings.Join(kept, " "); got != "a=a custom=b given=Org/M-7B" {
		t.Errorf("kept %s", got)
	}
	notes := strings.Join(p.Notes, "\n")
	for _, w := range []string{
		`"az": azure does not speak`, `"cl": anthropic does not speak`,
		`"bare": anthropic does not speak`, `"twice": gemini does not speak`,
		"not kept: litellm_params.extra_headers, litellm_params.max_retries, litellm_params.timeout",
	} {
		if !strings.Contains(notes, w) {
			t.Errorf("not told: %s in\n%s", w, notes)
		}
	}
	if strings.Contains(notes, "canary") || strings.Contains(notes, "api_version") {
		t.Errorf("told too much:\n%s", notes)
	}
}

// Of Semantic Router's file what is not there is not spoken of, and what nothing was made of is.
func TestWhatSemanticRouterLosesIsTold(t *testing.T) {
	t.Parallel()
	p, err := FromFile("f.yaml", []byte(`
vllm_endpoints: [{name: e, address: h, port: 8000}]
model_config: {m: {preferred_endpoints: [e]}}
categories: [{name: math, model_scores: [{model: m, score: 1}, {model: gone, score: 0.3}]}]
semantic_cache: {enabled: true, backend_type: milvus, max_entries: 500}
prompt_guard: {enabled: true, use_modernbert: true}
`))
	if err != nil {
		t.Fatal(err)
	}
	notes := strings.Join(p.Notes, "\n")
	for _, w := range []string{
		`model "gone" is not in model_config`, "not kept: semantic_cache.backend_type, semantic_cache.max_entries", "not kept: prompt_guard.use_modernbert",
	} {
		if !strings.Contains(notes, w) {
			t.Errorf("not told: %s in\n%s", w, notes)
		}
	}
	if strings.Contains(notes, "threshold") {
		t.Errorf("thresholds are told of that the file does not have:\n%s", notes)
	}
}

func TestFilesOfNobodyAreRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "models: []\n", "- a\n", "model_list: 7\n", "model_list: []\n", "{", "vllm_endpoints: {}\n"} {
		if p, err := FromFile("f.yaml", []byte(text)); err == nil {
			t.Errorf("%q is taken: %+v", text, p)
		}
	}
	if _, err := FromFile("f.yaml", []byte("a: 1\n")); !errors.Is(err, ErrForeign) {
		t.Errorf("%v", err)
	}
}

// Whatever a file holds, reading it ends, and no secret gets out.
func FuzzFromFile(f *testing.F) {
	for _, name := range []string{"litellm.yaml", "vllm-sr.yaml"} {
		b, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b))
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := FromFile("f.yaml", []byte(text))
		if err != nil {
			return
		}
		if _, err := p.YAML(); err != nil {
			t.Errorf("%v of %q", err, text)
		}
	})
}
