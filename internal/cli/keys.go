package cli

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"signalbox/internal/option"
)

func (c *command) keys() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Make keys for callers: of the configuration, and of a running proxy",
		RunE:  onlyHelp,
	}
	cmd.AddCommand(c.newKey())
	cmd.AddCommand(c.virtualKeys()...)
	return cmd
}

func (c *command) newKey() *cobra.Command {
	var tenant, role string
	var quiet bool
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Print a new key, and its line for auth.keys",
		Long: "Print a new key, and its line for auth.keys. The key is shown this once and kept nowhere;\n" +
			"the configuration holds its SHA-256 alone. NAME is what logs and limits call it.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return misuse("keys new takes one name, as in: signalbox keys new web-app")
			}
			var p option.Problems
			p.Name("NAME", args[0])
			if err := p.Err(); err != nil {
				return misuse("%v", err)
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			// 256 bits: a hash without salt or stretching is enough for what nobody can guess.
			random := make([]byte, 32)
			_, _ = rand.Read(random) // never fails
			key := "sk-sb-" + base64.RawURLEncoding.EncodeToString(random)
			line, err := keyLine(args[0], key, tenant, role)
			if err != nil {
				return err
			}
			p := c.printer()
			if quiet {
				p.printf("%s\n%s\n", key, line)
				return nil
			}
			p.printf("The key, for the caller. It is shown this once:\n\n  %s\n\n", p.bold(key))
			p.printf("Its line for the configuration:\n\n  auth:\n    mode: keys\n    keys:\n      %s\n", line)
			return nil
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", "", "whom the caller belongs to; default: auth.default_tenant")
	cmd.Flags().StringVar(&role, "role", "", "what rules may read; default: auth.default_role")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print the key and the line, and nothing else")
	return cmd
}

// keyLine is an item of auth.keys.
func keyLine(name, key, tenant, role string) (string, error) {
	sum := sha256.Sum256([]byte(key))
	fields := []string{"sha256: " + hex.EncodeToString(sum[:])}
	for _, f := range []struct{ key, value string }{{"name", name}, {"tenant", tenant}, {"role", role}} {
		if f.value == "" {
			continue
		}
		var p option.Problems
		p.Name("--"+f.key, f.value)
		if err := p.Err(); err != nil {
			return "", misuse("%v", err)
		}
		text := fmt.Sprintf("%s: %q", f.key, f.value)
		if f.key == "name" {
			fields = append([]string{text}, fields...)
			continue
		}
		fields = append(fields, text)
	}
	return "- {" + strings.Join(fields, ", ") + "}", nil
}
