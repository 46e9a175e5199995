package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"signalbox/internal/app"
	"signalbox/internal/config"
)

func (c *command) doctor() *cobra.Command {
	var asJSON, strict bool
	cmd := &cobra.Command{
		Use:   "doctor [FILE]",
		Short: "Check everything that a configuration needs, and suggest fixes",
		Long: "Check everything that a configuration needs, and suggest fixes: the file, ONNX Runtime and its\n" +
			"execution provider, models, ports, model servers, Redis, clocks and file limits. Nothing is\n" +
			"changed. Without FILE, doctor reads the configuration that serve would use.\n\n" +
			"The exit code is 1 if there are problems (with --strict: or warnings), else 0.",
		RunE: func(cmd *cobra.Command, args []string) error {
			settings, file, err := c.file(cmd, args)
			if errors.Is(err, config.ErrNoFile) {
				file, err = "signalbox.yaml", nil // that there is none is found below
			}
			if err != nil {
				return err
			}
			found := app.Examine(cmd.Context(), file, app.Options{Settings: settings, Version: c.version, Env: c.Env, Log: c.Err})
			problems, warnings := 0, 0
			for i := range found {
				switch found[i].Level {
				case app.LevelProblem:
					problems++
				case app.LevelWarning:
					warnings++
				case app.LevelOK:
				}
			}
			p := c.printer()
			if asJSON {
				err = p.json(struct {
					File     string        `json:"file"`
					Problems int           `json:"problems"`
					Warnings int           `json:"warnings"`
					Findings []app.Finding `json:"findings"`
				}{file, problems, warnings, found})
			} else {
				p.findings(found)
				p.printf("\n%s: %s, %s\n", file, count(problems, "problem"), count(warnings, "warning"))
			}
			if err == nil && (problems > 0 || strict && warnings > 0) {
				return errSilent
			}
			return err
		},
	}
	takesFile(cmd)
	addJSON(cmd, &asJSON)
	cmd.Flags().BoolVar(&strict, "strict", false, "treat warnings as problems")
	return cmd
}

// findings prints what was found, area by area.
func (p *printer) findings(found []app.Finding) {
	area := ""
	for i := range found {
		f := &found[i]
		if f.Area != area {
			area = f.Area
			p.printf("%s\n", p.bold(area))
		}
		mark := map[app.Level]string{
			app.LevelOK: p.good("ok     "), app.LevelWarning: p.warn("warning"), app.LevelProblem: p.bad("problem"),
		}[f.Level]
		p.printf("  %s  %s: %s\n", mark, f.Subject, f.Text)
		if f.Do != "" {
			p.printf("           -> %s\n", f.Do)
		}
	}
}
