package config_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"signalbox/configs"
	"signalbox/internal/config"
)

func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	b, err := configs.FS.ReadFile("signalbox.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("signalbox.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("signalbox.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// fits validates a text in YAML, as an editor does.
func fits(t *testing.T, s *jsonschema.Schema, text []byte) error {
	t.Helper()
	var doc any
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return err
	}
	return s.Validate(doc)
}

func TestShippedFilesFitTheSchemaThatTheyName(t *testing.T) {
	t.Parallel()
	s := schema(t)
	files, err := fs.Glob(configs.FS, "*.yaml")
	if err != nil || len(files) < 4 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, f := range files {
		b, err := configs.FS.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(b), "# yaml-language-server: $schema=signalbox.schema.json\n") {
			t.Errorf("%s does not begin with the line that editors read", f)
		}
		if err := fits(t, s, b); err != nil {
			t.Errorf("%s: %v", f, err)
		}
	}
}

// What `check` takes must fit, or an editor would complain of what works: blocks of the
// documentation, and the files that the rules are tested with.
func TestWhatCheckTakesFitsTheSchema(t *testing.T) {
	t.Parallel()
	s := schema(t)
	docs, _ := filepath.Glob("../../docs/*.md")
	block := regexp.MustCompile("(?s)```yaml[^\n]*\n(.*?)```")
	whole := 0
	for _, f := range append(docs, "../../README.md") {
		for _, m := range block.FindAllSubmatch(read(t, f), -1) {
			if _, _, err := config.Parse(f, m[1], noEnv, catalog); err != nil {
				continue // a part of a file
			}
			whole++
			if err := fits(t, s, m[1]); err != nil {
				t.Errorf("%s: %v\n%s", f, err, m[1])
			}
		}
	}
	if whole < 2 {
		t.Errorf("the documentation holds %d whole files", whole)
	}
	warns, err := filepath.Glob("../../rules/testdata/warn/*.yaml")
	if err != nil || len(warns) < 25 {
		t.Fatalf("%d files, %v", len(warns), err)
	}
	for _, f := range append(warns, "../../rules/testdata/reference.yaml") {
		if err := fits(t, s, sourceOf(read(t, f))); err != nil {
			t.Errorf("%s: %v", f, err)
		}
	}
}

// Durations are those that package option reads.
func TestDurationsOfTheSchemaAreThoseThatCheckTakes(t *testing.T) {
	t.Parallel()
	s := schema(t)
	for text, want := range map[string]bool{
		"5s": true, "1h30m": true, "1.5h": true, "30d": true, "1d12h": true, "1d": true,
		"5": false, "d": false, "-1d": false, "1.5d": false, "12h1d": false, "1d-1h": false, "five": false,
	} {
		b := []byte("server: {idle_timeout: " + text + "}\nmodels: [{name: m, endpoints: [{name: a, url: http://h/v1}]}]\n" +
			"default: {models: [m]}\n")
		_, _, err := config.Parse("f", b, noEnv, catalog)
		if checked, fit := err == nil, fits(t, s, b) == nil; checked != want || fit != want {
			t.Errorf("%s: check takes it: %v (%v), the schema: %v, want %v", text, checked, err, fit, want)
		}
	}
}

// sourceOf makes a whole file of the sections that rules read.
func sourceOf(text []byte) []byte {
	out := string(text)
	if !strings.Contains("\n"+out, "\ndefault:") {
		out += "\ndefault: {models: [m]}\n"
	}
	return []byte(out + "\nmodels: [{name: m, endpoints: [{name: a, url: http://h/v1}]}]\n")
}

// What does not fit is wrong for `check` as well, and most of what is wrong in form does not fit.
func TestWhatDoesNotFitTheSchemaIsWrong(t *testing.T) {
	t.Parallel()
	s := schema(t)
	bad, err := filepath.Glob("../../rules/testdata/bad/*.yaml")
	if err != nil || len(bad) < 150 {
		t.Fatalf("%d files, %v", len(bad), err)
	}
	refused := 0
	for _, f := range bad {
		if fits(t, s, sourceOf(read(t, f))) != nil {
			refused++
		}
	}
	// The others name what is not there, or say what no value can fulfil.
	if refused < leastRefused {
		t.Errorf("the schema refuses %d of %d files of rules that are wrong, want at least %d", refused, len(bad), leastRefused)
	}
	t.Logf("%d of %d", refused, len(bad))
	const good = "models: [{name: m, endpoints: [{name: a, url: http://h/v1}]}]\ndefault: {models: [m]}\n"
	for _, text := range []string{
		"modles: []\n" + good, "server: {drain_timeout: 5}\n" + good, "server: {max_body_bytes: 5 apples}\n" + good,
		"telemetry: {log: loud}\n" + good, "telemetry: []\n" + good, "auth: {mode: maybe}\n" + good,
		"server: {admin_token: plain}\n" + good, "limits: {max_connections: 1.5}\n" + good,
		"guard: {act_on: [supported]}\n" + good, "prompts: [{name: p}]\n" + good,
		"default: {models: [m]}\n", "models: [{name: m}]\ndefault: {models: [m]}\n",
		"models: [{name: m, endpoints: [{url: http://h/v1}]}]\ndefault: {models: [m]}\n",
		"models: [{name: m, endpoints: [{name: a, url: http://h/v1, weight: heavy}]}]\ndefault: {models: [m]}\n",
	} {
		if fits(t, s, []byte(text)) == nil {
			t.Errorf("the schema takes\n%s", text)
		}
		if _, _, err := config.Parse("f", []byte(text), noEnv, catalog); err == nil {
			t.Errorf("check takes\n%s", text)
		}
	}
}

// leastRefused is how many of the files with wrong rules the schema refused when it was written.
const leastRefused = 170

// The words of a tag are those that the code takes: every one is taken, or refused for another
// reason, and any other word is refused.
func TestWordsOfTheSchemaAreThoseThatCheckTakes(t *testing.T) {
	t.Parallel()
	const good = "models: [{name: m, endpoints: [{name: a, url: http://h/v1}]}]\ndefault: {models: [m]}\n"
	model := "models: [{name: m, endpoints: [{name: a, url: http://h/v1%s}]%s}]\ndefault: {models: [m]}\n"
	const jwt = "auth: {mode: jwt, jwt: {%%s, issuer: i, audience: [a], algorithms: [%s]}}\n" + good
	places := map[string]string{ // of a word in a file, by the definition and the key
		"auth.BudgetOptions.period": "auth: {tenants: [{name: t, budget: {usd: 1, period: %s}}]}\n" + good,
		"budget.SoftOptions.then":   "auth: {tenants: [{name: t, budget: {usd: 1, soft: {at: .5, then: %s}}}]}\n" + good,
		"budget.Options.period":     fmt.Sprintf(model, "", ", budget: {usd: 1, period: %s}"),
		"auth.Options.mode":         "auth: {mode: %s}\n" + good, "auth.JWTOptions.algorithms": jwt,
		"Classify.isolation": "classify: {isolation: %s}\n" + good, "gpu.BatchOptions.mode": "classify: {batch: {mode: %s}}\n" + good,
		"Classify.provider": "classify: {provider: %s}\n" + good,
		"Task.kind":         "classify: {tasks: [{name: domain, model: a/b, kind: %s}]}\n" + good,
		"Task.pooling":      "classify: {tasks: [{name: embedding, model: a/b, pooling: %s}]}\n" + good,
		"TaskWindow.long":   "classify: {tasks: [{name: domain, model: a/b, window: {tokens: 64, long: %s}}]}\n" + good,
		"Task.origins":      "classify: {tasks: [{name: jailbreak, origins: [%s]}]}\n" + good,
		"Memory.durability": "memory: {durability: %s}\n" + good, "settings.Server.placement": "server: {placement: %s}\n" + good,
		"decide.OutcomeOptions.learn": "outcomes: {learn: %s}\n" + good,
		"recall.Options.mode":         "cache: {mode: %s}\n" + good,
		"guardrail.Options.mode":      "guard: {mode: %s}\n" + good, "guardrail.Options.act_on": "guard: {act_on: [%s]}\n" + good,
		"guardrail.Options.marker_as": "guard: {marker_as: %s}\n" + good, "guardrail.Options.on_unchecked": "guard: {on_unchecked: %s}\n" + good,
		"guardrail.Options.structured": "guard: {structured: %s}\n" + good,
		"telemetry.Options.log":        "telemetry: {log: %s}\n" + good, "telemetry.Options.log_format": "telemetry: {log_format: %s}\n" + good,
		"telemetry.DecisionOptions.headers":     "telemetry: {decisions: {file: f, headers: %s}}\n" + good,
		"pool.EndpointOptions.resolve":          fmt.Sprintf(model, ", resolve: %s", ""),
		"pool.EndpointOptions.protocol":         fmt.Sprintf(model, ", protocol: %s", ""),
		"kv.Options.level":                      fmt.Sprintf(model, ", kv: {level: %s}", ""),
		"kv.ModelOptions.level":                 fmt.Sprintf(model, "", ", kv: {level: %s}"),
		"backend.ModelOptions.context_role":     fmt.Sprintf(model, "", ", context_role: %s"),
		"backend.ModelOptions.max_tokens_field": fmt.Sprintf(model, "", ", max_tokens_field: %s"),
		"backend.ModelOptions.messages":         fmt.Sprintf(model, "", ", messages: %s"),
		"backend.ModelOptions.stream_usage":     fmt.Sprintf(model, "", ", stream_usage: %s"),
		"reasoning.Options.dialect":             fmt.Sprintf(model, "", ", reasoning: {dialect: %s}"),
	}
	var doc struct {
		Definitions map[string]struct {
			Properties map[string]map[string]any `yaml:"properties"`
		} `yaml:"definitions"`
	}
	b, err := os.ReadFile("../../configs/signalbox.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	var seen []string
	for of, d := range doc.Definitions {
		for key, p := range d.Properties {
			words := enum(p)
			name := of + "." + key
			if strings.HasPrefix(of, "rules.") || words == nil {
				continue
			}
			seen = append(seen, name)
			place, ok := places[name]
			if !ok {
				t.Errorf("nobody tries the words of %s", name)
				continue
			}
			refuses := func(word string) bool {
				text := fmt.Sprintf(place, word)
				if key := "jwks_url: https://h/k"; place == jwt { // what it signs with decides
					if strings.HasPrefix(word, "HS") {
						key = "secret: ${SECRET}"
					}
					text = fmt.Sprintf(text, key)
				}
				env := func(string) (string, bool) { return strings.Repeat("x", 32), true }
				_, _, err := config.Parse("f", []byte(text), env, catalog)
				return err != nil && strings.Contains(err.Error(), fmt.Sprintf("%q", word))
			}
			for _, w := range words {
				if refuses(w) {
					t.Errorf("%s: check refuses %q", name, w)
				}
			}
			if !refuses("no-such-word") {
				t.Errorf("%s: check takes no-such-word", name)
			}
		}
	}
	if len(seen) != len(places) {
		sort.Strings(seen)
		t.Errorf("%d keys with words, %d are tried: %v", len(seen), len(places), seen)
	}
}

// enum returns the words that a value, or an item of it, may be.
func enum(p map[string]any) (out []string) {
	list, ok := p["enum"].([]any)
	if !ok {
		if forms, ok := p["anyOf"].([]any); ok {
			if one, ok := forms[1].(map[string]any); ok {
				list, _ = one["enum"].([]any)
			}
		}
	}
	for _, w := range list {
		if s, ok := w.(string); ok {
			out = append(out, s)
		}
	}
	return out
}
