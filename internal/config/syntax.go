package config

import (
	"fmt"
	"slices"
	"strings"

	"signalbox/rules"
)

// syntaxProblem says where a text stops being YAML, and how that is mended. The line of the
// library's message, `yaml: line N: text`, is that of the mistake or of where the list or mapping
// around it begins, so tabs, indentation and quotes are looked at again.
func syntaxProblem(text string, err error) *rules.Problem {
	msg := strings.TrimPrefix(err.Error(), "yaml: ")
	at := 1
	if n, scanErr := fmt.Sscanf(msg, "line %d:", &at); scanErr == nil && n == 1 {
		_, msg, _ = strings.Cut(msg, ": ")
	}
	lines := strings.Split(text, "\n")
	p := &rules.Problem{Line: at, Col: 1, Msg: "YAML syntax: " + msg}
	say := func(line, col int, format string, args ...any) *rules.Problem {
		p.Line, p.Col, p.Msg = line, col, "YAML syntax: "+fmt.Sprintf(format, args...)
		return p
	}
	if line, col := tabbed(lines); line > 0 {
		return say(line, col, "this line is indented with a tab; YAML requires spaces")
	}
	switch {
	case strings.Contains(msg, "expected '-' indicator"), strings.Contains(msg, "expected key"),
		strings.Contains(msg, "mapping values"):
		if line, indent, levels := misplaced(lines); line > 0 {
			return say(line, indent+1,
				"this line is indented by %d spaces, but the lines above that it could belong to by %s",
				indent, levels)
		}
	case strings.Contains(msg, "end of stream"):
		if line := unclosed(lines); line > 0 {
			return say(line, 1, "a quote in this line is not closed")
		}
	case strings.Contains(msg, "unknown anchor"): // of which the library tells no line
		if _, name, ok := strings.Cut(msg, "'"); ok {
			p.Line = holding(lines, "*"+strings.TrimSuffix(name, "' referenced"))
		}
	}
	p.Msg += hint(msg)
	return p
}

// hint is what to do about a message of the library that does not say so; empty for any other.
func hint(msg string) string {
	switch {
	case strings.Contains(msg, "mapping values"):
		return "; quote text that contains a colon followed by a space, " +
			"and indent a key like the one above it"
	case strings.Contains(msg, "cannot start any token"):
		return "; quote text that begins with @, %, ` or another special character"
	case strings.Contains(msg, "expected ',' or"):
		return "; a bracket opened in this line is not closed, or a comma is missing"
	case strings.Contains(msg, "unknown anchor"):
		return "; quote text that begins with *"
	}
	return ""
}

// holding returns the first line that holds a text, the first of all when none does.
func holding(lines []string, text string) int {
	holds := func(l string) bool { return strings.Contains(l, text) }
	return 1 + max(0, slices.IndexFunc(lines, holds))
}

// tabbed returns the first line that a tab indents, and the column of the tab; 0 without one.
func tabbed(lines []string) (line, col int) {
	for i, l := range lines {
		lead := l[:len(l)-len(strings.TrimLeft(l, " \t"))]
		tab := strings.IndexByte(lead, '\t')
		if tab >= 0 && len(lead) < len(strings.TrimRight(l, "\r")) {
			return i + 1, tab + 1
		}
	}
	return 0, 0
}

// misplaced returns the first line whose indentation is that of no list or mapping which is open
// there, and those that are; 0 without one. Texts over several lines are not told apart, so it is
// for a text that is no YAML.
func misplaced(lines []string) (line, indent int, levels string) {
	open := []int{0}
	for i, l := range lines {
		rest := strings.TrimLeft(l, " ")
		if rest == "" || rest[0] == '#' || rest[0] == '\r' {
			continue
		}
		indent = len(l) - len(rest)
		last := open[len(open)-1]
		for len(open) > 1 && open[len(open)-1] > indent {
			open = open[:len(open)-1]
		}
		if top := open[len(open)-1]; top < indent && last > indent {
			return i + 1, indent, fmt.Sprintf("%d or %d", top, last)
		}
		for {
			if !slices.Contains(open, indent) {
				open = append(open, indent)
			}
			item := strings.TrimLeft(strings.TrimPrefix(rest, "-"), " ")
			if !strings.HasPrefix(rest, "- ") || item == "" {
				break
			}
			indent, rest = indent+len(rest)-len(item), item
		}
	}
	return 0, 0, ""
}

// unclosed returns the first line with an odd number of quotation marks; 0 without one.
func unclosed(lines []string) int {
	for i, l := range lines {
		l = strings.ReplaceAll(l, `\"`, "")
		if strings.Count(l, `"`)%2 == 1 {
			return i + 1
		}
	}
	return 0
}
