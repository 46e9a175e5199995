package config_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/configs"
	"signalbox/internal/config"
	"signalbox/internal/signal"
)

var update = flag.Bool("update", false, "rewrite golden files")

// catalog stands for the embedded bundle; the real one is checked in internal/app.
func catalog(c *config.Classify) (config.Catalog, error) {
	out := config.Catalog{
		Signals: signal.MaskOf(signal.Keyword, signal.Language, signal.Domain, signal.Jailbreak,
			signal.Injection, signal.Embedding),
		Labels: make(map[signal.Kind][]string), Thresholds: make(map[signal.Kind]float64),
	}
	out.Thresholds[signal.Jailbreak] = 0.5
	out.Labels[signal.Language] = []string{"de", "en", "fr"}
	out.Labels[signal.Domain] = []string{
		"biology", "business", "chemistry", "computer science", "economics", "engineering", "health", "history",
		"law", "math", "other", "philosophy", "physics", "psychology",
	}
	var errs []error
	for i, t := range c.Tasks {
		k, known := signal.ParseKind(t.Name)
		switch {
		case t.Name == config.GroundingTask:
			out.Grounding = true
		case t.Model == "patterns":
			out.Signals |= signal.MaskOf(signal.PII)
		case t.Model != config.EmbeddedModel:
			err := &fs.PathError{Op: "open", Path: filepath.Join(c.ModelsDir, t.Model, "bundle.yaml"), Err: fs.ErrNotExist}
			errs = append(errs, &config.TaskError{Index: i, Field: "model", Err: err})
		case !known || !out.Signals.Has(k):
			errs = append(errs, &config.TaskError{Index: i, Field: "name", Err: fmt.Errorf("the bundle has no task %q, expected one of domain, jailbreak, embedding", t.Name)})
		}
	}
	return out, errors.Join(errs...)
}

// noEnv is an environment of a home directory.
func noEnv(name string) (string, bool) {
	if name == "HOME" {
		return "/home/somebody", true
	}
	return "", false
}

// Every broken file is refused, and the golden file holds the exact messages, so that a change of
// wording is seen in review.
func TestBrokenFilesAreRefusedWithPlaceAndPath(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(files)
	const kinds = 40 // what a user is promised
	if len(files) < kinds {
		t.Fatalf("%d broken files, want at least %d", len(files), kinds)
	}
	var got strings.Builder
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(f)
		_, _, err = config.Parse(name, b, noEnv, catalog)
		if !config.IsInvalid(err) {
			t.Errorf("%s: got %v, want a list of problems", name, err)
			continue
		}
		got.WriteString(err.Error() + "\n")
	}
	golden(t, "testdata/bad.golden", got.String())
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("messages differ (-want +got):\n%s", diff)
	}
}

func TestShippedFilesAreValid(t *testing.T) {
	env := func(string) (string, bool) { return "a-secret", true }
	files, err := fs.Glob(configs.FS, "*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no shipped files: %v", err)
	}
	for _, f := range files {
		t.Run(f, func(t *testing.T) {
			b, err := configs.FS.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			whole := func(c *config.Classify) (config.Catalog, error) {
				out, err := catalog(c)
				out.Grounding = true // as the binary's own models give it
				return out, err
			}
			_, warnings, err := config.Parse(f, b, env, whole)
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range warnings {
				t.Errorf("warning: %s", config.Format(f, w))
			}
		})
	}
}

const minimal = `models:
  - name: Qwen2.5-7B
    served_as: 4.1
    endpoints: [{name: a, url: http://127.0.0.1:8000/v1, api_key: "${KEY}"}]
default: {models: [Qwen2.5-7B]}
`

func TestATaskThatIsNotThereIsOneThatWasMeant(t *testing.T) {
	t.Parallel()
	known := []string{"domain", "jailbreak"}
	for name, want := range map[string]string{
		"jailbreaks": `the bundle has no task "jailbreaks", did you mean "jailbreak"?`,
		"groundign":  `the bundle has no task "groundign", did you mean "grounding"?`,
		"toxicity":   `the bundle has no task "toxicity", expected one of domain, jailbreak, grounding`,
	} {
		if got := config.NoTask(name, known).Error(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestNamesKeepCaseDotsAndDigits(t *testing.T) {
	env := func(string) (string, bool) { return "sk-x", true }
	cfg, _, err := config.Parse("f.yaml", []byte(minimal), env, catalog)
	if err != nil {
		t.Fatal(err)
	}
	m := cfg.Models[0]
	if m.Name != "Qwen2.5-7B" || m.ServedAs != "4.1" || m.Endpoints[0].APIKey != "sk-x" {
		t.Errorf("got %+v", m)
	}
}

func TestSecretsComeFromFilesToo(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "key"), []byte("sk-from-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(minimal, "${KEY}", "file:key", 1)
	cfg, _, err := config.Parse(filepath.Join(dir, "f.yaml"), []byte(text), noEnv, catalog)
	if err != nil {
		t.Fatal(err)
	}
	if got := cfg.Models[0].Endpoints[0].APIKey; got != "sk-from-file" {
		t.Errorf("key is %q", got)
	}
	if want := []string{filepath.Join(dir, "key")}; !slices.Equal(cfg.SecretFiles, want) {
		t.Errorf("files with secrets: %v, want %v", cfg.SecretFiles, want)
	}
}

func TestAnEmptyFileIsNoSecret(t *testing.T) {
	dir := t.TempDir()
	key := filepath.Join(dir, "key")
	if err := os.WriteFile(key, []byte(" \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(minimal, "${KEY}", "file:key", 1)
	_, _, err := config.Parse(filepath.Join(dir, "f.yaml"), []byte(text), noEnv, catalog)
	invalid, ok := errors.AsType[*config.Error](err)
	if !ok || !strings.Contains(err.Error(), "the file with the secret is empty") ||
		!slices.Equal(invalid.Files, []string{key}) {
		t.Errorf("got %v, %+v", err, invalid)
	}
}

func TestSecretsNeverShowUpInProblems(t *testing.T) {
	text := strings.Replace(minimal, "${KEY}", "sk-very-secret", 1)
	_, _, err := config.Parse("f.yaml", []byte(text), noEnv, catalog)
	if err == nil || strings.Contains(err.Error(), "sk-very-secret") {
		t.Errorf("got %v", err)
	}
}

func FuzzParseNeverPanics(f *testing.F) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(minimal))
	f.Fuzz(func(t *testing.T, b []byte) {
		cfg, _, err := config.Parse("f.yaml", b, noEnv, catalog)
		if (cfg == nil) != (err != nil) {
			t.Errorf("configuration %v with error %v", cfg, err)
		}
	})
}

// What is read is what tasks say, and what rules name besides.
func TestOriginsOfTasksAndRules(t *testing.T) {
	const file = `
models:
  - name: small
    endpoints: [{name: a, url: http://127.0.0.1:8000/v1}]
classify: {tasks: [{name: jailbreak, origins: [user, model]}]}
routes:
  - name: safe
    when: {any: [{jailbreak: {origins: [user, data]}}, {injection: true}]}
    block: {message: no}
default: {models: [small]}
`
	cfg, _, err := config.Parse("f.yaml", []byte(file), noEnv, catalog)
	if err != nil {
		t.Fatal(err)
	}
	user, model, data := signal.OriginUser, signal.OriginModel, signal.OriginData
	//nolint:exhaustive // no others
	want := map[signal.Kind]signal.Origins{
		signal.Jailbreak: signal.OriginsOf(user, model),
		signal.Injection: signal.OriginsOf(data),
	}
	if d := cmp.Diff(want, cfg.Classify.Origins()); d != "" {
		t.Errorf("by default (-want +got):\n%s", d)
	}
	want[signal.Jailbreak] = signal.OriginsOf(user, model, data)
	if d := cmp.Diff(want, cfg.Reads()); d != "" {
		t.Errorf("read (-want +got):\n%s", d)
	}
}
