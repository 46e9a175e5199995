package cli

import (
	"context"
	"errors"
	"fmt"
	"log" //nolint:depguard // where net/http writes what it has no other place for
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"signalbox/internal/app"
	"signalbox/internal/config"
)

func (c *command) serve() *cobra.Command {
	var requireModels bool
	cmd := &cobra.Command{
		Use:   "serve [FILE] [--listen ADDR]",
		Short: "Run the proxy",
		Long: "Run the proxy. SIGTERM drains and stops it; SIGHUP or a change of the file reloads the configuration.\n" +
			"FILE is the configuration file, the same as --config FILE.\n" +
			"Flags override the variables SIGNALBOX_CONFIG, SIGNALBOX_LISTEN and SIGNALBOX_ADMIN_LISTEN, which\n" +
			"override the file.",
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, settings, err := c.load(cmd, args)
			if err != nil {
				return err
			}
			return c.runApp(cmd.Context(), cfg, app.Options{Settings: settings, RequireModels: requireModels}, nil)
		},
	}
	takesFile(cmd)
	addListenFlags(cmd)
	cmd.Flags().BoolVar(&requireModels, "require-models", false, "refuse to start without ONNX Runtime")
	return cmd
}

func addListenFlags(cmd *cobra.Command) {
	cmd.Flags().String("listen", "", "address of the main listener; overrides server.listen")
	cmd.Flags().String("admin-listen", "", "address of the admin listener; overrides server.admin_listen")
}

// load reads the configuration that argument, flags, environment and discovery name, and prints
// warnings.
func (c *command) load(cmd *cobra.Command, args []string) (*config.Config, config.Settings, error) {
	settings, file, err := c.file(cmd, args)
	if err != nil {
		return nil, settings, err
	}
	cfg, warnings, err := c.read(cmd, file)
	if err != nil {
		return nil, settings, err
	}
	for _, w := range warnings {
		_, _ = fmt.Fprintln(c.Err, config.Format(file, w))
	}
	cfg.Override(settings)
	return cfg, settings, nil
}

// runApp builds and serves until the context ends; ready, unless it is nil, is called once the
// listeners are open. It owns the SIGHUP subscription.
func (c *command) runApp(ctx context.Context, cfg *config.Config, o app.Options,
	ready func(a *app.App, addr, admin net.Addr),
) error {
	o.Version, o.Log, o.Env = c.version, c.Err, c.Env
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP) // from here on it reloads, also while models are loading, and ends nothing
	defer signal.Stop(reload)
	a, err := app.Build(ctx, cfg, o)
	if err != nil {
		return err
	}
	log.SetFlags(0)
	log.SetOutput(a.LibraryLog())
	err = a.Serve(ctx, reload, func(addr, admin net.Addr) {
		if ready != nil {
			ready(a, addr, admin)
		}
	})
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if errors.Is(err, app.ErrCut) {
		err = errSilent
	}
	if cerr := a.Close(closing); err == nil {
		err = cerr
	}
	return err
}

// noArgs refuses positional arguments with a message that names them.
func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return misuse("unexpected argument %q", args[0])
	}
	return nil
}
