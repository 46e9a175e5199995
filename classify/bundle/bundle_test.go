package bundle

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"signalbox/models"
)

func digest(b string) string {
	sum := sha256.Sum256([]byte(b))
	return hex.EncodeToString(sum[:])
}

var good = fmt.Sprintf(`format: 1
name: tiny
version: "1.2.0"
description: One sentence.
license: Apache-2.0
languages: [en, de]
layout: shared
graphs:
  - {file: model_int8.onnx, precision: int8, sha256: %s, bytes: 11}
  - {file: onnx/model_fp16.onnx, precision: fp16, sha256: %s, bytes: 12, weights: [{file: onnx/more.data, sha256: %s, bytes: 4}]}
tokenizer: {file: tokenizer.json, sha256: %s, bytes: 2, engine: native}
scan: {file: scan.bin, sha256: %s, bytes: 4}
turns: {file: turns.bin, sha256: %s, bytes: 5}
fusion: {file: fusion.json, sha256: %s, bytes: 3}
inputs: {ids: input_ids, mask: attention_mask, types: token_type_ids, positions: position_ids}
vocab: 30522
max_tokens: 256
pad_id: 1
tasks:
  - {name: domain, kind: sequence, output: d, labels: [math, law], temperature: 1.5, threshold: 0.5, window: {tokens: 256, stride: 192, max: 4, combine: mean}}
  - {name: jailbreak, kind: sequence, output: j, labels: [benign, jailbreak],
      positive: jailbreak, temperature: 1, threshold: 0.9, window: {tokens: 128, stride: 96, combine: max},
      document: {bias: -1.5, top: [0.6, 0.4], length: 0.25}}
  - {name: embedding, kind: embedding, output: e, dims: 8,
      window: {skeleton: 128, tokens: 256, stride: 192, max: 4, combine: mean}}
  - {name: pii, kind: token, output: p, labels: [O, B-AGE, I-AGE], temperature: 1, threshold: 0.5, window: {tokens: 256, stride: 192, max: 4, combine: mean}}
  - {name: nli, kind: pair, output: n, labels: [entailment, neutral], temperature: 1, threshold: 0.5, window: {tokens: 256, stride: 192, max: 4, combine: mean}}
  - {name: grounding, kind: token, output: g, labels: [supported, unsupported], positive: unsupported, template: separated, temperature: 1, threshold: 0.5, window: {tokens: 256, stride: 192, combine: mean}}
  - {name: intent, kind: embedding, output: h, dims: 4, width: 8, pooling: last_token, prefix: "query: ", append_id: 7, window: {tokens: 256, stride: 192, max: 4, combine: mean}}
canary: {text: "two and two", second: "four", expect: {domain: math, jailbreak: benign, nli: neutral}}
provenance: [{name: "a set", license: MIT}]
`, digest(graphA), digest(graphB), digest("more"), digest("{}"), digest("scan"), digest("turns"), digest("[1]"))

// The smallest graphs there are: an input x, an output y and a name for each graph.
const (
	graphA = "\x3a\x09\x12\x01a\x5a\x00\x62\x00\x5a\x00"
	graphB = "\x3a\x0a\x12\x02bb\x5a\x00\x62\x00\x5a\x00"
)

func files(manifest string) fstest.MapFS {
	return fstest.MapFS{
		ManifestFile:           {Data: []byte(manifest)},
		"model_int8.onnx":      {Data: []byte(graphA)},
		"onnx/model_fp16.onnx": {Data: []byte(graphB)},
		"tokenizer.json":       {Data: []byte("{}")},
		"scan.bin":             {Data: []byte("scan")},
		"turns.bin":            {Data: []byte("turns")},
		"fusion.json":          {Data: []byte("[1]")},
	}
}

func TestLoadReadsEveryKey(t *testing.T) {
	b, err := Load(files(good))
	if err != nil {
		t.Fatal(err)
	}
	mean := Window{Tokens: 256, Stride: 192, Max: 4, Combine: Mean}
	want := Manifest{
		Format: 1, Name: "tiny", Version: "1.2.0", Description: "One sentence.", License: "Apache-2.0",
		Languages: []string{"en", "de"}, Layout: "shared",
		Graphs: []Graph{
			{File: File{"model_int8.onnx", digest(graphA), 11}, Precision: "int8"},
			{File: File{"onnx/model_fp16.onnx", digest(graphB), 12}, Precision: "fp16", Weights: []File{{"onnx/more.data", digest("more"), 4}}},
		},
		Tokenizer: TokenizerFile{File: File{"tokenizer.json", digest("{}"), 2}, Engine: "native"},
		Scan:      File{"scan.bin", digest("scan"), 4}, Turns: File{"turns.bin", digest("turns"), 5},
		Fusion: File{"fusion.json", digest("[1]"), 3}, Vocab: 30522,
		Inputs: Inputs{IDs: "input_ids", Mask: "attention_mask", Types: "token_type_ids", Positions: "position_ids"}, MaxTokens: 256, PadID: 1,
		Tasks: []Task{
			{Name: "domain", Kind: Sequence, Output: "d", Labels: []string{"math", "law"}, Temperature: 1.5, Threshold: 0.5, Window: mean},
			{
				Name: "jailbreak", Kind: Sequence, Output: "j",
				Labels: []string{"benign", "jailbreak"}, Positive: "jailbreak", Temperature: 1,
				Threshold: 0.9, Window: Window{Tokens: 128, Stride: 96, Combine: Max},
				Document: &Document{Bias: -1.5, Top: []float64{0.6, 0.4}, Length: 0.25},
			},
			{
				Name: "embedding", Kind: Embedding, Output: "e", Dims: 8, Width: 8, Pooling: NoPooling,
				Window: Window{Tokens: 256, Skeleton: 128, Stride: 192, Max: 4, Combine: Mean},
			},
			{Name: "pii", Kind: Token, Output: "p", Labels: []string{"O", "B-AGE", "I-AGE"}, Temperature: 1, Threshold: 0.5, Window: mean},
			{Name: "nli", Kind: Pair, Output: "n", Labels: []string{"entailment", "neutral"}, Temperature: 1, Threshold: 0.5, Window: mean},
			{
				Name: "grounding", Kind: Token, Output: "g", Labels: []string{"supported", "unsupported"}, Positive: "unsupported",
				Template: Separated, Temperature: 1, Threshold: 0.5, Window: Window{Tokens: 256, Stride: 192, Combine: Mean},
			},
			{Name: "intent", Kind: Embedding, Output: "h", Dims: 4, Width: 8, Pooling: LastTokenPooling, Prefix: "query: ", AppendID: 7, Window: mean},
		},
		Canary:     Canary{"two and two", "four", map[string]string{"domain": "math", "jailbreak": "benign", "nli": "neutral"}},
		Provenance: []Provenance{{"a set", "MIT"}},
	}
	if d := cmp.Diff(want, b.Manifest); d != "" {
		t.Errorf("manifest (-want +got):\n%s", d)
	}
	for precision, want := range map[string]string{"": graphA, "int8": graphA, "fp16": graphB} {
		if data, err := b.Graph(precision); string(data) != want || err != nil {
			t.Errorf("graph %q: %q, %v, want %q", precision, data, err, want)
		}
	}
	if _, err := b.Graph("fp32"); !errors.Is(err, ErrNoGraph) {
		t.Errorf("graph fp32: error %v, want ErrNoGraph", err)
	}
	if data, err := b.Scan(); string(data) != "scan" || err != nil {
		t.Errorf("scan: %q, %v", data, err)
	}
	if data, err := b.Turns(); string(data) != "turns" || err != nil {
		t.Errorf("turns: %q, %v", data, err)
	}
	if data, err := b.Fusion(); string(data) != "[1]" || err != nil {
		t.Errorf("fusion: %q, %v", data, err)
	}
	if data, err := b.Tokenizer(); string(data) != "{}" || err != nil {
		t.Errorf("tokenizer: %q, %v", data, err)
	}
	if task, ok := b.Manifest.Task("jailbreak"); !ok || task.Threshold != 0.9 {
		t.Errorf("task jailbreak: %+v, %v", task, ok)
	}
	if err := b.Verify(); err != nil {
		t.Errorf("verify: %v", err)
	}
}

func TestProblemsNameFileAndKey(t *testing.T) {
	tests := map[string]struct{ old, new, want string }{
		"a newer format":                       {"format: 1", "format: 2", "bundle.yaml: format: 2 is not supported"},
		"an unknown key":                       {"license:", "licence:", "field licence not found"},
		"a key given twice":                    {"layout: shared", "layout: shared\nlayout: shared", "already defined"},
		"text that is no YAML":                 {"name: tiny", "name: [", "bundle.yaml: yaml:"},
		"a second document":                    {"pad_id: 1", "pad_id: 1\n---\nx: 1\n---", "more than one YAML document"},
		"no name":                              {"name: tiny", "name: ''", "bundle.yaml: name: missing"},
		"an unknown layout":                    {"layout: shared", "layout: adapter", `layout: "adapter" is not one of`},
		"an unknown precision":                 {"precision: fp16", "precision: int4", `graphs[1].precision: "int4"`},
		"a path out of the bundle":             {"file: model_int8.onnx", "file: ../model_int8.onnx", `graphs[0].file: "../model_int8.onnx"`},
		"an absolute path":                     {"file: tokenizer.json", "file: /etc/passwd", `tokenizer.file: "/etc/passwd"`},
		"a digest that is too short":           {digest("{}"), "abcd", "tokenizer.sha256: want 64"},
		"a size of zero":                       {"bytes: 2", "bytes: 0", "tokenizer.bytes: 0"},
		"no mask":                              {"mask: attention_mask", "mask: ''", "inputs.mask: missing"},
		"rows of no tokens":                    {"max_tokens: 256", "max_tokens: 0", "max_tokens: 0"},
		"a negative padding":                   {"pad_id: 1", "pad_id: -1", "pad_id: -1"},
		"two tasks of one name":                {"name: embedding", "name: domain", `tasks[2].name: "domain" is used twice`},
		"an unknown kind":                      {"kind: embedding", "kind: vector", `tasks[2].kind: "vector"`},
		"a tag of no scheme":                   {"B-AGE", "X-AGE", `tasks[3].labels[1]: "X-AGE"`},
		"tags without an outside":              {"[O, B-AGE", "[B-DAY, B-AGE", "tasks[3].labels: want one label O, have 0"},
		"a tag twice":                          {"I-AGE]", "B-AGE]", `tasks[3].labels[2]: "B-AGE"`},
		"an unknown pooling":                   {"pooling: last_token", "pooling: sum", `tasks[6].pooling: "sum"`},
		"a cut that makes longer":              {"width: 8", "width: 3", "tasks[6].width: 3"},
		"a negative token":                     {"append_id: 7", "append_id: -7", "tasks[6].append_id: -7"},
		"an unknown tokenizer engine":          {"engine: native", "engine: rust", `tokenizer.engine: "rust"`},
		"weights outside the bundle":           {"file: onnx/more.data", "file: /more.data", `graphs[1].weights[0].file: "/more.data"`},
		"a scanner outside the bundle":         {"file: scan.bin", "file: ../scan.bin", `scan.file: "../scan.bin"`},
		"a head outside the bundle":            {"file: turns.bin", "file: ../turns.bin", `turns.file: "../turns.bin"`},
		"a negative vocabulary":                {"vocab: 30522", "vocab: -1", "vocab: -1"},
		"one label":                            {"[math, law]", "[math]", "tasks[0].labels: want at least two"},
		"a label twice":                        {"[math, law]", "[math, math]", `tasks[0].labels[1]: "math"`},
		"a positive label that is none":        {"positive: jailbreak", "positive: attack", `tasks[1].positive: "attack"`},
		"a maximum without a positive label":   {"positive: jailbreak, ", "", "tasks[1].positive: missing"},
		"a temperature of zero":                {"temperature: 1.5", "temperature: 0", "tasks[0].temperature: 0"},
		"a temperature that is no number":      {"temperature: 1.5", "temperature: .nan", "tasks[0].temperature: NaN"},
		"a threshold above one":                {"threshold: 0.9", "threshold: 1.9", "tasks[1].threshold: 1.9"},
		"a vector without length":              {"dims: 8", "dims: 0", "tasks[2].dims: 0"},
		"a window longer than the model reads": {"tokens: 128", "tokens: 512", "tasks[1].window.tokens: 512"},
		"a stride that leaves gaps":            {"stride: 96", "stride: 129", "tasks[1].window.stride: 129"},
		"a negative number of windows":         {"max: 4, combine: mean}}\n  - {name: jail", "max: -4, combine: mean}}\n  - {name: jail", "tasks[0].window.max: -4"},
		"an unknown way to combine":            {"combine: max", "combine: sum", `tasks[1].window.combine: "sum"`},
		"a canary of a task that is not there": {"{domain: math", "{intent: math", "canary.expect.intent: no task over a text"},
		"a canary with an unknown label":       {"{domain: math", "{domain: art", `canary.expect.domain: "art"`},
		"a canary of tokens":                   {"{domain: math", "{pii: O", "canary.expect.pii: no task over a text"},
		"a canary of half a pair":              {`second: "four", `, "", "canary.second: missing: nli reads two texts"},
		"a sequence without a canary":          {"{domain: math, jailbreak: benign, nli: neutral}", "{}", "canary.expect: missing"},
		"a fusion outside the bundle":          {"file: fusion.json", "file: ../fusion.json", `fusion.file: "../fusion.json"`},
		"a fusion without a digest":            {digest("[1]"), "", "fusion.sha256: want 64"},
		"an unknown template":                  {"template: separated", "template: chat", `tasks[5].template: "chat"`},
		"a template of another kind of task":   {"dims: 8", "dims: 8, template: passages", "tasks[2].template: only token tasks"},
		"a judging label twice":                {"[supported, unsupported]", "[unsupported, unsupported]", `tasks[5].labels[1]: "unsupported"`},
		"a judging task without its label":     {"positive: unsupported, template: separated, ", "", `tasks[5].labels[0]: "supported"`},
		"a document of another kind of task": {
			"dims: 8", "dims: 8, document: {top: [1]}",
			"tasks[2].document: only sequence tasks with a positive label",
		},
		"a document without weights": {
			"top: [0.6, 0.4]", "top: []",
			"tasks[1].document.top: 0 weights, want 1 to 3",
		},
		"a document of too many windows": {
			"top: [0.6, 0.4]", "top: [1, 1, 1, 1]",
			"tasks[1].document.top: 4 weights",
		},
		"a weight against the evidence": {
			"top: [0.6, 0.4]", "top: [0.6, -0.4]",
			"tasks[1].document.top[1]: -0.4 is not positive",
		},
		"a bias that is no number": {
			"bias: -1.5", "bias: .nan",
			"tasks[1].document.bias: NaN",
		},
		"a reward for length": {
			"length: 0.25", "length: -1",
			"tasks[1].document.length: -1",
		},
		"a second look of no weight": {
			"length: 0.25", "length: 0.25, close: {weight: 0, sentences: 4}",
			"tasks[1].document.close.weight: 0 is not above 0",
		},
		"a second look from anywhere": {
			"length: 0.25", "length: 0.25, close: {from: .inf, weight: 0.5, sentences: 4}",
			"tasks[1].document.close.from: +Inf is not a number",
		},
		"a second look at too many sentences": {
			"length: 0.25", "length: 0.25, close: {weight: 0.5, sentences: 17}",
			"tasks[1].document.close.sentences: 17 is not between 1 and 16",
		},
		"a second look at pairs longer than a window": {
			"length: 0.25", "length: 0.25, close: {weight: 0.5, sentences: 4, tokens: 4096}",
			"tasks[1].document.close.tokens: 4096 is neither 0 nor between",
		},
		"a text of one window that counts less": {
			"length: 0.25", "length: 0.25, single: -1",
			"tasks[1].document.single: -1 is not a number of at least 0",
		},
		"a say of no weight": {
			"length: 0.25", "length: 0.25, scan: {weight: 0, bound: 2}",
			"tasks[1].document.scan.weight: 0 is not above 0",
		},
		"a say without a bound": {
			"length: 0.25", "length: 0.25, scan: {weight: 0.5, bound: .inf}",
			"tasks[1].document.scan.bound: +Inf is not above 0",
		},
		"an unknown key of a document": {"length: 0.25", "size: 1", "field size not found"},
		"a skeleton longer than a row": {
			"max: 4, combine: mean}}\n  - {name: jail",
			"skeleton: 257, max: 4, combine: mean}}\n  - {name: jail",
			"tasks[0].window.skeleton: 257",
		},
		"a skeleton of nothing": {
			"max: 4, combine: mean}}\n  - {name: jail",
			"skeleton: 8, max: 4, combine: mean}}\n  - {name: jail", "tasks[0].window.skeleton: 8",
		},
		"no canary": {`"two and two"`, `""`, "canary.text: missing"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(good, tc.old) {
				t.Fatalf("the manifest has no %q", tc.old)
			}
			_, err := Load(files(strings.Replace(good, tc.old, tc.new, 1)))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
			var e *Error
			if !errors.As(err, &e) || e.File != ManifestFile {
				t.Errorf("error %v is no *Error about %s", err, ManifestFile)
			}
		})
	}
}

func TestEveryProblemIsReported(t *testing.T) {
	bad := strings.NewReplacer("name: tiny", "name: ''", "dims: 8", "dims: -1", "precision: fp16", "precision: x").Replace(good)
	_, err := ParseManifest([]byte(bad))
	for _, want := range []string{"name: missing", "tasks[2].dims", "graphs[1].precision"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

func TestFilesAreVerifiedBeforeUse(t *testing.T) {
	tests := map[string]struct {
		name, data string
		want       error
	}{
		"a flipped byte": {"model_int8.onnx", graphA[:10] + "\x01", ErrChecksum},
		"a longer file":  {"model_int8.onnx", graphA + "\x00", ErrChecksum},
		"a shorter file": {"model_int8.onnx", graphA[:9], ErrChecksum},
		"a missing file": {"model_int8.onnx", "", fs.ErrNotExist},
		"another fusion": {"fusion.json", "[2]", ErrChecksum},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := files(good)
			f[tc.name] = &fstest.MapFile{Data: []byte(tc.data)}
			if tc.data == "" {
				delete(f, tc.name)
			}
			b, err := Load(f)
			if err != nil {
				t.Fatal(err)
			}
			read := func() ([]byte, error) { return b.Graph("int8") }
			if tc.name == "fusion.json" {
				read = b.Fusion
			}
			data, err := read()
			var e *Error
			if data != nil || !errors.Is(err, tc.want) || !errors.As(err, &e) || e.File != tc.name {
				t.Errorf("%q, %v, want %v about %s", data, err, tc.want, tc.name)
			}
			if err := b.Verify(); !errors.Is(err, tc.want) {
				t.Errorf("verify: %v, want %v", err, tc.want)
			}
		})
	}
}

func TestABundleWithoutAFusionSaysSo(t *testing.T) {
	b, err := Load(files(strings.Replace(good, "fusion: {file: fusion.json, sha256: "+digest("[1]")+", bytes: 3}\n", "", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if data, err := b.Fusion(); data != nil || !errors.Is(err, ErrNoFusion) {
		t.Errorf("%q, %v, want ErrNoFusion", data, err)
	}
	if err := b.Verify(); err != nil {
		t.Errorf("verify: %v", err)
	}
}

func TestABundleOfPairsAloneNeedsNoExpectedLabel(t *testing.T) {
	m, err := ParseManifest([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	m.Tasks, m.Canary.Expect = m.Tasks[4:5], nil
	if err := m.Validate(); err != nil {
		t.Error(err)
	}
}

func TestMissingManifest(t *testing.T) {
	if _, err := Load(fstest.MapFS{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want fs.ErrNotExist", err)
	}
}

func TestTheEmbeddedBundleIsWhole(t *testing.T) {
	sub, err := fs.Sub(models.FS, "default")
	if err != nil {
		t.Fatal(err)
	}
	b, err := Load(sub)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Verify(); err != nil {
		t.Error(err)
	}
	for i := range b.Manifest.Tasks { // its vocabulary has single letters of other scripts
		task := &b.Manifest.Tasks[i]
		if of := task.Name == taskPII || task.Name == taskEmbedding; task.Latin != of {
			t.Errorf("%s: latin is %t", task.Name, task.Latin)
		}
	}
}

func FuzzParseManifest(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte("format: 1\ntasks: [{}]"))
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ParseManifest(data)
		if err == nil && m.Validate() != nil {
			t.Errorf("a manifest that parses does not validate: %v", m.Validate())
		}
	})
}
