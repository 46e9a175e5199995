// Command features prints what the guard sees in the claims of labelled answers, so that a fusion
// is fitted on exactly what the product computes.
//
// It reads rows in the format of the grounding task from standard input, one JSON object a line:
// "facts", a text or a list of texts, each a source of its own; "question"; "answer"; "label". The
// answer is split into claims like one on its way through the proxy. Standard output gets a line
// {"features": [names]} and then a line a claim: the number of its row from 0, its number within
// the row, the row's label, the features in the order of the names, and the verdict, score and
// stage of the checker. Code has no line, and headings, questions and talk have one only in a row
// that states nothing else. The grounding score of a row is 1 minus the least support of its
// claims.
//
// With --bundle the task nli of that bundle reads the claims first, in the same batches and windows
// as in the product; without it the features of the judge are 0.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"sync"

	"signalbox/stream/check"
	"signalbox/stream/evidence"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2) //nolint:forbidigo // a main
	case err != nil:
		_, _ = fmt.Fprintf(os.Stderr, "features: %v\n", err)
		os.Exit(1) //nolint:forbidigo // a main
	}
}

func run(ctx context.Context, args []string, in io.Reader, out, problems io.Writer) (err error) {
	set := flag.NewFlagSet("features", flag.ContinueOnError)
	set.SetOutput(problems)
	dir := set.String("bundle", "", "`folder` of a model bundle with a task nli; empty: numbers and words only")
	library := set.String("library", "", "`path` of ONNX Runtime's shared library; empty: looked for")
	fusion := set.String("fusion", "", "`file` of a fusion whose verdicts are printed; empty: thresholds on the judge alone")
	premises := set.Int("premises", 2, "premises of a claim that the judge reads")
	workers := set.Int("workers", runtime.GOMAXPROCS(0), "rows read at once")
	if err := set.Parse(args); err != nil {
		return fmt.Errorf("command line: %w", err)
	}
	o := check.Options{Premises: *premises}
	if *fusion != "" {
		if o.Fusion, err = readFusion(*fusion); err != nil {
			return err
		}
	}
	if *dir != "" {
		j, err := openJudge(ctx, *dir, *library)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, j.close()) }()
		o.Judge, o.English = j, j.english
	}
	checker, err := check.New(o)
	if err != nil {
		return fmt.Errorf("checker: %w", err)
	}
	return printAll(ctx, checker, in, out, max(1, *workers))
}

func readFusion(name string) (*check.Fusion, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("fusion: %w", err)
	}
	defer func() { _ = f.Close() }()
	fusion, err := check.ReadFusion(f)
	if err != nil {
		return nil, fmt.Errorf("fusion %s: %w", name, err)
	}
	return fusion, nil
}

// row is one line of the input.
type row struct {
	Facts    texts  `json:"facts"`
	Question string `json:"question"`
	Answer   string `json:"answer"`
	Label    string `json:"label"`
}

// texts is a text or a list of texts.
type texts []string

// UnmarshalJSON reads either.
func (t *texts) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*t = texts{one}
		return nil
	}
	var list []string
	if err := json.Unmarshal(b, &list); err != nil {
		return fmt.Errorf("facts: neither a text nor a list of texts: %w", err)
	}
	*t = list
	return nil
}

// line is one claim of the output.
type line struct {
	Row      int       `json:"row"`
	Claim    int       `json:"claim"`
	Label    string    `json:"label,omitempty"`
	Text     string    `json:"text"`
	Features []float64 `json:"features"`
	Verdict  string    `json:"verdict"`
	Score    float64   `json:"score"`
	By       string    `json:"by"`
	Reason   string    `json:"reason,omitempty"`
}

// maxRow bounds a line of the input.
const maxRow = 16 << 20

// printAll examines the rows, some at once, and prints them in their order.
func printAll(ctx context.Context, checker *check.Checker, in io.Reader, out io.Writer, workers int) error {
	w := bufio.NewWriter(out)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(map[string][]string{"features": check.FeatureNames()}); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	scan := bufio.NewScanner(in)
	scan.Buffer(nil, maxRow)
	for first := 0; ; {
		var rows []row
		for len(rows) < workers && scan.Scan() {
			var r row
			if err := json.Unmarshal(scan.Bytes(), &r); err != nil {
				return fmt.Errorf("row %d: %w", first+len(rows), err)
			}
			rows = append(rows, r)
		}
		if len(rows) == 0 {
			break
		}
		lines, err := examineAll(ctx, checker, rows, first)
		if err != nil {
			return err
		}
		for _, l := range lines {
			if err := enc.Encode(l); err != nil {
				return fmt.Errorf("write: %w", err)
			}
		}
		first += len(rows)
	}
	if err := scan.Err(); err != nil {
		return fmt.Errorf("read: %w", err)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// examineAll examines rows side by side; the first of them has number first.
func examineAll(ctx context.Context, checker *check.Checker, rows []row, first int) ([]line, error) {
	parts, errs := make([][]line, len(rows)), make([]error, len(rows))
	var wg sync.WaitGroup
	for i := range rows {
		wg.Go(func() {
			if parts[i], errs[i] = examine(ctx, checker, &rows[i], first+i); errs[i] != nil {
				errs[i] = fmt.Errorf("row %d: %w", first+i, errs[i])
			}
		})
	}
	wg.Wait()
	var lines []line
	for i := range parts {
		lines = append(lines, parts[i]...)
	}
	return lines, errors.Join(errs...)
}

func examine(ctx context.Context, checker *check.Checker, r *row, number int) ([]line, error) {
	sources := make([]evidence.Source, len(r.Facts))
	for i, text := range r.Facts {
		sources[i] = evidence.Source{Text: text, Fact: true}
	}
	e, err := evidence.New(ctx, sources, evidence.Options{MaxFacts: len(sources), MaxBytes: maxRow})
	if err != nil {
		return nil, fmt.Errorf("facts: %w", err)
	}
	list, err := checker.Examine(ctx, e, r.Question, r.Answer)
	if err != nil {
		return nil, fmt.Errorf("answer: %w", err)
	}
	lines := make([]line, len(list))
	for i, c := range list {
		lines[i] = line{
			Row: number, Claim: i, Label: r.Label, Text: c.Text, Features: c.Features,
			Verdict: c.Result.Verdict.String(), Score: c.Result.Score, By: c.Result.By.String(), Reason: c.Result.Reason,
		}
	}
	return lines, nil
}
