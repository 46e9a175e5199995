package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

//go:embed page.html
var pageText string

// WriteHTML writes a self-contained page without scripts, with the tables of the report and plots
// of them.
func (r *Report) WriteHTML(w io.Writer, version string) error {
	page, err := template.New("page").Funcs(template.FuncMap{
		"n": Thousands[int64], "usd": USD, "ms": Milliseconds, "share": Share,
	}).Parse(pageText)
	if err != nil {
		return fmt.Errorf("the page: %w", err)
	}
	v := view{Report: r, Version: version, ArmsNote: ArmsNote, Charts: r.charts()}
	if !r.From.IsZero() {
		v.Span = Span(r.From, r.To)
	}
	if err := page.Execute(w, &v); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

// view is the data of the page.
type view struct {
	*Report

	Version, Span string
	ArmsNote      string
	Charts        []chart
}

// chart is a plot of horizontal bars. Lengths are in units of the drawing.
type chart struct {
	ID, Title, Text string
	Series          []string // names of the series, if there are several
	Height          int
	Rows            []bars
}

// bars are the bars of one name.
type bars struct {
	Y     int // of the name's base line
	Name  string
	Parts []bar
}

type bar struct {
	Y, TextY int
	Width    int
	TextX    int
	Class    string // s0, s1 or s2
	Value    string
}

// The dimensions of a plot, in units of the drawing, which is as wide as the page.
const (
	chartLeft  = 230 // start of the bars
	chartRoom  = 560 // length of the longest bar
	barHeight  = 16
	barGap     = 3
	rowGap     = 10
	chartTop   = 8
	textBase   = 12 // base line of a text within a bar
	maxBars    = 12
	maxDayBars = 31
	labelRunes = 20
)

func (r *Report) charts() []chart {
	var out []chart
	for i := range r.By {
		s := &r.By[i]
		groups, of := s.Groups, "by "+s.By
		if most := maxBars; s.By != ByDay && len(groups) > most {
			groups, of = groups[:most], fmt.Sprintf("%s, the first %d", of, most)
		} else if most := maxDayBars; s.By == ByDay && len(groups) > most {
			groups, of = groups[len(groups)-most:], fmt.Sprintf("%s, the last %d", of, most)
		}
		requests := []series{{"requests", func(g *Group) float64 { return float64(g.Requests) }, func(x float64) string { return Thousands(int64(x)) }}}
		out = append(out, draw(s.By+"-requests", "Requests "+of, groups, requests)...)
		cost := []series{
			{"spent", func(g *Group) float64 { return g.Cost }, USD},
			{"at the dearest model's price", func(g *Group) float64 { return g.Baseline }, USD},
		}
		out = append(out, draw(s.By+"-cost", "Cost "+of, groups, cost)...)
		ttft := []series{
			{"p50", func(g *Group) float64 { return g.TTFT.P50 }, Milliseconds},
			{"p95", func(g *Group) float64 { return g.TTFT.P95 }, Milliseconds},
			{"p99", func(g *Group) float64 { return g.TTFT.P99 }, Milliseconds},
		}
		if s.By == ByModel {
			out = append(out, draw(s.By+"-ttft", "Time to first token of streams "+of, groups, ttft)...)
		}
	}
	return out
}

// series is one value of groups.
type series struct {
	name  string
	value func(g *Group) float64
	text  func(x float64) string
}

// draw creates a plot; none if all values are 0.
func draw(id, title string, groups []Group, of []series) []chart {
	most := 0.0
	for i := range groups {
		for _, s := range of {
			most = max(most, s.value(&groups[i]))
		}
	}
	if most <= 0 {
		return nil
	}
	c := chart{ID: id, Title: title}
	if len(of) > 1 {
		for _, s := range of {
			c.Series = append(c.Series, s.name)
		}
	}
	var said []string
	y := chartTop
	for i := range groups {
		g := &groups[i]
		row := bars{Y: y + textBase, Name: Shorten(g.Name, labelRunes)}
		if !slices.ContainsFunc(of, func(s series) bool { return s.value(g) > 0 }) {
			continue
		}
		words := make([]string, 0, len(of))
		for k, s := range of {
			x := s.value(g)
			width := int(math.Round(x / most * chartRoom))
			if x > 0 {
				width = max(width, 1)
			}
			row.Parts = append(row.Parts, bar{
				Y: y, TextY: y + textBase, Width: max(width, 0), TextX: chartLeft + max(width, 0) + 6,
				Class: "s" + strconv.Itoa(k), Value: s.text(x),
			})
			words = append(words, strings.TrimSpace(s.text(x)+" "+map[bool]string{true: s.name}[len(of) > 1]))
			y += barHeight + barGap
		}
		said = append(said, g.Name+": "+strings.Join(words, ", "))
		y += rowGap - barGap
		c.Rows = append(c.Rows, row)
	}
	c.Height, c.Text = y, strings.Join(said, "; ")
	return []chart{c}
}

// Span formats a time range in UTC.
func Span(from, to time.Time) string {
	const minute = "2006-01-02 15:04"
	return from.UTC().Format(minute) + " to " + to.UTC().Format(minute) + " UTC"
}

// Thousands groups the digits of a count.
func Thousands[N int | int64](n N) string {
	s := strconv.FormatInt(int64(n), 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// USD formats money: in cents for large amounts, with more digits for small ones.
func USD(x float64) string {
	sign := ""
	if x < 0 {
		sign, x = "-", -x
	}
	switch {
	case x == 0:
		return "$0"
	case x >= 100:
		whole, cents := math.Modf(math.Round(x*100) / 100)
		return fmt.Sprintf("%s$%s.%02.0f", sign, Thousands(int64(whole)), cents*100)
	case x >= 0.01:
		return fmt.Sprintf("%s$%.4f", sign, x)
	}
	digits := 2 - int(math.Floor(math.Log10(x))) // three significant ones
	return fmt.Sprintf("%s$%.*f", sign, min(digits, 12), x)
}

// Milliseconds formats a time; empty for 0, which means none.
func Milliseconds(x float64) string {
	switch {
	case x <= 0:
		return "-"
	case x >= 10_000:
		return fmt.Sprintf("%.1f s", x/1000)
	case x >= 100:
		return fmt.Sprintf("%.0f ms", x)
	}
	return fmt.Sprintf("%.1f ms", x)
}

// Share formats a part of a whole in percent; empty if the whole is 0.
func Share(part, whole int64) string {
	if whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(whole))
}

// Shorten cuts a text to at most this many characters.
func Shorten(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}
