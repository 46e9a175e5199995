package app

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"signalbox/classify/head"
	"signalbox/classify/knn"
	"signalbox/internal/disk"
	"signalbox/internal/hub/local"
	"signalbox/internal/signal"
)

// FitOptions configure Fit.
type FitOptions struct {
	Name           string
	Positive       string  // of two labels the one to detect; empty: determined by their names
	FalsePositives float64 // share of texts without a label that may be assigned it
	Balanced       bool
	Embed          bool // use the embedding; otherwise n-grams only
	Compare        bool // with private intents
	Progress       func(done, of int)
}

// CheckName reports why the name is not valid for a classifier in a configuration or for a folder.
func (o *FitOptions) CheckName() error {
	if _, taken := signal.ParseKind(o.Name); taken {
		return fmt.Errorf("%q is a signal of its own: give the classifier another name", o.Name)
	}
	if strings.TrimSpace(o.Name) != o.Name {
		return fmt.Errorf("%q has space around it", o.Name)
	}
	_, err := local.Dir("", o.Name)
	return err
}

// Fitted is the result of Fit.
type Fitted struct {
	Info       *head.Info `json:"classifier"`
	Dropped    int        `json:"dropped"` // rows whose text another row has
	EmbedTook  float64    `json:"embed_s"`
	TrainTook  float64    `json:"train_s"`
	HeadFile   []byte     `json:"-"`
	WeightFile []byte     `json:"-"`
}

const (
	// maxFitRows limits the rows of a training, which are held in memory.
	maxFitRows = 200_000
	maxFitLine = 1 << 20
)

// RowError is a line that cannot be used for training.
type RowError struct {
	Line int
	Msg  string
}

// Error names the line.
func (e *RowError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Msg) }

// ReadRows reads one JSON object per line: {"text", "label"}, or {"text", "labels": [...]} for
// several labels or none. Other members are skipped. tags reports that some row has labels. A row
// with the same text as another one, ignoring case and spacing, is dropped if their labels are
// equal, and is an error otherwise.
func ReadRows(r io.Reader) (rows []head.Row, tags bool, dropped int, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxFitLine)
	seen := make(map[string]int)
	single := 0 // the first line with a label
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" {
			continue
		}
		row, several, err := readRow(line)
		if err != nil {
			return nil, false, 0, &RowError{n, err.Error()}
		}
		switch {
		case several && single > 0, !several && tags:
			return nil, false, 0, &RowError{n, fmt.Sprintf(
				"some lines have label and others labels, as line %d", max(single, 1))}
		case several:
			tags = true
		case single == 0:
			single = n
		}
		key := strings.ToLower(strings.Join(strings.Fields(row.Text), " "))
		if at, twice := seen[key]; twice {
			if !slices.Equal(rows[at].Labels, row.Labels) {
				return nil, false, 0, &RowError{n, fmt.Sprintf("its text has the labels %q here and "+
					"%q before", row.Labels, rows[at].Labels)}
			}
			dropped++
			continue
		}
		seen[key] = len(rows)
		if rows = append(rows, row); len(rows) > maxFitRows {
			return nil, false, 0, &RowError{n, fmt.Sprintf("more than %d rows", maxFitRows)}
		}
	}
	if err := lines.Err(); err != nil {
		return nil, false, 0, fmt.Errorf("read rows: %w", err)
	}
	return rows, tags, dropped, nil
}

func readRow(line string) (row head.Row, several bool, err error) {
	var in struct {
		Text   *string   `json:"text"`
		Label  *string   `json:"label"`
		Labels *[]string `json:"labels"`
	}
	if err := json.Unmarshal([]byte(line), &in); err != nil {
		return row, false, errors.New("expected a JSON object with text and label, or labels")
	}
	switch {
	case in.Text == nil || strings.TrimSpace(*in.Text) == "":
		return row, false, errors.New("text is missing or empty")
	case (in.Label == nil) == (in.Labels == nil):
		return row, false, errors.New("expected label, a text, or labels, a list")
	case in.Label != nil && strings.TrimSpace(*in.Label) == "":
		return row, false, errors.New("label is empty")
	}
	row.Text = *in.Text
	if in.Label != nil {
		row.Labels = []string{*in.Label}
		return row, false, nil
	}
	row.Labels = slices.Clone(*in.Labels)
	slices.Sort(row.Labels)
	row.Labels = slices.Compact(row.Labels)
	if slices.Contains(row.Labels, "") {
		return row, false, errors.New("labels has an empty one")
	}
	return row, true, nil
}

// harmlessLabels are names of labels for negative examples.
func harmlessLabels() []string {
	return []string{
		"benign", "clean", "fine", "ham", "harmless", "neither", "neutral", "no", "none", "normal",
		"not", "0", "negative", "ok", "other", "safe", "false",
	}
}

// labelsOf lists the labels in order. Of two, the one to detect comes second: the positive one,
// else the one whose name is not that of harmless texts, else the rarer one.
func labelsOf(rows []head.Row, tags bool, positive string) (labels []string, mode head.Mode, err error) { //nolint:revive // a fact about the rows
	counts := make(map[string]int)
	for i := range rows {
		for _, l := range rows[i].Labels {
			if counts[l]++; counts[l] == 1 {
				labels = append(labels, l)
			}
		}
	}
	slices.Sort(labels)
	if positive != "" && (tags || len(labels) != 2 || !slices.Contains(labels, positive)) {
		return nil, "", fmt.Errorf("%q cannot be the label that is looked for: that is one of two, "+
			"and the rows have %.300q", positive, labels)
	}
	switch {
	case tags:
		return labels, head.Tags, nil
	case len(labels) != 2:
		return labels, head.Classes, nil
	}
	isHarmless := func(l string) bool {
		l = strings.ToLower(l)
		return slices.Contains(harmlessLabels(), l) || strings.HasPrefix(l, "not_") ||
			strings.HasPrefix(l, "non_") || strings.HasPrefix(l, "not ") || strings.HasPrefix(l, "non-")
	}
	a, b := isHarmless(labels[0]), isHarmless(labels[1])
	first := counts[labels[0]] < counts[labels[1]] // if true, it is the one to detect
	if a != b {
		first = b
	}
	if positive != "" {
		first = positive == labels[0]
	}
	if first {
		labels[0], labels[1] = labels[1], labels[0]
	}
	return labels, head.Binary, nil
}

// Fit trains a classifier from rows with the embedding of the configuration.
func (a *App) Fit(ctx context.Context, rows []head.Row, tags bool, o FitOptions) (*Fitted, error) { //nolint:revive // a fact about the rows
	opts := head.DefaultOptions()
	opts.Name, opts.FalsePositives, opts.Balanced = o.Name, o.FalsePositives, o.Balanced
	opts.Workers = runtime.GOMAXPROCS(0)
	var err error
	if opts.Labels, opts.Mode, err = labelsOf(rows, tags, o.Positive); err != nil {
		return nil, err
	}
	f := &Fitted{}
	start := time.Now()
	vectors := make(map[string][]float32, len(rows))
	if o.Embed {
		if err := a.embedRows(ctx, rows, o.Progress); err != nil {
			return nil, err
		}
		opts.Embedding = a.identity.Definitions[signal.Embedding]
		for i := range rows {
			vectors[rows[i].Text] = rows[i].Vector
		}
	}
	f.EmbedTook = time.Since(start).Seconds()
	start = time.Now()
	h, trial, err := head.Train(ctx, rows, opts)
	if err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	f.TrainTook = time.Since(start).Seconds()
	if f.Info = h.Info(); o.Embed && o.Compare && !tags {
		if f.Info.Report.Compared, err = a.compare(ctx, rows, trial, vectors); err != nil {
			return nil, fmt.Errorf("compare with private intents: %w", err)
		}
	}
	f.HeadFile, f.WeightFile, err = h.Encode()
	return f, err
}

// embedAtOnce is the number of concurrent rows per core: waiting rows of similar length are
// combined into one run, which takes less time than separate runs.
const embedAtOnce = 8

// embedRows sets the vectors of rows, sorted so that those of similar length are adjacent. Rows
// that exceeded the queue or the timeouts of the configuration are retried with one row per core.
func (a *App) embedRows(ctx context.Context, rows []head.Row, progress func(done, of int)) error {
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return len(rows[a].Text) - len(rows[b].Text) })
	var done atomic.Int64
	told := func() {
		if n := done.Add(1); progress != nil {
			progress(int(n), len(rows))
		}
	}
	cores := runtime.GOMAXPROCS(0)
	late, err := a.embedEach(ctx, rows, order, min(embedAtOnce*cores, mostEmbedded), told)
	if err != nil || len(late) == 0 {
		return err
	}
	if late, err = a.embedEach(ctx, rows, late, cores, told); err == nil && len(late) > 0 {
		return fmt.Errorf("embed row %d: there was no time for it", late[0]+1)
	}
	return err
}

// mostEmbedded is the maximum number of concurrent rows on any number of cores.
const mostEmbedded = 64

// embedEach sets the vectors of the rows with the given numbers, on the given number of goroutines,
// and returns the numbers of those that failed because of the queue or a timeout.
func (a *App) embedEach(
	ctx context.Context, rows []head.Row, numbers []int, goroutines int, done func(),
) (late []int, err error) {
	work, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	var mu sync.Mutex // guards late
	for range goroutines {
		work.Go(func() error {
			for at := next.Add(1) - 1; at < int64(len(numbers)); at = next.Add(1) - 1 {
				i := numbers[at]
				switch why := a.embedRow(ctx, &rows[i]); {
				case ctx.Err() != nil:
					return ctx.Err()
				case why == signal.ReasonNone:
					done()
				case why == signal.ReasonOverload, why == signal.ReasonTimeout:
					mu.Lock()
					late = append(late, i)
					mu.Unlock()
				default:
					return fmt.Errorf("embed row %d: the embedding is unknown (%s)", i+1, why)
				}
			}
			return nil
		})
	}
	err = work.Wait()
	return late, err
}

// embedRow sets the vector of a row, or returns why there is none.
func (a *App) embedRow(ctx context.Context, row *head.Row) signal.Reason {
	v := a.Extract(ctx, row.Text, signal.MaskOf(signal.Embedding)).Value(signal.Embedding)
	if row.Vector = v.Vector; v.State == signal.NotExtracted {
		return signal.ReasonInternal
	}
	return v.Reason
}

// comparedRows limits the number of rows that private intents are tested with.
const comparedRows = 2000

// compare tests private intents, made from the rows that a head of the trial was trained on, with
// the other rows, fold by fold until enough rows were tested. It returns nil if private intents
// cannot be made from the rows: fewer than two labels have a text that is short enough.
func (a *App) compare(ctx context.Context, rows []head.Row, trial *head.Trial,
	vectors map[string][]float32,
) (*head.Comparison, error) {
	embed := a.embedder(vectors)
	var ours, theirs []bool
	for f := 0; f <= slices.Max(trial.Folds) && len(ours) < comparedRows; f++ {
		intents := intentsOf(rows, trial.Folds, f)
		if len(intents) < 2 {
			return nil, nil
		}
		x, err := knn.New(ctx, intents, knn.DefaultOptions(), embed)
		if err != nil {
			return nil, err
		}
		asked := drawn(comparedRows-len(ours), len(rows), func(i int) bool { return trial.Folds[i] == f })
		told := make([]string, len(asked))
		work, ctx := errgroup.WithContext(ctx)
		work.SetLimit(runtime.GOMAXPROCS(0))
		for at, i := range asked {
			work.Go(func() error {
				r, err := x.Lookup(rows[i].Text, rows[i].Vector)
				told[at] = r.Best
				return errors.Join(err, ctx.Err())
			})
		}
		if err := work.Wait(); err != nil {
			return nil, err
		}
		for at, i := range asked {
			ours = append(ours, trial.Told[i] == rows[i].Labels[0])
			theirs = append(theirs, told[at] == rows[i].Labels[0])
		}
	}
	return head.Compare(ours, theirs), nil
}

// embedder returns the vectors of texts, and stores those that it computes.
func (a *App) embedder(vectors map[string][]float32) knn.Embedder {
	return func(ctx context.Context, texts []string) ([][]float32, error) {
		out := make([][]float32, len(texts))
		for i, t := range texts {
			if out[i] = vectors[t]; out[i] != nil {
				continue
			}
			set := a.Extract(ctx, t, signal.MaskOf(signal.Embedding))
			v := set.Value(signal.Embedding)
			if v.State != signal.Known {
				return nil, fmt.Errorf("the embedding is unknown (%s)", v.Reason)
			}
			out[i], vectors[t] = v.Vector, v.Vector
		}
		return out, nil
	}
}

// drawn returns the numbers below of that satisfy a condition, in order; if there are more than
// most, a deterministic random sample of that size.
func drawn(most, of int, holds func(int) bool) []int {
	var out []int
	for i := range of {
		if holds(i) {
			out = append(out, i)
		}
	}
	if len(out) > most {
		random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // reproducible, not secret
		random.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
		out = out[:most]
		slices.Sort(out)
	}
	return out
}

// intentsOf makes private intents from the rows outside a fold, or from as many of them as private
// intents may have. Their thresholds are irrelevant: the nearest intent counts.
func intentsOf(rows []head.Row, folds []int, fold int) []knn.Intent {
	var out []knn.Intent
	at := make(map[string]int)
	fits := func(i int) bool { return folds[i] != fold && len(rows[i].Text) <= knn.MaxExampleBytes }
	for _, i := range drawn(knn.MaxExamples, len(rows), fits) {
		name := rows[i].Labels[0]
		if _, ok := at[name]; !ok {
			at[name] = len(out)
			out = append(out, knn.Intent{Name: name, Threshold: 0.5})
		}
		in := &out[at[name]]
		in.Examples = append(in.Examples, rows[i].Text)
	}
	return out
}

// Write writes the files of a classifier to a folder below dir, which is created if needed. The
// watched file comes last, so that it is never read with old weights.
func (f *Fitted) Write(dir string) (string, error) {
	folder, err := local.Dir(dir, f.Info.Name)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // read by the proxy's user
		return "", fmt.Errorf("make folder: %w", err)
	}
	for _, file := range []struct {
		name string
		data []byte
	}{{head.WeightsFile, f.WeightFile}, {head.InfoFile, f.HeadFile}} {
		if err := disk.Replace(filepath.Join(folder, file.name), 0o644, file.data); err != nil {
			return "", fmt.Errorf("write classifier: %w", err)
		}
	}
	return folder, nil
}
