package cli

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"signalbox/internal/report"
	"signalbox/proxy/keyring"
)

// keyUsage is what the admin listener tells of one key.
type keyUsage struct {
	keyring.Key

	Usage []keyring.Usage `json:"usage"`
}

// amount writes dollars as such, and anything else as a whole number.
func amount(b *keyring.Usage, x float64) string {
	if b.What == "usd" {
		return report.USD(x)
	}
	return report.Thousands(int64(x))
}

// showKey is the command that tells of a key what is used of its budgets and limits.
func (c *command) showKey() *cobra.Command {
	var asJSON bool
	cmd := c.keyCommand("show (ID | NAME)", "Show a virtual key of a running proxy, and the usage of its limits", 1,
		func(ctx context.Context, at string, args []string) error {
			id, err := c.keyID(ctx, at, args[0])
			if err != nil {
				return err
			}
			at += keyring.Path + "/" + url.PathEscape(id)
			if asJSON {
				return c.printAnswer(ctx, at)
			}
			var k keyUsage
			if err := c.askAdmin(ctx, http.MethodGet, at, nil, &k); err != nil {
				return err
			}
			c.printer().keyUsage(&k)
			return nil
		})
	cmd.Long = "Show a virtual key of a running proxy, and what is used of the budgets and the limits on a\n" +
		"minute that bound it and its tenant. Keys of the configuration are not asked about here:\n" +
		"`signalbox report --by key` sums up what they cost."
	addJSON(cmd, &asJSON)
	return cmd
}

func (p *printer) keyUsage(k *keyUsage) {
	for _, l := range [...][2]string{
		{"id", k.ID},
		{"name", k.Name},
		{"state", k.State},
		{"tenant", cmp.Or(k.Tenant, "the default")},
		{"role", cmp.Or(k.Role, "the default")},
		{"models", cmp.Or(strings.Join(k.Models, ", "), "all")},
		{"expires", date(k.Expires)},
	} {
		p.printf("%-8s %s\n", l[0], l[1])
	}
	if len(k.Unknown) > 0 {
		p.printf("\n%s\n", p.bad("the configuration does not have "+strings.Join(k.Unknown, ", ")))
	}
	if k.Hint != "" {
		p.printf("\n%s\n", p.warn(k.Hint))
	}
	if len(k.Usage) == 0 {
		p.printf("\nno budget and no rate limit applies to it\n")
		return
	}
	alone := false
	rows := make([][]string, len(k.Usage))
	for i := range k.Usage {
		b := &k.Usage[i]
		rows[i] = []string{
			b.Of, b.What, b.Per, amount(b, b.Limit), amount(b, b.Used), amount(b, b.Left), date(b.Resets),
		}
		alone = alone || b.Alone
	}
	p.printf("\n")
	p.table([]string{"of", "what", "per", "limit", "used", "left", "resets"}, rows)
	if alone {
		p.printf("counted by this replica only: Redis is not configured or did not respond\n")
	}
}
