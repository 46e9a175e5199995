package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"signalbox/internal/report"
)

// The formats of a report.
const (
	formatTable = "table"
	formatCSV   = "csv"
	formatJSON  = "json"
	formatHTML  = "html"
)

func formats() []string { return []string{formatTable, formatCSV, formatJSON, formatHTML} }

func (c *command) report() *cobra.Command {
	var since, until, format, outcomes string
	var o report.Options
	cmd := &cobra.Command{
		Use: "report FILE... [--by DIMENSION] [--since TIME] [--until TIME] [--tenant NAME] " +
			"[--format table|csv|json|html | --json]",
		Short: "Summarise the cost of requests from a decision log",
		Long: "Read decision logs (telemetry.decisions), including rotated and gzip-compressed ones, and summarise cost, routes,\n" +
			"models, results and latency. With - standard input is read. --format html writes a self-contained page to\n" +
			"standard output.\n\n" +
			"TIME is a day (2026-05-01), a time (2026-05-01T12:00:00Z), or an age (24h, 7d); a day, or a time without a zone,\n" +
			"is in UTC. Lines that cannot be read are counted and listed; the exit code is 1 if no line could be read.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return misuse("missing decision log: signalbox report FILE..., or - for standard input")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			now := time.Now()
			if o.Since, err = timeFlag("--since", since, now); err != nil {
				return err
			}
			if o.Until, err = timeFlag("--until", until, now); err != nil {
				return err
			}
			if format, err = formatFlag(cmd, format); err != nil {
				return err
			}
			if err := o.Validate(); err != nil {
				return misuse("report: %v", err)
			}
			if o.Ratings, err = readRatings(outcomes); err != nil {
				return fmt.Errorf("report: %w", err)
			}
			r, err := c.runReport(cmd.Context(), args, o)
			if err != nil {
				return fmt.Errorf("report: %w", err)
			}
			if err = c.printReport(r, format); err == nil && r.Unread() {
				err = errors.New("report: no line could be read: is it a decision log (telemetry.decisions)?")
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&since, "since", "", "start of the period, inclusive")
	f.StringVar(&until, "until", "", "end of the period, exclusive")
	f.StringVar(&o.Tenant, "tenant", "", "count only requests of this tenant")
	f.StringSliceVar(&o.By, "by", report.Dimensions(), strings.Join(report.Dimensions(), ", ")+"; comma-separated")
	f.StringVar(&outcomes, "outcomes", "", "file with ratings of responses, exported from GET /-/outcomes")
	f.IntVar(&o.Top, "top", 20, "names shown per dimension; the rest is summed up, and all days are shown")
	f.StringVar(&format, "format", formatTable, strings.Join(formats(), ", "))
	f.Bool("json", false, "print one JSON object, as --format json does")
	words := func(words []string) cobra.CompletionFunc {
		return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
	}
	for flag, of := range map[string][]string{"format": formats(), "by": report.Dimensions()} {
		if err := cmd.RegisterFlagCompletionFunc(flag, words(of)); err != nil {
			panic(err) // both flags are there
		}
	}
	return cmd
}

// formatFlag is the format that --format and --json ask for.
func formatFlag(cmd *cobra.Command, format string) (string, error) {
	asJSON, err := cmd.Flags().GetBool("json")
	switch {
	case err != nil:
		return "", fmt.Errorf("read --json: %w", err)
	case !slices.Contains(formats(), format):
		return "", misuse("--format %q is not one of %s", format, strings.Join(formats(), ", "))
	case !asJSON:
		return format, nil
	case format != formatJSON && cmd.Flags().Changed("format"):
		return "", misuse("report takes --json or --format %s, not both", format)
	}
	return formatJSON, nil
}

// timeFlag reads a time; the zero time for an empty text.
func timeFlag(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly, "2006-01-02T15:04:05", "2006-01-02T15:04"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return now.AddDate(0, 0, -int(n)), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	return time.Time{}, misuse("%s %q is not a day such as 2026-05-01, a time such as 2026-05-01T12:00:00Z, or an age such as 24h or 7d", flag, text)
}

// readRatings reads an export of outcomes; none for an empty name.
func readRatings(name string) (report.Ratings, error) {
	if name == "" {
		return nil, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the file
	}
	defer func() { _ = f.Close() }()
	r, err := report.ReadRatings(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return r, nil
}

// logs are the files of a decision log, open.
type logs struct {
	sources []report.Source
	size    int64 // of all of them in bytes; negative where that is not known
	files   []*os.File
	read    int64 // of files, in bytes
}

// openLogs opens all files; - is standard input. The caller closes them.
func (c *command) openLogs(names []string) (*logs, error) {
	l := &logs{}
	for _, name := range names {
		if name == "-" {
			l.sources, l.size = append(l.sources, report.Source{Name: name, Reader: c.In}), -1
			continue
		}
		f, err := os.Open(name)
		if err != nil {
			l.close()
			return nil, err //nolint:wrapcheck // it names the file
		}
		l.files = append(l.files, f)
		l.sources = append(l.sources, report.Source{Name: name, Reader: countedReader{f, &l.read}})
		if info, err := f.Stat(); err == nil && l.size >= 0 {
			l.size += info.Size()
		}
	}
	return l, nil
}

func (l *logs) close() {
	for _, f := range l.files {
		_ = f.Close()
	}
}

// bytesBar is a bar of bytes on a terminal.
func (c *command) bytesBar(most int64, what string) *progressbar.ProgressBar {
	return progressbar.NewOptions64(most, progressbar.OptionSetWriter(c.Err), progressbar.OptionSetDescription(what),
		progressbar.OptionShowBytes(true), progressbar.OptionSetPredictTime(true), progressbar.OptionClearOnFinish())
}

func (c *command) runReport(ctx context.Context, names []string, o report.Options) (*report.Report, error) {
	l, err := c.openLogs(names)
	if err != nil {
		return nil, err
	}
	defer l.close()
	if !c.Terminal {
		return report.Run(ctx, l.sources, o, nil)
	}
	bar := c.bytesBar(l.size, "reading")
	r, err := report.Run(ctx, l.sources, o, func() { _ = bar.Set64(l.read) })
	_ = bar.Clear()
	return r, err
}

// countedReader counts the bytes that are read.
type countedReader struct {
	io.Reader

	all *int64
}

// Read implements io.Reader.
func (r countedReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	*r.all += int64(n)
	return n, err //nolint:wrapcheck // a reader's own error
}

func (c *command) printReport(r *report.Report, format string) error {
	p := c.printer()
	switch format {
	case formatJSON:
		return p.json(r)
	case formatHTML:
		return r.WriteHTML(c.Out, c.version) //nolint:wrapcheck // it says what it was doing
	case formatCSV:
		for _, bad := range r.BadLines {
			_, _ = fmt.Fprintf(c.Err, "signalbox: %s\n", bad)
		}
		if r.Broken > 0 {
			_, _ = fmt.Fprintf(c.Err, "signalbox: lines that could not be read: %d\n", r.Broken)
		}
		return r.WriteCSV(c.Out) //nolint:wrapcheck // it says what it was doing
	}
	p.reported(r)
	return nil
}

// reported prints a report for a person.
func (p *printer) reported(r *report.Report) {
	n, g := report.Thousands[int64], &r.Total
	p.printf("%s decisions of %s", p.bold(n(r.Decisions)), count(r.Files, "file"))
	if r.Decisions > 0 {
		p.printf(", %s", report.Span(r.From, r.To))
	}
	if r.Left > 0 {
		p.printf("; %s left out", n(r.Left))
	}
	p.printf("\n\n")
	p.ends(g)
	if g.Baseline > 0 {
		p.fact("cost", report.USD(g.Cost))
		p.fact("  at the dearest", report.USD(g.Baseline))
		p.fact("  saved", fmt.Sprintf("%s, %.1f %%", report.USD(g.Saved), g.SavedShare()))
	}
	if g.Thrown.Answers > 0 {
		p.fact("  discarded", fmt.Sprintf("%s of it for %s answers, %s tokens", report.USD(g.Thrown.Cost), n(g.Thrown.Answers), n(g.Thrown.Tokens)))
	}
	if g.Mirrored.Copies > 0 {
		p.fact("  copies", fmt.Sprintf("%s, %s besides", n(g.Mirrored.Copies), report.USD(g.Mirrored.Cost)))
	}
	t := &g.Tokens
	p.fact("tokens", fmt.Sprintf("prompt %s (cached %s), completion %s (reasoning %s)", n(t.Prompt), n(t.Cached), n(t.Completion), n(t.Reasoning)))
	if g.Untold > 0 {
		p.fact("  untold", n(g.Untold)+" responses reported none and count as free")
	}
	p.fact("first token", times(&g.TTFT))
	p.fact("whole answer", times(&g.Took))
	p.fact("ended by", tallied(g.Finish))
	if v := &g.Guard; v.Supported+v.Unsupported+v.Unchecked > 0 {
		p.fact("guard", fmt.Sprintf("supported %s, unsupported %s, unchecked %s; cut %s; %s of %s claims failed",
			n(v.Supported), n(v.Unsupported), n(v.Unchecked), n(v.Cut), n(v.Failed), n(v.Claims)))
	}
	if v := &g.Rated; v.Answers > 0 {
		p.fact("rated", fmt.Sprintf("%s answers, %.3f in the mean (0 to 1)", n(v.Answers), v.Mean))
	}
	if v := &g.Conversations; v.New+v.Kept+v.Moved > 0 {
		p.fact("conversations", fmt.Sprintf("new %s, kept %s, moved %s", n(v.New), n(v.Kept), n(v.Moved)))
	}
	if x := &g.Escalations; x.Kept+x.Escalated+x.Failed+x.Late+x.Unread > 0 {
		p.fact("escalation", fmt.Sprintf("kept %s, escalated %s, failed %s, late %s, unread %s",
			n(x.Kept), n(x.Escalated), n(x.Failed), n(x.Late), n(x.Unread)))
	}
	for i := range r.By {
		p.section(&r.By[i], g.Requests)
	}
	if len(r.By) == 1 && r.By[0].By == report.ByArm && len(r.By[0].Groups) == 0 {
		p.printf("\nno request was in an arm: no route of the log tries a model out (use: {canary: ...})\n")
	}
	if g.Baseline > 0 {
		p.printf("\n")
		p.hanging("", "", r.Note+".", p.faint)
	}
	if r.Broken > 0 {
		p.printf("\n%s\n", p.bad("lines that could not be read: "+n(r.Broken)))
		for _, bad := range r.BadLines {
			p.printf("%s\n", bad)
		}
	}
}

// fact prints a value with its name; none where there is nothing to say.
func (p *printer) fact(name, text string) {
	if text != "" {
		p.hanging(fmt.Sprintf("%-*s", factWidth, name), strings.Repeat(" ", factWidth), text, p.plain)
	}
}

const factWidth = 18

// ends prints what became of requests.
func (p *printer) ends(g *report.Group) {
	p.printf("%-*s%12s\n", factWidth, "requests", report.Thousands(g.Requests))
	for _, row := range []struct {
		name  string
		n     int64
		paint func(string) string
		note  string
	}{
		{"answered", g.Answered, p.good, ""},
		{"from the cache", g.Cached, p.good, ""},
		{"fixed answers", g.Fixed, p.good, ""},
		{"blocked", g.Blocked, p.warn, ""},
		{"declined", g.Declined, p.warn, ""},
		{"client left", g.Gone, p.warn, ""},
		{"errors", g.Failed, p.bad, tallied(g.Errors)},
	} {
		if row.n == 0 {
			continue
		}
		p.printf("  %s%12s%10s\n", row.paint(fmt.Sprintf("%-*s", factWidth-2, row.name)), report.Thousands(row.n), report.Share(row.n, g.Requests))
		if row.note != "" {
			p.hanging("    ", "    ", row.note, p.faint)
		}
	}
	if g.Refused > 0 {
		p.printf("%s%12s\n", p.warn(fmt.Sprintf("%-*s", factWidth, "refused")), report.Thousands(g.Refused))
		p.hanging("    ", "    ", "by a limit, before they were decided: not in any other number", p.faint)
	}
}

func tallied(cs []report.Count) string {
	parts := make([]string, 0, len(cs))
	for _, c := range cs {
		parts = append(parts, c.Name+" "+report.Thousands(c.N))
	}
	return strings.Join(parts, ", ")
}

func times(t *report.Percentiles) string {
	if t.Count == 0 {
		return ""
	}
	ms := report.Milliseconds
	return fmt.Sprintf("p50 %s, p90 %s, p95 %s, p99 %s", ms(t.P50), ms(t.P90), ms(t.P95), ms(t.P99))
}

// section prints the requests by one dimension.
func (p *printer) section(s *report.Section, all int64) {
	rows := make([][]string, 0, len(s.Groups))
	head := []string{
		s.By, "requests", "share", "blocked", "errors", "prompt", "completion", "spent", "saved",
		"ttft p50", "took p50", "p95",
	}
	refused := slices.ContainsFunc(s.Groups, func(g report.Group) bool { return g.Refused > 0 })
	if refused {
		head = append(head, "refused")
	}
	for i := range s.Groups {
		g := &s.Groups[i]
		saved := "-"
		if g.Baseline > 0 {
			saved = fmt.Sprintf("%.1f %%", g.SavedShare())
		}
		rows = append(rows, []string{
			g.Name, report.Thousands(g.Requests), report.Share(g.Requests, all), report.Thousands(g.Blocked), report.Thousands(g.Failed),
			report.Thousands(g.Tokens.Prompt), report.Thousands(g.Tokens.Completion), report.USD(g.Cost), saved,
			report.Milliseconds(g.TTFT.P50), report.Milliseconds(g.Took.P50), report.Milliseconds(g.Took.P95),
		})
		if refused {
			rows[i] = append(rows[i], report.Thousands(g.Refused))
		}
	}
	if len(rows) == 0 {
		return
	}
	p.printf("\n%s\n", p.bold("by "+s.By))
	defer p.arms(s.Comparisons)
	p.table(head, rows)
}

// arms prints the arms of routes side by side.
func (p *printer) arms(all []report.Comparison) {
	for i := range all {
		c := &all[i]
		p.printf("\n%s\n", p.bold("route "+c.Route+": without and with the canary ("+c.Canary+" of the conversations)"))
		rows := make([][]string, 0, len(c.Shares)+len(c.Means))
		for _, row := range c.Texts() {
			rows = append(rows, row[:])
		}
		p.table([]string{"figure", "control", "canary", "difference"}, rows)
	}
	if len(all) > 0 {
		p.hanging("", "", report.ArmsNote+".", p.faint)
	}
}
