package cli

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sort"
	"strings"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"signalbox/internal/app"
	"signalbox/internal/eval"
)

func (c *command) eval() *cobra.Command {
	var task, data string
	var limit int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "eval (--config FILE | --demo) --task TASK --data FILE.jsonl",
		Short: "Score the classifiers on labelled data",
		Long: "Run labelled data, one JSON object a line with text and label, through the real classifiers and print\n" +
			"accuracy, per-class precision, recall and F1, confusion and latency.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t := eval.Task(task)
			if !slices.Contains(eval.Tasks(), t) {
				return misuse("--task %q is not one of domain, jailbreak, route", task)
			}
			if limit < 0 {
				return misuse("--limit %d is negative", limit)
			}
			f, err := os.Open(data)
			if err != nil {
				return fmt.Errorf("read data: %w", err)
			}
			defer func() { _ = f.Close() }()
			examples, err := eval.Read(f, limit)
			if err != nil {
				return fmt.Errorf("%s: %w", data, err)
			}
			a, done, err := c.oneShot(cmd)
			if err != nil {
				return err
			}
			defer done()
			classify, threshold, err := a.Evaluator(t)
			if err != nil {
				return err
			}
			report, err := eval.Run(cmd.Context(), t, examples, threshold, classify, c.progress(len(examples)))
			if err != nil {
				return fmt.Errorf("eval: %w", err)
			}
			p := c.printer()
			if asJSON {
				return p.json(report)
			}
			p.report(report)
			return nil
		},
	}
	addConfigFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&task, "task", "", "what the labels mean: domain, jailbreak or route")
	f.StringVar(&data, "data", "", "file with one JSON object a line")
	f.IntVar(&limit, "limit", 0, "read at most this many examples; 0 reads all")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// addConfigFlags adds the flags of commands that run once over a configuration.
func addConfigFlags(cmd *cobra.Command) {
	cmd.Flags().String("config", "", "configuration file")
	cmd.Flags().Bool("demo", false, "use the built-in demo configuration")
}

// oneShot builds the product without listeners. done releases it.
func (c *command) oneShot(cmd *cobra.Command) (*app.App, func(), error) {
	cfg, settings, err := c.loadOrDemo(cmd)
	if err != nil {
		return nil, nil, err
	}
	cfg.Telemetry.Log = "error"
	a, err := app.Build(cmd.Context(), cfg, app.Options{Version: c.version, Settings: settings, Log: c.Err, Env: c.Env})
	if err != nil {
		return nil, nil, err
	}
	if why := a.Degraded(); why != nil {
		_, _ = fmt.Fprintf(c.Err, "signalbox: no neural signals: %v\n", why)
	}
	return a, func() { _ = a.Close(context.WithoutCancel(cmd.Context())) }, nil
}

// progress draws a bar on a terminal and nothing in a pipe.
func (c *command) progress(n int) func(int) {
	if !c.Terminal {
		return nil
	}
	bar := progressbar.NewOptions(n, progressbar.OptionSetWriter(c.Err), progressbar.OptionSetDescription("classifying"),
		progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(true), progressbar.OptionClearOnFinish())
	return func(done int) { _ = bar.Set(done) }
}

func (p *printer) report(r *eval.Report) {
	p.printf("%s  n %d   accuracy %.4f   macro F1 %.4f   unknown %d\n", p.bold(string(r.Task)), r.N, r.Accuracy, r.MacroF1, r.Unknown)
	if r.AUC != nil {
		p.printf("AUC %.4f", *r.AUC)
	}
	if r.Threshold != nil {
		p.printf("   at threshold %.3f: recall %.4f, false positives %.4f", *r.Threshold, *r.RecallAtThreshold, *r.FPRAtThreshold)
	}
	if r.AUC != nil || r.Threshold != nil {
		p.printf("\n")
	}
	if r.ECE != nil {
		p.printf("calibration error %.4f   coverage at 90%% accuracy %.4f\n", *r.ECE, *r.CoverageAt90)
	}
	p.printf("latency ms   p50 %.2f   p90 %.2f   p99 %.2f\n\n", r.LatencyMS.P50, r.LatencyMS.P90, r.LatencyMS.P99)
	labels := make([]string, 0, len(r.PerClass))
	for l := range r.PerClass {
		labels = append(labels, l)
	}
	sort.Strings(labels)
	rows := make([][]string, 0, len(labels))
	for _, l := range labels {
		k := r.PerClass[l]
		rows = append(rows, []string{
			l, fmt.Sprintf("%.3f", k.Precision), fmt.Sprintf("%.3f", k.Recall), fmt.Sprintf("%.3f", k.F1),
			fmt.Sprint(k.Support), confused(r.Confusion[l], l),
		})
	}
	p.table([]string{"label", "precision", "recall", "F1", "n", "taken for"}, rows)
}

// confused lists the three labels that a class is most often taken for.
func confused(row map[string]int, label string) string {
	type miss struct {
		label string
		n     int
	}
	var misses []miss
	for l, n := range row {
		if l != label {
			misses = append(misses, miss{l, n})
		}
	}
	sort.Slice(misses, func(i, j int) bool {
		return misses[i].n > misses[j].n || misses[i].n == misses[j].n && misses[i].label < misses[j].label
	})
	var parts []string
	for _, m := range misses[:min(3, len(misses))] {
		parts = append(parts, fmt.Sprintf("%s %d", m.label, m.n))
	}
	return strings.Join(parts, ", ")
}
