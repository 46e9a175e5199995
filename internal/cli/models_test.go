package cli

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"signalbox/internal/hub/hubtest"
	"signalbox/internal/hub/local"
)

// result is what one command line came to.
type result struct {
	code     int
	out, err string
}

func runModels(t *testing.T, env map[string]string, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	code := Main(t.Context(), "test", append([]string{"models"}, args...), Streams{
		In: strings.NewReader(""), Out: &out, Err: &errs, Width: 80,
		Env: func(k string) (string, bool) { v, ok := env[k]; return v, ok },
	})
	return result{code, out.String(), errs.String()}
}

func (r result) check(t *testing.T, code int, out, errs []string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit code %d, want %d; output %q, errors %q", r.code, code, r.out, r.err)
	}
	for _, want := range out {
		if !strings.Contains(r.out, want) {
			t.Errorf("output %q does not have %q", r.out, want)
		}
	}
	for _, want := range errs {
		if !strings.Contains(r.err, want) {
			t.Errorf("errors %q do not have %q", r.err, want)
		}
	}
}

// published is a private repository with two graphs.
func published() *hubtest.Repo {
	return &hubtest.Repo{Name: "org/intent", License: "mit", Token: "hf_secret", Files: []hubtest.File{
		{Path: "config.json", Data: []byte(`{"architectures": ["BertForSequenceClassification"]}`)},
		{Path: "tokenizer.json", Data: []byte("{}")},
		{Path: "vocab.txt", Data: []byte("a")},
		{Path: "model.onnx", Data: bytes.Repeat([]byte("fp32 "), 100), LFS: true},
		{Path: "model_fp16.onnx", Data: []byte("fp16"), LFS: true},
	}}
}

func TestModelsArePulledListedAndVerified(t *testing.T) {
	hub := hubtest.New(t, published())
	dir := t.TempDir()
	env := map[string]string{"HF_ENDPOINT": hub.URL(), "HF_TOKEN": "hf_secret"}

	runModels(t, env, "pull", "org/intent@main", "--dir", dir, "--include", "*.txt").check(t, 0,
		[]string{"ready org/intent@", "graph model.onnx (fp32), 4 files, 555 B; 4 downloaded, 0 there already", "licence mit", "classify.tasks[].model: org/intent"},
		[]string{"4 files to download, 555 B", "model.onnx: 500 B, verified", "vocab.txt: 1 B, verified"})
	runModels(t, env, "pull", "org/intent", "--dir", dir, "--precision", "fp16").check(t, 0,
		[]string{"graph model_fp16.onnx (fp16), 5 files", "1 downloaded, 2 there already"}, nil)

	list := runModels(t, nil, "list", "--dir", dir, "--json")
	list.check(t, 0, nil, nil)
	var got modelList
	if err := json.Unmarshal([]byte(list.out), &got); err != nil {
		t.Fatal(err)
	}
	got.Models = slices.DeleteFunc(got.Models, func(m local.Model) bool { return strings.HasPrefix(m.Name, "embedded ") }) // of single tasks
	if len(got.Models) != 2 || got.Models[0].Name != "embedded" || got.Models[0].Kind != local.Bundle || got.Models[1].Name != "org/intent" ||
		got.Models[1].Kind != local.HuggingFace || got.Models[1].VerifiedAt.IsZero() || got.Dir != dir {
		t.Errorf("list %+v", got)
	}
	runModels(t, nil, "list", "--dir", dir).check(t, 0, []string{"name", "embedded", "built in", "org/intent", "hugging face  sequence", "fp16, fp32", "mit"}, nil)

	runModels(t, nil, "verify", "--dir", dir).check(t, 0, []string{"embedded: ok\n", "org/intent: ok\n"}, nil)
	graph := filepath.Join(dir, "org--intent", "model.onnx")
	if err := os.WriteFile(graph, []byte("short"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "org--intent", "tokenizer.json")); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"verify", "--dir", dir}, {"verify", "org/intent", "--dir", dir}, {"verify", "org--intent", "--dir", dir}} {
		runModels(t, nil, args...).check(t, 1, []string{": model.onnx: does not match the record: 5 bytes, want 500", ": tokenizer.json: missing"}, nil)
	}
	runModels(t, nil, "verify", "embedded", "--dir", dir).check(t, 0, []string{"embedded: ok"}, nil)
	damaged := runModels(t, nil, "verify", "org/intent", "--dir", dir, "--json")
	damaged.check(t, 1, nil, nil)
	var found verification
	if err := json.Unmarshal([]byte(damaged.out), &found); err != nil {
		t.Fatal(err)
	}
	if m := found.Models; found.OK || found.Dir != dir || len(m) != 1 || m[0].Name != "org/intent" || m[0].OK ||
		len(m[0].Problems) != 2 || !strings.HasPrefix(m[0].Problems[1], "tokenizer.json: missing") {
		t.Errorf("verified %+v", found)
	}
	runModels(t, nil, "verify", "embedded", "--dir", dir, "--json").check(t, 0, []string{`"ok": true`, `"problems": []`}, nil)
	runModels(t, nil, "list", "--dir", dir).check(t, 0, []string{"never"}, nil)

	runModels(t, env, "pull", "org/intent", "--dir", dir).check(t, 0, []string{"2 downloaded, 1 there already"}, nil)
	runModels(t, nil, "verify", "org/intent", "--dir", dir).check(t, 0, []string{"org/intent: ok"}, nil)
}

// A folder as signalbox_training.half makes it holds a bundle for each of the embedded ones.
func TestBundlesOfHalfPrecisionAreListedAndVerified(t *testing.T) {
	dir := t.TempDir()
	at := filepath.Join(dir, "embedded-fp16", "default")
	if err := os.CopyFS(at, os.DirFS(filepath.Join("..", "..", "models", "default"))); err != nil {
		t.Fatal(err)
	}
	const name = "embedded-fp16/default"
	runModels(t, nil, "list", "--dir", dir).check(t, 0, []string{name}, nil)
	runModels(t, nil, "verify", "--dir", dir).check(t, 0, []string{name + ": ok"}, nil)
	if err := os.Remove(filepath.Join(at, "turns.bin")); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"verify", "--dir", dir}, {"verify", name, "--dir", dir}} {
		runModels(t, nil, args...).check(t, 1, []string{name + ": ", "turns.bin"}, nil)
	}
}

func TestModelsSayWhatIsWrong(t *testing.T) {
	hub := hubtest.New(t, published())
	dir := t.TempDir()
	hub.Intercept = func(_ string, w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "org/gone") {
			return false
		}
		hubtest.Refuse(w, http.StatusNotFound, "RepoNotFound", "Repository not found")
		return true
	}
	tests := map[string]struct {
		env  map[string]string
		args []string
		code int
		err  string
	}{
		"an unknown command":           {nil, []string{"fetch"}, 2, `models has no command "fetch"`},
		"no repository":                {nil, []string{"pull"}, 2, "pull takes exactly one repository"},
		"a name that is no repository": {nil, []string{"pull", "../x"}, 2, `"../x": not a model name`},
		"a precision that is none":     {nil, []string{"pull", "org/x", "--precision", "int4"}, 2, `precision "int4"`},
		"a pattern that is none":       {nil, []string{"pull", "org/x", "--include", "["}, 2, `pattern "["`},
		"an endpoint that is none":     {nil, []string{"pull", "org/x", "--endpoint", "hub"}, 2, `endpoint "hub"`},
		"a private repository":         {nil, []string{"pull", "org/intent", "--endpoint", hub.URL()}, 1, "set HF_TOKEN"},
		"a repository that is gone":    {map[string]string{"HF_ENDPOINT": hub.URL()}, []string{"pull", "org/gone"}, 1, "check the spelling"},
		"the flag wins over the environment": {
			map[string]string{"HF_ENDPOINT": "http://127.0.0.1:1"},
			[]string{"pull", "org/gone", "--endpoint", hub.URL()},
			1, "check the spelling",
		},
		"a model that is not there":   {nil, []string{"verify", "org/none"}, 1, `no model "org/none" in ` + dir},
		"a model that can be nowhere": {nil, []string{"verify", "../x"}, 2, "not a model name"},
		"two models":                  {nil, []string{"verify", "a", "b"}, 2, "at most one model"},
		"list takes no names":         {nil, []string{"list", "a"}, 2, "unexpected argument"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			runModels(t, tt.env, append(tt.args, "--dir", dir)...).check(t, tt.code, nil, []string{tt.err})
		})
	}
}

func TestAPullDrawsABarOnATerminal(t *testing.T) {
	repo := published()
	repo.Token = ""
	hub := hubtest.New(t, repo)
	var out, errs bytes.Buffer
	code := Main(t.Context(), "test", []string{"models", "pull", "org/intent", "--dir", t.TempDir(), "--endpoint", hub.URL()}, Streams{
		Out: &out, Err: &errs, Terminal: true, Width: 80, Env: func(string) (string, bool) { return "", false },
	})
	if code != 0 || !strings.Contains(errs.String(), "downloading") || strings.Contains(errs.String(), "verified") {
		t.Errorf("exit code %d, errors %q", code, errs.String())
	}
}
