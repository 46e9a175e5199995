package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/charmbracelet/lipgloss"

	"signalbox/internal/signal"
	"signalbox/proxy/explain"
	"signalbox/proxy/guardrail"
	"signalbox/proxy/signals"
	"signalbox/rules"
)

// explanation prints a decision: what was decided and what is sent, which signals it took, and a
// tree of the routes with the leaves that were read, those that were not, and why.
func (p *printer) explanation(x *explain.Explanation) {
	p.outcome(x)
	p.candidates(x)
	p.signals(x)
	if len(x.Routes) == 0 {
		return
	}
	p.printf("\n%s%s\n", p.bold("routes"), p.faint(", the first that matches applies; ✗ marks conditions that prevented a match"))
	for i := range x.Routes {
		p.route(&x.Routes[i], x, i == len(x.Routes)-1)
	}
}

func (p *printer) outcome(x *explain.Explanation) {
	p.field("route", p.good(x.Route)+outcomeNote(x))
	switch {
	case x.Blocked && x.Outcome == "fail_closed":
		p.field("answer", p.bad("503, unavailable signals: "+strings.Join(x.Failed,
			", ")+" (fails closed; not declined by policy)"))
		return
	case x.Blocked:
		p.field("answer", p.bad("blocked by policy"))
		return
	case x.Outcome == "unavailable":
		p.field("answer", p.bad("503, a signal that the route requires is unknown"))
		return
	case len(x.Models) == 0 && len(x.Candidates) == 0:
		p.field("answer", "fixed text of the route, no model is called")
		return
	case len(x.Models) == 0:
		p.field("model", p.bad("none: every candidate is left out"))
		return
	}
	if x.By == "weight" && len(x.Models) > 1 {
		p.field("model", "one of "+strings.Join(x.Models, ", ")+", drawn by weight")
	} else {
		p.field("model", strings.Join(x.Models, ", then "))
	}
	if c := x.Canary; c != nil {
		note := "this request cannot be sent to it"
		if c.Arm != "" {
			note = "this conversation is in the arm " + c.Arm
		}
		p.field("canary", fmt.Sprintf("%s, for %.4g %% of conversations; %s", c.Model, 100*c.Share, note))
	}
	s := x.Sent
	if s == nil {
		return
	}
	effort := cmp.Or(s.Reasoning, "left to the model")
	switch {
	case s.ReasoningBy == "outcomes":
		effort += ", from outcomes of similar requests"
	case x.Reasoning == "auto":
		effort += ", from the complexity of the prompt"
	case x.Reasoning == "":
		effort += ", not set by the route"
	case x.Reasoning != s.Reasoning:
		effort += ", the route requests " + x.Reasoning
	}
	p.field("reasoning", effort)
	if x.Prompt != "" {
		p.field("prompt", x.Prompt+", "+promptNote(s.Prompt))
	}
	p.field("max_tokens", limitNote(s))
	if x.Guard != "off" {
		p.field("guard", x.Guard+", "+evidenceNote(x.Evidence))
	}
}

// evidenceNote says what an answer is checked against.
func evidenceNote(e *guardrail.Evidence) string {
	if e == nil {
		return "but there is no evidence to check the response against"
	}
	var parts []string
	for _, c := range []struct {
		n     int
		thing string
	}{{e.Facts, "fact"}, {e.ToolResults, "tool result"}, {e.Documents, "document"}} {
		if c.n > 0 {
			parts = append(parts, count(c.n, c.thing))
		}
	}
	note := "against " + strings.Join(parts, ", ")
	if e.Cut {
		note += "; some evidence is too long and is not read"
	}
	return note
}

// outcomeNote says what is special about how a route was found.
func outcomeNote(x *explain.Explanation) string {
	switch x.Outcome {
	case "fail_closed":
		return ", because its condition is unknown and on_unknown is match"
	case "default":
		if x.Route == rules.RouteNamed {
			return ", the request names its model"
		}
		return ", no route matched"
	}
	return ""
}

func promptNote(fate string) string {
	switch fate {
	case "inserted":
		return "added: the request has no system prompt"
	case "replaced":
		return "replaces the client's system prompt"
	case "prefixed":
		return "placed before the client's system prompt"
	}
	return "not added: the client's system prompt is kept"
}

func limitNote(s *explain.Sent) string {
	switch {
	case s.Limit == "":
		return "not sent"
	case s.MaxTokens == 0:
		return "set by the route"
	case s.Limit == "auto":
		return fmt.Sprintf("%d, automatic", s.MaxTokens)
	case s.Limit == "outcomes":
		return fmt.Sprintf("%d, automatic, from responses to similar requests", s.MaxTokens)
	}
	return fmt.Sprintf("%d, set by the %s", s.MaxTokens, s.Limit)
}

// field prints a name, padded to the longest one, and its value.
func (p *printer) field(name, value string) {
	p.printf("%s %s\n", p.bold(fmt.Sprintf("%-10s", name)), value)
}

// candidates prints what the choice among several models looked at, when it looked at anything.
func (p *printer) candidates(x *explain.Explanation) {
	figures := slices.ContainsFunc(x.Candidates, func(c explain.Candidate) bool { return c.Left != "" })
	if len(x.Candidates) == 0 || !figures && (len(x.Candidates) == 1 || x.By != "quality" && x.By != "cost" && x.By != "latency") {
		return
	}
	rows := make([][]string, 0, len(x.Candidates))
	for i := range x.Candidates {
		c := &x.Candidates[i]
		name := c.Name
		if c.Out {
			name = p.faint(name)
		}
		rows = append(rows, []string{name, figure("%.3f", c.Quality, 1), figure("%.4f", c.Cost, 1000), figure("%.2f", c.Seconds, 1)})
	}
	p.printf("\n%s%s\n", p.bold("candidates"), p.faint(", by "+cmp.Or(x.By, "order")+"; USD per 1000 such requests, seconds per response"))
	p.table([]string{"model", "quality", "USD/1000", "seconds"}, rows)
	for i := range x.Candidates {
		c := &x.Candidates[i]
		verb := "is ranked lower"
		if c.Out {
			verb = "is left out"
		}
		if c.Left != "" {
			p.hanging("", "  ", c.Name+" "+verb+": "+c.Left, p.faint)
		}
	}
}

func figure(format string, x *float64, scale float64) string {
	if x == nil {
		return "?"
	}
	return fmt.Sprintf(format, *x*scale)
}

func (p *printer) signals(x *explain.Explanation) {
	var rows [][]string
	skipped := map[string][]string{} // names by reason
	for _, name := range signalNames(x) {
		s := x.Signals[name]
		if s.State == "skipped" {
			skipped[s.Reason] = append(skipped[s.Reason], name)
			continue
		}
		rows = append(rows, p.signal(name, &s))
	}
	if len(rows) > 0 {
		p.printf("\n")
		p.table([]string{"signal", "state", "value", "score", "ms"}, rows)
	}
	p.origins(x)
	for i, reason := range slices.Sorted(maps.Keys(skipped)) {
		if i == 0 {
			p.printf("\n")
		}
		p.hanging("not computed: ", "  ", strings.Join(skipped[reason], ", ")+" ("+reason+")", p.faint)
	}
}

// signalNames lists the signals of an explanation, the classifiers of one's own last.
func signalNames(x *explain.Explanation) []string {
	names := slices.Collect(maps.Keys(x.Signals))
	slices.SortFunc(names, func(a, b string) int {
		first, _ := signal.ParseKind(a)
		second, _ := signal.ParseKind(b)
		return cmp.Or(cmp.Compare(first, second), cmp.Compare(a, b))
	})
	return names
}

// origins prints what signals about attacks say of the text of each origin, with the sentence that
// weighs most, and what they did not look at.
func (p *printer) origins(x *explain.Explanation) {
	for k := range signal.NumKinds {
		s := x.Signals[k.String()]
		for i := range s.Verdicts {
			p.hanging(k.String()+" of "+s.Verdicts[i].Origin+": ", "  ",
				verdictNote(&s.Verdicts[i]), p.plain)
		}
		if len(s.NotRead) > 0 {
			p.hanging(k.String()+" ", "  ", "did not read text of origin "+strings.Join(s.NotRead,
				", "), p.faint)
		}
	}
}

func (*printer) plain(s string) string { return s }

// maxQuoted is how many characters of a sentence are shown.
const maxQuoted = 200

func verdictNote(v *signals.OriginVerdict) string {
	note := fmt.Sprintf("%.3f", v.Score)
	if v.Read < v.Windows {
		note += fmt.Sprintf(", read %d of %d windows", v.Read, v.Windows)
	}
	if v.Partial {
		note += ", part of it could not be read"
	}
	if v.Stored {
		note += ", in a stored context"
	}
	if v.Segment == nil || v.Text == "" {
		return note
	}
	text := []rune(v.Text)
	if len(text) > maxQuoted {
		text = append(text[:maxQuoted], '…')
	}
	return note + fmt.Sprintf(", highest in text %d at offset %d: %q", *v.Segment, *v.Start, string(text))
}

func (p *printer) signal(name string, s *signals.Trace) []string {
	value, score := s.Value, ""
	if len(s.Labels) > 0 {
		value = strings.Join(s.Labels, ", ")
	}
	if s.Nearest != "" {
		value = "none, nearest " + s.Nearest
	}
	if s.Threshold != nil {
		value += fmt.Sprintf(" (from %.3f)", *s.Threshold)
	}
	if s.Windows > 0 {
		value += fmt.Sprintf(" (read %d of %d windows)", s.Read, s.Windows)
	}
	if s.Score != nil {
		score = fmt.Sprintf("%.3f", *s.Score)
	}
	state := p.good(s.State)
	if s.State == "unknown" {
		state, value = p.bad(s.State), s.Reason
	}
	if s.Partial {
		state = p.bad("partial")
		if s.Reason != "" {
			value += " (" + s.Reason + ")"
		}
	}
	return []string{name, state, cmp.Or(value, "-"), score, fmt.Sprintf("%.2f", s.Ms)}
}

//nolint:revive // last chooses a character of the tree
func (p *printer) route(r *rules.RouteTrace, x *explain.Explanation, last bool) {
	branch, stem := "├─", "│ "
	if last {
		branch, stem = "└─", "  "
	}
	name, verdict := r.Name, p.verdict(r.Value)
	if r.Name == x.Route {
		name = p.bold(r.Name)
		if r.Value == "unknown" {
			verdict += ", applied because of on_unknown"
		}
	}
	p.printf("%s %s: %s\n", p.faint(branch), name, verdict)
	blockers := slices.Clone(r.Blockers)
	for i := range r.Path {
		leaf, under := "├─", "│ "
		if i == len(r.Path)-1 {
			leaf, under = "└─", "  "
		}
		v := &r.Path[i]
		mark, paint := "  ", p.plain
		switch at := slices.Index(blockers, v.Leaf); {
		case v.Value == "skipped":
			paint = p.faint
		case at >= 0:
			blockers = slices.Delete(blockers, at, at+1)
			mark = p.bad("✗") + " "
		}
		head := p.faint(stem) + " " + p.faint(leaf) + " " + mark
		rest := p.faint(stem) + " " + p.faint(under) + "     "
		p.hanging(head, rest, p.visit(v), paint)
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
		return fmt.Sprintf("%s: skipped, %s", leaf, v.Reason)
	}
	found := ""
	if v.Found != "" {
		found = "found " + v.Found
	}
	details := slices.DeleteFunc([]string{scores(v), found, v.Reason}, func(s string) bool { return s == "" })
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
		s += fmt.Sprintf(", threshold %.4g", *v.Threshold)
	}
	return s
}

// hanging prints text behind a head, in lines of the terminal's width; those after the first begin
// with rest. paint colours every line of the text on its own. A word that is too long stays whole.
func (p *printer) hanging(head, rest, text string, paint func(string) string) {
	line, start := "", head
	flush := func() {
		p.printf("%s%s\n", start, paint(line))
		line, start = "", rest
	}
	for word := range strings.FieldsSeq(text) {
		if line != "" && lipgloss.Width(start)+lipgloss.Width(line)+1+lipgloss.Width(word) > p.width {
			flush()
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	flush()
}
