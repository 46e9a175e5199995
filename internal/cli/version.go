package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"signalbox/internal/app"
	"signalbox/internal/config"
)

func (c *command) versionCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print versions and the execution providers found",
		Args:  noArgs,
		Long: "Print versions and the execution providers of ONNX Runtime. Each is asked by a tiny run: yes, it works; no, it is\n" +
			"missing or failed; unknown, that could not be told.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings, err := config.ReadSettings(cmd.Flags())
			if err != nil {
				return err
			}
			p := c.printer()
			p.printf("signalbox %s (%s, %s/%s)\n", c.version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			v := app.Probes(cmd.Context(), app.Options{Settings: settings})
			if v.Err != nil {
				p.printf("ONNX Runtime: %s\n", p.bad("not available"))
				p.printf("  %v\n", v.Err)
			} else {
				p.printf("ONNX Runtime %s (%s)\n", v.Runtime, v.Library)
			}
			p.printf("embedded bundle: %s\n", v.Bundle)
			rows := make([][]string, 0, len(v.Providers))
			for _, pr := range v.Providers {
				rows = append(rows, []string{pr.Name, fmt.Sprint(pr.State), pr.Detail})
			}
			if len(rows) > 0 {
				p.table([]string{"provider", "available", "detail"}, rows)
				p.printf("provider: auto takes %s here\n", v.Provider)
			}
			return nil
		},
	}
}
