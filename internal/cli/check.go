package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"signalbox/internal/app"
	"signalbox/internal/config"
	"signalbox/rules"
)

func (c *command) check() *cobra.Command {
	var online, asJSON bool
	cmd := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Validate a configuration",
		Long: "Validate a configuration file. Without FILE, check reads the file that serve would use. Every problem\n" +
			"is printed as FILE:LINE:COL: path: message; --json prints one JSON object instead.\n" +
			"The exit code is 0 if there are no errors (warnings are allowed), else 1.\n" +
			"With --allow-unset, unset secrets and missing files of server.tls are reported as warnings.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if online && allowsUnset(cmd) {
				return misuse("--online requires the secrets: it cannot be combined with --allow-unset")
			}
			settings, file, err := c.file(cmd, args)
			if err != nil {
				return err
			}
			p := c.printer()
			cfg, warnings, err := c.read(cmd, file)
			if asJSON && config.IsInvalid(err) {
				return p.invalid(file, err)
			}
			if err != nil {
				return err
			}
			found := checked{
				File: file, Valid: true, Models: len(cfg.Models), Routes: len(cfg.Routes.Content),
				Problems: problemsOf(file, warnings),
			}
			if online {
				found.Probes = probesOf(app.Probe(cmd.Context(), cfg, settings))
			}
			if asJSON {
				err = p.json(found)
			} else {
				p.validated(&found, warnings)
			}
			if err == nil && found.unreached() {
				return errSilent
			}
			return err
		},
	}
	takesFile(cmd)
	addAllowUnset(cmd)
	addJSON(cmd, &asJSON)
	cmd.Flags().BoolVar(&online, "online", false, "also load the models and probe Redis and every endpoint")
	return cmd
}

// allowUnset is the flag of commands that need no secrets.
const allowUnset = "allow-unset"

// addAllowUnset adds the flag to a command that reads a configuration and serves nothing.
func addAllowUnset(cmd *cobra.Command) {
	cmd.Flags().Bool(allowUnset, false, "report unset secrets as warnings, for machines that do not run the proxy")
}

// allowsUnset reports whether secrets may be missing: not where a command has no such flag.
func allowsUnset(cmd *cobra.Command) bool {
	unset, err := cmd.Flags().GetBool(allowUnset)
	return err == nil && unset
}

// takesFile lets a command be given one configuration file, as its argument or by --config, or
// none.
func takesFile(cmd *cobra.Command) {
	cmd.Flags().String("config", "",
		"configuration file (default: signalbox.yaml in the current directory, ~/.config/signalbox or /etc/signalbox)")
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) > 1:
			return misuse("%s takes one configuration file, found %q besides %q", cmd.Name(), args[1], args[0])
		case len(args) == 1 && cmd.Flags().Changed("config"):
			return misuse("the configuration file is given twice, with --config and as %q", args[0])
		}
		return nil
	}
}

// file names the configuration that a command is about: its argument, or what serve would take.
func (*command) file(cmd *cobra.Command, args []string) (config.Settings, string, error) {
	settings, err := config.ReadSettings(cmd.Flags())
	if err != nil {
		return settings, "", err
	}
	if len(args) == 1 {
		settings.File = args[0]
	}
	if settings.File == "" {
		settings.File, err = config.Discover()
	}
	return settings, settings.File, err
}

// read reads a configuration: without its secrets where the command has the flag for it.
func (c *command) read(cmd *cobra.Command, file string) (*config.Config, []rules.Problem, error) {
	return c.readWith(cmd, file, app.Catalog)
}

// readWith is read with another idea of what there has to be of the models.
func (c *command) readWith(
	cmd *cobra.Command, file string, catalog func(*config.Classify) (config.Catalog, error),
) (*config.Config, []rules.Problem, error) {
	parse := config.Parse
	if allowsUnset(cmd) {
		parse = config.Check
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, fmt.Errorf("read configuration: %w", err)
	}
	return parse(file, b, c.Env, catalog)
}

// count is a number of things in words.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
