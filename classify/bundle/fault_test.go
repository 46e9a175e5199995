package bundle

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// inMemory reads a folder of testdata/hf, to be changed.
func inMemory(tb testing.TB, folder string) fstest.MapFS {
	tb.Helper()
	root := os.DirFS("testdata/hf/" + folder)
	files := fstest.MapFS{}
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(root, name)
		files[name] = &fstest.MapFile{Data: data}
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return files
}

// recordOf makes the .signalbox.json of the files.
func recordOf(files fstest.MapFS) *fstest.MapFile {
	var list []string
	for name, f := range files {
		list = append(list, fmt.Sprintf(`{"path": %q, "bytes": %d, "sha256": %q}`, name, len(f.Data), digest(string(f.Data))))
	}
	return &fstest.MapFile{Data: []byte(`{"repo": "a/b", "commit": "0123abc", "license": "mit", "files": [` + strings.Join(list, ",") + `]}`)}
}

// flip changes the last byte.
func flip(data []byte) []byte {
	data = bytes.Clone(data)
	data[len(data)-1] ^= 1
	return data
}

// S31, CL1: every fault of a model's files is an error that names the file, found before the
// library sees a byte: missing, empty, cut or of another kind, weights that lie elsewhere, tables
// that do not fit.
func TestFaultsOfAFolderAreErrorsOfAType(t *testing.T) {
	replace := func(name, old, with string) func(fstest.MapFS) {
		return func(f fstest.MapFS) {
			if !bytes.Contains(f[name].Data, []byte(old)) {
				panic(name + " has no " + old)
			}
			f[name] = &fstest.MapFile{Data: bytes.Replace(f[name].Data, []byte(old), []byte(with), 1)}
		}
	}
	remove := func(name string) func(fstest.MapFS) { return func(f fstest.MapFS) { delete(f, name) } }
	put := func(name, text string) func(fstest.MapFS) {
		return func(f fstest.MapFS) { f[name] = &fstest.MapFile{Data: []byte(text)} }
	}
	const pointer = "version https://git-lfs.github.com/spec/v1\n"
	domain, facts := OpenOptions{Task: "domain"}, OpenOptions{Task: "factcheck"}
	grades, vector := OpenOptions{Task: "complexity"}, OpenOptions{Task: "embedding"}
	for name, c := range map[string]struct {
		folder string
		o      OpenOptions
		change func(fstest.MapFS)
		want   error
		text   string // in the error
	}{
		"no graph": {"bert-domain", domain, remove("model.onnx"), ErrLayout, "no graph in the folder or onnx/"},
		"a graph of another name": {"bert-domain", domain, func(f fstest.MapFS) {
			f["a.onnx"], f["out/b.onnx"] = f["model.onnx"], f["model.onnx"]
			delete(f, "model.onnx")
		}, ErrLayout, "it has a.onnx, out/b.onnx: rename the one that is meant to model.onnx, in the folder"},
		"nothing": {"bert-domain", domain, func(f fstest.MapFS) { clear(f) }, ErrLayout, "models pull ORG/NAME"},
		"an older form of the tokenizer": {"bert-domain", domain, func(f fstest.MapFS) {
			f["vocab.txt"] = f["tokenizer.json"]
			delete(f, "tokenizer.json")
		}, fs.ErrNotExist, "it has vocab.txt alone: convert it"},
		"a tokenizer that is a pointer to one": {
			"bert-domain", domain, put("tokenizer.json", pointer), nil,
			"tokenizer.json: it is a pointer of Git LFS",
		},
		"weights of PyTorch alone": {"bert-domain", domain, func(f fstest.MapFS) {
			f["model.safetensors"] = &fstest.MapFile{Data: []byte("1")}
			delete(f, "model.onnx")
		}, ErrLayout, "optimum-cli export onnx --model . --task text-classification ."},
		"only a graph for one vendor": {
			"bert-domain", domain,
			func(f fstest.MapFS) { f["model_fa_fp16.onnx"] = f["model.onnx"]; delete(f, "model.onnx") },
			ErrLayout, "no graph in",
		},
		"no tokenizer": {
			"bert-domain", domain, remove("tokenizer.json"), fs.ErrNotExist, "tokenizer.json",
		},
		"no config":                {"bert-domain", domain, remove("config.json"), ErrLayout, "config.json"},
		"a config that is no JSON": {"bert-domain", domain, put("config.json", "{"), nil, "config.json"},
		"a config of gigabytes": {
			"bert-domain", domain, put("config.json", strings.Repeat(" ", maxConfigBytes+1)), nil, "at most",
		},
		"a graph that is text": {
			"bert-domain", domain, put("model.onnx", "this is no graph"), ErrGraph, "model.onnx",
		},
		"a graph that is a pointer to one": {
			"bert-domain", domain, put("model.onnx", pointer), ErrGraph,
			"model.onnx: not an ONNX graph: it is a pointer of Git LFS",
		},
		"an empty graph": {"bert-domain", domain, put("model.onnx", ""), ErrGraph, "it is empty"},
		"no weights beside the graph": {
			"xlmr-factcheck", facts, remove("model.onnx.data"), ErrExternal,
			"model.onnx.data: file does not exist; it belongs beside the graph",
		},
		"weights that are a pointer to some": {
			"xlmr-factcheck", facts, put("model.onnx.data", pointer), ErrExternal,
			"model.onnx.data: it is a pointer of Git LFS",
		},
		"weights outside the folder": {
			"xlmr-factcheck", facts, replace("model.onnx", "model.onnx.data", "../../etc/pass/"), ErrExternal,
			"outside the folder",
		},
		"weights at an absolute path": {
			"xlmr-factcheck", facts, replace("model.onnx", "model.onnx.data", "/etc/passwd.txt"), ErrExternal,
			"outside the folder",
		},
		"fewer labels than outputs": {
			"bert-complexity", grades,
			replace("config.json", `"label2id"`, `"id2label": {"0": "low", "1": "high"}, "x"`), ErrSignature,
			"predictions float32 [3]",
		},
		"no labels": {
			"bert-complexity", grades, replace("config.json", "label2id", "x"), ErrLabels,
			"[LABEL_0 LABEL_1 LABEL_2] are not low, medium and high: set labels",
		},
		"another number of labels": {
			"bert-complexity", grades, replace("config.json", `"label2id"`, `"num_labels": 2, "x"`),
			ErrLabels, "num_labels: labels: 2 here, but 3 numbers",
		},
		"a number of labels below zero": {
			"bert-complexity", grades, replace("config.json", `"label2id"`, `"num_labels": -1, "x"`),
			ErrLabels, "num_labels",
		},
		"two files that disagree": {
			"bert-domain", domain,
			put("label_mapping.json", `{"id_to_label": ["`+strings.Join(domains[:13], `", "`)+`", "x"]}`),
			ErrLabels,
			`category_mapping.json: category_to_idx: labels: label 13 is "psychology" here and "x" in label_mapping.json: ` +
				`id_to_label`,
		},
		"a mapping with a gap": {
			"modernbert-pii",
			OpenOptions{Task: "pii"},
			replace("pii_type_mapping.json", `"34": `, `"35": `),
			ErrLabels, "pii_type_mapping.json: idx_to_label",
		},
		"several labels for one text": {
			"bert-domain", domain,
			replace("config.json", `"pad_token_id"`, `"problem_type": "multi_label_classification", "pad_token_id"`),
			nil, "problem_type",
		},
		"tokens where a text is meant":  {"modernbert-pii", domain, nil, ErrLayout, "of kind token"},
		"a text where tokens are meant": {"bert-domain", OpenOptions{Task: "pii"}, nil, ErrLayout, "of kind sequence"},
		"tokens said to be a text": {
			"modernbert-pii",
			OpenOptions{Task: "x", Kind: Sequence},
			nil, ErrSignature,
			"no one output is float32 [batch, 35]",
		},
		"a text said to be tokens": {"bert-domain", OpenOptions{Task: "x", Kind: Token}, nil, ErrLabels, "have no O"},
		"no positive label": {
			"modernbert-jailbreak",
			OpenOptions{Task: "jailbreak"},
			remove("jailbreak_type_mapping.json"),
			ErrLabels, "set positive",
		},
		"a layer that was not exported": {
			"mmbert-matryoshka",
			OpenOptions{Task: "embedding", Layer: 3},
			nil, ErrLayout,
			"3 is not one of [1 2]",
		},
		"a layer of a model without exits": {
			"minilm-embedding", OpenOptions{Task: "embedding", Layer: 3}, nil, ErrLayout, "available_layers",
		},
		"a layer that is none": {
			"mmbert-matryoshka", vector, put("onnx/model_config.json", `{"available_layers": [0]}`), nil,
			"0 is no layer",
		},
		"a cut beyond the vector": {
			"minilm-embedding",
			OpenOptions{Task: "embedding", Dims: 33},
			nil, ErrSignature,
			"32 numbers, not 33",
		},
		"nothing that says how to pool": {
			"minilm-embedding", vector, remove("1_Pooling/config.json"), ErrLayout, "set pooling",
		},
		"two ways to pool": {
			"minilm-embedding", vector,
			replace("1_Pooling/config.json", `"pooling_mode_cls_token": false`, `"pooling_mode_cls_token": true`),
			nil, "want one pooling mode",
		},
		"a pooling that nothing here does": {
			"minilm-embedding", vector,
			replace("1_Pooling/config.json", `"pooling_mode_max_tokens": false`, `"pooling_mode_max_tokens": true`),
			nil, "want one pooling mode",
		},
		"a pooling module outside the folder": {
			"minilm-embedding", vector, replace("modules.json", `"1_Pooling"`, `"../1_Pooling"`), nil,
			"not a path inside",
		},
		"layers that the graph leaves out": {
			"gemma-embedding",
			OpenOptions{Task: "embedding", Pooling: MeanPooling},
			nil, ErrLayout,
			"layers behind its pooling",
		},
		"pooling in a graph that does not": {
			"minilm-embedding",
			OpenOptions{Task: "embedding", Pooling: NoPooling},
			nil, ErrSignature,
			"no one output is float32 [batch, numbers]",
		},
		"a prompt that pooling leaves out": {
			"minilm-embedding",
			OpenOptions{Task: "embedding", Prefix: new("q: ")},
			replace("1_Pooling/config.json", `"include_prompt": true`, `"include_prompt": false`), ErrLayout,
			"include_prompt",
		},
		"no task": {"bert-domain", OpenOptions{}, nil, nil, "options: task: missing"},
		"options of no kind": {
			"bert-domain",
			OpenOptions{Task: "x", Kind: "y", Pooling: "z", Dims: -1, MaxTokens: 32769},
			nil,
			nil, "max_tokens: 32769",
		},
		"a window longer than a row": {
			"bert-domain",
			OpenOptions{Task: "domain", Window: Window{Tokens: 129}},
			nil, nil,
			"tasks[0].window.tokens: 129",
		},
		"a threshold beyond one": {
			"bert-domain", OpenOptions{Task: "domain", Threshold: 2}, nil, nil, "tasks[0].threshold: 2",
		},
		"a record that is no JSON": {"bert-domain", domain, put(".signalbox.json", "["), nil, ".signalbox.json"},
		"a record of a file outside": {
			"bert-domain", domain,
			put(".signalbox.json", `{"files": [{"path": "../x", "bytes": 1, "sha256": "`+digest("")+`"}]}`),
			nil, `files[0].file: "../x"`,
		},
		"a record without a sum": {
			"bert-domain", domain, put(".signalbox.json", `{"files": [{"path": "x", "bytes": 1}]}`), nil,
			"files[0].sha256",
		},
		"a tokenizer that is not JSON": {"qwen3-embedding", vector, put("tokenizer.json", "{"), nil, "tokenizer.json"},
		"an end of text that is no number": {"qwen3-embedding", vector, func(f fstest.MapFS) {
			put("tokenizer.json", "{}")(f)
			replace("config.json", `"eos_token_id": 1`, `"eos_token_id": 1.5`)(f)
		}, nil, "eos_token_id"},
		"a folder where a graph should be": {
			"bert-domain", domain,
			func(f fstest.MapFS) { f["model.onnx/x"] = f["model.onnx"]; delete(f, "model.onnx") }, nil,
			"not a regular file",
		},
		"two reasons at once are both reported": {"modernbert-pii", OpenOptions{Task: "pii"}, func(f fstest.MapFS) { put("modules.json", "{")(f); put("label_mapping.json", "{")(f) }, ErrLabels, "modules.json"},
	} {
		t.Run(name, func(t *testing.T) {
			files := inMemory(t, c.folder)
			if c.change != nil {
				c.change(files)
			}
			b, err := Open(files, c.o)
			if err == nil {
				t.Fatalf("it was opened: %+v", b.Manifest)
			}
			if !strings.Contains(err.Error(), c.text) || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v with %q", err, c.want, c.text)
			}
			var e *Error
			if !errors.As(err, &e) && !errors.Is(err, ErrLayout) {
				t.Errorf("%T is no *Error", err)
			}
		})
	}
}

// S31, CL1: so is a file that is not the one whose sum was recorded.
func TestFilesThatChangedSinceTheyWerePulledAreRefused(t *testing.T) {
	for _, c := range []struct {
		name, file string
		change     func([]byte) []byte
	}{
		{"a flipped byte of the graph", "onnx/model.onnx", flip},
		{"a graph that grew", "onnx/model.onnx", func(b []byte) []byte { return append(bytes.Clone(b), 0) }},
		{"a flipped byte of the weights beside it", "onnx/model.onnx_data", flip},
		{"weights that are too short", "onnx/model.onnx_data", func(b []byte) []byte { return b[:len(b)-1] }},
		{"another tokenizer", "tokenizer.json", flip},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := inMemory(t, "gemma-embedding")
			files[pullRecord] = recordOf(files)
			b, err := Open(files, OpenOptions{Task: "embedding"})
			if err != nil {
				t.Fatal(err)
			}
			if err := b.Verify(); err != nil {
				t.Fatalf("untouched: %v", err)
			}
			if b.Manifest.Version != "0123abc" || b.Manifest.License != "mit" {
				t.Errorf("version %q, license %q", b.Manifest.Version, b.Manifest.License)
			}
			files[c.file] = &fstest.MapFile{Data: c.change(files[c.file].Data)}
			read := func() error { _, err := b.Graph(FP32); return err }
			if c.file == "tokenizer.json" {
				read = func() error { _, err := b.Tokenizer(); return err }
			}
			for what, err := range map[string]error{"read": read(), "verify": b.Verify()} {
				var e *Error
				if !errors.Is(err, ErrChecksum) || !errors.As(err, &e) || !strings.Contains(err.Error(), c.file) {
					t.Errorf("%s: %v", what, err)
				}
			}
		})
	}
}

// The sum of a file that is wrong from the start is found when the file is read, not before.
func TestAWrongRecordIsFoundBeforeTheFileIsUsed(t *testing.T) {
	files := inMemory(t, "bert-domain")
	files[pullRecord] = recordOf(files)
	files["model.onnx"] = &fstest.MapFile{Data: flip(files["model.onnx"].Data)}
	b, err := Open(files, OpenOptions{Task: "domain"})
	if err != nil {
		t.Fatal(err)
	}
	if model, err := b.Graph(""); model != nil || !errors.Is(err, ErrChecksum) {
		t.Errorf("%d bytes, %v", len(model), err)
	}
}

func TestWeightsThatEndTooEarlyAreRefused(t *testing.T) {
	files := inMemory(t, "xlmr-factcheck")
	b, err := Open(files, OpenOptions{Task: "factcheck"})
	if err != nil {
		t.Fatal(err)
	}
	files["model.onnx.data"] = &fstest.MapFile{Data: files["model.onnx.data"].Data[:100]}
	if _, err := b.Graph(FP32); !errors.Is(err, ErrExternal) || !strings.Contains(err.Error(), "ends before the weights") {
		t.Errorf("cut weights: %v", err)
	}
	if err := b.Verify(); !errors.Is(err, ErrExternal) {
		t.Errorf("verify: %v", err)
	}
	delete(files, "model.onnx.data")
	if _, err := b.Graph(FP32); !errors.Is(err, ErrExternal) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no weights: %v", err)
	}
}

// A manifest promises that every file was checked, so weights that it does not name are not read.
func TestAManifestMustNameItsWeights(t *testing.T) {
	from := inMemory(t, "xlmr-factcheck")
	files := files(good)
	for name, file := range map[string]string{"model_int8.onnx": "model.onnx", "model.onnx.data": "model.onnx.data"} {
		files[name] = from[file]
	}
	graph, data := string(from["model.onnx"].Data), string(from["model.onnx.data"].Data)
	manifest := strings.Replace(good, fmt.Sprintf("%s, bytes: 11}", digest(graphA)), fmt.Sprintf("%s, bytes: %d}", digest(graph), len(graph)), 1)
	named := strings.Replace(manifest, fmt.Sprintf("bytes: %d}", len(graph)),
		fmt.Sprintf("bytes: %d, weights: [{file: model.onnx.data, sha256: %s, bytes: %d}]}", len(graph), digest(data), len(data)), 1)
	for name, c := range map[string]struct {
		manifest string
		want     error
	}{
		"weights that are named":            {named, nil},
		"weights that are not named":        {manifest, ErrExternal},
		"weights that are others than said": {strings.Replace(named, digest(data), digest(graph), 1), ErrChecksum},
	} {
		files[ManifestFile] = &fstest.MapFile{Data: []byte(c.manifest)}
		b, err := Load(files)
		if err != nil {
			t.Fatal(err)
		}
		model, err := b.Graph(Int8)
		if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if err == nil && len(model) < len(data) {
			t.Errorf("%s: %d bytes, the weights alone have %d", name, len(model), len(data))
		}
		if err := b.Verify(); (err == nil) != (c.want == nil) {
			t.Errorf("%s: verify: %v", name, err)
		}
	}
}

func TestATruncatedGraphIsFoundAtEveryLength(t *testing.T) {
	files := inMemory(t, "modernbert-jailbreak")
	whole := files["onnx/model.onnx"].Data
	for n := 0; n < len(whole); n += 1 + len(whole)/500 {
		files["onnx/model.onnx"] = &fstest.MapFile{Data: whole[:n]}
		_, err := Open(files, OpenOptions{Task: "jailbreak"})
		var e *Error
		if !errors.Is(err, ErrGraph) || !errors.As(err, &e) || e.File != "onnx/model.onnx" {
			t.Fatalf("%d of %d bytes: %v", n, len(whole), err)
		}
	}
}

func TestATokenizerOfAnotherModelIsRefused(t *testing.T) {
	b, err := Open(inMemory(t, "bert-domain"), OpenOptions{Task: "domain"})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.CheckVocabulary(b.Manifest.Vocab); err != nil {
		t.Errorf("the largest that fits: %v", err)
	}
	err = b.CheckVocabulary(b.Manifest.Vocab + 1)
	var e *Error
	if !errors.Is(err, ErrVocabulary) || !errors.As(err, &e) || e.File != "tokenizer.json" {
		t.Errorf("one id too many: %v", err)
	}
	b.Manifest.Vocab = 0
	if err := b.CheckVocabulary(1 << 20); err != nil {
		t.Errorf("a vocabulary that nobody knows: %v", err)
	}
}

func TestGraphsAreGivenByPrecision(t *testing.T) {
	for _, c := range []struct {
		folder string
		want   map[string]string // by what is asked for; empty: ErrNoGraph
	}{
		{"minilm-embedding", map[string]string{"": FP32, FP32: FP32, Int8: Int8, FP16: FP32}},
		{"modernbert-jailbreak", map[string]string{"": FP32, FP32: FP32, Int8: FP32, FP16: FP16}},
		{"modernbert-pii", map[string]string{"": FP16, FP32: "", Int8: "", FP16: FP16}},
	} {
		b, err := Open(os.DirFS("testdata/hf/"+c.folder), OpenOptions{Task: readTask(c.folder)})
		if err != nil {
			t.Fatal(err)
		}
		for ask, want := range c.want {
			got, err := b.GraphPrecision(ask)
			if got != want || (want == "") != errors.Is(err, ErrNoGraph) {
				t.Errorf("%s asked for %q: %q, %v, want %q", c.folder, ask, got, err, want)
			}
		}
	}
}

func readTask(folder string) string { return folder[strings.LastIndex(folder, "-")+1:] }

func TestTheEndOfTextIsAppendedOnlyWhereTheTokenizerDoesNot(t *testing.T) {
	for name, c := range map[string]struct {
		tokenizer, eos string
		want           int64
	}{
		"a token that is known by name":        {`{"added_tokens": [{"id": 7, "content": "<|endoftext|>"}]}`, "3", 7},
		"a token that config.json names":       {`{"added_tokens": [{"id": 7, "content": "</s>"}]}`, "3", 3},
		"a list of tokens":                     {`{}`, "[3, 4]", 0},
		"no token":                             {`{}`, "null", 0},
		"a template that ends with a token":    {`{"post_processor": {"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "e", "type_id": 0}}]}}`, "3", 0},
		"a template that begins with a token":  {`{"post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "e", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]}}`, "3", 3},
		"a template of nothing":                {`{"post_processor": {"type": "TemplateProcessing", "single": []}}`, "3", 3},
		"a template in a sequence":             {`{"post_processor": {"type": "Sequence", "processors": [{"type": "ByteLevel"}, {"type": "RobertaProcessing", "sep": ["</s>", 2]}]}}`, "3", 0},
		"a processor that adds nothing":        {`{"post_processor": {"type": "ByteLevel", "trim_offsets": true}}`, "3", 3},
		"a tokenizer without post-processing":  {`{"post_processor": null}`, "3", 3},
		"the usual ending of BERT's tokenizer": {`{"post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]}}`, "3", 0},
	} {
		t.Run(name, func(t *testing.T) {
			files := inMemory(t, "qwen3-embedding")
			files["tokenizer.json"] = &fstest.MapFile{Data: []byte(c.tokenizer)}
			config := files["config.json"].Data
			files["config.json"] = &fstest.MapFile{Data: bytes.Replace(config, []byte(`"eos_token_id": 1`), []byte(`"eos_token_id": `+c.eos), 1)}
			b, err := Open(files, OpenOptions{Task: "embedding"})
			if err != nil {
				t.Fatal(err)
			}
			if got := b.Manifest.Tasks[0].AppendID; got != c.want {
				t.Errorf("appends %d, want %d", got, c.want)
			}
		})
	}
}

// reader hides that a reader can seek.
type reader struct{ *bytes.Reader }

func (reader) Seek() {}

func FuzzGraph(f *testing.F) {
	for _, path := range []string{"hf/modernbert-jailbreak/onnx/model_fa_fp16.onnx", "tasks/shared_1.onnx"} {
		model, err := os.ReadFile("testdata/" + path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(model)
		f.Add(model[:len(model)/2])
	}
	f.Add([]byte(graphA))
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, model []byte) {
		g, err := readGraphFacts(bytes.NewReader(model), int64(len(model)))
		again, second := readGraphFacts(reader{bytes.NewReader(model)}, int64(len(model)))
		if (err == nil) != (second == nil) {
			t.Fatalf("with seeking %v, without %v", err, second)
		}
		if err != nil {
			if !errors.Is(err, ErrGraph) {
				t.Errorf("%v is no ErrGraph", err)
			}
			return
		}
		if d := cmp.Diff(g, again, cmp.AllowUnexported(graphFacts{}, externalWeights{})); d != "" {
			t.Errorf("without seeking (-with +without):\n%s", d)
		}
		whole, err := inline("model.onnx", model, g, func(string) ([]byte, error) { return make([]byte, 1<<12), nil })
		if err != nil {
			return
		}
		after, err := readGraphFacts(bytes.NewReader(whole), int64(len(whole)))
		if err != nil {
			t.Fatalf("after inlining: %v", err)
		}
		if len(after.external) != 0 {
			t.Errorf("%d weights are still elsewhere", len(after.external))
		}
		if !maps.Equal(g.weights, after.weights) {
			t.Errorf("weights %v became %v", g.weights, after.weights)
		}
	})
}

func FuzzFolder(f *testing.F) {
	config, err := os.ReadFile("testdata/hf/qwen3-embedding/config.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(config, []byte(`[{"path": "1_Pooling", "type": "a.Pooling"}]`), []byte(`{"pooling_mode": "mean"}`), []byte(`{"files": []}`))
	f.Add([]byte(`{"architectures": ["BertModel"], "eos_token_id": [1]}`), []byte(`[]`), []byte(`{}`), []byte(`{}`))
	graph, err := os.ReadFile("testdata/hf/qwen3-embedding/onnx/model.onnx")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, config, modules, pooling, record []byte) {
		files := fstest.MapFS{
			"config.json": {Data: config}, "modules.json": {Data: modules}, "1_Pooling/config.json": {Data: pooling},
			".signalbox.json": {Data: record}, "model.onnx": {Data: graph}, "tokenizer.json": {Data: []byte("{}")},
		}
		b, err := Open(files, OpenOptions{Task: "embedding"})
		if err != nil {
			return
		}
		if err := b.Manifest.check(&checker{file: "x", hub: true}); err != nil {
			t.Errorf("the manifest of an opened folder is not valid: %v", err)
		}
	})
}
