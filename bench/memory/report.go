package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// sample is a figure on each seed.
type sample []float64

// show writes the median and, when seeds differ, the least and the most.
func (s sample) show(format string) string {
	sorted := slices.Sorted(slices.Values(s))
	least, most := fmt.Sprintf(format, sorted[0]), fmt.Sprintf(format, sorted[len(sorted)-1])
	median := fmt.Sprintf(format, sorted[len(sorted)/2])
	if least == most {
		return median
	}
	return fmt.Sprintf("%s (%s to %s)", median, least, most)
}

// side says what a demand asks for.
type side uint8

const (
	atMost side = iota
	atLeast
	noBar // nothing: the figure is reported
)

// report collects tables and demands.
type report struct {
	tables strings.Builder
	rows   strings.Builder
	failed int
}

// table adds a table of all contenders.
func (r *report) table(title string, res *results) {
	ideal := make(sample, len(res.ideal))
	for i, x := range res.ideal {
		ideal[i] = 100 * x
	}
	fmt.Fprintf(&r.tables, "%s. Ideal cached share: %s %%.\n\n", title, ideal.show("%.1f"))
	r.tables.WriteString("| policy | cached share, % | tokens computed | TTFT mean, ms | p50 | p99 | busiest / mean |\n| --- | --- | --- | --- | --- | --- | --- |\n")
	for _, name := range res.names {
		percent := func(o *outcome) float64 { return 100 * o.share() }
		fmt.Fprintf(&r.tables, "| %s | %s | %s | %s | %s | %s | %s |\n", name,
			res.of(name, percent).show("%.1f"), res.of(name, (*outcome).again).show("%.0f"), res.of(name, (*outcome).mean).show("%.0f"),
			res.of(name, func(o *outcome) float64 { return o.quantile(0.5) }).show("%.0f"),
			res.of(name, func(o *outcome) float64 { return o.quantile(0.99) }).show("%.0f"),
			res.of(name, (*outcome).spread).show("%.2f"))
	}
	r.tables.WriteString("\n")
}

// demand adds a figure with what is asked of it, on every seed.
func (r *report) demand(what string, s sample, format string, kind side, bar float64) {
	want, met := "-", len(s)
	switch kind {
	case atMost:
		want, met = "<= "+fmt.Sprint(bar), count(s, func(x float64) bool { return x <= bar })
	case atLeast:
		want, met = ">= "+fmt.Sprint(bar), count(s, func(x float64) bool { return x >= bar })
	case noBar:
	}
	verdict := "pass"
	switch {
	case kind == noBar:
		verdict = "-"
	case met < len(s):
		verdict = fmt.Sprintf("**fail** on %d of %d seeds", len(s)-met, len(s))
		r.failed++
	}
	fmt.Fprintf(&r.rows, "| %s | %s | %s | %s |\n", what, s.show(format), want, verdict)
}

// count is how many figures fulfil a condition.
func count(s sample, holds func(x float64) bool) int {
	n := 0
	for _, x := range s {
		if holds(x) {
			n++
		}
	}
	return n
}

// write prints everything as Markdown.
func (r *report) write(w io.Writer, seeds []uint64) error {
	_, err := fmt.Fprintf(w, "Seeds %s; median (least to most). A demand has to hold on every seed.\n\n%s| figure | measured | demand | |\n| --- | --- | --- | --- |\n%s",
		strings.Trim(fmt.Sprint(seeds), "[]"), r.tables.String(), r.rows.String())
	return err
}
