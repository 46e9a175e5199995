package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"signalbox/proxy/decisionlog"
)

// locked is a writer for several goroutines.
type locked struct {
	mu sync.Mutex // held during a write
	w  io.Writer
}

// Write implements io.Writer.
func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b) //nolint:wrapcheck // a writer's own error
}

// decisionPrinter prints a line for each line of the decision log that is written to it.
type decisionPrinter struct{ p *printer }

// Write implements io.Writer. It gets whole lines.
func (d decisionPrinter) Write(b []byte) (int, error) {
	for line := range bytes.Lines(b) {
		var l decisionlog.Entry
		if err := json.Unmarshal(line, &l); err != nil {
			return 0, fmt.Errorf("a line of the decision log: %w", err)
		}
		d.p.printf("%s\n", d.line(&l))
	}
	return len(b), nil
}

// line tells a decision: when, by which route, who answered with which status, how long the
// decision took, on what it rests and what was done to the request.
func (d decisionPrinter) line(l *decisionlog.Entry) string {
	p := d.p
	target := p.good(pad(l.Model, 16))
	switch {
	case l.Model != "":
	case l.Action.Verb == "block":
		target = p.bad(pad("declined", 16))
	case l.Action.Verb == "answer":
		target = pad("answered", 16)
	default:
		target = p.bad(pad("no answer", 16))
	}
	status := fmt.Sprint(l.Status)
	if l.Status >= http.StatusBadRequest {
		status = p.warn(status)
	}
	why := append(whyOf(l), doneBy(l)...)
	return strings.TrimRight(fmt.Sprintf("%s  %s -> %s  %s  %5.1f ms  %s",
		p.faint(l.Time.Local().Format(time.TimeOnly)), p.bold(pad(cmp.Or(l.Route, "default"), 14)),
		target, status, l.DecideMs, strings.Join(why, ", ")), " ")
}

// pad is a word of at least so many columns.
func pad(s string, n int) string { return fmt.Sprintf("%-*s", n, s) }

// The scores from which on an attack is told: harmless where a route declined the request,
// suspicious where none did.
const (
	harmless   = 0.1
	suspicious = 0.5
)

// whyOf lists the signals that a decision rests on.
func whyOf(l *decisionlog.Entry) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(l.Signals)) {
		s := l.Signals[name]
		attack := name == "jailbreak" || name == "injection"
		switch {
		case s.State != "evaluated":
			out = append(out, name+" unknown ("+cmp.Or(s.Reason, s.State)+")")
		case attack && (s.Score < harmless || s.Score < suspicious && l.Action.Verb != "block"):
		case attack:
			out = append(out, fmt.Sprintf("%s %.2f", name, s.Score))
		case name == "domain" && s.Label != "":
			out = append(out, fmt.Sprintf("%s %s %.2f", name, s.Label, s.Score))
		case s.Label != "":
			out = append(out, name+" "+s.Label)
		case (name == "keyword" || name == "pii") && len(s.Labels) > 0: // of others, all that there are
			out = append(out, name+" "+strings.Join(s.Labels, " "))
		}
	}
	return out
}

// errPolicy is the error of a request that a route blocked.
const errPolicy = "content_policy_violation"

// doneBy lists what was done to the request and with its answer.
func doneBy(l *decisionlog.Entry) []string {
	var out []string
	if l.Error != "" && l.Error != errPolicy { // that a route blocked is told already
		out = append(out, l.Error)
	}
	if l.Reasoning != "" {
		out = append(out, "reasoning "+l.Reasoning)
	}
	if l.Action.Prompt != "" {
		out = append(out, "prompt "+l.Action.Prompt)
	}
	if l.MaxTokens > 0 {
		out = append(out, fmt.Sprintf("max_tokens %d", l.MaxTokens))
	}
	if l.Cache == "exact" || l.Cache == "semantic" {
		out = append(out, "from the cache ("+l.Cache+")")
	}
	if g := l.Guard; g != nil {
		out = append(out, fmt.Sprintf("guard %s: %s, %d of %d claims failed",
			g.Mode, g.Verdict, g.Failed, g.Claims))
	}
	return out
}
