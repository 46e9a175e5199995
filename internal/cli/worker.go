package cli

import (
	"log/slog"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"signalbox/internal/worker"
)

// worker is the process in which `classify.isolation: process` runs models. It is started by serve,
// not by people.
func (c *command) worker() *cobra.Command {
	var socket string
	cmd := &cobra.Command{
		Use:    "worker --socket PATH",
		Short:  "Run models for a signalbox process, which starts and stops the worker",
		Hidden: true,
		Args:   noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if socket == "" {
				return misuse("worker is started by `signalbox serve` with classify.isolation: process")
			}
			// Whoever stops the service may tell every process of it; the parent ends this one when
			// it has drained.
			signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
			log := slog.New(slog.NewJSONHandler(c.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
			return worker.Serve(cmd.Context(), c.In, c.Out, socket, c.version, log)
		},
	}
	cmd.Flags().StringVar(&socket, "socket", "", "path of the unix socket to serve on")
	return cmd
}
