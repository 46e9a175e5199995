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
		Short: "Create and manage API keys",
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
		Short: "Create a key for the configuration, and print its line for auth.keys",
		Long: "Create a key and print it with its line for auth.keys. The key is shown once and not stored; the\n" +
			"configuration contains only its SHA-256 hash. NAME identifies the key in logs and limits.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return misuse("keys new requires one name, such as: signalbox keys new web-app")
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
			p.printf("The key, for the caller. It is shown only once:\n\n  %s\n\n", p.bold(key))
			p.printf("Its line for the configuration:\n\n  auth:\n    mode: keys\n    keys:\n      %s\n", line)
			return nil
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", "", "tenant of the caller (default: auth.default_tenant)")
	cmd.Flags().StringVar(&role, "role", "", "role of the caller (default: auth.default_role)")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print only the key and the line")
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
