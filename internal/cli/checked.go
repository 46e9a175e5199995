package cli

import (
	"errors"
	"slices"

	"signalbox/internal/app"
	"signalbox/internal/config"
	"signalbox/rules"
)

// checked is what check found in a configuration, and what check --json prints.
type checked struct {
	File     string    `json:"file"`
	Valid    bool      `json:"valid"`
	Models   int       `json:"models"`
	Routes   int       `json:"routes"`
	Problems []problem `json:"problems"`
	Probes   []probed  `json:"probes,omitempty"` // with --online
}

// problem is one mistake or one warning about a place in a file.
type problem struct {
	File     string `json:"file"`
	Line     int    `json:"line"`
	Column   int    `json:"column"`
	Path     string `json:"path"`
	Message  string `json:"message"`
	Severity string `json:"severity"` // error or warning
}

// probed is what came of using one model, or of reaching Redis or one endpoint.
type probed struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail,omitempty"`
	Error  string `json:"error,omitempty"`

	state string // of what is well
}

func problemsOf(file string, all []rules.Problem) []problem {
	out := make([]problem, len(all))
	for i, p := range all {
		out[i] = problem{file, p.Line, p.Col, p.Path, p.Msg, "error"}
		if p.Warning {
			out[i].Severity = "warning"
		}
	}
	return out
}

func probesOf(all []app.Probed) []probed {
	out := make([]probed, len(all))
	for i, r := range all {
		out[i] = probed{Name: r.Name, OK: r.Err == nil, Detail: r.Detail, state: "reachable"}
		if r.Local {
			out[i].state = "usable"
		}
		if r.Err != nil {
			out[i].Error = r.Err.Error()
		}
	}
	return out
}

// unreached reports whether something cannot be used or reached.
func (f *checked) unreached() bool {
	return slices.ContainsFunc(f.Probes, func(r probed) bool { return !r.OK })
}

// invalid prints the problems of a file for a program, and ends the command.
func (p *printer) invalid(file string, err error) error {
	found := checked{File: file}
	if e := (*config.Error)(nil); errors.As(err, &e) {
		found.Problems = problemsOf(file, e.Problems)
	}
	if err := p.json(found); err != nil {
		return err
	}
	return errSilent
}

// validated prints what is found in a file that is valid, and what can be used and reached.
func (p *printer) validated(f *checked, warnings []rules.Problem) {
	for _, w := range warnings {
		p.printf("%s\n", p.warn(config.Format(f.File, w)))
	}
	for _, r := range f.Probes {
		if r.OK {
			p.printf("%s %s (%s)\n", p.good(r.state), r.Name, r.Detail)
		} else {
			p.printf("%s %s: %s\n", p.bad("un"+r.state), r.Name, r.Error)
		}
	}
	if !f.unreached() {
		p.printf("%s: %s (%s, %s, %s)\n", f.File, p.good("valid"), count(f.Models, "model"),
			count(f.Routes, "route"), count(len(warnings), "warning"))
	}
}
