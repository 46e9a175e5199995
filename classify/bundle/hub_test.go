//go:build cgo

package bundle

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/classify/tokenize"
	"signalbox/gpu"
	"signalbox/internal/tensor"
)

// hubExpected is one folder of expected.json, which training/fixtures/graphs.py writes.
type hubExpected struct {
	Folder string    `json:"folder"`
	Task   string    `json:"task"`
	Dims   int       `json:"dims"`
	Layer  int       `json:"layer"`
	Cases  []hubCase `json:"cases"`
}

// hubCase is what the reference makes of one text, or of two in one row.
type hubCase struct {
	Texts     []string  `json:"texts"`
	Precision string    `json:"precision"`
	IDs       []int64   `json:"ids"`
	Types     []int64   `json:"types"`
	Shape     []int64   `json:"shape"`
	Values    []float64 `json:"values"` // logits, or the pooled, cut and normalised vector
}

func readExpected(tb testing.TB) []hubExpected {
	tb.Helper()
	data, err := os.ReadFile("testdata/hf/expected.json")
	if err != nil {
		tb.Fatal(err)
	}
	var out []hubExpected
	if err := json.Unmarshal(data, &out); err != nil {
		tb.Fatal(err)
	}
	return out
}

func openHub(tb testing.TB, e *hubExpected) *Bundle {
	tb.Helper()
	b, err := Open(os.DirFS("testdata/hf/"+e.Folder), OpenOptions{Task: e.Task, Dims: e.Dims, Layer: e.Layer})
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// hubFound is what a folder was found to be.
type hubFound struct {
	Graphs    []string
	Inputs    Inputs
	MaxTokens int
	PadID     int64
	Task      Task
}

func TestHuggingFaceFoldersAreUnderstoodUnmodified(t *testing.T) {
	plain := Inputs{IDs: "input_ids", Mask: "attention_mask"}
	segments := Inputs{IDs: "input_ids", Mask: "attention_mask", Types: "token_type_ids"}
	few := Window{Tokens: 128, Stride: 96, Max: 4, Combine: Mean}
	short := func(n int) Window { return Window{Tokens: n, Stride: n * 3 / 4, Max: 4, Combine: Mean} }
	tags := []string{"O"}
	for _, p := range PIITypes() {
		if p != "NATIONAL_ID" { // which patterns alone find
			tags = append(tags, "B-"+p, "I-"+p)
		}
	}
	want := map[string]hubFound{
		"bert-domain": {
			[]string{"model.onnx fp32"},
			segments, 128, 0,
			Task{Name: "domain", Kind: Sequence, Output: "logits", Labels: domains, Temperature: 1, Threshold: 0.5, Window: few},
		},
		"modernbert-jailbreak": {
			[]string{"onnx/model.onnx fp32", "onnx/model_sdpa_fp16.onnx fp16"},
			plain, 128, 3,
			Task{
				Name: "jailbreak", Kind: Sequence, Output: "logits", Labels: []string{"benign", "jailbreak"}, Positive: "jailbreak",
				Temperature: 1, Threshold: 0.5, Window: Window{Tokens: 128, Stride: 96, Combine: Max},
			},
		},
		"modernbert-pii": {
			[]string{"onnx/model_fp16.onnx fp16"},
			plain, 128, 3,
			Task{
				Name: "pii", Kind: Token, Output: "token_logits", Labels: tags, Temperature: 1, Threshold: 0.5,
				Window: Window{Tokens: 128, Stride: 96, Combine: Mean},
			},
		},
		"xlmr-factcheck": {
			[]string{"model.onnx fp32"}, plain, 126, 1, // two positions are never used
			Task{
				Name: "factcheck", Kind: Sequence, Output: "output_0", Labels: []string{"needs", "no"}, Positive: "needs",
				Temperature: 1, Threshold: 0.5, Window: Window{Tokens: 126, Stride: 94, Max: 4, Combine: Mean},
			},
		},
		"bert-nli": {
			[]string{"onnx/model.onnx fp32"},
			segments, 128, 0,
			Task{
				Name: "nli", Kind: Pair, Output: "logits", Labels: []string{"entailment", "neutral", "contradiction"},
				Temperature: 1, Threshold: 0.5, Window: few,
			},
		},
		"bert-complexity": {
			[]string{"model.onnx fp32"},
			segments, 128, 0,
			Task{
				Name: "complexity", Kind: Sequence, Output: "predictions", Labels: []string{"low", "medium", "high"},
				Temperature: 1, Threshold: 0.5, Window: few,
			},
		},
		"minilm-embedding": {
			[]string{"onnx/model.onnx fp32", "onnx/model_quantized.onnx int8"},
			segments, 64, 0,
			Task{Name: "embedding", Kind: Embedding, Output: "last_hidden_state", Pooling: MeanPooling, Dims: 32, Width: 32, Window: short(64)},
		},
		"pooled-embedding": {
			[]string{"model_fp16.onnx fp16"},
			segments, 64, 0,
			Task{Name: "embedding", Kind: Embedding, Output: "sentence_embedding", Pooling: NoPooling, Dims: 32, Width: 32, Window: short(64)},
		},
		"gemma-embedding": {
			[]string{"onnx/model.onnx fp32"},
			plain, 100, 1,
			Task{
				Name: "embedding", Kind: Embedding, Output: "sentence_embedding", Pooling: NoPooling, Dims: 32, Width: 32,
				Prefix: "task: search result | query: ", Window: short(100),
			},
		},
		"qwen3-embedding": {
			[]string{"onnx/model.onnx fp32"},
			Inputs{IDs: "input_ids", Mask: "attention_mask", Positions: "position_ids"},
			100, 0,
			Task{
				Name: "embedding", Kind: Embedding, Output: "last_hidden_state", Pooling: LastTokenPooling, Dims: 16, Width: 32,
				Prefix: "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:", AppendID: 1, Window: short(100),
			},
		},
		"mmbert-matryoshka": {
			[]string{"onnx/layer-1/model.onnx fp32"},
			plain, 128, 3,
			Task{Name: "embedding", Kind: Embedding, Output: "last_hidden_state", Pooling: MeanPooling, Dims: 8, Width: 32, Window: few},
		},
	}
	for _, e := range readExpected(t) {
		t.Run(e.Folder, func(t *testing.T) {
			b := openHub(t, &e)
			got := hubFound{Inputs: b.Manifest.Inputs, MaxTokens: b.Manifest.MaxTokens, PadID: b.Manifest.PadID, Task: b.Manifest.Tasks[0]}
			for _, g := range b.Manifest.Graphs {
				got.Graphs = append(got.Graphs, g.Name+" "+g.Precision)
			}
			if d := cmp.Diff(want[e.Folder], got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if b.Manifest.Vocab != 320 || b.Manifest.Name != e.Task || b.Manifest.License != "unknown" || b.Manifest.Version != "unversioned" {
				t.Errorf("manifest %+v", b.Manifest)
			}
			if err := b.Verify(); err != nil {
				t.Errorf("verify: %v", err)
			}
		})
		delete(want, e.Folder)
	}
	for name := range want {
		t.Errorf("folder %s is not there", name)
	}
}

// openRuntime opens the library that `make onnxruntime` fetched. Where it is missing the test is
// skipped, except in CI.
func openRuntime(tb testing.TB) *gpu.Runtime {
	tb.Helper()
	o := gpu.DefaultOptions()
	o.LibrarySHA256 = os.Getenv("SIGNALBOX_ORT_SHA256")
	r, err := gpu.Open(o)
	if errors.Is(err, gpu.ErrUnavailable) && os.Getenv("CI") == "" {
		tb.Skipf("shared library of ONNX Runtime (make onnxruntime): %v", err)
	}
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := r.Close(); err != nil {
			tb.Errorf("close runtime: %v", err)
		}
	})
	return r
}

func openSession(tb testing.TB, r *gpu.Runtime, model []byte) *gpu.Session {
	tb.Helper()
	s, err := r.NewSession(tb.Context(), model, gpu.SessionOptions{Name: tb.Name()})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("close session: %v", err)
		}
	})
	return s
}

// feed makes the inputs of a batch of rows, padded behind.
func feed(m *Manifest, rows []hubCase) []tensor.Tensor {
	width := 0
	for _, r := range rows {
		width = max(width, len(r.IDs))
	}
	shape := []int64{int64(len(rows)), int64(width)}
	column := map[string]func(r *hubCase, i int) int64{
		m.Inputs.IDs:       func(r *hubCase, i int) int64 { return r.IDs[i] },
		m.Inputs.Mask:      func(*hubCase, int) int64 { return 1 },
		m.Inputs.Types:     func(r *hubCase, i int) int64 { return r.Types[i] },
		m.Inputs.Positions: func(_ *hubCase, i int) int64 { return int64(i) },
	}
	delete(column, "")
	in := make([]tensor.Tensor, 0, len(column))
	for name, value := range column {
		data := make([]int64, 0, len(rows)*width)
		for _, r := range rows {
			for i := range width {
				switch {
				case i < len(r.IDs):
					data = append(data, value(&r, i))
				case name == m.Inputs.IDs:
					data = append(data, m.PadID)
				default:
					data = append(data, 0)
				}
			}
		}
		in = append(in, tensor.Tensor{Name: name, Shape: shape, I64: data})
	}
	return in
}

// answer reads row i of an output as the manifest says: logits, or a pooled, cut and normalised
// vector.
func answer(task *Task, out *tensor.Tensor, i, tokens, rows int) []float64 {
	values := out.F32
	per := len(values) / rows
	values = values[i*per : (i+1)*per]
	width := len(task.Labels)
	if task.Kind == Embedding {
		width = task.Width
	}
	if task.Kind == Token {
		tags := make([]float64, tokens*width)
		for i := range tags {
			tags[i] = float64(values[i])
		}
		return tags
	}
	vector := make([]float64, width)
	add := func(token int) {
		for j := range vector {
			vector[j] += float64(values[token*width+j])
		}
	}
	switch task.Pooling {
	case MeanPooling:
		for token := range tokens {
			add(token)
		}
	case LastTokenPooling:
		add(tokens - 1)
	case CLSPooling, NoPooling, "": // the first token, or no dimension of tokens
		add(0)
	}
	if task.Kind != Embedding {
		return vector
	}
	vector = vector[:task.Dims]
	norm := 0.0
	for _, v := range vector {
		norm += v * v
	}
	for j := range vector {
		vector[j] /= math.Sqrt(norm)
	}
	return vector
}

// tolerance is the largest difference from the reference, which ran the same version of ONNX
// Runtime, perhaps with other instructions: those of float32, of sums in half precision, and one
// step of 8 bits.
func tolerance(precision string) float64 {
	switch precision {
	case FP16:
		return 5e-3
	case Int8:
		return 2e-2
	}
	return 1e-4
}

func furthest(want, got []float64) float64 {
	if len(want) != len(got) {
		return math.Inf(1)
	}
	most := 0.0
	for i := range want {
		d := math.Abs(want[i] - got[i])
		if math.IsNaN(d) {
			return math.Inf(1)
		}
		most = max(most, d)
	}
	return most
}

func TestHuggingFaceFoldersComputeWhatTheReferenceDoes(t *testing.T) {
	r := openRuntime(t)
	for _, e := range readExpected(t) {
		byPrecision := map[string][]hubCase{}
		for _, c := range e.Cases {
			byPrecision[c.Precision] = append(byPrecision[c.Precision], c)
		}
		for precision, cases := range byPrecision {
			t.Run(fmt.Sprintf("%s in %s", e.Folder, precision), func(t *testing.T) {
				b := openHub(t, &e)
				model, err := b.Graph(precision)
				if err != nil {
					t.Fatal(err)
				}
				s := openSession(t, r, model)
				before := b.Manifest.Tasks[0]
				if err := b.Resolve(s.Inputs(), s.Outputs()); err != nil {
					t.Fatal(err)
				}
				task := &b.Manifest.Tasks[0]
				if d := cmp.Diff(&before, task); d != "" {
					t.Errorf("the session says otherwise than the file (-file +session):\n%s", d)
				}
				check := func(rows []hubCase) {
					out, err := s.Run(t.Context(), feed(&b.Manifest, rows), []string{task.Output})
					if err != nil {
						t.Fatal(err)
					}
					for i, c := range rows {
						if len(rows) == 1 && !slices.Equal(out[0].Shape, c.Shape) {
							t.Errorf("%q: shape %v, want %v", c.Texts, out[0].Shape, c.Shape)
						}
						if d := furthest(c.Values, answer(task, &out[0], i, len(c.IDs), len(rows))); d > tolerance(precision) {
							t.Errorf("%q in a batch of %d: off by %v", c.Texts, len(rows), d)
						}
					}
				}
				for i := range cases {
					check(cases[i : i+1])
				}
				// Padding must change nothing, except where the graph takes one text at a time, or
				// takes the range of all activations together.
				if len(cases[0].Shape) > 1 && precision != Int8 {
					check(cases)
				}
			})
		}
	}
}

func TestHuggingFaceTokenizersGiveTheRowsOfTheReference(t *testing.T) {
	for _, e := range readExpected(t) {
		t.Run(e.Folder, func(t *testing.T) {
			b := openHub(t, &e)
			data, err := b.Tokenizer()
			if err != nil {
				t.Fatal(err)
			}
			tok, err := tokenize.New(data)
			if err != nil {
				t.Fatal(err)
			}
			if err := b.CheckVocabulary(tok.VocabSize()); err != nil {
				t.Error(err)
			}
			task := &b.Manifest.Tasks[0]
			for _, c := range e.Cases {
				if len(c.Texts) != 1 {
					continue // rows of pairs are package tokenize's own matter
				}
				var enc tokenize.Encoding
				tok.Encode(task.Prefix+c.Texts[0], &enc)
				ids := enc.IDs
				if task.AppendID != 0 {
					ids = append(slices.Clone(ids), int32(task.AppendID))
				}
				if d := cmp.Diff(c.IDs, tok.AppendRow(nil, ids)); d != "" {
					t.Errorf("%q (-want +got):\n%s", c.Texts, d)
				}
			}
		})
	}
}

func TestOpenPrefersTheManifest(t *testing.T) {
	f := files(good)
	f["config.json"] = f[ManifestFile]
	b, err := Open(f, OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if b.Manifest.Name != "tiny" {
		t.Errorf("opened %q", b.Manifest.Name)
	}
	if err := b.Resolve(nil, nil); err != nil {
		t.Errorf("resolve of a bundle with a manifest: %v", err)
	}
	if _, err := Open(os.DirFS(t.TempDir()), OpenOptions{Task: "domain"}); !errors.Is(err, ErrLayout) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty folder: %v", err)
	}
}
