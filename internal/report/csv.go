package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// columns are the columns of the CSV, in order. Column names do not change; new columns are added
// at the end.
var columns = [...]struct { //nolint:gochecknoglobals // constant table
	name  string
	value func(g *Group) any
}{
	{"requests", func(g *Group) any { return g.Requests }},
	{"answered", func(g *Group) any { return g.Answered }},
	{"cached", func(g *Group) any { return g.Cached }},
	{"fixed", func(g *Group) any { return g.Fixed }},
	{"blocked", func(g *Group) any { return g.Blocked }},
	{"declined", func(g *Group) any { return g.Declined }},
	{"gone", func(g *Group) any { return g.Gone }},
	{"errors", func(g *Group) any { return g.Failed }},
	{"prompt_tokens", func(g *Group) any { return g.Tokens.Prompt }},
	{"cached_tokens", func(g *Group) any { return g.Tokens.Cached }},
	{"completion_tokens", func(g *Group) any { return g.Tokens.Completion }},
	{"reasoning_tokens", func(g *Group) any { return g.Tokens.Reasoning }},
	{"untold", func(g *Group) any { return g.Untold }},
	{"cost_usd", func(g *Group) any { return g.Cost }},
	{"baseline_usd", func(g *Group) any { return g.Baseline }},
	{"saved_usd", func(g *Group) any { return g.Saved }},
	{"thrown_answers", func(g *Group) any { return g.Thrown.Answers }},
	{"thrown_tokens", func(g *Group) any { return g.Thrown.Tokens }},
	{"thrown_cost_usd", func(g *Group) any { return g.Thrown.Cost }},
	{"conversations_new", func(g *Group) any { return g.Conversations.New }},
	{"conversations_kept", func(g *Group) any { return g.Conversations.Kept }},
	{"conversations_moved", func(g *Group) any { return g.Conversations.Moved }},
	{"escalation_kept", func(g *Group) any { return g.Escalations.Kept }},
	{"escalation_escalated", func(g *Group) any { return g.Escalations.Escalated }},
	{"escalation_failed", func(g *Group) any { return g.Escalations.Failed }},
	{"escalation_late", func(g *Group) any { return g.Escalations.Late }},
	{"escalation_unread", func(g *Group) any { return g.Escalations.Unread }},
	{"mirror_copies", func(g *Group) any { return g.Mirrored.Copies }},
	{"mirror_cost_usd", func(g *Group) any { return g.Mirrored.Cost }},
	{"guard_supported", func(g *Group) any { return g.Guard.Supported }},
	{"guard_unsupported", func(g *Group) any { return g.Guard.Unsupported }},
	{"guard_unchecked", func(g *Group) any { return g.Guard.Unchecked }},
	{"guard_cut", func(g *Group) any { return g.Guard.Cut }},
	{"ttft_p50_ms", func(g *Group) any { return g.TTFT.P50 }},
	{"ttft_p90_ms", func(g *Group) any { return g.TTFT.P90 }},
	{"ttft_p95_ms", func(g *Group) any { return g.TTFT.P95 }},
	{"ttft_p99_ms", func(g *Group) any { return g.TTFT.P99 }},
	{"took_p50_ms", func(g *Group) any { return g.Took.P50 }},
	{"took_p90_ms", func(g *Group) any { return g.Took.P90 }},
	{"took_p95_ms", func(g *Group) any { return g.Took.P95 }},
	{"took_p99_ms", func(g *Group) any { return g.Took.P99 }},
	{"rated", func(g *Group) any { return g.Rated.Answers }},
	{"rating", func(g *Group) any { return g.Rated.Mean }},
	{"refused", func(g *Group) any { return g.Refused }},
}

// WriteCSV writes a row for all requests and one for every group of every dimension. A name that a
// spreadsheet would interpret as a formula gets a leading apostrophe.
func (r *Report) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	row := append(make([]string, 0, len(columns)+2), "by", "name")
	for _, c := range columns {
		row = append(row, c.name)
	}
	_ = out.Write(row) // reported by Error
	write := func(by string, g *Group) {
		row = append(row[:0], by, inert(g.Name))
		for _, c := range columns {
			row = append(row, cell(c.value(g)))
		}
		_ = out.Write(row)
	}
	write("all", &r.Total)
	for i := range r.By {
		for j := range r.By[i].Groups {
			write(r.By[i].By, &r.By[i].Groups[j])
		}
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("write CSV: %w", err)
	}
	return nil
}

// cell formats a number: money and times with six significant digits.
func cell(v any) string {
	if x, ok := v.(float64); ok {
		return strconv.FormatFloat(x, 'g', 6, 64)
	}
	return fmt.Sprint(v)
}

// inert prevents the interpretation of a name as a formula.
func inert(s string) string {
	if strings.ContainsAny(s[:min(1, len(s))], "=+-@\t\r") {
		return "'" + s
	}
	return s
}
