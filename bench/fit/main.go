// Command fit measures classifiers trained by an operator on held-out texts, compared with private
// intents made of the same rows.
//
//	python bench/fit/prepare.py --banking train.jsonl.gz --harmful a.jsonl.gz b.jsonl.gz --out DIR
//	go run ./bench/fit --train DIR/banking77-10.train.jsonl --test DIR/banking77.test.jsonl [--features DIR/b10]
//	python bench/fit/reference.py DIR/b10
//
// It prints the accuracy of both, the elapsed and processor time in seconds with the number of
// cores, and which of the two the report recommends. --features writes the features of the head for
// the reference, scikit-learn's logistic regression with the same regularisation.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"signalbox/bench/lab"
	"signalbox/classify/head"
	"signalbox/classify/knn"
	"signalbox/internal/app"
	"signalbox/internal/signal"
)

func main() {
	train := flag.String("train", "", "rows to train on")
	test := flag.String("test", "", "rows held out")
	features := flag.String("features", "", "begins the names of the files with features; empty: none")
	flag.Parse()
	lab.Main("fit", func(ctx context.Context) error { return run(ctx, *train, *test, *features) })
}

func readRows(path string) ([]head.Row, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	rows, tags, _, err := app.ReadRows(f)
	if err == nil && tags {
		err = errors.New("rows have several labels")
	}
	return rows, err
}

// product is the product with its embedded model.
func product(ctx context.Context) (*app.App, error) {
	cfg, err := app.DemoConfig()
	if err != nil {
		return nil, err
	}
	o := lab.Options(io.Discard)
	o.RequireModels = true
	return app.Build(ctx, cfg, o)
}

func run(ctx context.Context, train, test, features string) error { //nolint:gocognit,funlen // steps in a row
	rows, err := readRows(train)
	if err != nil {
		return fmt.Errorf("--train: %w", err)
	}
	held, err := readRows(test)
	if err != nil {
		return fmt.Errorf("--test: %w", err)
	}
	a, err := product(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = a.Close(context.WithoutCancel(ctx)) }()
	from, begun := lab.Spent(), time.Now()
	fitted, err := a.Fit(ctx, rows, false, app.FitOptions{
		Name: "bench", FalsePositives: 0.01, Balanced: true, Embed: true,
	})
	if err != nil {
		return err
	}
	took, used := time.Since(begun), lab.Spent()-from
	h, err := head.Decode(fitted.HeadFile, fitted.WeightFile)
	if err != nil {
		return err
	}
	index, err := intents(ctx, a, rows)
	if err != nil {
		return err
	}
	var ours, theirs, flagged, found int
	harmless, harmful := 0, 0
	var pairs [2][]bool
	for i := range held {
		r := &held[i]
		if r.Vector, err = embed(ctx, a, r.Text); err != nil {
			return err
		}
		said, err := h.Predict(r.Text, r.Vector)
		if err != nil {
			return err
		}
		near, err := index.Lookup(r.Text, r.Vector)
		if err != nil {
			return err
		}
		label := said.Label
		if in := h.Info(); in.Mode == head.Binary { // this accuracy is that at one half, not at the threshold
			if label = in.Labels[0]; said.Probs[1] >= 0.5 {
				label = in.Labels[1]
			}
			yes, over := r.Labels[0] == in.Labels[1], said.Label == in.Labels[1]
			switch {
			case yes:
				harmful++
				found += lab.One[int](over)
			default:
				harmless++
				flagged += lab.One[int](over)
			}
		}
		ours, theirs = ours+lab.One[int](label == r.Labels[0]), theirs+lab.One[int](near.Best == r.Labels[0])
		pairs[0], pairs[1] = append(pairs[0], label == r.Labels[0]), append(pairs[1], near.Best == r.Labels[0])
	}
	out := map[string]any{
		"train": train, "rows": len(rows), "held_out": len(held), "labels": len(h.Info().Labels),
		"fit": share(ours, len(held)), "intents": share(theirs, len(held)),
		"better": head.Compare(pairs[0], pairs[1]).Better, "strength": fitted.Info.Report.Strength,
		"cross_validated": fitted.Info.Report.Accuracy, "ece": fitted.Info.Report.ECE,
		"cores": runtime.GOMAXPROCS(0), "wall_s": took.Seconds(), "processor_s": used.Seconds(),
		"embed_s": fitted.EmbedTook, "train_s": fitted.TrainTook,
	}
	if harmful > 0 {
		out["flagged"], out["found"] = share(flagged, harmless), share(found, harmful)
	}
	b, err := json.MarshalIndent(out, "", " ")
	if err != nil {
		return err
	}
	fmt.Println(string(b))
	if features == "" {
		return nil
	}
	for name, list := range map[string][]head.Row{"train": rows, "test": held} {
		if err := writeFeatures(features+"."+name+".jsonl", h, list, fitted.Info.Report.Strength); err != nil {
			return err
		}
	}
	return nil
}

func share(n, of int) float64 { return float64(n) / float64(max(1, of)) }

func embed(ctx context.Context, a *app.App, text string) ([]float32, error) {
	set := a.Extract(ctx, text, signal.MaskOf(signal.Embedding))
	v := set.Value(signal.Embedding)
	if v.State != signal.Known {
		return nil, fmt.Errorf("the embedding is unknown (%s)", v.Reason)
	}
	return v.Vector, nil
}

// intents creates private intents from the rows.
func intents(ctx context.Context, a *app.App, rows []head.Row) (*knn.Index, error) {
	var list []knn.Intent
	at, vectors := map[string]int{}, map[string][]float32{}
	for i := range rows {
		r := &rows[i]
		if len(r.Text) > knn.MaxExampleBytes {
			continue
		}
		name := r.Labels[0]
		if _, ok := at[name]; !ok {
			at[name] = len(list)
			list = append(list, knn.Intent{Name: name, Threshold: 0.5})
		}
		list[at[name]].Examples = append(list[at[name]].Examples, r.Text)
		vectors[r.Text] = r.Vector
	}
	return knn.New(ctx, list, knn.DefaultOptions(), func(ctx context.Context, texts []string) ([][]float32, error) {
		out := make([][]float32, len(texts))
		for i, t := range texts {
			if out[i] = vectors[t]; out[i] != nil {
				continue
			}
			var err error
			if out[i], err = embed(ctx, a, t); err != nil {
				return nil, err
			}
		}
		return out, nil
	})
}

// writeFeatures writes a line per row: its label, and the non-zero features.
func writeFeatures(path string, h *head.Head, rows []head.Row, strength float64) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	e := json.NewEncoder(f)
	if err := e.Encode(map[string]any{"strength": strength, "width": h.Info().Dims + h.Info().Grams}); err != nil {
		return err
	}
	for i := range rows {
		at, values := h.Features(rows[i].Text, rows[i].Vector)
		if err := e.Encode(map[string]any{"label": rows[i].Labels[0], "at": at, "values": values}); err != nil {
			return err
		}
	}
	return nil
}
