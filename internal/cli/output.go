package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/charmbracelet/lipgloss"
	"github.com/charmbracelet/lipgloss/table"
	"github.com/spf13/cobra"
)

// printer writes for a person on a terminal and for a program in a pipe.
type printer struct {
	w        io.Writer
	terminal bool
	width    int // columns
	render   *lipgloss.Renderer
}

func (c *command) printer() *printer {
	return &printer{w: c.Out, terminal: c.Terminal, width: max(c.Width, 40), render: lipgloss.NewRenderer(c.Out)}
}

func (p *printer) printf(format string, args ...any) { _, _ = fmt.Fprintf(p.w, format, args...) }

// The colours are the terminal's own sixteen, so that every theme stays readable.
func (p *printer) style(colour, text string) string {
	if !p.terminal {
		return text
	}
	return p.render.NewStyle().Foreground(lipgloss.Color(colour)).Render(text)
}

func (p *printer) good(s string) string  { return p.style("2", s) }
func (p *printer) bad(s string) string   { return p.style("1", s) }
func (p *printer) warn(s string) string  { return p.style("3", s) }
func (p *printer) faint(s string) string { return p.style("8", s) }

func (p *printer) bold(s string) string {
	if !p.terminal {
		return s
	}
	return p.render.NewStyle().Bold(true).Render(s)
}

// table prints rows under headers: framed on a terminal, aligned columns in a pipe.
func (p *printer) table(headers []string, rows [][]string) {
	if !p.terminal {
		tw := tabwriter.NewWriter(p.w, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(tw, strings.Join(headers, "\t"))
		for _, r := range rows {
			_, _ = fmt.Fprintln(tw, strings.Join(r, "\t"))
		}
		_ = tw.Flush()
		return
	}
	cell, head := p.render.NewStyle().Padding(0, 1), p.render.NewStyle().Padding(0, 1).Bold(true)
	t := table.New().Border(lipgloss.RoundedBorder()).BorderStyle(p.render.NewStyle().Foreground(lipgloss.Color("8"))).
		Headers(headers...).Rows(rows...).
		StyleFunc(func(row, _ int) lipgloss.Style {
			if row == table.HeaderRow {
				return head
			}
			return cell
		})
	p.printf("%s\n", t.Render())
}

// addJSON adds the flag by which a command prints one object for a program.
func addJSON(cmd *cobra.Command, to *bool) {
	cmd.Flags().BoolVar(to, "json", false, "print one JSON object")
}

// json prints one indented object.
func (p *printer) json(v any) error {
	enc := json.NewEncoder(p.w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("print JSON: %w", err)
	}
	return nil
}
