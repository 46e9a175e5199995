package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"signalbox/gpu"
	"signalbox/internal/app"
	"signalbox/internal/config"
)

func (c *command) versionCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print versions and the execution providers found",
		Args:  noArgs,
		Long: "Print versions and the execution providers of ONNX Runtime. Each provider is tried with a small run: yes, it\n" +
			"works; no, it is missing or failed; unknown, it could not be tried.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings, err := config.ReadSettings(cmd.Flags())
			if err != nil {
				return err
			}
			p := c.printer()
			if asJSON {
				return p.json(c.versions(app.Probes(cmd.Context(), app.Options{Settings: settings})))
			}
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
				p.printf("provider: auto selects %s\n", v.Provider)
			}
			return nil
		},
	}
	addJSON(cmd, &asJSON)
	return cmd
}

// versions is what version --json prints.
type versions struct {
	Version   string         `json:"version"`
	Go        string         `json:"go"`
	OS        string         `json:"os"`
	Arch      string         `json:"arch"`
	Runtime   runtimeVersion `json:"onnx_runtime"`
	Bundle    string         `json:"embedded_bundle"`
	Provider  string         `json:"provider"` // that auto takes here
	Providers []gpu.Provider `json:"providers"`
}

// runtimeVersion is the ONNX Runtime that was found, or why none was.
type runtimeVersion struct {
	Version string `json:"version,omitempty"`
	Library string `json:"library,omitempty"`
	Error   string `json:"error,omitempty"`
}

func (c *command) versions(found app.VersionInfo) versions {
	v := versions{
		Version: c.version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH,
		Runtime: runtimeVersion{Version: found.Runtime, Library: found.Library},
		Bundle:  found.Bundle, Provider: found.Provider, Providers: append([]gpu.Provider{}, found.Providers...),
	}
	if found.Err != nil {
		v.Runtime.Error = found.Err.Error()
	}
	return v
}
