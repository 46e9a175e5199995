package bundle

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/tensor"
)

func TestWhatIsFoundCanBeOverridden(t *testing.T) {
	files := inMemory(t, "minilm-embedding")
	files["README.md"] = &fstest.MapFile{Data: []byte("---\nlanguage: en\nlicense: \"apache-2.0\"\n---\nlicense: none\n")}
	files["config_sentence_transformers.json"] = &fstest.MapFile{Data: []byte(`{"prompts": {"query": "q: ", "sts": ` +
		`"s: "}, "default_prompt_name": "sts"}`)}
	for name, c := range map[string]struct {
		o    OpenOptions
		want Task
	}{
		"nothing": {OpenOptions{}, Task{
			Pooling: MeanPooling, Dims: 32, Prefix: "s: ",
			Window: Window{Tokens: 64, Stride: 48, Max: 4, Combine: Mean},
		}},
		"everything": {
			OpenOptions{Pooling: CLSPooling, Dims: 5, Prefix: new(""), MaxTokens: 100, Window: Window{Tokens: 99, Max: 1}},
			Task{Pooling: CLSPooling, Dims: 5, Window: Window{
				Tokens: 99, Stride: 74, Max: 1,
				Combine: Mean,
			}},
		},
		"a row beyond the model's positions": {
			OpenOptions{MaxTokens: 512},
			Task{
				Pooling: MeanPooling, Dims: 32, Prefix: "s: ",
				Window: Window{Tokens: 128, Stride: 96, Max: 4, Combine: Mean},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.o.Task = "embedding"
			b, err := Open(files, c.o)
			if err != nil {
				t.Fatal(err)
			}
			c.want.Name, c.want.Kind, c.want.Output, c.want.Width = "embedding", Embedding, "last_hidden_state", 32
			if d := cmp.Diff(c.want, b.Manifest.Tasks[0]); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if b.Manifest.License != "apache-2.0" {
				t.Errorf("license %q", b.Manifest.License)
			}
		})
	}
}

// A classifier that names no labels has those that Hugging Face's library gives it, as many as the
// graph has outputs or, where that leaves it open, as num_labels says, which is 2 by default.
func TestLabelsThatAreNotNamedAreNumbered(t *testing.T) {
	t.Parallel()
	const dyn = tensor.Dynamic
	ids := []tensor.Spec{
		{Name: "input_ids", DType: tensor.Int64, Shape: []int64{dyn, dyn}},
		{Name: "attention_mask", DType: tensor.Int64, Shape: []int64{dyn, dyn}},
	}
	renames := map[string]string{"LABEL_0": "low", "LABEL_1": "medium", "LABEL_2": "high"}
	for name, c := range map[string]struct {
		told  string // num_labels, with a comma
		o     OpenOptions
		shape []int64
		want  []string
		bad   string // in the error
	}{
		"the graph counts": {
			"",
			OpenOptions{Task: "complexity", Labels: renames},
			[]int64{dyn, 3},
			[]string{"low", "medium", "high"},
			"",
		},
		"both agree": {
			`"num_labels": 3,`,
			OpenOptions{Task: "complexity", Labels: renames},
			[]int64{dyn, 3},
			[]string{"low", "medium", "high"},
			"",
		},
		"the graph leaves it open": {
			`"num_labels": 3,`,
			OpenOptions{Task: "complexity", Labels: renames},
			[]int64{dyn, dyn},
			[]string{"low", "medium", "high"},
			"",
		},
		"nobody says it": {
			"",
			OpenOptions{Task: "jailbreak", Positive: "LABEL_1"},
			[]int64{dyn, dyn},
			[]string{"benign", "jailbreak"},
			"",
		},
		"some are renamed": {
			"",
			OpenOptions{Task: "topic", Labels: map[string]string{"LABEL_1": "bug"}},
			[]int64{dyn, 2},
			[]string{"LABEL_0", "bug"},
			"",
		},
		"tokens": {
			"",
			OpenOptions{Task: "grounding", Kind: Token},
			[]int64{dyn, dyn, 2},
			[]string{"supported", "unsupported"},
			"",
		},
		"no name is given": {
			"",
			OpenOptions{Task: "topic"},
			[]int64{dyn, 2},
			nil,
			"[LABEL_0 LABEL_1] say nothing: set labels, as in {LABEL_0: NAME}",
		},
		"they do not agree": {
			`"num_labels": 4,`,
			OpenOptions{Task: "topic", Labels: renames},
			[]int64{dyn, 3},
			nil,
			"num_labels: labels: 4 here, but 3 numbers",
		},
		"one number is no set": {"", OpenOptions{Task: "topic", Labels: renames}, []int64{dyn, 1}, nil, "not a classifier"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := inMemory(t, "bert-complexity")
			config := strings.Replace(string(files["config.json"].Data), `"label2id"`, c.told+`"x"`, 1)
			files["config.json"] = &fstest.MapFile{Data: []byte(config)}
			f, err := readFolder(files)
			if err != nil {
				t.Fatal(err)
			}
			b := &Bundle{files: files, hub: &opened{folder: f, options: c.o}}
			if b.hub.kind, err = kindOf(f, &c.o); err != nil {
				t.Fatal(err)
			}
			if err = b.describe(); err == nil {
				err = b.Resolve(ids, []tensor.Spec{{Name: "logits", DType: tensor.Float32, Shape: c.shape}})
			}
			switch {
			case c.bad != "":
				if !errors.Is(err, ErrLabels) || !strings.Contains(err.Error(), c.bad) {
					t.Errorf("error %v, want ErrLabels with %q", err, c.bad)
				}
			case err != nil:
				t.Error(err)
			default:
				if d := cmp.Diff(c.want, b.Manifest.Tasks[0].Labels); d != "" {
					t.Errorf("(-want +got):\n%s", d)
				}
			}
		})
	}
}

// signatureOf resolves a folder against inputs and outputs that its graph does not have.
func signatureOf(tb testing.TB, folder string, o OpenOptions, inputs, outputs []tensor.Spec) (*Task, error) {
	tb.Helper()
	b, err := Open(os.DirFS("testdata/hf/"+folder), o)
	if err != nil {
		tb.Fatal(err)
	}
	before := b.Manifest
	if err := b.Resolve(inputs, outputs); err != nil {
		if d := cmp.Diff(before, b.Manifest); d != "" {
			tb.Errorf("a failure changed the manifest:\n%s", d)
		}
		return nil, err
	}
	return &b.Manifest.Tasks[0], nil
}

func TestOutputsAreResolvedByNameAndShape(t *testing.T) {
	const dyn = tensor.Dynamic
	out := func(name string, shape ...int64) tensor.Spec {
		return tensor.Spec{Name: name, DType: tensor.Float32, Shape: shape}
	}
	ids := []tensor.Spec{
		{Name: "input_ids", DType: tensor.Int64, Shape: []int64{dyn, dyn}},
		{Name: "attention_mask", DType: tensor.Int64, Shape: []int64{dyn, dyn}},
	}
	with := func(extra tensor.Spec) []tensor.Spec { return append(ids[:2:2], extra) }
	for name, c := range map[string]struct {
		folder  string
		o       OpenOptions
		inputs  []tensor.Spec
		outputs []tensor.Spec
		want    string // output and pooling, or what is in the error
		bad     bool
	}{
		"the preferred of several names": {
			"bert-domain",
			OpenOptions{Task: "domain"},
			ids,
			[]tensor.Spec{out("output", dyn, 14), out("logits", dyn, 14)},
			"logits ", false,
		},
		"the name whose shape fits": {
			"bert-domain",
			OpenOptions{Task: "domain"},
			ids,
			[]tensor.Spec{out("logits", dyn, dyn, 14), out("predictions", dyn, 14)},
			"predictions ", false,
		},
		"an unknown name that alone fits": {
			"bert-domain",
			OpenOptions{Task: "domain"},
			ids,
			[]tensor.Spec{out("hidden", dyn, dyn, 32), out("head", dyn, 14)},
			"head ", false,
		},
		"a shape that is left open": {
			"bert-domain",
			OpenOptions{Task: "domain"},
			ids,
			[]tensor.Spec{{Name: "logits", DType: tensor.Float32}},
			"logits ", false,
		},
		"a length that is left open": {
			"bert-domain",
			OpenOptions{Task: "domain"},
			ids,
			[]tensor.Spec{out("logits", dyn, dyn)},
			"logits ", false,
		},
		"a squeezed row": {
			"bert-domain",
			OpenOptions{Task: "domain"},
			ids,
			[]tensor.Spec{out("logits", 14)},
			"logits ",
			false,
		},
		"squeezed tokens": {
			"modernbert-pii",
			OpenOptions{Task: "pii"},
			ids,
			[]tensor.Spec{out("logits", dyn, 35)},
			"logits ",
			false,
		},
		"two unknown names that fit": {
			"bert-domain",
			OpenOptions{Task: "domain"},
			ids,
			[]tensor.Spec{out("a", dyn, 14), out("b", dyn, 14)},
			"a float32 [-1 14]; b float32 [-1 14]", true,
		},
		"integers": {
			"bert-domain",
			OpenOptions{Task: "domain"},
			ids,
			[]tensor.Spec{{Name: "logits", DType: tensor.Int64, Shape: []int64{dyn, 14}}},
			"logits int64",
			true,
		},
		"another number of labels": {
			"bert-domain",
			OpenOptions{Task: "domain"},
			ids,
			[]tensor.Spec{out("logits", dyn, 13)},
			"[batch, 14]", true,
		},
		"a pooled output before a hidden one": {
			"minilm-embedding",
			OpenOptions{Task: "embedding"},
			ids,
			[]tensor.Spec{out("last_hidden_state", dyn, dyn, 32), out("sentence_embedding", dyn, 32)},
			"sentence_embedding none", false,
		},
		"a hidden output that is wanted": {
			"minilm-embedding",
			OpenOptions{Task: "embedding", Pooling: CLSPooling},
			ids,
			[]tensor.Spec{out("token_embeddings", dyn, dyn, 32), out("sentence_embedding", dyn, 32)},
			"token_embeddings cls", false,
		},
		"BERT's pooler is no vector of a text": {
			"minilm-embedding",
			OpenOptions{Task: "embedding"},
			ids,
			[]tensor.Spec{out("pooler_output", dyn, 32), out("last_hidden_state", dyn, dyn, 32)},
			"last_hidden_state mean", false,
		},
		"caches beside a hidden output": {
			"minilm-embedding",
			OpenOptions{Task: "embedding"},
			ids,
			[]tensor.Spec{out("last_hidden_state", dyn, dyn, 32), out("present.0.key", dyn, 2, dyn, 8)},
			"last_hidden_state mean", false,
		},
		"no vector at all": {
			"minilm-embedding",
			OpenOptions{Task: "embedding"},
			ids,
			[]tensor.Spec{{Name: "ids", DType: tensor.Int64, Shape: []int64{dyn, dyn}}},
			"ids int64", true,
		},
		"an input that nothing is known of": {
			"bert-domain",
			OpenOptions{Task: "domain"},
			with(tensor.Spec{Name: "pixel_values", DType: tensor.Float32, Shape: []int64{dyn, 2, dyn, 8}}),
			[]tensor.Spec{out("logits", dyn, 14)},
			"pixel_values", true,
		},
		"a cache of earlier tokens": {
			"bert-domain",
			OpenOptions{Task: "domain"},
			with(tensor.Spec{Name: "past_key_values.0.key", DType: tensor.Float32, Shape: []int64{dyn, 2, dyn, 8}}),
			[]tensor.Spec{out("logits", dyn, 14)},
			"logits ", false,
		},
		"a cache of an open size": {
			"bert-domain",
			OpenOptions{Task: "domain"},
			with(tensor.Spec{Name: "past_key_values.0.key", DType: tensor.Float32, Shape: []int64{dyn, dyn, dyn, 8}}),
			[]tensor.Spec{out("logits", dyn, 14)},
			"past_key_values.0.key", true,
		},
		"an input of numbers with fractions": {
			"bert-domain",
			OpenOptions{Task: "domain"},
			with(tensor.Spec{Name: "token_type_ids", DType: tensor.Float32, Shape: []int64{dyn, dyn}}),
			[]tensor.Spec{out("logits", dyn, 14)},
			"token_type_ids", true,
		},
		"two inputs for one thing": {
			"bert-domain",
			OpenOptions{Task: "domain"},
			with(tensor.Spec{Name: "input_mask", DType: tensor.Int64, Shape: []int64{dyn, dyn}}),
			[]tensor.Spec{out("logits", dyn, 14)},
			`means the same as "attention_mask"`, true,
		},
		"no mask": {
			"bert-domain",
			OpenOptions{Task: "domain"},
			ids[:1],
			[]tensor.Spec{out("logits", dyn, 14)},
			"attention_mask", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			task, err := signatureOf(t, c.folder, c.o, c.inputs, c.outputs)
			switch {
			case c.bad && (!errors.Is(err, ErrSignature) || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error %v, want ErrSignature with %q", err, c.want)
			case !c.bad && err != nil:
				t.Error(err)
			case !c.bad && task.Output+" "+string(task.Pooling) != c.want:
				t.Errorf("output %q, pooling %q, want %q", task.Output, task.Pooling, c.want)
			}
		})
	}
}

func TestTheKindIsTakenFromTheGraphWhereNothingElseTells(t *testing.T) {
	for folder, want := range map[string]Kind{
		"bert-domain": Sequence, "modernbert-pii": Token, "minilm-embedding": Embedding,
	} {
		files := inMemory(t, folder)
		config := files["config.json"].Data
		for _, name := range []string{"BertForSequenceClassification", "ModernBertForTokenClassification", "BertModel"} {
			config = bytes.Replace(config, []byte(name), []byte("Unknown"), 1)
		}
		files["config.json"] = &fstest.MapFile{Data: config}
		for _, name := range []string{"modules.json", "1_Pooling/config.json", "config_sentence_transformers.json"} {
			delete(files, name)
		}
		b, err := Open(files, OpenOptions{Task: "mine", Pooling: MeanPooling})
		if err != nil {
			t.Errorf("%s: %v", folder, err)
			continue
		}
		if got := b.Manifest.Tasks[0].Kind; got != want {
			t.Errorf("%s: %q, want %q", folder, got, want)
		}
	}
}
