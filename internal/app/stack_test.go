package app

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"signalbox/classify/bundle"
	"signalbox/gpu"
	"signalbox/internal/config"
	"signalbox/internal/tensor"
)

// onnxValue is a serialised TensorProto of float32 (1) or int64 (7).
func onnxValue(name string, elem uint64, dims []int, raw []byte) []byte {
	var b []byte
	for _, d := range dims {
		b = protowire.AppendVarint(protowire.AppendTag(b, 1, protowire.VarintType), uint64(d))
	}
	b = protowire.AppendVarint(protowire.AppendTag(b, 2, protowire.VarintType), elem)
	return message(message(b, initializerName, []byte(name)), 9, raw)
}

// randomAdapter makes an adapter that reads the shared mean alone, [rows, 384]: two layers of random
// weights between the axes that format 2 has.
func randomAdapter(t *testing.T, seed uint64, hidden int, mode string, labels ...string) []byte {
	t.Helper()
	b, err := bundle.Load(subFS(t))
	if err != nil {
		t.Fatal(err)
	}
	g, width := &b.Manifest.Graphs[0], 384
	info := bundle.AdapterInfo{
		Format: 2, Mode: mode, Labels: labels, Thresholds: make([]float64, len(labels)),
		Base:   bundle.AdapterBase{Name: b.Manifest.Name, Version: b.Manifest.Version, SHA256: g.SHA256},
		Tokens: b.Manifest.MaxTokens, Skeleton: 128, Stack: []string{"w1", "b1", "w2", "b2"},
	}
	if mode == "binary" {
		info.Thresholds[1] = 0.5
	}
	outputs := info.Width()
	for range outputs {
		info.Scale, info.Shift = append(info.Scale, 1), append(info.Shift, 0)
	}
	var graph []byte
	for _, n := range [][]string{
		{"Unsqueeze", "mean", "axes", "x"},
		{"MatMul", "x", "w1", "m"},
		{"Add", "m", "b1", "h"},
		{"Tanh", "h", "u"},
		{"MatMul", "u", "w2", "n"},
		{"Add", "n", "b2", "y"},
		{"Squeeze", "y", "axis", bundle.AdapterOutput},
	} {
		var node []byte
		for _, in := range n[1 : len(n)-1] {
			node = message(node, nodeInput, []byte(in))
		}
		graph = message(graph, onnxNode, message(message(node, nodeOutput, []byte(n[len(n)-1])), 4, []byte(n[0])))
	}
	graph = message(graph, 2, []byte("adapter"))
	rng := rand.New(rand.NewPCG(seed, 0))
	own := func(name string, dims ...int) {
		n := 1
		for _, d := range dims {
			n *= d
		}
		var raw []byte
		for range n {
			v := float32(rng.NormFloat64()) / float32(math.Sqrt(float64(dims[1])))
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
		}
		graph = message(graph, onnxInitializer, onnxValue(name, 1, dims, raw))
	}
	own("w1", 1, width, hidden)
	own("b1", 1, 1, hidden)
	own("w2", 1, hidden, outputs)
	own("b2", 1, 1, outputs)
	axes := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, 1), 2)
	graph = message(graph, onnxInitializer, onnxValue("axes", 7, []int{2}, axes))
	graph = message(graph, onnxInitializer, onnxValue("axis", 7, []int{1}, axes[8:]))
	graph = message(graph, onnxInput, valueInfo("mean", 1, []int64{-1, 384}))
	graph = message(graph, onnxOut, valueInfo(bundle.AdapterOutput, 1, []int64{-1, -1, -1}))
	sum := sha256.Sum256(graph)
	info.GraphSHA256 = hex.EncodeToString(sum[:])
	text, err := json.Marshal(&info)
	if err != nil {
		t.Fatal(err)
	}
	model := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 8)
	opset := protowire.AppendVarint(protowire.AppendTag(nil, 2, protowire.VarintType), 17)
	model = message(message(model, onnxGraph, graph), 8, opset)
	return message(model, onnxMetadata, message(message(nil, 1, []byte(bundle.AdapterKey)), 2, text))
}

// Adapters of different widths and numbers of labels say as one graph what each says alone.
func TestAStackOfAdaptersComputesWhatEachComputes(t *testing.T) {
	needModels(t)
	rt := openRuntime(t)
	files := [][]byte{
		randomAdapter(t, 1, 4, "binary", "no", "yes"), randomAdapter(t, 2, 9, "classes", "a", "b", "c"),
		randomAdapter(t, 3, 1, "tags", "x", "y"),
	}
	const rows = 5
	mean := tensor.Tensor{Name: "mean", Shape: []int64{rows, 384}}
	rng := rand.New(rand.NewPCG(7, 7))
	for range rows * 384 {
		mean.F32 = append(mean.F32, float32(rng.NormFloat64()))
	}
	run := func(model []byte) tensor.Tensor {
		t.Helper()
		s, err := rt.NewSession(t.Context(), model, gpu.SessionOptions{Name: "tail"})
		if err != nil {
			t.Fatal(err)
		}
		out, err := s.Run(t.Context(), []tensor.Tensor{mean}, []string{bundle.AdapterOutput})
		if err != nil {
			t.Fatal(err)
		}
		return out[0]
	}
	var list []*bundle.Adapter
	for _, file := range files {
		a, err := bundle.ReadAdapter(file)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, a)
	}
	model, err := bundle.Stack(list)
	if err != nil {
		t.Fatal(err)
	}
	all := run(model)
	if fmt.Sprint(all.Shape) != "[5 3 3]" {
		t.Fatalf("shape %v, want 5 rows, 3 adapters, 3 labels", all.Shape)
	}
	for k, a := range list {
		alone, width := run(a.File), a.Width()
		for i, want := range alone.F32 {
			row, label := i/width, i%width
			if got := all.F32[(row*len(list)+k)*3+label]; math.Abs(float64(got-want)) > 1e-5 {
				t.Errorf("adapter %d, row %d, label %d: %g as one graph, %g alone", k, row, label, got, want)
			}
		}
	}
}

// The product runs the adapters of models_dir as one graph.
func TestAdaptersOfOneFormRunTogether(t *testing.T) {
	needModels(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "signalbox.yaml")
	for name, data := range map[string][]byte{
		file:                              fmt.Appendf(nil, strings.Replace(adapterConfig, "{name: attack}", "{name: attack}, {name: mood}, {name: size}", 1), dir),
		filepath.Join(dir, "attack.onnx"): randomAdapter(t, 1, 4, "binary", "benign", "attack"),
		filepath.Join(dir, "mood.onnx"):   randomAdapter(t, 2, 9, "classes", "glad", "sad", "angry"),
		filepath.Join(dir, "size.onnx"):   randomAdapter(t, 3, 1, "classes", "small", "large"),
	} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg, _, err := config.Load(file, os.LookupEnv, Catalog)
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, cfg, memoryOnly(flags(t)))
	ask := func(text string, signals ...string) (string, int) {
		t.Helper()
		before := s.modelRuns(t)
		body, err := json.Marshal(map[string]any{"input": text, "signals": signals})
		if err != nil {
			t.Fatal(err)
		}
		return s.post(t, "/signalbox/v1/classify", string(body)).body, s.modelRuns(t) - before
	}
	for _, text := range []string{"How do I cook risotto for four people?", "Ships leave the harbour at night."} {
		all, ran := ask(text+" All.", "attack", "mood", "size", "domain")
		if ran != 2 {
			t.Errorf("%d runs for three adapters and the domain, want one of the base and one of all tails: %s", ran, all)
		}
		for _, name := range []string{"attack", "mood", "size"} {
			alone, _ := ask(text+" All.", name)
			if a, b := labelOf(t, all, name), labelOf(t, alone, name); a != b || a == "" {
				t.Errorf("%s of %q: %q with the others, %q alone", name, text, a, b)
			}
		}
	}
}

// labelOf is the label of a signal in a response of classify.
func labelOf(t *testing.T, body, name string) string {
	t.Helper()
	at := strings.Index(body, `"`+name+`":{`)
	if at < 0 {
		t.Fatalf("no %s in %s", name, body)
	}
	_, rest, _ := strings.Cut(body[at:], `"label":"`)
	label, _, _ := strings.Cut(rest, `"`)
	return label
}
