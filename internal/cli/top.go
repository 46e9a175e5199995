package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"golang.org/x/term"

	"signalbox/internal/console"
	"signalbox/proxy/recent"
)

func (c *command) top() *cobra.Command {
	var at string
	var once bool
	cmd := &cobra.Command{
		Use:   "top [--admin URL]",
		Short: "Show the decisions and the load of a running proxy",
		Long: "Show the decisions of a running proxy and the load of its endpoints, as its console does. On a\n" +
			"terminal the screen is refreshed every second until Ctrl-C; in a pipe every decision is a line.\n" +
			"Set SIGNALBOX_ADMIN_TOKEN if the proxy has server.admin_token.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t := &top{command: c, p: c.printer(), at: strings.TrimSuffix(at, "/") + "/console/api/"}
			switch {
			case !strings.HasPrefix(at, "http://") && !strings.HasPrefix(at, "https://"):
				return misuse("--admin takes a URL such as http://127.0.0.1:9090, found %q", at)
			case once:
				return t.once(cmd.Context())
			case c.Terminal:
				return t.screen(cmd.Context())
			}
			return t.follow(cmd.Context(), func(l *console.Line) { t.print(l.Decisions) })
		},
	}
	cmd.Flags().StringVar(&at, "admin", "http://127.0.0.1:9090", "address of the admin listener")
	cmd.Flags().BoolVar(&once, "once", false, "print the endpoints and the last decisions once, and exit")
	return cmd
}

// top reads the console of a running proxy.
type top struct {
	*command

	p  *printer
	at string

	last    []*recent.Seen // the newest last; of the goroutine that draws
	skipped uint64
	before  *console.Overview
}

// topDecisions is how many decisions are kept to be drawn.
const topDecisions = 200

func (t *top) state(ctx context.Context) (*console.Overview, error) {
	s := new(console.Overview)
	return s, t.askAdmin(ctx, http.MethodGet, t.at+"overview", nil, s)
}

// follow reads the stream of decisions until ctx ends, which is no error, or the proxy does.
func (t *top) follow(ctx context.Context, each func(*console.Line)) error {
	res, err := t.openAdmin(ctx, http.MethodGet, t.at+"live", nil)
	if err != nil {
		return ended(ctx, err)
	}
	defer func() { _ = res.Body.Close() }()
	for lines := bufio.NewReader(res.Body); ; {
		b, err := lines.ReadBytes('\n')
		if err != nil {
			return ended(ctx, fmt.Errorf("the stream of decisions has ended: %w", err))
		}
		var l console.Line
		if err := json.Unmarshal(b, &l); err != nil {
			return fmt.Errorf("a line of the stream of decisions: %w", err)
		}
		each(&l)
	}
}

func ended(ctx context.Context, err error) error {
	select {
	case <-ctx.Done():
		return nil
	default:
		return err
	}
}

func (t *top) print(list []*recent.Seen) {
	for _, d := range list {
		t.p.printf("%s\n", t.row(d))
	}
}

func (t *top) row(d *recent.Seen) string {
	return decisionPrinter{t.p}.line(d.Decision)
}

// once prints what there is now.
func (t *top) once(ctx context.Context) error {
	s, err := t.state(ctx)
	if err != nil {
		return err
	}
	stop := errors.New("enough")
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	err = t.follow(ctx, func(l *console.Line) {
		t.last = l.Decisions
		cancel(stop) // the first line holds all
	})
	if err != nil {
		return err
	}
	t.p.printf("%s\n", strings.Join(t.head(s), "\n"))
	t.print(t.last)
	return nil
}

// The sequences of a terminal (ECMA-48, and xterm's for its other screen).
const (
	otherScreen = "\x1b[?1049h\x1b[?25l"
	firstScreen = "\x1b[?25h\x1b[?1049l"
	home        = "\x1b[H"
	restOfLine  = "\x1b[K"
	restOfPage  = "\x1b[J"
)

// screen draws until ctx ends.
func (t *top) screen(ctx context.Context) error {
	s, err := t.state(ctx) // before the screen is another: this may fail, and say why
	if err != nil {
		return ended(ctx, err)
	}
	t.p.printf(otherScreen)
	defer t.p.printf(firstScreen)
	came := make(chan *console.Line)
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		return t.follow(gctx, func(l *console.Line) {
			select {
			case came <- l:
			case <-gctx.Done():
			}
		})
	})
	g.Go(func() error {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			t.draw(s)
			t.before = s
			for drawn := false; !drawn; {
				select {
				case <-gctx.Done():
					return nil
				case l := <-came:
					t.skipped = l.Skipped
					t.last = append(t.last, l.Decisions...)
					t.last = t.last[max(0, len(t.last)-topDecisions):]
				case <-tick.C:
					drawn = true
				}
			}
			var err error
			if s, err = t.state(gctx); err != nil {
				return ended(gctx, err)
			}
		}
	})
	return g.Wait()
}

// draw fills the screen: what endpoints do, then as many decisions as there is room for, newest
// first.
func (t *top) draw(s *console.Overview) {
	width, height := t.Width, 24
	if f, ok := t.Out.(*os.File); ok {
		if w, h, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			width, height = w, h
		}
	}
	lines := append(t.head(s), "")
	title := "Decisions, newest first"
	if t.skipped > 0 {
		title += fmt.Sprintf("; %d more are not shown", t.skipped)
	}
	lines = append(lines, t.p.bold(title))
	for _, d := range slices.Backward(t.last) {
		lines = append(lines, t.row(d))
	}
	var b bytes.Buffer
	b.WriteString(home)
	cut := t.p.render.NewStyle().MaxWidth(width)
	for i, l := range lines[:min(len(lines), height)] {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(cut.Render(l) + restOfLine)
	}
	b.WriteString(restOfPage)
	t.p.printf("%s", b.String())
}

// head is the state of the process and of its endpoints.
func (t *top) head(s *console.Overview) []string {
	p := t.p
	state := p.good("ready")
	switch {
	case s.Draining:
		state = p.warn("draining")
	case !s.Ready:
		state = p.bad("not ready")
	case len(s.Degraded) > 0:
		state = p.warn("ready, degraded")
	}
	first := fmt.Sprintf("%s %s  %s  up %s  configuration %d  %d requests", p.bold("signalbox"), s.Version, state,
		s.Now.Sub(s.Started).Round(time.Second), s.Generation, s.Tally.Decided)
	if b := t.before; b != nil && s.Now.After(b.Now) {
		first += fmt.Sprintf("  %.1f/s", float64(s.Tally.Decided-b.Tally.Decided)/s.Now.Sub(b.Now).Seconds())
	}
	out := []string{first + spent(s)}
	if by := refused(s); by != "" {
		out = append(out, p.warn("  "+by))
	}
	for _, why := range s.Degraded {
		out = append(out, p.warn("  "+why))
	}
	wide := len("endpoint")
	for i := range s.Models {
		for _, e := range s.Models[i].Endpoints {
			wide = max(wide, len(e.Name)+len(s.Models[i].Model)+1)
		}
	}
	out = append(out, "", p.faint(pad("endpoint", wide)+"  state      flight  run  wait  cached prefixes  reused"))
	for i := range s.Models {
		m := &s.Models[i]
		for _, e := range m.Endpoints {
			paint := p.warn
			switch e.State {
			case "up":
				paint = p.good
			case "down", "ejected":
				paint = p.bad
			}
			line := fmt.Sprintf(
				"%s  %s  %6d  %3d  %4d",
				pad(m.Model+"/"+e.Name, wide),
				paint(pad(e.State, 9)),
				e.Inflight,
				e.Running,
				e.Waiting,
			)
			if e.Prefix != nil {
				line += fmt.Sprintf("  %15d  %6d", e.Prefix.Tokens, e.Prefix.Cached)
			}
			out = append(out, line)
		}
		if m.Queued > 0 {
			out = append(out, p.warn(fmt.Sprintf("%s: %d requests are waiting for an endpoint", m.Model, m.Queued)))
		}
	}
	return out
}

// refused is how many requests limits have refused, and which limits; empty for none.
func refused(s *console.Overview) string {
	var n int64
	var by []string
	for _, limit := range slices.Sorted(maps.Keys(s.Tally.Refused)) {
		n += s.Tally.Refused[limit]
		by = append(by, fmt.Sprintf("%s %d", limit, s.Tally.Refused[limit]))
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("refused by limits, beside these: %d (%s)", n, strings.Join(by, ", "))
}

// spent is what answers cost that told their tokens, and how many told none; empty before there are
// any.
func spent(s *console.Overview) string {
	var cost, base float64
	var untold int64
	for i := range s.Tally.Spent {
		of := &s.Tally.Spent[i]
		cost, base, untold = cost+of.Cost, base+of.Baseline, untold+of.Untold
	}
	out := ""
	if base > 0 {
		out = fmt.Sprintf("  $%.4f, %.0f %% less than always %s", cost, 100*(1-cost/base), s.Dearest)
	}
	if untold > 0 {
		out += fmt.Sprintf("  not counted: %d responses without token usage", untold)
	}
	return out
}
