package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"signalbox/internal/app"
	"signalbox/internal/config"
)

func (c *command) check() *cobra.Command {
	var online bool
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Validate a configuration",
		Long: "Validate a configuration. Every problem is printed as FILE:LINE:COL: path: message.\n" +
			"Exit code 0 when there is none (warnings are allowed), else 1.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return misuse("check takes exactly one file")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, warnings, err := config.Load(args[0], c.Env, app.Catalog)
			if err != nil {
				return err
			}
			p := c.printer()
			for _, w := range warnings {
				p.printf("%s\n", p.warn(config.Format(args[0], w)))
			}
			failed := false
			if online {
				settings, err := config.ReadSettings(cmd.Flags())
				if err != nil {
					return err
				}
				failed = c.probe(cmd, cfg, settings)
			}
			if failed {
				return errSilent
			}
			p.printf("%s: %s (%d models, %d routes, %d warnings)\n", args[0], p.good("valid"), len(cfg.Models), len(cfg.Routes.Content), len(warnings))
			return nil
		},
	}
	cmd.Flags().BoolVar(&online, "online", false, "also open the models and probe every endpoint")
	return cmd
}

// probe prints what cannot be reached and reports whether anything could not.
func (c *command) probe(cmd *cobra.Command, cfg *config.Config, s config.Settings) bool {
	p := c.printer()
	failed := false
	for _, r := range app.Probe(cmd.Context(), cfg, s) {
		if r.Err != nil {
			failed = true
			p.printf("%s %s: %s\n", p.bad("unreachable"), r.Name, r.Err)
			continue
		}
		p.printf("%s %s\n", p.good("reachable"), fmt.Sprintf("%s (%s)", r.Name, r.Detail))
	}
	return failed
}
