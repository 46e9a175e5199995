package cli

import (
	"fmt"
	"slices"
	"strings"

	"signalbox/internal/signal"
	"signalbox/proxy"
	"signalbox/rules"
)

// explanation prints a decision: what was decided, which signals it took, and a tree of the routes
// with the leaves that were read, those that were not, and why.
func (p *printer) explanation(x *proxy.Explanation) {
	p.outcome(x)
	p.signals(x.Signals)
	p.printf("\n%s\n", p.bold("routes, first match wins"))
	for i := range x.Routes {
		p.route(&x.Routes[i], x.Route, i == len(x.Routes)-1)
	}
}

func (p *printer) outcome(x *proxy.Explanation) {
	p.field("route", p.good(x.Route))
	if x.Blocked {
		p.field("answer", p.bad("blocked by policy"))
		return
	}
	p.field("model", strings.Join(x.Models, ", then "))
	for _, row := range [][2]string{{"reasoning", x.Reasoning}, {"prompt", x.Prompt}, {"max_tokens", limit(x.MaxTokens)}} {
		if row[1] != "" {
			p.field(row[0], row[1])
		}
	}
}

// field prints a name, padded to the longest one, and its value.
func (p *printer) field(name, value string) {
	p.printf("%s %s\n", p.bold(fmt.Sprintf("%-10s", name)), value)
}

func limit(v any) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

func (p *printer) signals(signals map[string]proxy.SignalTrace) {
	if len(signals) == 0 {
		return
	}
	var rows [][]string
	for k := range signal.NumKinds {
		s, ok := signals[k.String()]
		if !ok {
			continue
		}
		value, score, took := s.Value, "", fmt.Sprintf("%.2f", s.Ms)
		if len(s.Labels) > 0 {
			value = strings.Join(s.Labels, ", ")
		}
		if s.Score != nil {
			score = fmt.Sprintf("%.3f", *s.Score)
		}
		state := p.good(s.State)
		switch s.State {
		case "skipped":
			state, took = p.faint("not computed"), "0"
		case "unknown":
			state, value = p.bad(s.State), s.Reason
		}
		rows = append(rows, []string{k.String(), state, value, score, took})
	}
	p.printf("\n")
	p.table([]string{"signal", "state", "value", "score", "ms"}, rows)
}

func (p *printer) route(r *rules.RouteTrace, chosen string, last bool) { //nolint:revive // last chooses a character of the tree
	branch, stem := "├─", "│ "
	if last {
		branch, stem = "└─", "  "
	}
	name := r.Name
	if r.Name == chosen {
		name = p.bold(r.Name)
	}
	p.printf("%s %s: %s\n", p.faint(branch), name, p.verdict(r.Value))
	for i := range r.Path {
		leaf := "├─"
		if i == len(r.Path)-1 {
			leaf = "└─"
		}
		p.printf("%s %s %s\n", p.faint(stem), p.faint(leaf), p.visit(&r.Path[i]))
	}
}

func (p *printer) verdict(value string) string {
	switch value {
	case "true":
		return p.good(value)
	case "unknown":
		return p.bad(value)
	case "not_reached":
		return p.faint("not reached")
	}
	return value
}

// visit says one leaf in a line: the test, what it came to, and what was compared.
func (p *printer) visit(v *rules.Visit) string {
	leaf := v.Leaf
	if v.Group != "" {
		leaf = "(" + v.Group + ") " + leaf
	}
	if v.Value == "skipped" {
		return p.faint(fmt.Sprintf("%s: skipped, %s", leaf, v.Reason))
	}
	details := slices.DeleteFunc([]string{v.Found, scores(v), v.Reason}, func(s string) bool { return s == "" })
	line := leaf + ": " + p.verdict(v.Value)
	if len(details) > 0 {
		line += " (" + strings.Join(details, ", ") + ")"
	}
	return line
}

func scores(v *rules.Visit) string {
	if v.Score == nil {
		return ""
	}
	s := fmt.Sprintf("score %.3f", *v.Score)
	if v.Threshold != nil {
		s += fmt.Sprintf(", threshold %g", *v.Threshold)
	}
	return s
}
