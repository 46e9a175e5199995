package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sort"
	"strings"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"signalbox/internal/app"
	"signalbox/internal/eval"
	"signalbox/internal/telemetry"
)

func (c *command) eval() *cobra.Command {
	var task, data string
	var limit int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "eval (--config FILE | --demo) --task TASK (FILE.jsonl | -)",
		Short: "Score the classifiers on labelled data",
		Long: "Run labelled data through the classifiers and print accuracy, precision, recall and F1 per class, the\n" +
			"confusion matrix and latency. Each line is a JSON object with text and label, or text and entities for pii.\n" +
			"jailbreak (labels benign, jailbreak) reads each text as a message of a user, injection (labels benign,\n" +
			"injection) as the content of a tool result, a document or a quotation. With - the data is read from\n" +
			"standard input; --data FILE is the same as FILE.",
		Args: oneData(&data),
		RunE: func(cmd *cobra.Command, args []string) error {
			t := eval.Task(task)
			if !slices.Contains(eval.Tasks(), t) {
				return misuse("--task %q is not one of %s", task, taskNames())
			}
			if limit < 0 {
				return misuse("--limit %d is negative", limit)
			}
			data = strings.Join(append(args, data), "") // one of them is empty
			f, err := c.openData(data)
			if err != nil {
				return err
			}
			defer func() { _ = f.Close() }()
			a, done, err := c.oneShot(cmd)
			if err != nil {
				return err
			}
			defer done()
			e, err := a.Evaluator(t)
			if err != nil {
				return err
			}
			examples, err := eval.Read(f, t, e.Labels, limit)
			if err != nil {
				return fmt.Errorf("%s: %w", data, err)
			}
			report, err := eval.Run(cmd.Context(), t, examples, e.Threshold, e.Types, e.Classify, c.progress(len(examples)))
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
	f.StringVar(&task, "task", "", "task that the labels belong to: "+taskNames())
	f.StringVar(&data, "data", "", "the same as FILE: one JSON object per line, - for standard input")
	f.IntVar(&limit, "limit", 0, "read at most this many examples; 0 reads all")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// oneData wants one file of data, as the argument or as what data holds, of the flag --data.
func oneData(data *string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) > 1:
			return misuse("%s takes one file of data, found %q besides %q", cmd.Name(), args[1], args[0])
		case len(args) == 1 && *data != "":
			return misuse("the data file is given twice, with --data and as %q", args[0])
		case len(args) == 0 && *data == "":
			return misuse("missing file of labelled data: signalbox %s ... FILE.jsonl, or - for standard input", cmd.Name())
		}
		return nil
	}
}

// openData opens a file of data, or for - what standard input brings.
func (c *command) openData(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(c.In), nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read data: %w", err)
	}
	return f, nil
}

// taskNames lists the tasks for people.
func taskNames() string {
	var names []string
	for _, t := range eval.Tasks() {
		names = append(names, string(t))
	}
	return strings.Join(names, ", ")
}

// addConfigFlags adds the flags of commands that run once over a configuration.
func addConfigFlags(cmd *cobra.Command) {
	cmd.Flags().String("config", "", "configuration file")
	cmd.Flags().Bool("demo", false, "use the built-in demo configuration")
	addAllowUnset(cmd)
}

// oneShot builds the product without listeners. done releases it.
func (c *command) oneShot(cmd *cobra.Command) (*app.App, func(), error) {
	cfg, settings, err := c.loadOrDemo(cmd)
	if err != nil {
		return nil, nil, err
	}
	cfg.Telemetry.Log, cfg.Telemetry.Decisions = "error", telemetry.DecisionOptions{} // what is run once is nobody's decision
	a, err := app.Build(cmd.Context(), cfg, app.Options{
		Version: c.version, Settings: settings, Log: c.Err, Env: c.Env, Once: true,
	})
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
	p.printf("%s  n %d   unknown %d", p.bold(string(r.Task)), r.N, r.Unknown)
	if r.Accuracy != nil {
		p.printf("   accuracy %.4f   macro F1 %.4f", *r.Accuracy, *r.MacroF1)
	}
	p.printf("\n")
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
	if r.Exact != nil {
		p.entities(r)
		return
	}
	labels := slices.Sorted(maps.Keys(r.PerClass))
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

// entities prints what was found of personal data, type by type.
func (p *printer) entities(r *eval.Report) {
	p.printf("exact    micro F1 %.4f   macro F1 %.4f\n", r.Exact.MicroF1, r.Exact.MacroF1)
	p.printf("overlap  micro F1 %.4f   macro F1 %.4f\n\n", r.Overlap.MicroF1, r.Overlap.MacroF1)
	rows := make([][]string, 0, len(r.Overlap.PerClass))
	for _, l := range slices.Sorted(maps.Keys(r.Overlap.PerClass)) {
		o, x := r.Overlap.PerClass[l], r.Exact.PerClass[l]
		rows = append(rows, []string{
			l, fmt.Sprintf("%.3f", o.Precision), fmt.Sprintf("%.3f", o.Recall), fmt.Sprintf("%.3f", o.F1), fmt.Sprintf("%.3f", x.F1), fmt.Sprint(o.Support),
		})
	}
	p.table([]string{"type", "precision", "recall", "F1", "exact F1", "n"}, rows)
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
