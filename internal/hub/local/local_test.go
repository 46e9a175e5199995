package local

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/classify/bundle"
	"signalbox/internal/disk"
)

func TestFolderOfAModel(t *testing.T) {
	tests := map[string]struct{ model, want string }{
		"a repository":                          {"llm-semantic-router/mmbert32k-intent", "llm-semantic-router--mmbert32k-intent"},
		"a repository without an organisation":  {"gpt2", "gpt2"},
		"a folder that pull has made":           {"org--name", "org--name"},
		"a folder of the operator's own":        {"my_bundle.v2", "my_bundle.v2"},
		"digits and all kinds of marks":         {"0x/a-b_c.d", "0x--a-b_c.d"},
		"an empty name":                         {"", ""},
		"a name that climbs":                    {"../x", ""},
		"a name that climbs behind a slash":     {"org/..", ""},
		"a name that begins with a dot":         {".cache", ""},
		"an absolute name":                      {"/etc", ""},
		"three parts":                           {"a/b/c", ""},
		"a name that would be read as another":  {"a--b/c", ""},
		"a name that would be read as two":      {"a/b--c", ""},
		"three parts in a folder":               {"a--b--c", ""},
		"a backslash":                           {`a\b`, ""},
		"a space":                               {"a b", ""},
		"a revision":                            {"org/name@main", ""},
		"a name longer than the hub's longest":  {strings.Repeat("a", 97), ""},
		"a name as long as the hub's longest":   {strings.Repeat("a", 96), strings.Repeat("a", 96)},
		"a part that ends in a dash":            {"org/name-", ""},
		"two dots inside a part":                {"org/a..b", ""},
		"a letter that only looks like another": {"org/nаme", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := FolderName(tt.model)
			if got != tt.want || (err == nil) != (tt.want != "") || err != nil && !errors.Is(err, ErrName) {
				t.Fatalf("folder %q, error %v; want %q", got, err, tt.want)
			}
			dir, err := Dir("/models", tt.model)
			if tt.want != "" && (err != nil || dir != filepath.Join("/models", tt.want)) {
				t.Errorf("dir %q, %v", dir, err)
			}
			if tt.want != "" {
				if back, err := FolderName(ModelName(got)); back != got || err != nil {
					t.Errorf("the model name %q of the folder gives folder %q, %v", ModelName(got), back, err)
				}
			}
		})
	}
}

func TestFileNames(t *testing.T) {
	tests := map[string]struct {
		path string
		ok   bool
	}{
		"a file":                           {"config.json", true},
		"a file in a folder":               {"onnx/layer-6/model.onnx", true},
		"a name that begins with a dot":    {".gitattributes", true},
		"a name in another script":         {"модель.onnx", true},
		"the root":                         {".", false},
		"nothing":                          {"", false},
		"a path that climbs":               {"a/../b", false},
		"an absolute path":                 {"/a", false},
		"a backslash":                      {`a\b`, false},
		"a drive":                          {"c:x", false},
		"a control character":              {"a\nb", false},
		"an escape sequence of terminals":  {"a\x1b[31m", false},
		"a byte that is not UTF-8":         {"a\xff", false},
		"the record":                       {RecordFile, false},
		"a partial download in other case": {".SignalBox-partial/x", false},
		"a folder that ends in a dot":      {"a./b", false},
		"a part that is too long":          {strings.Repeat("a", 256), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := CheckPath(tt.path)
			if (err == nil) != tt.ok || err != nil && !errors.Is(err, ErrPath) {
				t.Errorf("error %v, want ok %v", err, tt.ok)
			}
		})
	}
}

func TestWhereModelsLieByDefault(t *testing.T) {
	if got := DefaultDir("/c"); got != "/c/signalbox/models" {
		t.Errorf("default %q", got)
	}
	if got := DefaultDir(""); got != "" {
		t.Errorf("default without a cache %q", got)
	}
	for in, want := range map[string]string{"~/m": "/h/m", "~": "/h", "~other/m": "~other/m", "/m": "/m", "m": "m"} {
		if got := Expand(in, "/h"); got != want {
			t.Errorf("%q expands to %q, want %q", in, got, want)
		}
	}
	if got := Expand("~/m", ""); got != "~/m" {
		t.Errorf("without a home: %q", got)
	}
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// model writes files and a record of them into a folder of modelsDir.
func model(t *testing.T, modelsDir, folder string, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(modelsDir, folder)
	write(t, dir, files)
	r := Record{Repo: ModelName(folder), Revision: "main", Commit: strings.Repeat("c", 40), License: "mit"}
	for name, content := range files {
		r.Files = append(r.Files, File{Path: name, Bytes: int64(len(content)), SHA256: digest(content)})
	}
	if err := r.Write(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func texts(problems []error) []string {
	var out []string
	for _, p := range problems {
		out = append(out, p.Error())
	}
	return out
}

func TestVerifyNamesEveryProblem(t *testing.T) {
	files := map[string]string{"config.json": "{}", "onnx/model.onnx": "graph", "tokenizer.json": "tok", "README.md": "hi"}
	tests := map[string]struct {
		change func(t *testing.T, dir string)
		want   []string
	}{
		"nothing changed": {func(*testing.T, string) {}, nil},
		"a file more":     {func(t *testing.T, dir string) { t.Helper(); write(t, dir, map[string]string{"mine.txt": "x"}) }, nil},
		"three files changed": {
			func(t *testing.T, dir string) {
				t.Helper()
				write(t, dir, map[string]string{"config.json": "{ }", "onnx/model.onnx": "grapH"})
				if err := os.Remove(filepath.Join(dir, "tokenizer.json")); err != nil {
					t.Fatal(err)
				}
			},
			[]string{
				"config.json: does not match the record: 3 bytes, want 2",
				"onnx/model.onnx: does not match the record: sha256 " + digest("grapH") + ", want " + digest("graph"),
				"tokenizer.json: missing: file does not exist",
			},
		},
		"a file became a folder": {
			func(t *testing.T, dir string) {
				t.Helper()
				if err := errors.Join(os.Remove(filepath.Join(dir, "README.md")), os.Mkdir(filepath.Join(dir, "README.md"), 0o755)); err != nil {
					t.Fatal(err)
				}
			},
			[]string{"README.md: does not match the record: not a regular file"},
		},
		"a record that cannot be read": {
			func(t *testing.T, dir string) {
				t.Helper()
				write(t, dir, map[string]string{RecordFile: `{"format": 7}`})
			},
			[]string{"read record: DIR/.signalbox.json: format 7 is not supported, want 1"},
		},
		"no record": {
			func(t *testing.T, dir string) {
				t.Helper()
				if err := os.Remove(filepath.Join(dir, RecordFile)); err != nil {
					t.Fatal(err)
				}
			},
			[]string{ErrUnchecked.Error()},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			dir := model(t, t.TempDir(), "org--m", files)
			tt.change(t, dir)
			got := texts(Verify(t.Context(), dir))
			for i := range got {
				got[i] = strings.ReplaceAll(got[i], dir, "DIR")
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("problems (-want +got):\n%s", d)
			}
		})
	}
}

func TestVerifyReadsTheManifestOfABundleToo(t *testing.T) {
	dir := model(t, t.TempDir(), "b", map[string]string{"bundle.yaml": "format: 1\n"})
	got := texts(Verify(t.Context(), dir))
	if len(got) == 0 || !strings.Contains(got[0], bundle.ManifestFile) {
		t.Errorf("problems %q, want those of a manifest that is not complete", got)
	}
}

// S31: what is checked is what lies in the folder.
func TestVerifyDoesNotFollowALinkOutOfTheFolder(t *testing.T) {
	dir := model(t, t.TempDir(), "org--m", map[string]string{"config.json": "{}"})
	outside := filepath.Join(t.TempDir(), "x")
	write(t, filepath.Dir(outside), map[string]string{"x": "{}"})
	name := filepath.Join(dir, "config.json")
	if err := errors.Join(os.Remove(name), os.Symlink(outside, name)); err != nil {
		t.Fatal(err)
	}
	if got := Verify(t.Context(), dir); len(got) != 1 {
		t.Errorf("problems %v, want one", got)
	}
}

func TestVerifyEndsWithItsContext(t *testing.T) {
	dir := model(t, t.TempDir(), "org--m", map[string]string{"config.json": "{}"})
	ctx, stop := context.WithCancel(t.Context())
	stop()
	got := Verify(ctx, dir)
	if len(got) != 1 || !errors.Is(got[0], context.Canceled) {
		t.Errorf("problems %v", got)
	}
}

func TestTheTimeOfACheckIsNotedOnlyForWhatWasChecked(t *testing.T) {
	dir := model(t, t.TempDir(), "org--m", map[string]string{"config.json": "{}"})
	checked, err := ReadRecord(dir)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	noted := func() time.Time {
		t.Helper()
		r, err := ReadRecord(dir)
		if err != nil {
			t.Fatal(err)
		}
		return r.VerifiedAt
	}
	lock, err := TryLock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := MarkVerified(dir, checked, at); err != nil || !noted().IsZero() {
		t.Errorf("during a pull: %v, noted %v", err, noted())
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if err := MarkVerified(dir, checked, at); err != nil || !noted().Equal(at) {
		t.Errorf("error %v, noted %v", err, noted())
	}
	other := *checked
	other.Commit = strings.Repeat("d", 40)
	if err := MarkVerified(dir, &other, time.Time{}); err != nil || !noted().Equal(at) {
		t.Errorf("another commit: %v, noted %v", err, noted())
	}
	if err := MarkVerified(dir, checked, time.Time{}); err != nil || !noted().IsZero() {
		t.Errorf("a failed check: %v, noted %v", err, noted())
	}
}

func TestALockKeepsOthersOut(t *testing.T) {
	dir := t.TempDir()
	first, err := TryLock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := TryLock(dir); !errors.Is(err, disk.ErrHeld) {
		t.Errorf("error %v, want ErrHeld", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := TryLock(dir)
	if err != nil {
		t.Fatalf("after unlock: %v", err)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := TryLock(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
}

func TestListTellsWhatAFolderIs(t *testing.T) {
	dir := t.TempDir()
	pulled := model(t, dir, "org--intent", map[string]string{
		"config.json": `{"architectures": ["BertForSequenceClassification"]}`, "onnx/model.onnx": "12345", "tokenizer.json": "{}",
		"onnx/model_sdpa_fp16.onnx": "123",
	})
	rec, err := ReadRecord(pulled)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if err := MarkVerified(pulled, rec, at); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "org--embed"), map[string]string{"model_quantized.onnx": "1", "modules.json": "[]", "config.json": "{}"})
	write(t, filepath.Join(dir, "org--half"), map[string]string{PartialDir + "/ab": "123"})
	write(t, filepath.Join(dir, "org--torch"), map[string]string{"config.json": `{"architectures":["BertForTokenClassification"]}`, "model.safetensors": "1"})
	write(t, filepath.Join(dir, "own"), map[string]string{"bundle.yaml": "format: 99"})
	write(t, filepath.Join(dir, "empty-ish"), map[string]string{"x": ""})
	write(t, dir, map[string]string{"file.txt": "not a folder", ".hidden/x": ""})
	got, err := List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		got[i].Dir, _ = filepath.Rel(dir, got[i].Dir)
		if got[i].Kind == Broken && strings.Contains(got[i].Problem, "format: 99") {
			got[i].Problem = "format 99"
		}
	}
	none := []string{}
	want := []Model{
		{Name: "empty-ish", Kind: Broken, Tasks: none, Precisions: none, Dir: "empty-ish", Problem: "no ONNX graph, no bundle.yaml and no config.json"},
		{Name: "org/embed", Kind: HuggingFace, Tasks: []string{"embedding"}, Precisions: []string{"int8"}, Bytes: 5, Dir: "org--embed"},
		{Name: "org/half", Kind: Incomplete, Tasks: none, Precisions: none, Dir: "org--half"},
		{
			Name: "org/intent", Kind: HuggingFace, Tasks: []string{"sequence"}, Precisions: []string{"fp16", "fp32"}, Bytes: 62, License: "mit",
			Commit: strings.Repeat("c", 40), VerifiedAt: at, Dir: "org--intent",
		},
		{Name: "org/torch", Kind: Broken, Tasks: none, Precisions: none, Bytes: 49, Dir: "org--torch", Problem: "no ONNX graph"},
		{Name: "own", Kind: Broken, Tasks: none, Precisions: none, Bytes: 10, Dir: "own", Problem: "format 99"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("models (-want +got):\n%s", d)
	}
	if got, err := List(filepath.Join(dir, "none")); got != nil || err != nil {
		t.Errorf("a folder that is not there: %v, %v", got, err)
	}
}

func TestPrecisionOfAGraphByItsName(t *testing.T) {
	for name, want := range map[string]string{
		"model.onnx": "fp32", "onnx/model_fp32.onnx": "fp32", "onnx/model_sdpa_fp16.onnx": "fp16", "model_fp16.onnx": "fp16",
		"model_int8.onnx": "int8", "onnx/model_quantized.onnx": "int8", "model_qint8_arm64.onnx": "int8", "model_quint8_avx2.onnx": "int8",
		"model_O4.onnx": "", "model_q4.onnx": "", "decoder.onnx": "", "model_q4f16.onnx": "",
	} {
		if got := Precision(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestDescribeReadsABundle(t *testing.T) {
	sum := digest("x")
	manifest := fmt.Sprintf(`format: 1
name: tiny
version: "2.1"
description: A test.
license: MIT
languages: [en]
layout: shared
graphs:
- {file: m_int8.onnx, precision: int8, sha256: %[1]s, bytes: 1}
tokenizer: {file: tokenizer.json, sha256: %[1]s, bytes: 1}
inputs: {ids: input_ids, mask: attention_mask}
max_tokens: 64
tasks:
- {name: domain, kind: sequence, output: d, labels: [math, law], temperature: 1, threshold: 0.5, window: {tokens: 64, stride: 48, max: 1, combine: mean}}
- {name: embedding, kind: embedding, output: e, dims: 8, window: {tokens: 64, stride: 48, max: 1, combine: mean}}
canary: {text: hello, expect: {domain: law}}
provenance: [{name: none, license: MIT}]
`, sum)
	files := fstest.MapFS{"bundle.yaml": {Data: []byte(manifest)}, "m_int8.onnx": {Data: []byte("x")}, "tokenizer.json": {Data: []byte("x")}}
	got := Describe(files)
	want := Model{
		Kind: Bundle, Tasks: []string{"domain", "embedding"}, Precisions: []string{"int8"}, Bytes: int64(len(manifest)) + 2, License: "MIT", Version: "2.1",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("model (-want +got):\n%s", d)
	}
	files["m_int8.onnx"], files["tokenizer.json"] = &fstest.MapFile{Data: []byte("y")}, &fstest.MapFile{Data: []byte("xx")}
	if problems := VerifyBundle(files); len(problems) != 2 {
		t.Errorf("problems %q, want one for each of two files", texts(problems))
	}
}

// FuzzParseRecord looks for a record that is accepted and names a file outside of its folder.
func FuzzParseRecord(f *testing.F) {
	f.Add([]byte(`{"format":1,"repo":"a/b","commit":"c","files":[{"path":"x","bytes":1,"sha256":"` + digest("x") + `"}]}`))
	f.Add([]byte(`{"format":1,"files":[{"path":"../x","bytes":1,"sha256":"` + digest("x") + `"}]}`))
	f.Add([]byte(`{"format":1,"files":[{"path":"x","bytes":-1}]}`))
	f.Add([]byte(`{"format":1e0,"verified_at":"2026-01-02T03:04:05Z","files":null}`))
	f.Add([]byte(`[`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := ParseRecord(data)
		if err != nil {
			return
		}
		for _, file := range r.Files {
			if !filepath.IsLocal(file.Path) || file.Bytes < 0 || len(file.SHA256) != 64 {
				t.Errorf("accepted %+v", file)
			}
		}
	})
}

// S31: a model that somebody else made names no file outside of its folder, by no kind of link.
func TestFilesOfAModelLieInItsFolder(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	dir := model(t, top, "org--m", map[string]string{"config.json": "{}", "onnx/model.onnx": "x"})
	write(t, top, map[string]string{"secret": "secret"})
	for name, to := range map[string]string{
		"within": "onnx/model.onnx", "onnx/up": "../config.json", "out": "../secret", "absolute": filepath.Join(top, "secret"), "through": "out", "folder": "..", "proc": "/proc/self/environ",
	} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	files := Files(dir)
	for name, inside := range map[string]bool{
		"config.json": true, "onnx/model.onnx": true, "within": true, "onnx/up": true, "out": false, "absolute": false, "through": false, "folder/secret": false, "folder": false, "proc": false,
		"../secret": false, "/etc/passwd": false, "onnx/../config.json": false,
	} {
		data, err := fs.ReadFile(files, name)
		_, missing := fs.Stat(files, name)
		if (err == nil) != inside || (missing == nil) != inside || !inside && len(data) > 0 {
			t.Errorf("%s: %q, %v, %v", name, data, err, missing)
		}
	}
	if _, err := fs.Stat(files, "none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	if err := os.Symlink(dir, filepath.Join(top, "org--linked")); err != nil {
		t.Fatal(err)
	}
	if data, err := fs.ReadFile(Files(filepath.Join(top, "org--linked")), "config.json"); err != nil || string(data) != "{}" {
		t.Errorf("a folder that is a link itself: %q, %v", data, err)
	}
	whole := model(t, top, "org--whole", map[string]string{"config.json": "{}", "onnx/model.onnx": "x"})
	if err := fstest.TestFS(Files(whole), "config.json", "onnx/model.onnx"); err != nil {
		t.Error(err)
	}
}

// A snapshot in the cache of Hugging Face's tools is a folder of links to blobs: those of the same
// model are read, those of another are not.
func TestFilesOfACachedSnapshotAreRead(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	write(t, top, map[string]string{"models--a--m/blobs/1": "{}", "models--a--m/blobs/2": "x", "models--b--other/blobs/3": "secret", "models/none": ""})
	snapshot := filepath.Join(top, "models--a--m", "snapshots", "f00d")
	if err := os.MkdirAll(filepath.Join(snapshot, "onnx"), 0o700); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(top, "models", "a--m")
	for name, to := range map[string]string{
		filepath.Join(snapshot, "config.json"): "../../blobs/1", filepath.Join(snapshot, "onnx", "model.onnx"): "../../../blobs/2",
		filepath.Join(snapshot, "out"): "../../../models--b--other/blobs/3", dir: snapshot,
	} {
		if err := os.Symlink(to, name); err != nil {
			t.Fatal(err)
		}
	}
	for _, at := range []string{snapshot, dir} {
		files := Files(at)
		for name, want := range map[string]string{"config.json": "{}", "onnx/model.onnx": "x"} {
			if got, err := fs.ReadFile(files, name); err != nil || string(got) != want {
				t.Errorf("%s: %q, %v", name, got, err)
			}
		}
		if got, err := fs.ReadFile(files, "out"); err == nil {
			t.Errorf("the blob of another model: %q", got)
		}
		if _, err := fs.ReadFile(files, "../../blobs/1"); err == nil {
			t.Error("a path that leaves the snapshot was taken")
		}
		if list, err := fs.ReadDir(files, "."); err != nil || len(list) != 3 {
			t.Errorf("the folder holds %v, %v", list, err)
		}
	}
}
