package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"signalbox/classify"
	"signalbox/internal/config"
	"signalbox/internal/signal"
	"signalbox/internal/simulator"
)

// hubModels is a folder of small models in the Hugging Face layout, with random weights, and with
// outputs for some texts.
const hubModels = "../../classify/bundle/testdata/hf"

// taskLines is a classify section that takes tasks from models of dir.
func taskLines(dir string, tasks ...string) string {
	return "classify: {timeout: 30s, models_dir: '" + dir + "', tasks: [" + strings.Join(tasks, ", ") + "]}\n"
}

// load reads a configuration that has one backend and the given sections.
func load(tb testing.TB, sections string) (*config.Config, error) {
	tb.Helper()
	text := "models: [{name: small, endpoints: [{name: a, url: 'http://127.0.0.1:9/v1'}]}]\n" + sections + "default: {models: [small]}\n"
	cfg, _, err := config.Parse(filepath.Join(tb.TempDir(), "test.yaml"), []byte(text), os.LookupEnv, Catalog)
	return cfg, err
}

// build makes the product of some sections and closes it when the test ends.
func build(tb testing.TB, sections string) *App {
	tb.Helper()
	cfg, err := load(tb, sections)
	if err != nil {
		tb.Fatal(err)
	}
	cfg.File, cfg.Telemetry.Log = "", "error"
	a, err := Build(tb.Context(), cfg, Options{Version: "test", Settings: memoryOnly(flags(tb)), Log: io.Discard, Env: os.LookupEnv})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := a.Close(context.Background()); err != nil {
			tb.Errorf("close: %v", err)
		}
	})
	return a
}

// memoryOnly keeps a test from writing to the user's cache.
func memoryOnly(s config.Settings) config.Settings {
	if s.Library == "" {
		if v := Versions(s); v.Err == nil {
			s.Library = v.Library
		}
	}
	s.CacheDir = ""
	return s
}

func absolute(tb testing.TB, dir string) string {
	tb.Helper()
	abs, err := filepath.Abs(dir)
	if err != nil {
		tb.Fatal(err)
	}
	return abs
}

// reference is one entry of expected.json.
type reference struct {
	Folder, Task string
	Dims, Layer  int
	Cases        []struct {
		Texts     []string
		Precision string    // of the graph
		IDs       []int64   // of the row
		Values    []float64 // logits, or the pooled and normalised vector
	}
}

func references(tb testing.TB) []reference {
	tb.Helper()
	b, err := os.ReadFile(hubModels + "/expected.json")
	if err != nil {
		tb.Fatal(err)
	}
	var out []reference
	if err := json.Unmarshal(b, &out); err != nil {
		tb.Fatal(err)
	}
	return out
}

func softmax(x []float64) []float64 {
	top, sum := slices.Max(x), 0.0
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = math.Exp(v - top)
		sum += out[i]
	}
	for i := range out {
		out[i] /= sum
	}
	return out
}

// Models of every published shape give, through the whole classifier, what the reference
// implementation computed for them.
func TestHuggingFaceModelsGiveTheReferenceAnswers(t *testing.T) {
	needModels(t)
	dir := absolute(t, hubModels)
	for _, r := range references(t) {
		t.Run(r.Folder, func(t *testing.T) {
			if r.Task == "pii" {
				t.Skip("its labels are tested where they are decoded, its graph in package bundle")
			}
			folder := dir
			if half := filepath.Join(hubModels, r.Folder, "model_fp16.onnx"); exists(half) {
				folder = t.TempDir() // as if it were single precision, which alone runs on a CPU
				rename(t, filepath.Join(copyModel(t, folder, r.Folder), "model_fp16.onnx"), "model.onnx")
			}
			task := r.Task
			if _, isSignal := signal.ParseKind(task); !isSignal {
				task = config.GroundingTask // which takes models over pairs
			}
			line := fmt.Sprintf("{name: %s, model: %s, dims: %d, layer: %d}", task, r.Folder, r.Dims, r.Layer)
			a := build(t, taskLines(folder, line))
			c, placed := classifierOf(t, a, task)
			precision, err := placed.bundle.GraphPrecision(a.neural.host.Choices()[0].Precision)
			if err != nil {
				t.Fatal(err)
			}
			compared := 0
			for _, e := range r.Cases {
				if e.Precision != precision && folder == dir {
					continue // another graph of the same model
				}
				if len(e.IDs) > placed.bundle.Manifest.MaxTokens {
					continue // the reference cuts what is compressed here
				}
				var got []float32
				want := e.Values
				k, isSignal := signal.ParseKind(r.Task)
				switch {
				case len(e.Texts) == 2 && !isSignal:
					probs, err := c.ClassifyPairs(t.Context(), task, []classify.Pair{{First: e.Texts[0], Second: e.Texts[1]}})
					if err != nil {
						t.Fatal(err)
					}
					got, want = probs[0], softmax(want)
				case k == signal.Embedding:
					got = a.Extract(t.Context(), e.Texts[0], signal.MaskOf(k)).Value(k).Vector
				default:
					got, want = a.Extract(t.Context(), e.Texts[0], signal.MaskOf(k)).Value(k).Probs, softmax(want)
				}
				if len(got) != len(want) {
					t.Fatalf("%.30q: %d numbers, want %d", e.Texts[0], len(got), len(want))
				}
				compared++
				for i := range want {
					if d := math.Abs(float64(got[i]) - want[i]); d > 2e-3 {
						t.Errorf("%.30q: number %d is %v, want %v", e.Texts[0], i, got[i], want[i])
						break
					}
				}
			}
			if compared == 0 {
				t.Error("nothing was compared")
			}
		})
	}
}

// classifierOf returns what runs the model of the only task of a product, and its placement.
func classifierOf(t *testing.T, a *App, task string) (*classify.Classifier, *placement) {
	t.Helper()
	if task == config.GroundingTask {
		j := a.neural.grounding.open(t.Context())
		if j.err != nil {
			t.Fatal(j.err)
		}
		return j.classifier, a.neural.grounding.place
	}
	placed, err := place(&a.cfg.Load().Classify)
	if err != nil {
		t.Fatal(err)
	}
	return a.classifier.Load(), &placed[1]
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// rename gives a file another name in its folder.
func rename(tb testing.TB, file, name string) {
	tb.Helper()
	if err := os.Rename(file, filepath.Join(filepath.Dir(file), name)); err != nil {
		tb.Fatal(err)
	}
}

// everything is a classify section with a model of its own for most tasks.
func everything(dir string) string {
	return taskLines(
		dir, "{name: complexity, model: bert-complexity}", "{name: factcheck, model: xlmr-factcheck}", "{name: pii, model: modernbert-pii}",
		"{name: embedding, model: qwen3-embedding, dims: 16}",
	)
}

func TestModelsRunBesideTheEmbeddedBundle(t *testing.T) {
	needModels(t)
	dir := t.TempDir()
	for _, name := range []string{"bert-complexity", "xlmr-factcheck", "modernbert-pii", "qwen3-embedding"} {
		copyModel(t, dir, name)
	}
	rename(t, filepath.Join(dir, "modernbert-pii", "onnx", "model_fp16.onnx"), "model.onnx")
	a := build(t, everything(dir))
	c := a.classifier.Load()
	if d := c.Degraded(); len(d) > 0 {
		t.Fatalf("degraded: %v", d)
	}
	need := signal.MaskOf(signal.Domain, signal.Jailbreak, signal.Complexity, signal.FactCheck, signal.PII, signal.Embedding)
	set := a.Extract(t.Context(), "Please write to ann@example.com about the derivative of x squared.", need)
	for _, want := range []struct {
		kind   signal.Kind
		source string
	}{
		{signal.Domain, "signalbox"},
		{signal.Jailbreak, "signalbox"},
		{signal.Complexity, "bert-complexity"},
		{signal.FactCheck, "xlmr-factcheck"},
		{signal.PII, "modernbert-pii"},
		{signal.Embedding, "qwen3-embedding"},
	} {
		if v := set.Value(want.kind); v.State != signal.Known || !strings.HasPrefix(v.Source, want.source) {
			t.Errorf("%s is state %d (%s) from %q, want known from %q", want.kind, v.State, v.Reason, v.Source, want.source)
		}
	}
	if n := len(set.Value(signal.Embedding).Vector); n != 16 {
		t.Errorf("the vector has %d numbers, want 16", n)
	}
	if !slices.ContainsFunc(set.Value(signal.PII).Spans, func(s signal.Span) bool { return s.Type == "EMAIL_ADDRESS" }) {
		t.Errorf("pii found %v, want the address", set.Value(signal.PII).Spans)
	}
}

// copyModel copies a model to a folder of its own, so that a test can break it.
func copyModel(tb testing.TB, dir, name string) string {
	tb.Helper()
	to := filepath.Join(dir, name)
	if err := os.CopyFS(to, os.DirFS(filepath.Join(hubModels, name))); err != nil {
		tb.Fatal(err)
	}
	return to
}

// A model that cannot be used costs its own signal, which is unknown for the lack of a model, and
// nothing else.
func TestABrokenModelCostsItsOwnSignalOnly(t *testing.T) {
	needModels(t)
	for name, breaks := range map[string]func(t *testing.T, dir string){
		"a graph of noise behind its description": func(t *testing.T, dir string) {
			t.Helper()
			file := filepath.Join(dir, "model.onnx")
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			i := strings.Index(string(b), "MatMul")
			if i < 0 {
				t.Fatal("the graph multiplies nothing")
			}
			copy(b[i:], "NoSuch")
			if err := os.WriteFile(file, b, 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"a tokenizer that is none": func(t *testing.T, dir string) {
			t.Helper()
			if err := os.WriteFile(filepath.Join(dir, "tokenizer.json"), []byte(`{"model":{"type":"Abacus"}}`), 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"a file that is not the one pulled": func(t *testing.T, dir string) {
			t.Helper()
			record := `{"format":1,"repo":"x/y","files":[{"path":"model.onnx","bytes":1,"sha256":"` + strings.Repeat("0", 64) + `"}]}`
			if err := os.WriteFile(filepath.Join(dir, ".signalbox.json"), []byte(record), 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			model := copyModel(t, dir, "bert-complexity")
			sections := taskLines(dir, "{name: complexity, model: bert-complexity}") +
				"routes: [{name: hard, when: {complexity: high}, on_unknown: error, use: {models: [small]}}]\n"
			cfg, err := load(t, sections)
			if err != nil {
				t.Fatal(err)
			}
			cfg.File, cfg.Telemetry.Log = "", "error"
			breaks(t, model)
			o := Options{Version: "test", Settings: memoryOnly(flags(t)), Log: io.Discard, Env: os.LookupEnv}
			a, err := Build(t.Context(), cfg, o)
			if err != nil {
				t.Fatalf("it does not start: %v", err)
			}
			defer func() {
				if err := a.Close(context.Background()); err != nil {
					t.Error(err)
				}
			}()
			set := a.Extract(t.Context(), "What is the derivative of x squared?", signal.MaskOf(signal.Domain, signal.Complexity))
			v := set.Value(signal.Complexity)
			if v.State != signal.Unknown || v.Reason != signal.ReasonNoModel || v.Label != "" {
				t.Errorf("complexity is state %d, reason %q, label %q, want unknown for no_model", v.State, v.Reason, v.Label)
			}
			if v := set.Value(signal.Domain); v.State != signal.Known || v.Label != "math" {
				t.Errorf("domain is state %d, label %q, want math", v.State, v.Label)
			}
			if d := a.classifier.Load().Degraded(); !slices.Equal(d, []string{"no model for complexity"}) {
				t.Errorf("degraded: %v", d)
			}
			const cause = "no model computes complexity; bundle bert-complexity cannot be used: "
			if r := a.Refuses(); len(r) != 1 || !strings.Contains(r[0], cause) {
				t.Errorf("refuses: %v", r)
			}
			o.RequireModels = true
			if b, err := Build(t.Context(), cfg, o); err == nil {
				_ = b.Close(context.Background())
				t.Error("it started although models were required")
			}
		})
	}
}

// S31: models whose files lead out of their folder are among them: a graph, the weights beside it,
// or the tokenizer.
func TestModelsThatCannotBeReadAreConfigurationProblems(t *testing.T) {
	dir := t.TempDir()
	for org, file := range map[string]string{"graph": "model.onnx", "weights": "model.onnx.data", "tokens": "tokenizer.json"} {
		folder := filepath.Join(dir, "links--"+org)
		if err := os.CopyFS(folder, os.DirFS(hubModels+"/xlmr-factcheck")); err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(folder, file)
		if err := errors.Join(os.Remove(name), os.Symlink(filepath.Join(absolute(t, hubModels), "xlmr-factcheck", file), name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "org--empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ task, want string }{
		"no such folder":          {"{name: pii, model: org/none}", "classify.tasks[0].model: "},
		"an empty folder":         {"{name: pii, model: org/empty}", "classify.tasks[0].model: "},
		"a name that leads out":   {"{name: pii, model: ../secrets}", "classify.tasks[0].model: "},
		"a graph that is a link":  {"{name: factcheck, model: links/graph}", "model.onnx"},
		"weights that are a link": {"{name: factcheck, model: links/weights}", "model.onnx.data"},
		"a tokenizer that is one": {"{name: factcheck, model: links/tokens}", "tokenizer.json"},
		"no such task": {
			"{name: weather, model: embedded}",
			`classify.tasks[0].name: the bundle has no task "weather"`,
		},
		"a slip, with a model": {
			"{name: complexty, model: bert-complexity}",
			`classify.tasks[0].name: no task is called "complexty", did you mean "complexity"?`,
		},
		"no task, with a model": {
			"{name: toxicity, model: bert-complexity}",
			`classify.tasks[0].name: no task is called "toxicity", expected one of domain, `,
		},
		"a signal of no model": {
			"{name: keyword, model: bert-complexity}",
			`classify.tasks[0].name: no task is called "keyword"`,
		},
		"a slip, over pairs": {
			"{name: groundign, model: bert-nli}",
			`classify.tasks[0].name: no task is called "groundign", did you mean "grounding"?`,
		},
		"patterns find only pii":    {"{name: domain, model: patterns}", "classify.tasks[0].model: patterns can only be used for pii"},
		"a model of another task":   {"{name: pii, model: bert-nli}", "classify.tasks[0].model: "},
		"two models for one signal": {"{name: pii, model: patterns}, {name: pii, model: patterns}", "classify.tasks[1].name: "},
	} {
		t.Run(name, func(t *testing.T) {
			folder := dir
			if strings.Contains(c.task, "model: bert-") {
				folder = absolute(t, hubModels)
			}
			_, err := load(t, taskLines(folder, c.task))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want a problem with %q", err, c.want)
			}
		})
	}
}

func TestEveryModelThatCannotBeReadIsTold(t *testing.T) {
	_, err := load(t, taskLines(t.TempDir(), "{name: pii, model: org/none}, {name: factcheck, model: org/neither}, "+
		"{name: domian, model: org/none}"))
	for _, want := range []string{"classify.tasks[0].model: ", "classify.tasks[1].model: ", "classify.tasks[2].name: "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want a problem of %s, too", err, want)
		}
	}
}

func TestPatternsAloneFindPersonalData(t *testing.T) {
	a := build(t, "classify: {tasks: [{name: pii, model: patterns}]}\nroutes: [{name: private, when: {pii: {types: [EMAIL_ADDRESS]}}, block: {message: no}}]\n")
	set := a.Extract(t.Context(), "write to ann@example.com", signal.MaskOf(signal.PII))
	v := set.Value(signal.PII)
	if v.State != signal.Known || v.Source != "patterns" || len(v.Spans) != 1 || v.Spans[0].Type != "EMAIL_ADDRESS" {
		t.Errorf("pii is %+v, want one address", v)
	}
}

// reload replaces the file of a running product.
func reload(t *testing.T, a *App, file, sections string) error {
	t.Helper()
	text := "models: [{name: small, endpoints: [{name: a, url: 'http://127.0.0.1:9/v1'}]}]\n" + sections + "default: {models: [small]}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return a.Reload(t.Context())
}

func TestReloadOpensAndClosesWhatChanged(t *testing.T) {
	needModels(t)
	dir := t.TempDir()
	model := copyModel(t, dir, "bert-complexity")
	file := filepath.Join(t.TempDir(), "signalbox.yaml")
	a := build(t, "")
	a.cfg.Load().File = file
	open := func() map[string]*loaded { return modelsForAll(a) }
	know := func() bool { // the folder's model answers, not the embedded one
		v := *a.Extract(t.Context(), "hello", signal.MaskOf(signal.Complexity)).Value(signal.Complexity)
		return v.State == signal.Known && v.Source != "signalbox-minilm"
	}
	first := open()
	if len(first) != 1 || know() {
		t.Fatalf("open at the start: %v", first)
	}
	var embedded *loaded
	for _, l := range first {
		embedded = l
	}
	with := taskLines(dir, "{name: complexity, model: bert-complexity}")
	if err := reload(t, a, file, with); err != nil {
		t.Fatal(err)
	}
	second := open()
	if len(second) != 2 || second[embedded.engine.Name()] != embedded || !know() {
		t.Fatalf("after adding a model: %v", second)
	}
	if err := reload(t, a, file, with+"prompts: [{name: p, text: x}]\n"); err != nil {
		t.Fatal(err)
	}
	if third := open(); third["bert-complexity"] != second["bert-complexity"] || third[embedded.engine.Name()] != embedded {
		t.Errorf("a reload that changes no model opened one again")
	}

	// A model that breaks is not taken: what runs goes on.
	if err := os.WriteFile(filepath.Join(model, "tokenizer.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := reload(t, a, file, with); err == nil {
		t.Error("a broken model was taken in a reload")
	}
	if !know() {
		t.Error("the old model is gone after a reload that failed")
	}

	if err := reload(t, a, file, ""); err != nil {
		t.Fatal(err)
	}
	if last := open(); len(last) != 1 || last[embedded.engine.Name()] != embedded || know() {
		t.Errorf("after removing the model: %v", last)
	}
	a.retiring.Wait() // nobody uses the states before, so this ends
	if _, err := second["bert-complexity"].session.Run(t.Context(), nil, nil); err == nil {
		t.Error("the model that was removed can still run")
	}
}

func TestRedactedTextNeverReachesTheBackend(t *testing.T) {
	sim, url := startBackend(t, func(o *simulator.Options) { o.Record = 1 })
	text := "models: [{name: small, endpoints: [{name: a, url: '" + url + "'}]}]\n" +
		"classify: {tasks: [{name: pii, model: patterns}]}\nroutes: [{name: all, when: true, use: {models: [small], redact: true}}]\ndefault: {models: [small]}\n"
	cfg, _, err := config.Parse("test.yaml", []byte(text), os.LookupEnv, Catalog)
	if err != nil {
		t.Fatal(err)
	}
	cfg.File = ""
	s := serve(t, cfg, config.Settings{})
	secrets := []string{
		"ann@example.com", "bob@example.org", "carol@example.net", "dora@example.com", "evan@example.org", "4111 1111 1111 1111",
	}
	body := `{"model":"auto","messages":[{"role":"system","content":"Ask \"bob@example.org\"."},` +
		`{"role":"user","content":"I am ann@example.com"}],"user":"dora@example.com","stop":["evan@example.org"],` +
		`"metadata":{"card":"4111 1111 1111 1111","team":"blue"},"chat_template_kwargs":{"persona":"carol@example.net"}}`
	plain := strings.Replace(body, `,"chat_template_kwargs":{"persona":"carol@example.net"}`, "", 1)
	for name, body := range map[string]string{"with arguments of the template": body, "plain": plain} {
		got := s.post(t, "/v1/chat/completions", body)
		if got.status != http.StatusOK && (name == "plain" || got.status != http.StatusServiceUnavailable) {
			t.Errorf("%s: status %d %s", name, got.status, got.body)
		}
		for _, r := range sim.Requests() {
			if name == "plain" && !strings.Contains(string(r.Body), `"team":"blue"`) {
				t.Errorf("%s: the backend was sent %s", name, r.Body)
			}
			for _, secret := range secrets {
				if strings.Contains(string(r.Body), secret) {
					t.Errorf("%s: the backend was sent %s: %s", name, secret, r.Body)
				}
			}
		}
	}
}
