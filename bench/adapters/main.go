// Command adapters measures the cost of adapters compared with one pass of the embedded model, and
// whether an adapter has the same output as the same tail inside the graph.
//
//	cd training && python -m signalbox_training.adapter --name a --data rows.jsonl --out DIR --fused fused.onnx
//	go run ./bench/adapters --adapter DIR/a.onnx[,DIR/b.onnx] [--fused fused.onnx] [--texts rows.jsonl] [--rounds 200]
//
// For rows of several lengths it times one pass; the same with one and with three adapters
// (combined into one graph where possible, each with low-rank changes and a separate head); and
// three models with a pass each. If several files are given, the adapters are taken in turn. All
// variants are measured in turn, and the ratios are medians of the ratios of each round: of
// processor time, which other work on the machine hardly disturbs, and of elapsed time. One core:
// runs come one after the other.
//
// Within a process, layers with equal weights share them, so that weights read by one model would
// be in the caches for the next. To prevent this, each model gets separate weights, with a bit of
// every layer changed. An adapter uses the weights of its base, which it also shares in the
// product.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"signalbox/bench/lab"
	"signalbox/classify"
	"signalbox/classify/bundle"
	"signalbox/classify/tokenize"
	"signalbox/gpu"
	"signalbox/internal/signal"
	"signalbox/internal/tensor"
	"signalbox/internal/wire"
	"signalbox/models"
)

// added is the number of adapters that are added, and of models that they are compared with.
const added = 3

func main() {
	adapter := flag.String("adapter", "", "file of an adapter of the embedded model, or several with commas between")
	fused := flag.String("fused", "", "base and the first adapter as one graph, to compare with")
	texts := flag.String("texts", "", "rows with texts to compare on; without it those of models/testdata")
	rounds := flag.Int("rounds", 200, "how often each is timed")
	cores := flag.Int("cores", 1, "runs at a time")
	lengths := flag.String("tokens", "16,64,128,256", "lengths of rows")
	flag.Parse()
	lab.Main("adapters", func(context.Context) error { return run(*adapter, *fused, *texts, *lengths, *rounds, *cores) })
}

// bench holds the objects of the measurement.
type bench struct {
	rt      *gpu.Runtime
	bundle  *bundle.Bundle
	adapter *bundle.Adapter   // the first of list
	list    []*bundle.Adapter // the added adapters, in turn
	models  byte              // number of models opened for timing
}

func run(adapter, fused, texts, lengths string, rounds, cores int) error {
	if adapter == "" {
		return errors.New("--adapter: a file is required")
	}
	b := &bench{}
	for path := range strings.SplitSeq(adapter, ",") {
		file, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		a, err := bundle.ReadAdapter(file)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		b.list = append(b.list, a)
	}
	b.adapter = b.list[0]
	root, err := fs.Sub(models.FS, "default")
	if err != nil {
		return err
	}
	if b.bundle, err = bundle.Load(root); err != nil {
		return err
	}
	o := gpu.DefaultOptions()
	o.EnvLibrary, o.MaxConcurrent = os.Getenv("SIGNALBOX_ONNXRUNTIME"), cores
	if b.rt, err = gpu.Open(o); err != nil {
		return err
	}
	defer func() { _ = b.rt.Close() }()
	if err := b.compare(fused, texts); err != nil {
		return err
	}
	return b.cost(lengths, rounds, cores)
}

// session opens a graph of the embedded bundle, with taps if an adapter continues from it. Models
// with another salt have other weights; 0 opens the shipped one.
func (b *bench) session(name string, tapped bool, salt byte) (*gpu.Session, error) { //nolint:revive // two graphs
	var taps []string
	if tapped {
		taps = b.adapter.Taps
	}
	model, err := b.bundle.Tapped(bundle.Int8, b.adapter.Base.SHA256, taps)
	if err != nil {
		return nil, err
	}
	return b.open(name, model, salt)
}

// open opens a graph whose weights are changed by a salt.
func (b *bench) open(name string, model []byte, salt byte) (*gpu.Session, error) {
	model, err := salted(model, salt)
	if err != nil {
		return nil, err
	}
	return b.rt.NewSession(context.Background(), model, gpu.SessionOptions{Name: name})
}

// Field numbers of onnx.proto3, and its 8-bit integers.
const (
	modelGraph, graphInitializer, tensorType, tensorRaw = 7, 5, 2, 9
	int8Type                                            = 3
	leastLayer                                          = 4096 // bytes; smaller tensors are zero points
)

// salted changes the first 8-bit weight of every layer.
func salted(model []byte, salt byte) ([]byte, error) {
	model = bytes.Clone(model)
	err := wire.Values(model, func(num int, graph []byte, _ uint64) error {
		if num != modelGraph {
			return nil
		}
		return wire.Values(graph, func(num int, tensor []byte, _ uint64) error {
			if num != graphInitializer {
				return nil
			}
			var typ uint64
			var raw []byte
			if err := wire.Values(tensor, func(num int, body []byte, n uint64) error {
				switch num {
				case tensorType:
					typ = n
				case tensorRaw:
					raw = body
				}
				return nil
			}); err != nil {
				return err
			}
			if typ == int8Type && len(raw) > leastLayer {
				raw[0] ^= salt
			}
			return nil
		})
	})
	return model, err
}

// engine is the embedded bundle with the given number of adapters.
func (b *bench) engine(adapters int, salt byte) (*classify.Engine, signal.Mask, error) {
	kinds := signal.MaskOf(signal.Domain) | signal.MaskOf(signal.Embedding)
	s, err := b.session("base", adapters > 0, salt)
	if err != nil {
		return nil, 0, err
	}
	e, err := classify.OpenEngine(b.bundle, s)
	if err != nil {
		return nil, 0, err
	}
	for k := range signal.Kind(adapters) {
		a := b.list[int(k)%len(b.list)]
		tail, err := b.open("tail", a.File, salt)
		if err != nil {
			return nil, 0, err
		}
		if e, err = e.WithTail(fmt.Sprint("adapter", k), signal.Own+k, a, tail); err != nil {
			return nil, 0, err
		}
		kinds |= signal.MaskOf(signal.Own + k)
	}
	if adapters > 1 && b.adapter.Form != "" {
		if e, err = b.stack(e, adapters, salt); err != nil {
			return nil, 0, err
		}
	}
	return e, kinds, nil
}

// stack makes the adapters of an engine run as one graph.
func (b *bench) stack(e *classify.Engine, adapters int, salt byte) (*classify.Engine, error) {
	s, err := b.stacked(adapters, salt)
	if err != nil {
		return nil, err
	}
	var kinds []signal.Kind
	for k := range signal.Kind(adapters) {
		kinds = append(kinds, signal.Own+k)
	}
	return e.WithStack(s, kinds)
}

// stacked opens the graph of the given number of adapters.
func (b *bench) stacked(adapters int, salt byte) (*gpu.Session, error) {
	var list []*bundle.Adapter
	for k := range adapters {
		list = append(list, b.list[k%len(b.list)])
	}
	graph, err := bundle.Stack(list)
	if err != nil {
		return nil, err
	}
	return b.open("stack", graph, salt)
}

// way is a variant that reads a text.
type way struct {
	name  string
	reads []*classify.Classifier
	need  signal.Mask
}

func (w *way) read(text string) error {
	for _, c := range w.reads {
		var set signal.Set
		t := signal.Text{LastUser: text, Segments: []signal.Segment{{Role: "user", Text: text}}}
		c.Extract(context.Background(), &t, w.need, &set)
		for _, k := range w.need.Kinds() {
			if v := set.Value(k); v.State != signal.Known {
				return fmt.Errorf("%s: kind %d is unknown: %s", w.name, k, v.Reason)
			}
		}
	}
	return nil
}

func (b *bench) way(name string, copies, adapters int) (*way, error) {
	w := &way{name: name}
	for range copies {
		b.models++
		e, need, err := b.engine(adapters, b.models)
		if err != nil {
			return nil, err
		}
		o := classify.DefaultOptions()
		o.Own = make([]classify.Own, adapters)
		for k := range o.Own {
			o.Own[k].Name = fmt.Sprint("adapter", k)
		}
		c, err := classify.New([]classify.Source{{Engine: e}}, o)
		if err != nil {
			return nil, err
		}
		w.reads, w.need = append(w.reads, c), need
	}
	return w, nil
}

func (b *bench) cost(lengths string, rounds, cores int) error {
	var ways []*way
	for _, w := range []struct {
		name             string
		models, adapters int
	}{{"one pass", 1, 0}, {"and one adapter", 1, 1}, {"and three adapters", 1, added}, {"three models", added, 0}} {
		made, err := b.way(w.name, w.models, w.adapters)
		if err != nil {
			return err
		}
		ways = append(ways, made)
	}
	runtime.GC()
	fmt.Printf("%d rounds, %d run(s) at a time; ratios to one pass: processor time (wall)\n\n", rounds, cores)
	fmt.Println("| tokens | one pass, ms | and one adapter | and three adapters | three models |")
	fmt.Println("| --- | --- | --- | --- | --- |")
	for length := range strings.SplitSeq(lengths, ",") {
		tokens, err := strconv.Atoi(length)
		if err != nil {
			return fmt.Errorf("--tokens: %w", err)
		}
		if err := row(ways, tokens, rounds); err != nil {
			return err
		}
	}
	return nil
}

// row times texts of a length. Each round has a different text.
func row(ways []*way, tokens, rounds int) error {
	const warm = 10
	cpu, wall := make([][]float64, len(ways)), make([][]float64, len(ways))
	words := []string{"train", "signal", "point", "track", "station", "engine", "guard", "line"}
	for round := range rounds + warm {
		var text strings.Builder
		for k := range tokens - 2 { // a word of the vocabulary is one token
			text.WriteString(words[(round*7+k*(round%5+1))%len(words)] + " ")
		}
		for i, w := range ways {
			from, begun := lab.Spent(), time.Now()
			if err := w.read(text.String()); err != nil {
				return err
			}
			if took, used := time.Since(begun), lab.Spent()-from; round >= warm {
				cpu[i], wall[i] = append(cpu[i], used.Seconds()), append(wall[i], took.Seconds())
			}
		}
	}
	fmt.Printf("| %d | %.2f (%.2f) |", tokens, 1000*median(cpu[0]), 1000*median(wall[0]))
	for i := 1; i < len(ways); i++ {
		fmt.Printf(" %.2f (%.2f) |", median(ratios(cpu[i], cpu[0])), median(ratios(wall[i], wall[0])))
	}
	fmt.Println()
	return nil
}

func ratios(a, b []float64) []float64 {
	out := make([]float64, 0, len(a))
	for i := range a {
		if b[i] > 0 {
			out = append(out, a[i]/b[i])
		}
	}
	return out
}

func median(x []float64) float64 {
	if len(x) == 0 {
		return math.NaN()
	}
	x = slices.Sorted(slices.Values(x))
	return x[len(x)/2]
}

// textsOf returns the texts for the comparison.
func textsOf(path string) ([]string, error) {
	if path == "" {
		path = "models/testdata/parity.json"
	}
	var out []string
	err := lab.Lines(path, func(line []byte) error {
		var row struct{ Text string }
		if json.Unmarshal(bytes.Trim(bytes.TrimSpace(line), ","), &row) == nil && row.Text != "" {
			out = append(out, row.Text)
		}
		return nil
	})
	return out, err
}

// rows returns the inputs of the base for texts, each for a separate run.
func (b *bench) rows(path string) ([][]tensor.Tensor, error) {
	texts, err := textsOf(path)
	if err != nil {
		return nil, err
	}
	data, err := b.bundle.Tokenizer()
	if err != nil {
		return nil, err
	}
	tok, err := tokenize.New(data)
	if err != nil {
		return nil, err
	}
	var out [][]tensor.Tensor
	var enc tokenize.Encoding
	for _, text := range texts {
		tok.Encode(text, &enc)
		ids := tok.AppendRow(nil, enc.IDs[:min(len(enc.IDs), b.bundle.Manifest.MaxTokens-2)])
		shape := []int64{1, int64(len(ids))}
		out = append(out, []tensor.Tensor{
			{Name: "input_ids", Shape: shape, I64: ids},
			{Name: "attention_mask", Shape: shape, I64: slices.Repeat([]int64{1}, len(ids))},
		})
	}
	return out, nil
}

// compare runs base and adapter as one graph and as two, and several adapters together and
// separately.
func (b *bench) compare(fused, path string) error {
	rows, err := b.rows(path)
	if err != nil {
		return err
	}
	base, err := b.session("base", true, 0)
	if err != nil {
		return err
	}
	if fused != "" {
		if err := b.compareFused(fused, base, rows); err != nil {
			return err
		}
	}
	if b.adapter.Form == "" {
		return nil
	}
	return b.compareStack(base, rows)
}

func (b *bench) compareFused(fused string, base *gpu.Session, rows [][]tensor.Tensor) error {
	file, err := os.ReadFile(fused)
	if err != nil {
		return err
	}
	whole, err := b.rt.NewSession(context.Background(), file, gpu.SessionOptions{Name: "fused"})
	if err != nil {
		return err
	}
	tail, err := b.open("tail", b.adapter.File, 0)
	if err != nil {
		return err
	}
	worst, largest := 0.0, 0.0
	for _, in := range rows {
		want, err := whole.Run(context.Background(), in, []string{"adapter_logits"})
		if err != nil {
			return err
		}
		got, err := b.apart(base, tail, b.adapter, in)
		if err != nil {
			return err
		}
		for k, v := range want[0].F32 {
			worst = max(worst, math.Abs(float64(v-got[k])))
			largest = max(largest, math.Abs(float64(v)))
		}
	}
	fmt.Printf("base and adapter against both as one graph, %d texts: a logit differs by at most %.2g "+
		"(the largest is %.1f)\n", len(rows), worst, largest)
	return nil
}

func (b *bench) compareStack(base *gpu.Session, rows [][]tensor.Tensor) error {
	together, err := b.stacked(added, 0)
	if err != nil {
		return err
	}
	tails := make([]*gpu.Session, len(b.list))
	for k, a := range b.list {
		if tails[k], err = b.open("tail", a.File, 0); err != nil {
			return err
		}
	}
	worst := 0.0
	for _, in := range rows {
		all, err := b.apart(base, together, b.adapter, in)
		if err != nil {
			return err
		}
		widest := len(all) / added
		for k := range added {
			a := b.list[k%len(b.list)]
			alone, err := b.apart(base, tails[k%len(tails)], a, in)
			if err != nil {
				return err
			}
			for i, v := range alone {
				worst = max(worst, math.Abs(float64(v-all[k*widest+i])))
			}
		}
	}
	fmt.Printf("%d adapters as one graph against each alone, %d texts: by at most %.2g\n\n", added, len(rows), worst)
	return nil
}

// apart runs the base, and then the adapter from its taps.
func (b *bench) apart(base, tail *gpu.Session, a *bundle.Adapter, in []tensor.Tensor) ([]float32, error) {
	_, taps, err := b.bundle.Manifest.Taps(a.Base.SHA256)
	if err != nil {
		return nil, err
	}
	values := make([]string, len(a.Taps))
	for i, name := range a.Taps {
		at := slices.IndexFunc(taps, func(t bundle.Tap) bool { return t.Name == name })
		values[i] = taps[at].Value
	}
	out, err := base.Run(context.Background(), in, values)
	if err != nil {
		return nil, err
	}
	for i := range out {
		out[i].Name = a.Taps[i]
	}
	if a.Masked {
		out = append(out, in[1])
	}
	got, err := tail.Run(context.Background(), out, []string{bundle.AdapterOutput})
	if err != nil {
		return nil, err
	}
	return got[0].F32, nil
}
