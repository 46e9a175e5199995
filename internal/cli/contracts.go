package cli

import (
	"github.com/spf13/cobra"

	"signalbox/internal/app"
)

func (c *command) schema() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the configuration, for editors",
		Long: "Print the JSON Schema of the configuration. An editor with the YAML language server completes\n" +
			"and checks a file that begins with\n\n" +
			"  # yaml-language-server: $schema=signalbox.schema.json\n\n" +
			"where that is the output of this command. It knows the form of the file; names, ranges and what\n" +
			"depends on other keys are for `signalbox check`.",
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			b, err := app.Schema()
			if err == nil {
				c.printer().printf("%s", b)
			}
			return err
		},
	}
}

func (c *command) openapi() *cobra.Command {
	return &cobra.Command{
		Use:   "openapi",
		Short: "Print the OpenAPI description of the HTTP API",
		Long: "Print the OpenAPI 3.1 description of the HTTP API, of both listeners, in JSON. What is OpenAI's own is\n" +
			"described as far as signalbox reads it.",
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			c.printer().printf("%s", app.OpenAPI())
			return nil
		},
	}
}
