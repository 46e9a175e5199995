package cli

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"signalbox/classify/head"
	"signalbox/internal/app"
	"signalbox/internal/config"
	"signalbox/internal/telemetry"
)

// fitFlags are those of fit.
type fitFlags struct {
	data, out, weights string
	bare, asJSON       bool
	o                  app.FitOptions
}

func (c *command) fit() *cobra.Command {
	f := fitFlags{o: app.FitOptions{Compare: true}}
	cmd := &cobra.Command{
		Use:   "fit --name NAME (ROWS.jsonl | -) [--out DIR] [--config FILE]",
		Short: "Train a custom classifier on labelled texts",
		Long: "Train a classifier on labelled texts, one JSON object per line: {\"text\", \"label\"} if labels exclude each\n" +
			"other, {\"text\", \"labels\": [...]} if a text can have several or none. Its features are the embedding that\n" +
			"the proxy computes anyway, and n-grams. The reported figures are from held-out texts. The classifier is\n" +
			"written to DIR/NAME; a running proxy that lists it under classify.classifiers loads it.\n" +
			"With - the texts are read from standard input; --data FILE is the same as FILE.",
		Args: oneData(&f.data),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.data = strings.Join(append(args, f.data), "") // one of them is empty
			return c.runFit(cmd, &f)
		},
	}
	addAllowUnset(cmd)
	cmd.Flags().String("config", "", "configuration file that selects the embedding model (default: the embedded model)")
	cmd.Flags().StringVar(&f.o.Name, "name", "", "name of the classifier in rules, and of its folder")
	cmd.Flags().StringVar(&f.data, "data", "", "the same as ROWS: one JSON object per line, - for standard input")
	cmd.Flags().StringVar(&f.out, "out", "", "folder to write to (default: classify.models_dir)")
	cmd.Flags().StringVar(&f.o.Positive, "positive", "", "which of two labels is the positive one (default: derived from their names)")
	cmd.Flags().Float64Var(&f.o.FalsePositives, "fpr", 0.01, "accepted false positive rate")
	cmd.Flags().StringVar(&f.weights, "class-weights", "balanced", "balanced: rare labels weigh as much as frequent ones; or none")
	cmd.Flags().BoolVar(&f.bare, "ngrams-only", false, "use n-grams only, for texts that the embedding does not represent well")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print one JSON object")
	return cmd
}

func (c *command) runFit(cmd *cobra.Command, f *fitFlags) error {
	switch {
	case f.o.Name == "":
		return misuse("--name NAME is required: the name of the classifier in rules, and of its folder")
	case f.weights != "balanced" && f.weights != "none":
		return misuse("--class-weights %q is not one of balanced, none", f.weights)
	case !(f.o.FalsePositives > 0 && f.o.FalsePositives < 1):
		return misuse("--fpr %v is not above 0 and below 1", f.o.FalsePositives)
	}
	if err := f.o.CheckName(); err != nil {
		return misuse("--name: %v", err)
	}
	f.o.Balanced, f.o.Embed = f.weights == "balanced", !f.bare
	file, err := c.openData(f.data)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	rows, tags, dropped, err := app.ReadRows(file)
	if err != nil {
		return fmt.Errorf("%s: %w", f.data, err)
	}
	a, dir, err := c.fitter(cmd)
	if err != nil {
		return err
	}
	defer func() { _ = a.Close(context.WithoutCancel(cmd.Context())) }()
	if f.out == "" {
		f.out = dir
	}
	if bar := c.progress(len(rows)); bar != nil {
		f.o.Progress = func(done, _ int) { bar(done) }
	}
	fitted, err := a.Fit(cmd.Context(), rows, tags, f.o)
	if err != nil {
		return fmt.Errorf("fit: %w", err)
	}
	fitted.Dropped = dropped
	folder, err := fitted.Write(f.out)
	if err != nil {
		return err
	}
	p := c.printer()
	if f.asJSON {
		return p.json(fitted)
	}
	p.fitted(fitted, folder)
	return nil
}

// fitter builds what gives the embedding of a configuration, and names the folder of its models.
// The classifiers that the configuration names need not be there yet.
func (c *command) fitter(cmd *cobra.Command) (*app.App, string, error) {
	settings, err := config.ReadSettings(cmd.Flags())
	if err != nil {
		return nil, "", err
	}
	var cfg *config.Config
	if settings.File == "" {
		cfg, err = app.DemoConfig()
	} else {
		cfg, _, err = c.readWith(cmd, settings.File, app.CatalogUntrained)
	}
	if err != nil {
		return nil, "", err
	}
	cfg.Classify.Classifiers = nil
	cfg.Telemetry.Log, cfg.Telemetry.Decisions = "error", telemetry.DecisionOptions{}
	a, err := app.Build(cmd.Context(), cfg, app.Options{
		Version: c.version, Settings: settings, Log: c.Err, Env: c.Env, Once: true,
	})
	return a, cfg.Classify.ModelsDir, err
}

// mostLabels is how many labels the report lists: those that are told worst.
const mostLabels = 20

func (p *printer) fitted(f *app.Fitted, folder string) {
	in, r := f.Info, f.Info.Report
	p.printf("%s  %s   rows %d", p.bold(in.Name), in.Mode, r.Rows)
	if f.Dropped > 0 {
		p.printf(" (%d twice, left out)", f.Dropped)
	}
	p.printf("   labels %d   n-grams %d\n", len(in.Labels), in.Grams)
	p.printf("embedding %.1f s, training %.1f s; strength %g, %d-fold cross-validation:\n",
		f.EmbedTook, f.TrainTook, r.Strength, r.Folds)
	p.printf("accuracy %.4f   macro F1 %.4f   calibration error %.4f", r.Accuracy, r.MacroF1, r.ECE)
	if r.AUC > 0 {
		p.printf("   AUC %.4f", r.AUC)
	}
	p.printf("\n\n")
	labels := slices.Clone(r.Labels)
	slices.SortStableFunc(labels, func(a, b head.LabelReport) int {
		return int(1e6 * (a.F1 - b.F1))
	})
	rows := make([][]string, 0, len(labels))
	for _, l := range labels[:min(len(labels), mostLabels)] {
		threshold, wrong := "", ""
		if l.Threshold > 0 {
			threshold = fmt.Sprintf("%.3f", l.Threshold)
			wrong = fmt.Sprintf("%.4f (up to %.4f)", l.FalsePositives, l.FalsePositivesMost)
		}
		rows = append(rows, []string{
			l.Label, fmt.Sprintf("%.3f", l.Precision), fmt.Sprintf("%.3f", l.Recall),
			fmt.Sprintf("%.3f", l.F1), fmt.Sprint(l.Rows), threshold, wrong,
		})
	}
	p.table([]string{"label", "precision", "recall", "F1", "n", "threshold", "false positives"}, rows)
	if hidden := len(labels) - len(rows); hidden > 0 {
		p.printf("and %d labels that are told better\n", hidden)
	}
	p.fewTexts(r)
	p.advice(r)
	p.printf("\nwritten to %s\n", folder)
}

// fewTexts says where there are too few texts to set a threshold for the share that was asked for.
func (p *printer) fewTexts(r *head.Report) {
	for _, l := range r.Labels {
		if most := l.FalsePositivesMost; r.FalsePositives > 0 && most > 2*r.FalsePositives {
			p.printf("\n%d texts without %q are few to set its threshold by: up to %.0f %% of such texts may be "+
				"flagged (95 %% sure), where %g %% were asked for; at least %.0f are needed\n",
				r.Rows-l.Rows, l.Label, 100*most, 100*r.FalsePositives, math.Ceil(3/r.FalsePositives))
			return
		}
	}
}

// advice says which of a head and private intents to use.
func (p *printer) advice(r *head.Report) {
	x := r.Compared
	if x == nil {
		return
	}
	p.printf("\naccuracy on %d texts that neither saw: this classifier %.4f, private intents of the same "+
		"texts %.4f\n", x.Rows, x.Head, x.Intents)
	switch x.Better {
	case "head":
		p.printf("use this classifier\n")
	case "intents":
		p.printf("use private intents (signals.intents) until there are more texts\n")
	default:
		p.printf("the difference is within chance: private intents take new examples without training, " +
			"this classifier gives probabilities\n")
	}
}
