package cli

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"signalbox/internal/replay"
	"signalbox/internal/report"
	"signalbox/proxy/decisionlog"
)

func (c *command) replay() *cobra.Command {
	var decisions []string
	var limit int
	var outcomes string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "replay FILE... --config NEW.yaml [--json] [--limit N]",
		Short: "Show which decisions another configuration would change",
		Long: "Evaluate the requests of a decision log (telemetry.decisions) under another configuration, using the logged\n" +
			"signals, and print what would change. Nothing is forwarded. FILE, or --decisions FILE, is the log; - reads\n" +
			"standard input. With --outcomes, replay also estimates the ratings of responses under the new configuration,\n" +
			"from ratings and the probabilities in the log.\n\n" +
			"The exit code is 0 if no decision would change, 1 if one would change or cannot be evaluated, 2 on\n" +
			"trouble.",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			decisions = append(decisions, args...)
			if len(decisions) == 0 {
				return misuse("missing decision log: signalbox replay FILE... --config NEW.yaml, or - for standard input")
			}
			for _, name := range decisions {
				if ext := filepath.Ext(name); ext == ".yaml" || ext == ".yml" {
					return misuse("%s is a configuration, not a decision log: signalbox replay LOG... --config %[1]s", name)
				}
			}
			if limit < 0 {
				return misuse("--limit %d is negative", limit)
			}
			report, err := c.runReplay(cmd, decisions, outcomes, limit)
			if err != nil {
				return misuse("replay: %v", err) // trouble has the exit code of misuse here, as with diff
			}
			p := c.printer()
			if asJSON {
				err = p.json(report)
			} else {
				p.replayed(report)
			}
			if err == nil && !report.Same() {
				err = errSilent
			}
			return err
		},
	}
	addConfigFlags(cmd)
	f := cmd.Flags()
	f.StringArrayVar(&decisions, "decisions", nil, "decision log; may be repeated")
	f.StringVar(&outcomes, "outcomes", "", "file with ratings of responses, exported from GET /-/outcomes")
	f.IntVar(&limit, "limit", 0, "read at most this many decisions; 0 reads all")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// runReplay opens the logs before the models: a name that is mistyped should not cost a model load.
func (c *command) runReplay(cmd *cobra.Command, names []string, outcomes string, limit int) (*replay.Report, error) {
	l, err := c.openLogs(names)
	if err != nil {
		return nil, fmt.Errorf("read decisions: %w", err)
	}
	defer l.close()
	ratings, err := readRatings(outcomes)
	if err != nil {
		return nil, fmt.Errorf("read outcomes: %w", err)
	}
	a, done, err := c.oneShot(cmd)
	if err != nil {
		return nil, err
	}
	defer done()
	if ratings == nil {
		return c.decideAgain(cmd.Context(), l, limit, a.Redecide)
	}
	value := new(replay.Value)
	again, err := c.decideAgain(cmd.Context(), l, limit, func(
		ctx context.Context, e *decisionlog.Entry,
	) (*decisionlog.Redecision, error) {
		now, err := a.Redecide(ctx, e)
		if score, ok := ratings.Of(e.Request.Tenant, e.ID); ok && err == nil {
			value.Take(e, now, score)
		}
		return now, err //nolint:wrapcheck // replay does
	})
	if err != nil {
		return nil, err
	}
	value.Estimate()
	again.Value = value
	return again, nil
}

func (c *command) decideAgain(ctx context.Context, l *logs, limit int, decide replay.Decide) (*replay.Report, error) {
	sources := make([]replay.Source, len(l.sources))
	for i, s := range l.sources {
		sources[i] = replay.Source(s)
	}
	if !c.Terminal {
		return replay.Run(ctx, sources, limit, decide, nil)
	}
	bar := c.bytesBar(l.size, "deciding again")
	again, err := replay.Run(ctx, sources, limit, decide, func(read int64) { _ = bar.Set64(read) })
	_ = bar.Clear()
	return again, err
}

func (p *printer) replayed(r *replay.Report) {
	p.printf("%s decisions were decided again\n\n", p.bold(report.Thousands(r.Decisions)))
	for _, row := range []struct {
		name  string
		n     int
		paint func(string) string
		note  string
	}{
		{"unchanged", r.Unchanged, p.good, ""},
		{"another route", r.Route, p.warn, ""},
		{"other parameters", r.Parameters, p.warn, list(r.Fields)},
		{"undetermined", r.Undetermined, p.bad, lacking(r.Missing)},
		{"unreadable lines", r.Unreadable, p.bad, ""},
	} {
		share := ""
		if r.Decisions > 0 && row.name != "unreadable lines" {
			share = fmt.Sprintf("%.1f %%", 100*float64(row.n)/float64(r.Decisions))
		}
		line := fmt.Sprintf("%-18s%9s%9s", row.name, report.Thousands(row.n), share)
		if row.n > 0 {
			line = row.paint(line)
		}
		p.printf("%s\n", strings.TrimRight(line, " "))
		if row.note != "" {
			p.hanging("  ", "  ", row.note, p.faint)
		}
	}
	p.value(r.Value)
	p.moves(r)
	p.examples(r)
	for i, bad := range r.Bad {
		if i == 0 {
			p.printf("\n%s\n", p.bold("unreadable lines"))
		}
		p.printf("%s\n", bad)
	}
	if more := r.Unreadable - len(r.Bad); more > 0 {
		p.printf("and %s more\n", report.Thousands(more))
	}
}

// value prints what answers would have been worth.
func (p *printer) value(v *replay.Value) {
	if v == nil {
		return
	}
	p.printf("\n%s\n", p.bold("outcomes"))
	p.printf("%s ratings count; %s have no chance in the log, %s no choice that can be told\n",
		report.Thousands(v.Rated), report.Thousands(v.Chanceless), report.Thousands(v.Undetermined))
	if v.Rated == 0 {
		return
	}
	var rows [][]string
	for _, x := range []struct {
		name string
		e    replay.Estimate
	}{
		{"as logged", v.Logged}, {"inverse propensity", v.IPS}, {"self-normalised", v.SNIPS}, {"doubly robust", v.DR},
	} {
		rows = append(rows, []string{x.name, fmt.Sprintf("%.3f", x.e.Mean), fmt.Sprintf("%.3f to %.3f", x.e.Low, x.e.High)})
	}
	p.table([]string{"mean outcome", "", "95 %"}, rows)
	p.printf("as many as %.0f ratings without weights, the greatest weight %.1f; %.1f %% go to models that had no chance\n",
		v.Counting, v.Most, 100*v.Blind)
}

func (p *printer) moves(r *replay.Report) {
	if len(r.Moves) == 0 {
		return
	}
	rows := make([][]string, 0, len(r.Moves))
	for _, m := range r.Moves {
		rows = append(rows, []string{m.From, m.To, report.Thousands(m.N)})
	}
	p.printf("\n%s\n", p.bold("routes"))
	p.table([]string{"from", "to", "requests"}, rows)
}

func (p *printer) examples(r *replay.Report) {
	if len(r.Samples) == 0 {
		return
	}
	p.printf("\n%s\n", p.bold("examples"))
	for i := range r.Samples {
		e := &r.Samples[i]
		what, model := "", ""
		if e.Model != e.Now && e.Now != "" {
			model = ", model " + cmp.Or(e.Model, "none") + " -> " + e.Now
		}
		switch e.Change {
		case replay.Route:
			what = e.From + " -> " + e.To + model
		case replay.Parameters:
			what = e.From + ": " + strings.Join(e.Fields, ", ") + model
		case replay.Undetermined:
			what = e.From + " -> " + p.bad("undetermined") + ": needs " + strings.Join(e.Missing, ", ")
		case replay.Unchanged:
		}
		p.printf("%s %s\n", cmp.Or(e.ID, "(no id)"), p.faint(e.Line))
		p.hanging("  ", "    ", what, p.plain)
	}
}

func list(cs []replay.Count) string {
	parts := make([]string, 0, len(cs))
	for _, c := range cs {
		parts = append(parts, c.Name+" "+report.Thousands(c.N))
	}
	return strings.Join(parts, ", ")
}

func lacking(cs []replay.Count) string {
	if len(cs) == 0 {
		return ""
	}
	return "needs " + list(cs)
}
