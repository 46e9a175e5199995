package main

import (
	"bytes"
	"context"
	_ "embed" // of what package main reads
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"signalbox/bench/lab"
	"signalbox/internal/eval"
)

// pair is an answer with its evidence and its known label.
type pair struct {
	Facts    facts  `json:"facts"`
	Question string `json:"question"`
	Answer   string `json:"answer"`
	Label    string `json:"label"` // supported or unsupported
	Source   string `json:"src"`
}

// facts are a text or a list of texts.
type facts []string

// UnmarshalJSON reads either form.
func (f *facts) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*f = facts{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(f)) //nolint:wrapcheck // the caller names the line
}

// judged is a pair with the product's verdict.
type judged struct {
	*pair

	verdict string
	doubt   float64 // 1 - the lowest score of a claim
}

// The labels of a pair, which are also verdicts on answers.
const (
	supported   = "supported"
	unsupported = "unsupported"
)

// tooLarge is the maximum size of facts in bytes, by the limits of the product.
const tooLarge = 64 << 10

// judgeAll checks the pairs with the product, in order.
func (b *bench) judgeAll(ctx context.Context, list []pair) ([]judged, error) {
	out := make([]judged, len(list))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range list {
		g.Go(func() error {
			got, err := b.verify(ctx, list[i].Facts, list[i].Question, list[i].Answer)
			if err != nil {
				return err
			}
			out[i] = judged{pair: &list[i], verdict: got.Verdict}
			for _, c := range got.Claims {
				out[i].doubt = max(out[i].doubt, 1-c.Score)
			}
			return nil
		})
	}
	return out, g.Wait()
}

// The first set was inspected while the rules of stream/check were developed, the second was
// written after them.
var (
	//go:embed testdata/meaning.tsv
	meanings string
	//go:embed testdata/meaning_held.tsv
	meaningsHeld string
)

// meaning checks false statements without numbers and true paraphrases of the same evidence.
func (b *bench) meaning(ctx context.Context, r *report) error {
	if err := b.meaningOf(ctx, r, "in plain words", meanings); err != nil {
		return err
	}
	return b.meaningOf(ctx, r, "in plain words, held out", meaningsHeld)
}

func (b *bench) meaningOf(ctx context.Context, r *report, name, set string) error {
	var list []pair
	for _, row := range rows(set, 4) {
		list = append(list,
			pair{Source: row[0], Facts: facts{row[1]}, Answer: row[2], Label: supported},
			pair{Source: row[0], Facts: facts{row[1]}, Answer: row[3], Label: unsupported})
	}
	all, err := b.judgeSome(ctx, list)
	if err != nil {
		return err
	}
	r.figure("falsehoods "+name+": called supported", share(all, unsupported, supported), "at most 12 %")
	r.figure("falsehoods "+name+": flagged", share(all, unsupported, unsupported), "")
	r.figure("true paraphrases, "+name+": flagged", share(all, supported, unsupported), "at most 6 %")
	r.figure("true paraphrases, "+name+": called supported", share(all, supported, supported), "")
	for _, kind := range sourcesOf(all) {
		of := of(all, kind)
		r.note("Meaning %s, %s: %s of the falsehoods called supported, %s flagged; %s of the true paraphrases flagged, %s called supported.", name, kind,
			share(of, unsupported, supported), share(of, unsupported, unsupported), share(of, supported, unsupported), share(of, supported, supported))
	}
	b.dump("meaning "+name, all)
	return nil
}

// rows returns the lines of a set with the given number of columns, without comments.
func rows(set string, columns int) (all [][]string) {
	for line := range strings.Lines(set) {
		row := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(row) == columns && !strings.HasPrefix(line, "#") {
			all = append(all, row)
		}
	}
	return all
}

// judgeSome is judgeAll, limited to the first pairs in a quick run.
func (b *bench) judgeSome(ctx context.Context, list []pair) ([]judged, error) {
	if b.seeds == quick().seeds {
		list = list[:20]
	}
	return b.judgeAll(ctx, list)
}

// share returns the share of the pairs with a label that got a verdict, with its interval.
func share(list []judged, label, verdict string) string {
	var hits []float64
	for _, p := range list {
		if p.Label == label {
			hits = append(hits, lab.One[float64](p.verdict == verdict))
		}
	}
	lo, hi := bootstrap(len(hits), func(draw []int) float64 { return 100 * mean(hits, draw) })
	return fmt.Sprintf("%.1f %% (%.1f to %.1f) of %d", 100*mean(hits, every(len(hits))), lo, hi, len(hits))
}

func sourcesOf(list []judged) []string {
	names := map[string]bool{}
	for _, p := range list {
		names[p.Source] = true
	}
	return slices.Sorted(maps.Keys(names))
}

func of(list []judged, source string) []judged {
	return slices.Collect(func(yield func(judged) bool) {
		for _, p := range list {
			if p.Source == source && !yield(p) {
				return
			}
		}
	})
}

// grounding checks every set of labelled answers in a data folder.
func (b *bench) grounding(ctx context.Context, r *report) error {
	if b.data == "" {
		r.note("Labelled answers were not measured: --data names no folder of them.")
		return nil
	}
	names, err := filepath.Glob(filepath.Join(b.data, "dev", "grounding_*.jsonl"))
	if err != nil {
		return fmt.Errorf("data: %w", err)
	}
	more, err := filepath.Glob(filepath.Join(b.data, "grounding_*", "rows.jsonl.gz"))
	if err != nil {
		return fmt.Errorf("data: %w", err)
	}
	for _, name := range append(names, more...) {
		list, err := readPairs(name)
		if err != nil {
			return err
		}
		if b.limit > 0 {
			list = list[:min(len(list), b.limit)]
		}
		set := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(name), "grounding_"), ".jsonl")
		if strings.HasSuffix(name, ".gz") {
			set = strings.TrimPrefix(filepath.Base(filepath.Dir(name)), "grounding_")
		}
		all, err := b.judgeAll(ctx, list)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		r.figure(set, scores(all), "")
		for _, source := range sourcesOf(all) {
			if s := of(all, source); len(s) < len(all) {
				r.note("%s, %s: %s", set, source, scores(s))
			}
		}
		b.dump(set, all)
	}
	return nil
}

// numbers checks sentences of texts whose numbers were changed or exchanged.
func (b *bench) numbers(ctx context.Context, r *report) error {
	if b.data == "" {
		r.note("Changed numbers were not measured: --data names no folder of texts.")
		return nil
	}
	pages, err := readPairs(filepath.Join(b.data, "dev", "grounding_wice.jsonl"))
	if err != nil {
		return err
	}
	texts := map[string][]string{}
	for _, p := range pages {
		if text := p.Facts[0]; !slices.Contains(texts["pages"], text) {
			texts["pages"] = append(texts["pages"], text)
		}
	}
	if texts["reports"], err = readTexts(filepath.Join(b.data, "real_benign", "long_prose.jsonl.gz")); err != nil {
		return err
	}
	for _, kind := range slices.Sorted(maps.Keys(texts)) {
		list := changed(texts[kind], 150)
		all, err := b.judgeAll(ctx, list)
		if err != nil {
			return err
		}
		for _, how := range sourcesOf(all) {
			r.figure(kind+": "+how+", flagged", share(of(all, how), of(all, how)[0].Label, unsupported), "")
		}
		b.dump("numbers_"+kind, all)
	}
	return nil
}

// scores returns the figures of a binary task in which unsupported is the positive class.
func scores(list []judged) string {
	figure := func(name string, of func([]judged) float64) string {
		lo, hi := bootstrap(len(list), func(draw []int) float64 {
			drawn := make([]judged, len(draw))
			for i, at := range draw {
				drawn[i] = list[at]
			}
			return of(drawn)
		})
		return fmt.Sprintf("%s %.3f (%.3f to %.3f)", name, of(list), lo, hi)
	}
	return fmt.Sprintf("%d: %s; %s; %s; flagged %.3f of false, %.3f of true; called supported %.3f of false, %.3f of true", len(list),
		figure("AUC", auc), figure("recall at 5 % false alarms", recall), figure("balanced accuracy", balanced),
		rate(list, unsupported, unsupported), rate(list, supported, unsupported), rate(list, unsupported, supported), rate(list, supported, supported))
}

// auc is the probability that a false pair has more doubt than a true one; 0.5 if one of the
// classes is empty.
func auc(list []judged) float64 {
	low, high := doubts(list)
	if len(low) == 0 || len(high) == 0 {
		return 0.5
	}
	return eval.AUC(high, low)
}

// doubts returns those of the true pairs and of the false ones.
func doubts(list []judged) (low, high []float64) {
	for _, p := range list {
		if p.Label == unsupported {
			high = append(high, p.doubt)
		} else {
			low = append(low, p.doubt)
		}
	}
	return low, high
}

// recall is the share of the false pairs with more doubt than all but 5 % of the true ones.
func recall(list []judged) float64 {
	low, high := doubts(list)
	if len(low) == 0 || len(high) == 0 {
		return 0
	}
	limit, found := quantile(low, 0.95), 0
	for _, d := range high {
		if d > limit {
			found++
		}
	}
	return float64(found) / float64(len(high))
}

// balanced is the mean of the shares of false pairs that are flagged and of true ones that are not.
func balanced(list []judged) float64 {
	return (rate(list, unsupported, unsupported) + 1 - rate(list, supported, unsupported)) / 2
}

func rate(list []judged, label, verdict string) float64 {
	n, hits := 0.0, 0.0
	for _, p := range list {
		if p.Label == label {
			n++
			hits += lab.One[float64](p.verdict == verdict)
		}
	}
	return hits / max(1, n)
}

func readPairs(name string) ([]pair, error) {
	list, err := lab.Rows[pair](name)
	return slices.DeleteFunc(list, func(p pair) bool {
		size := 0
		for _, f := range p.Facts {
			size += len(f)
		}
		return size > tooLarge
	}), err
}

func readTexts(name string) (list []string, err error) {
	rows, err := lab.Rows[struct{ Text string }](name)
	for _, row := range rows {
		list = append(list, row.Text[:min(len(row.Text), tooLarge/2)])
	}
	return list, err
}

// dump writes the results for each pair to a file in the folder --dump, for the analysis of errors.
func (b *bench) dump(name string, all []judged) {
	if b.out == "" {
		return
	}
	var w bytes.Buffer
	for _, p := range all {
		_, _ = fmt.Fprintf(&w, "%s\t%s\t%s\t%.4f\t%s\t%.300q\n", p.Source, p.Label, p.verdict, p.doubt, strings.ReplaceAll(p.Answer, "\n", " "), strings.Join(p.Facts, " | "))
	}
	if err := os.WriteFile(filepath.Join(b.out, name+".tsv"), w.Bytes(), 0o600); err != nil {
		_, _ = fmt.Fprintln(b.log, err)
	}
}
