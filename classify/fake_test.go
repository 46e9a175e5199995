package classify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"signalbox/classify/bundle"
	"signalbox/internal/tensor"
)

// Tokens of the test tokenizer. It splits at spaces and knows a few words.
const (
	padID = iota
	unkID
	clsID
	sepID
	mathID
	attackID
	wordID
)

const tokenizerJSON = `{
  "normalizer": {"type": "BertNormalizer"}, "pre_tokenizer": {"type": "BertPreTokenizer"},
  "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
  "model": {"type": "WordPiece", "unk_token": "[UNK]",
    "vocab": {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "math": 4, "attack": 5, "word": 6%s}}
}`

// numbered is how many words w0, w1, ... the tokenizer knows, so that windows can differ.
const numbered = 200

// tokenizerFile is a tokenizer.json of whole words.
func tokenizerFile() string {
	var more strings.Builder
	for i := range numbered {
		fmt.Fprintf(&more, `, "w%d": %d`, i, wordID+1+i)
	}
	return fmt.Sprintf(tokenizerJSON, more.String())
}

// words is n different words of one token each.
func words(n int) string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("w%d", i%numbered)
	}
	return strings.Join(out, " ")
}

const manifestYAML = `format: 1
name: test
version: "1"
license: Apache-2.0
layout: shared
graphs: [{file: model.onnx, precision: int8, sha256: %s, bytes: 1}]
tokenizer: {file: tokenizer.json, sha256: %s, bytes: %d}
inputs: {ids: input_ids, mask: attention_mask}
max_tokens: 40
tasks:
  - {name: domain, kind: sequence, output: d, labels: [math, law, other], temperature: 2, threshold: 0.4, window: {tokens: 34, stride: 30, max: 3, combine: mean}}
  - {name: jailbreak, kind: sequence, output: j, labels: [benign, jailbreak], positive: jailbreak, temperature: 1, threshold: 0.5, window: {tokens: 10, stride: 6, max: 0, combine: max}}
  - {name: embedding, kind: embedding, output: e, dims: 4, window: {tokens: 34, stride: 30, max: 3, combine: mean}}
canary: {text: "math word", expect: {domain: math, jailbreak: benign}}
`

func testBundle(tb testing.TB, edit ...string) *bundle.Bundle {
	tb.Helper()
	return bundleOf(tb, manifestYAML, edit...)
}

// bundleOf makes a bundle of a manifest with room for two digests and a size, edited.
func bundleOf(tb testing.TB, manifest string, edit ...string) *bundle.Bundle {
	tb.Helper()
	tokenizerJSON := tokenizerFile()
	digest := func(b string) string {
		sum := sha256.Sum256([]byte(b))
		return hex.EncodeToString(sum[:])
	}
	manifest = strings.NewReplacer(edit...).Replace(
		fmt.Sprintf(manifest, digest("x"), digest(tokenizerJSON), len(tokenizerJSON)))
	b, err := bundle.Load(fstest.MapFS{
		"bundle.yaml":    {Data: []byte(manifest)},
		"tokenizer.json": {Data: []byte(tokenizerJSON)},
		"model.onnx":     {Data: []byte("x")},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// call is what one Run got.
type call struct {
	rows    [][]int64 // without padding
	width   int64
	outputs []string
}

// fake answers by the share of known words in a row: see logits. It records its calls and checks
// the contract of its inputs. After the canary, hook can replace the answer.
type fake struct {
	mu      sync.Mutex
	calls   []call
	broken  string
	inputs  []tensor.Spec
	outputs []tensor.Spec
	hook    func(ctx context.Context, n int, out []tensor.Tensor) ([]tensor.Tensor, error)
}

func newFake() *fake {
	in := []int64{tensor.Dynamic, tensor.Dynamic}
	return &fake{
		inputs: []tensor.Spec{{Name: "input_ids", DType: tensor.Int64, Shape: in}, {Name: "attention_mask", DType: tensor.Int64, Shape: in}},
		outputs: []tensor.Spec{
			{Name: "d", DType: tensor.Float32, Shape: []int64{tensor.Dynamic, 3}},
			{Name: "j", DType: tensor.Float32, Shape: []int64{tensor.Dynamic, 2}},
			{Name: "e", DType: tensor.Float32},
			{Name: "i", DType: tensor.Float32, Shape: []int64{tensor.Dynamic, 2}},
		},
	}
}

func (f *fake) Inputs() []tensor.Spec  { return f.inputs }
func (f *fake) Outputs() []tensor.Spec { return f.outputs }
func (*fake) Provider() string         { return "test" }
func (*fake) Close() error             { return nil }

func (f *fake) Run(ctx context.Context, in []tensor.Tensor, outputs []string) ([]tensor.Tensor, error) {
	rows, err := readRows(in)
	f.mu.Lock()
	if err != nil {
		f.broken = err.Error()
	}
	f.calls = append(f.calls, call{rows, in[0].Shape[1], append([]string(nil), outputs...)})
	n := len(f.calls)
	f.mu.Unlock()
	out := make([]tensor.Tensor, len(outputs))
	for k, name := range outputs {
		for _, row := range rows {
			out[k].F32 = append(out[k].F32, logits(name, row)...)
		}
		out[k].Name, out[k].Shape = name, []int64{int64(len(rows)), int64(len(out[k].F32) / len(rows))}
	}
	if f.hook != nil {
		return f.hook(ctx, n, out)
	}
	return out, nil
}

// logits: each task looks for one word. A row with two of math has domain logits {2, 0, 1}.
func logits(output string, row []int64) []float32 {
	count := func(id int64) (n float32) {
		for _, t := range row {
			if t == id {
				n++
			}
		}
		return n
	}
	switch output {
	case "d":
		return []float32{count(mathID), 0, 1}
	case "j", "i":
		return []float32{1, 2 * count(attackID)}
	}
	return []float32{count(mathID), count(attackID), count(wordID), 1}
}

// readRows checks the inputs of a run and strips the padding.
func readRows(in []tensor.Tensor) ([][]int64, error) {
	if len(in) != 2 || in[0].Name != "input_ids" || in[1].Name != "attention_mask" {
		return nil, fmt.Errorf("inputs %v", in)
	}
	for i := range in {
		if err := in[i].Check(); err != nil {
			return nil, err
		}
	}
	width := int(in[0].Shape[1])
	rows := make([][]int64, in[0].Shape[0])
	for r := range rows {
		ids, mask := in[0].I64[r*width:(r+1)*width], in[1].I64[r*width:(r+1)*width]
		n := 0
		for n < width && mask[n] == 1 {
			n++
		}
		for k := n; k < width; k++ {
			if mask[k] != 0 || ids[k] != padID {
				return nil, fmt.Errorf("row %d: no padding after token %d: %v %v", r, n, ids, mask)
			}
		}
		if n < 2 || ids[0] != clsID || ids[n-1] != sepID {
			return nil, fmt.Errorf("row %d has no special tokens: %v", r, ids[:n])
		}
		rows[r] = append([]int64(nil), ids[:n]...)
	}
	return rows, nil
}

// classifierOf is a Classifier over one bundle.
func classifierOf(b *bundle.Bundle, s Session, opts Options) (*Classifier, error) {
	e, err := OpenEngine(b, s)
	if err != nil {
		return nil, err
	}
	return New([]Source{{Engine: e}}, opts)
}

// open makes a Classifier over f and forgets the canary's run.
func open(tb testing.TB, f *fake, opts Options) *Classifier {
	tb.Helper()
	hook := f.hook
	f.hook = nil
	c, err := classifierOf(testBundle(tb), f, opts)
	if err != nil {
		tb.Fatal(err)
	}
	f.calls, f.hook = nil, hook
	tb.Cleanup(func() {
		if f.broken != "" {
			tb.Errorf("a run broke the contract of Session: %s", f.broken)
		}
	})
	return c
}
