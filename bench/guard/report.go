package main

import (
	"fmt"
	"io"
	"runtime"
	"strings"
)

// report collects figures and notes.
type report struct {
	rows  [][3]string
	notes []string
}

// figure adds a row: name, measured value, required value (empty for none).
func (r *report) figure(what, measured, bar string) {
	r.rows = append(r.rows, [3]string{what, measured, bar})
}

func (r *report) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

// write prints everything as Markdown.
func (r *report) write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s/%s, %d cores.\n\n| figure | measured | bar |\n| --- | --- | --- |\n", runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0))
	for _, row := range r.rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row[:], " | "))
	}
	b.WriteString("\n")
	for _, n := range r.notes {
		fmt.Fprintf(&b, "- %s\n", n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
