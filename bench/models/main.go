// Command models reads folders in the hub's layout with the product, and compares the results with
// those of PyTorch for the same weights.
//
//	python bench/models/build.py --out DIR --tokenizer NAME=FILE ...
//	go run ./bench/models --dir DIR/modernbert-base [--precision int8]
//	go run ./bench/models --dir DIR/modernbert-base --tokens 32768 --window 2048 [--max 0]
//
// Without --tokens it compares ids and vectors with reference.jsonl of the folder. With it, it
// reads a document with this number of tokens in windows, and reports the time and the peak memory
// of the process.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"signalbox/bench/lab"
	"signalbox/classify"
	"signalbox/classify/bundle"
	"signalbox/classify/tokenize"
	"signalbox/gpu"
	"signalbox/internal/signal"
)

func main() {
	var o options
	flag.StringVar(&o.dir, "dir", "", "folder of a model")
	flag.StringVar(&o.precision, "precision", "fp32", "fp32 or int8")
	flag.IntVar(&o.tokens, "tokens", 0, "length of a document; 0 compares with the reference")
	flag.IntVar(&o.window, "window", 0, "tokens of a row; 0: as the product has it")
	flag.IntVar(&o.most, "max", 0, "the most windows that are read; 0 for all")
	flag.IntVar(&o.threads, "threads", 2, "threads of a run")
	flag.Parse()
	lab.Main("models", func(ctx context.Context) error { return run(ctx, &o) })
}

type options struct {
	dir, precision                string
	tokens, window, most, threads int
}

func run(ctx context.Context, o *options) error {
	if o.dir == "" {
		return errors.New("--dir: a folder is required")
	}
	begun := time.Now()
	w := bundle.Window{Tokens: o.window, Max: o.most}
	prefix := ""
	if o.tokens > 0 {
		w.Long = bundle.Windows
		w.Max = max(o.most, 0)
		w.Max = cmp.Or(w.Max, 1<<20)
	} else if w.Tokens == 0 {
		w.Tokens = 1024 // the texts of the reference fit in one window
	}
	b, err := bundle.Open(os.DirFS(o.dir), bundle.OpenOptions{Task: "embedding", Window: w, Prefix: &prefix})
	if err != nil && w.Tokens == 1024 {
		w.Tokens = 0 // a model with fewer positions
		b, err = bundle.Open(os.DirFS(o.dir), bundle.OpenOptions{Task: "embedding", Window: w, Prefix: &prefix})
	}
	if err != nil {
		return err
	}
	g := gpu.DefaultOptions()
	g.EnvLibrary, g.IntraOpThreads = os.Getenv("SIGNALBOX_ONNXRUNTIME"), o.threads
	rt, err := gpu.Open(g)
	if err != nil {
		return err
	}
	defer func() { _ = rt.Close() }()
	graph, err := b.Graph(o.precision)
	if err != nil {
		return err
	}
	size := len(graph)
	s, err := rt.NewSession(ctx, graph, gpu.SessionOptions{Name: filepath.Base(o.dir), Provider: gpu.ProviderCPU})
	if err != nil {
		return err
	}
	graph = nil //nolint:ineffassign,wastedassign // the memory that is measured is without it
	e, err := classify.OpenEngine(b, s)
	if err != nil {
		return err
	}
	runtime.GC()
	fmt.Printf("%s %s: graph %d MB, open after %.0f s, %d MB in memory, at most %d MB; rows of %d tokens\n",
		filepath.Base(o.dir), o.precision, size>>20, time.Since(begun).Seconds(), memory("VmRSS"), memory("VmHWM"),
		b.Manifest.Tasks[0].Window.Tokens)
	if o.tokens > 0 {
		return document(ctx, e, o)
	}
	return compare(ctx, b, e, o.dir)
}

// memory returns a memory value of the process, in MB.
func memory(key string) int64 { return lab.Memory("self", key) >> 20 }

// document reads a text with the given number of tokens completely.
func document(ctx context.Context, e *classify.Engine, o *options) error {
	words := []string{"train", "signal", "point", "track", "station", "engine", "guard", "line", "water", "north", "paper", "light"}
	var text strings.Builder
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // reproducible, not secret
	for range o.tokens - 2 {         // all windows differ: equal rows would be computed once
		text.WriteString(words[r.IntN(len(words))] + " ")
	}
	c, err := classify.New([]classify.Source{{Engine: e}}, withoutDeadline())
	if err != nil {
		return err
	}
	begun, from := time.Now(), lab.Spent()
	var set signal.Set
	t := signal.Text{LastUser: text.String(), Segments: []signal.Segment{{Role: "user", Text: text.String()}}}
	c.Extract(ctx, &t, signal.MaskOf(signal.Embedding), &set)
	v := set.Value(signal.Embedding)
	if v.State != signal.Known {
		return fmt.Errorf("the vector is unknown (%s)", v.Reason)
	}
	fmt.Printf("%d tokens: %d of %d windows in %.1f s, %.1f s of processor time, at most %d MB\n", o.tokens, v.Read, v.Windows,
		time.Since(begun).Seconds(), (lab.Spent() - from).Seconds(), memory("VmHWM"))
	return nil
}

func withoutDeadline() classify.Options {
	o := classify.DefaultOptions()
	o.Timeout = 0
	return o
}

// compare reads the texts of the reference.
func compare(ctx context.Context, b *bundle.Bundle, e *classify.Engine, dir string) error {
	data, err := b.Tokenizer()
	if err != nil {
		return err
	}
	tok, err := tokenize.New(data)
	if err != nil {
		return err
	}
	rows, err := lab.Rows[struct {
		Text   string    `json:"text"`
		IDs    []int64   `json:"ids"`
		Vector []float32 `json:"vector"`
	}](filepath.Join(dir, "reference.jsonl"))
	if err != nil {
		return err
	}
	others, least := 0, 1.0
	for _, row := range rows {
		var enc tokenize.Encoding
		tok.Encode(row.Text, &enc)
		ids := tok.AppendRow(nil, enc.IDs)
		if extra := b.Manifest.Tasks[0].AppendID; extra != 0 {
			ids = append(ids, extra)
		}
		if !slices.Equal(ids, row.IDs) {
			others++
		}
		got, err := e.Embed(ctx, []string{row.Text})
		if err != nil {
			return err
		}
		least = min(least, cosine(got[0], row.Vector))
	}
	fmt.Printf("%d texts: ids differ in %d, least cosine to PyTorch %.6f; at most %d MB\n", len(rows), others, least, memory("VmHWM"))
	return nil
}

func cosine(a, b []float32) float64 {
	var dot, aa, bb float64
	for i := range min(len(a), len(b)) {
		dot += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	return dot / math.Sqrt(aa*bb)
}
