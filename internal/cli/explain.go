package cli

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/net/http/httpguts"

	"signalbox/internal/app"
	"signalbox/internal/config"
)

func (c *command) explain() *cobra.Command {
	var role, tenant, request string
	var headers []string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "explain (--config FILE | --demo) [--role R] [--tenant T] [--header 'NAME: VALUE']... [--json] " +
			"(PROMPT | - | --request body.json)",
		Short: "Show what would be decided for a prompt, and why",
		Long: "Show the decision for a prompt: its signals, how each route was evaluated, what was not computed and why.\n" +
			"Nothing is forwarded. With - the prompt is read from standard input.\n" +
			"--request reads a whole chat completion request from a file, - from standard input. The roles of its messages\n" +
			"determine the origin of each text: jailbreak reads text of the user (a PROMPT is one), injection reads tool\n" +
			"results, documents and what the user quotes or pastes. For both, the output shows the sentence with the\n" +
			"highest score and which texts were not read.\n" +
			"--header sets a request header for rules that read one. Credentials in it are ignored: set the caller with\n" +
			"--role and --tenant.",
		Args: func(_ *cobra.Command, args []string) error {
			if (len(args) == 1) == (request != "") {
				return misuse("explain requires one PROMPT, in quotes, or --request FILE")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := headersOf(headers)
			if err != nil {
				return err
			}
			a, done, err := c.oneShot(cmd)
			if err != nil {
				return err
			}
			defer done()
			body, err := c.chatBody(a, args, request)
			if err != nil {
				return err
			}
			x, err := a.Explain(cmd.Context(), body, role, tenant, h)
			if err != nil {
				if request != "" && request != "-" {
					err = fmt.Errorf("%s: %w", request, err)
				}
				return fmt.Errorf("explain: %w", err)
			}
			p := c.printer()
			if asJSON {
				return p.json(x)
			}
			p.explanation(x)
			return nil
		},
	}
	addConfigFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&role, "role", "", "role of the caller")
	f.StringVar(&tenant, "tenant", "", "tenant of the caller")
	f.StringArrayVarP(&headers, "header", "H", nil, "header of the request, as 'X-Team: research'; may be repeated")
	f.StringVar(&request, "request", "", "file with a chat completion request, - for standard input")
	f.BoolVar(&asJSON, "json", false, "print the decision as JSON")
	return cmd
}

// headersOf reads headers in the form of curl: NAME: VALUE, or NAME; for one without a value.
func headersOf(lines []string) (http.Header, error) {
	h := http.Header{}
	for _, line := range lines {
		name, value, found := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		if !found {
			name, found = strings.CutSuffix(line, ";")
		} else if value == "" {
			return nil, misuse("--header %q has no value; 'NAME;' is a header without one", line)
		}
		if !found || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return nil, misuse("--header %q is no header; write 'NAME: VALUE'", line)
		}
		h.Add(name, value)
	}
	return h, nil
}

// chatBody returns the request to explain: a prompt put into one, or a file as it is. - is standard
// input.
func (c *command) chatBody(a *app.App, args []string, file string) ([]byte, error) {
	switch {
	case file == "" && args[0] != "-":
		return a.ChatBody(args[0])
	case file == "":
		b, err := io.ReadAll(c.In)
		if err != nil {
			return nil, fmt.Errorf("read prompt: %w", err)
		}
		return a.ChatBody(string(b))
	}
	read := func() ([]byte, error) { return os.ReadFile(file) }
	if file == "-" {
		read = func() ([]byte, error) { return io.ReadAll(c.In) }
	}
	b, err := read()
	if err != nil {
		return nil, fmt.Errorf("read request: %w", err)
	}
	return b, nil
}

// loadOrDemo reads the named configuration or, with --demo, the embedded one.
func (c *command) loadOrDemo(cmd *cobra.Command) (*config.Config, config.Settings, error) {
	demo, err := cmd.Flags().GetBool("demo")
	if err != nil {
		return nil, config.Settings{}, fmt.Errorf("flag --demo: %w", err)
	}
	switch {
	case !demo:
		return c.load(cmd, nil)
	case cmd.Flags().Changed("config"):
		return nil, config.Settings{}, misuse("%s takes --config or --demo, not both", cmd.Name())
	}
	settings, err := config.ReadSettings(cmd.Flags())
	if err != nil {
		return nil, settings, err
	}
	cfg, err := app.DemoConfig()
	return cfg, settings, err
}
