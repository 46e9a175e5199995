package hub

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/hub/local"
)

func listing(names ...string) *Listing {
	l := &Listing{Repo: "org/x"}
	for _, n := range names {
		l.Files = append(l.Files, Remote{Path: n})
	}
	return l
}

func chosen(c *Choice) []string {
	var out []string
	for _, f := range c.Files {
		out = append(out, f.Path)
	}
	return out
}

// published is the layout of the classifiers that several projects publish.
var published = []string{
	"config.json", "tokenizer.json", "label_mapping.json", "model.safetensors", "onnx/model.onnx", "onnx/model_fa.onnx",
	"onnx/model_fa_fp16.onnx", "onnx/model_sdpa_fp16.onnx", "onnx/config.json", "onnx/tokenizer.json",
}

func TestWhichGraphIsTaken(t *testing.T) {
	sentence := []string{
		"config.json", "tokenizer.json", "onnx/model.onnx", "onnx/model_O4.onnx", "onnx/model_qint8_arm64.onnx", "onnx/model_qint8_avx512.onnx",
		"onnx/model_qint8_avx512_vnni.onnx", "onnx/model_quint8_avx2.onnx",
	}
	web := []string{"config.json", "tokenizer.json", "onnx/model.onnx", "onnx/model_fp16.onnx", "onnx/model_q4.onnx", "onnx/model_quantized.onnx", "onnx/model_int8.onnx", "onnx/model_uint8.onnx"}
	early := []string{"config.json", "tokenizer.json", "onnx/layer-6/model.onnx", "onnx/layer-22/model.onnx", "onnx/layer-22/model.onnx.data", "onnx/layer-11/model.onnx", "onnx/model_config.json"}
	tests := map[string]struct {
		files           []string
		s               Selection
		want, precision string
	}{
		"fp32 where there is no int8":              {published, Selection{}, "onnx/model.onnx", "fp32"},
		"fp16 for a GPU":                           {published, Selection{Precision: "fp16"}, "onnx/model_sdpa_fp16.onnx", "fp16"},
		"the root before onnx/":                    {[]string{"config.json", "tokenizer.json", "onnx/model.onnx", "model.onnx"}, Selection{}, "model.onnx", "fp32"},
		"int8 before fp32 on a CPU":                {web, Selection{}, "onnx/model_quantized.onnx", "int8"},
		"fp32 when asked for":                      {web, Selection{Precision: "fp32"}, "onnx/model.onnx", "fp32"},
		"fp16 of the usual name":                   {web, Selection{Precision: "fp16"}, "onnx/model_fp16.onnx", "fp16"},
		"no int8 for another processor":            {sentence, Selection{}, "onnx/model.onnx", "fp32"},
		"an int8 of a processor by its name":       {sentence, Selection{Graph: "onnx/model_qint8_arm64.onnx"}, "onnx/model_qint8_arm64.onnx", "int8"},
		"a graph by its name":                      {sentence, Selection{Graph: "onnx/model_O4.onnx"}, "onnx/model_O4.onnx", ""},
		"the deepest exit of a model with several": {early, Selection{}, "onnx/layer-22/model.onnx", "fp32"},
		"a shallower exit by its name":             {early, Selection{Graph: "onnx/layer-6/model.onnx"}, "onnx/layer-6/model.onnx", "fp32"},
		"fp16 when there is nothing else":          {[]string{"config.json", "tokenizer.json", "model_fp16.onnx"}, Selection{}, "model_fp16.onnx", "fp16"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Choose(listing(tt.files...), tt.s, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got.Graph != tt.want || got.Precision != tt.precision {
				t.Errorf("graph %s (%s), want %s (%s)", got.Graph, got.Precision, tt.want, tt.precision)
			}
			graphs := 0
			for _, f := range chosen(got) {
				if strings.HasSuffix(f, ".onnx") {
					graphs++
				}
			}
			if graphs != 1 {
				t.Errorf("%d graphs among %v, want one", graphs, chosen(got))
			}
		})
	}
}

func TestWhichFilesAreTaken(t *testing.T) {
	manifest := `
graphs:
- {file: model_int8.onnx, precision: int8, sha256: x}
- {file: gpu/model_fp16.onnx, precision: fp16, sha256: y}
tokenizer: {file: tokenizer.json}
scan: {file: scan.bin}
later: [{more: {file: extra/labels.txt}}]
`
	bundled := []string{
		"MODEL_CARD.md", "NOTICE", "bundle.yaml", "config.json", "extra/labels.txt", "gpu/model_fp16.onnx", "gpu/model_fp16.onnx.data",
		"model_int8.onnx", "scan.bin", "tokenizer.json", "unnamed.bin",
	}
	tests := map[string]struct {
		files    []string
		s        Selection
		manifest string
		want     []string
	}{
		"of a published classifier": {
			published,
			Selection{},
			"",
			[]string{"config.json", "tokenizer.json", "label_mapping.json", "onnx/model.onnx", "onnx/config.json"},
		},
		"of an embedding model": {
			[]string{
				".gitattributes", "1_Pooling/config.json", "README.md", "config.json", "config_sentence_transformers.json", "modules.json",
				"onnx/model.onnx", "onnx/model.onnx_data", "onnx/model.onnx_data_1", "onnx/model_q4.onnx", "onnx/model_q4.onnx_data", "pytorch_model.bin",
				"sentence_bert_config.json", "tokenizer.json", "vocab.txt",
			},
			Selection{},
			"",
			[]string{
				"1_Pooling/config.json", "README.md", "config.json", "config_sentence_transformers.json", "modules.json", "onnx/model.onnx",
				"onnx/model.onnx_data", "onnx/model.onnx_data_1", "sentence_bert_config.json", "tokenizer.json",
			},
		},
		"a tokenizer that lies beside the graph only": {
			[]string{"config.json", "onnx/model.onnx", "onnx/tokenizer.json", "onnx/special_tokens_map.json", "onnx/pii_type_mapping.json"},
			Selection{},
			"",
			[]string{"config.json", "onnx/model.onnx", "onnx/tokenizer.json", "onnx/special_tokens_map.json", "onnx/pii_type_mapping.json"},
		},
		"more by patterns, but never a graph that cannot run": {
			append([]string{"vocab.txt", "docs/a.txt", "docs/b/c.md"}, published...),
			Selection{Include: []string{"*.txt", "docs/b/", "onnx/model*"}},
			"",
			[]string{
				"vocab.txt", "docs/a.txt", "docs/b/c.md", "config.json", "tokenizer.json", "label_mapping.json", "onnx/model.onnx",
				"onnx/model_sdpa_fp16.onnx", "onnx/config.json",
			},
		},
		"of a bundle, what it names": {
			bundled,
			Selection{},
			manifest,
			[]string{"MODEL_CARD.md", "NOTICE", "bundle.yaml", "extra/labels.txt", "model_int8.onnx", "scan.bin", "tokenizer.json"},
		},
		"of a bundle in another precision": {
			bundled,
			Selection{Precision: "fp16"},
			manifest,
			[]string{
				"MODEL_CARD.md", "NOTICE", "bundle.yaml", "extra/labels.txt", "gpu/model_fp16.onnx", "gpu/model_fp16.onnx.data", "scan.bin",
				"tokenizer.json",
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var m []byte
			if tt.manifest != "" {
				m = []byte(tt.manifest)
			}
			got, err := Choose(listing(tt.files...), tt.s, m)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, chosen(got)); d != "" {
				t.Errorf("files (-want +got):\n%s", d)
			}
		})
	}
}

func TestSelectionsThatCannotBeMet(t *testing.T) {
	tests := map[string]struct {
		files    []string
		s        Selection
		manifest string
		want     error
		text     string
	}{
		"a graph that needs another runtime": {
			published,
			Selection{Graph: "onnx/model_fa_fp16.onnx"},
			"", ErrNoModel, "com.ck",
		},
		"weights of PyTorch alone": {
			[]string{"config.json", "tokenizer.json", "model.safetensors"},
			Selection{},
			"", ErrNoModel, "optimum-cli export onnx --model org/x org--x",
		},
		"all that it lacks": {
			[]string{"vocab.txt", "model.safetensors"},
			Selection{},
			"", ErrNoModel, "it has no tokenizer.json, and no other tokenizer format is read (it has vocab.txt)",
		},
		"what the outputs mean": {
			[]string{"model.onnx", "README.md"},
			Selection{},
			"", ErrNoModel, "it has no config.json at its root",
		},
		"a tokenizer where nobody looks": {
			[]string{"config.json", "model.onnx", "onnx/tokenizer.json"},
			Selection{},
			"", ErrNoModel, "it has no tokenizer.json",
		},
		"no config.json beside the rest": {
			[]string{"onnx/model.onnx", "tokenizer.json", "README.md"},
			Selection{},
			"", ErrNoModel, "it has no config.json at its root",
		},
		"only graphs that need another runtime": {
			[]string{"tokenizer.json", "model_fa.onnx"},
			Selection{},
			"", ErrNoModel, "no ONNX graph",
		},
		"only graphs of unusual names": {
			[]string{"tokenizer.json", "model_q4.onnx"},
			Selection{},
			"", ErrNoModel, "--graph: model_q4.onnx",
		},
		"a graph that is not there": {
			published,
			Selection{Graph: "model.onnx"},
			"", ErrNoFile, "onnx/model.onnx",
		},
		"no tokenizer": {
			[]string{"model.onnx", "vocab.txt"},
			Selection{},
			"", ErrNoModel, "no tokenizer.json",
		},
		"a bundle that names what is not there": {
			[]string{"bundle.yaml", "m.onnx"},
			Selection{},
			"graphs: [{file: m.onnx, precision: int8}]\ntokenizer: {file: t.json}", ErrNoFile, `"t.json"`,
		},
		"a bundle without this precision": {
			[]string{"bundle.yaml", "m.onnx"},
			Selection{Precision: "fp16"},
			"graphs: [{file: m.onnx, precision: int8}]", ErrNoModel, "m.onnx (int8)",
		},
		"a bundle that is no YAML": {
			[]string{"bundle.yaml"},
			Selection{},
			"graphs: [", ErrNoModel, "bundle.yaml",
		},
		"a bundle that names a file outside": {
			[]string{"bundle.yaml", "m.onnx"},
			Selection{},
			"graphs: [{file: m.onnx}]\nscan: {file: ../x}", ErrNoFile, `"../x"`,
		},
		"a pattern that is none": {
			published,
			Selection{Include: []string{"["}},
			"", nil, `pattern "["`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var m []byte
			if tt.manifest != "" {
				m = []byte(tt.manifest)
			}
			_, err := Choose(listing(tt.files...), tt.s, m)
			if err == nil || tt.want != nil && !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("error %v, want %v with %q", err, tt.want, tt.text)
			}
		})
	}
}

func TestAGraphThatCannotBeOpenedIsNotDownloaded(t *testing.T) {
	l := listing("config.json", "tokenizer.json", "onnx/model.onnx", "onnx/model.onnx_data", "onnx/model_int8.onnx")
	l.Files[2].Bytes, l.Files[3].Bytes, l.Files[4].Bytes = 1<<20, 1<<31, 600<<20
	_, err := Choose(l, Selection{Precision: fp32}, nil)
	if want := "2148532224 bytes with its weights"; !errors.Is(err, ErrNoModel) ||
		!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "onnx/model_int8.onnx") {
		t.Errorf("error %v, want %q and the graph that can be opened", err, want)
	}
	if got, err := Choose(l, Selection{}, nil); err != nil || got.Graph != "onnx/model_int8.onnx" {
		t.Errorf("%+v, %v", got, err)
	}
	l.Files[3].Bytes = 1 << 30
	if got, err := Choose(l, Selection{Precision: fp32}, nil); err != nil || got.Graph != "onnx/model.onnx" {
		t.Errorf("%+v, %v", got, err)
	}
}

// FuzzChoose looks for a manifest that ends a pull badly or takes a file that the listing does not
// have.
func FuzzChoose(f *testing.F) {
	f.Add("graphs: [{file: model.onnx, precision: int8}]\ntokenizer: {file: tokenizer.json}", "int8")
	f.Add("graphs:\n- &a {file: model.onnx}\n- *a\nx: {file: {file: a}}", "")
	f.Add("a: &a [*a]", "")
	f.Add("graphs: [", "fp16")
	f.Add("? {file: x}\n: file\n---\nfile: y", "fp32")
	l := listing("bundle.yaml", "model.onnx", "tokenizer.json", "model.onnx.data", "a", "README.md")
	f.Fuzz(func(t *testing.T, manifest, precision string) {
		got, err := Choose(l, Selection{Precision: precision}, []byte(manifest))
		if err != nil {
			return
		}
		if !slices.Contains(chosen(got), got.Graph) {
			t.Errorf("graph %q is not among the files %v", got.Graph, chosen(got))
		}
		for _, file := range got.Files {
			if err := local.CheckPath(file.Path); err != nil || !fs.ValidPath(file.Path) {
				t.Errorf("file %q: %v", file.Path, err)
			}
		}
	})
}

func FuzzParseContentRange(f *testing.F) {
	for _, s := range []string{"bytes 0-9/10", "bytes 5-5/*", "bytes */10", "bytes -1-2/3", "bytes 1-2/-5", "items 0-1/2", "bytes 0-9", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		first, last, total, ok := parseContentRange(s)
		if ok && (first < 0 || total < -1) {
			t.Errorf("%q: %d-%d/%d", s, first, last, total)
		}
	})
}
