package cli

import (
	"github.com/spf13/cobra"

	"signalbox/internal/app"
)

func (c *command) schema() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the configuration, for editors",
		Long: "Print the JSON Schema of the configuration. Editors with the YAML language server complete and\n" +
			"check a file that begins with\n\n" +
			"  # yaml-language-server: $schema=signalbox.schema.json\n\n" +
			"where signalbox.schema.json is the output of this command. The schema describes the structure of\n" +
			"the file; names, ranges and dependencies between keys are checked by `signalbox check`.",
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
		Long: "Print the OpenAPI 3.1 description of the HTTP API of both listeners, as JSON. OpenAI's own API is\n" +
			"described only as far as signalbox reads it.",
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			c.printer().printf("%s", app.OpenAPI())
			return nil
		},
	}
}
