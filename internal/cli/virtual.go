package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"signalbox/internal/app"
	"signalbox/internal/config"
	"signalbox/proxy/keyring"
)

// virtualKey is what the admin listener tells of a key.
type virtualKey struct {
	keyring.Key

	Secret string `json:"secret"`
}

// virtualKeys are the commands about keys of a running proxy.
func (c *command) virtualKeys() []*cobra.Command {
	var create struct {
		Name   string `json:"name"`
		Tenant string `json:"tenant,omitempty"`
		Role   string `json:"role,omitempty"`
		TTL    string `json:"ttl,omitempty"`
	}
	var grace, tenant string
	var asJSON bool
	add := c.keyCommand("create NAME", "Create a virtual key in a running proxy, without a reload", 1,
		func(ctx context.Context, at string, args []string) error {
			create.Name = args[0]
			var k virtualKey
			if err := c.askAdmin(ctx, http.MethodPost, at+keyring.Path, create, &k); err != nil {
				return err
			}
			if k.Hint != "" {
				_, _ = fmt.Fprintf(c.Err, "signalbox: %s\n", k.Hint)
			}
			c.printer().printf("%s\n%s\n", k.ID, k.Secret)
			return nil
		})
	add.Long = "Create a virtual key in a running proxy, without a reload, and print its id and the key, which is\n" +
		"shown only once. Models, rate limits and budgets are set with the HTTP API: docs/keys.md."
	add.Flags().StringVar(&create.Tenant, "tenant", "", "tenant of the caller (default: auth.default_tenant)")
	add.Flags().StringVar(&create.Role, "role", "", "role of the caller (default: auth.default_role)")
	add.Flags().StringVar(&create.TTL, "ttl", "", "lifetime, such as 720h or 30d (default: no expiry)")
	list := c.keyCommand("list", "List the virtual keys of a running proxy", 0,
		func(ctx context.Context, at string, _ []string) error {
			var all struct{ Keys []virtualKey }
			at += keyring.Path + "?tenant=" + url.QueryEscape(tenant)
			if asJSON {
				return c.printAnswer(ctx, at)
			}
			if err := c.askAdmin(ctx, http.MethodGet, at, nil, &all); err != nil {
				return err
			}
			rows := make([][]string, len(all.Keys))
			for i, k := range all.Keys {
				rows[i] = []string{k.ID, k.Name, k.State, k.Tenant, k.Role, date(k.Expires)}
			}
			c.printer().table([]string{"id", "name", "state", "tenant", "role", "expires"}, rows)
			return nil
		})
	list.Flags().StringVar(&tenant, "tenant", "", "only the keys of this tenant")
	addJSON(list, &asJSON)
	rotate := c.keyCommand("rotate (ID | NAME)", "Issue a new secret for a virtual key of a running proxy", 1,
		func(ctx context.Context, at string, args []string) error {
			id, err := c.keyID(ctx, at, args[0])
			if err != nil {
				return err
			}
			var k virtualKey
			err = c.askAdmin(ctx, http.MethodPost, at+keyring.Path+"/"+url.PathEscape(id)+"/rotate",
				map[string]string{"grace": grace}, &k)
			if err != nil {
				return err
			}
			c.printer().printf("%s\n", k.Secret)
			return nil
		})
	rotate.Flags().StringVar(&grace, "grace", "0s", "how long the previous secret stays valid, such as 24h or 7d")
	revoke := c.keyCommand("revoke (ID | NAME)", "Revoke a virtual key of a running proxy", 1,
		func(ctx context.Context, at string, args []string) error {
			id, err := c.keyID(ctx, at, args[0])
			if err != nil {
				return err
			}
			return c.askAdmin(ctx, http.MethodDelete, at+keyring.Path+"/"+url.PathEscape(id), nil, nil)
		})
	return []*cobra.Command{add, list, c.showKey(), rotate, revoke}
}

// keyID is the id of the key that an id or a name means. One that is neither is left to the server.
func (c *command) keyID(ctx context.Context, at, word string) (string, error) {
	var all struct{ Keys []virtualKey }
	if err := c.askAdmin(ctx, http.MethodGet, at+keyring.Path, nil, &all); err != nil {
		return "", err
	}
	id := word
	for _, k := range all.Keys {
		if k.ID == word {
			return word, nil
		}
		if k.Name == word { // which is no other's
			id = k.ID
		}
	}
	return id, nil
}

// keyCommand is a command that asks the admin listener, whose address run gets without a slash at
// its end.
func (c *command) keyCommand(
	use, short string, takes int, run func(ctx context.Context, at string, args []string) error,
) *cobra.Command {
	var at string
	cmd := &cobra.Command{
		Use: use, Short: short,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) < takes:
				return misuse("missing key: signalbox keys %s", cmd.Use)
			case len(args) > takes && takes == 0:
				return misuse("keys %s takes no argument, found %q", cmd.Use, args[0])
			case len(args) > takes:
				return misuse("keys %s takes one key, found %q besides %q", cmd.Name(), args[1], args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if cmd.Flags().Changed("config") {
				if at, err = c.adminOf(cmd); err != nil {
					return err
				}
			}
			if !strings.HasPrefix(at, "http://") && !strings.HasPrefix(at, "https://") {
				return misuse("--admin takes a URL such as http://127.0.0.1:9090, found %q", at)
			}
			return run(cmd.Context(), strings.TrimSuffix(at, "/"), args)
		},
	}
	cmd.Flags().StringVar(&at, "admin", "http://127.0.0.1:9090", "address of the admin listener; SIGNALBOX_ADMIN_TOKEN is sent")
	cmd.Flags().String("config", "", "configuration file of the local proxy, to find its admin listener")
	return cmd
}

// adminOf is the address of the admin listener that the file of --config names, on this machine.
func (c *command) adminOf(cmd *cobra.Command) (string, error) {
	if cmd.Flags().Changed("admin") {
		return "", misuse("keys %s takes --config or --admin, not both", cmd.Name())
	}
	settings, err := config.ReadSettings(cmd.Flags())
	if err != nil {
		return "", err
	}
	b, err := os.ReadFile(settings.File)
	if err != nil {
		return "", fmt.Errorf("read configuration: %w", err)
	}
	cfg, _, err := config.Check(settings.File, b, c.Env, app.Catalog) // without its secrets
	if err != nil {
		return "", err
	}
	cfg.Override(settings)
	host, port, err := net.SplitHostPort(cfg.Server.AdminListen)
	if err != nil || port == "0" {
		return "", misuse("%s does not fix the port of server.admin_listen; pass the address, such as: "+
			"signalbox keys %s --admin http://127.0.0.1:9090", settings.File, cmd.Name())
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port), nil
}

// adminTime is how long the admin listener may take.
const adminTime = 30 * time.Second

// What an answer and a refusal of the admin listener may have, in bytes.
const (
	maxAnswer  = 256 << 20
	maxRefusal = 64 << 10
)

// askAdmin sends body as JSON, unless it is nil, and reads the answer into out, unless that is nil.
func (c *command) askAdmin(ctx context.Context, method, at string, body, out any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	if body == nil {
		b = nil
	}
	ctx, cancel := context.WithTimeout(ctx, adminTime)
	defer cancel()
	res, err := c.openAdmin(ctx, method, at, b)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err == nil && out != nil {
		err = json.Unmarshal(text, out)
	}
	if err != nil {
		return fmt.Errorf("read the answer of the admin listener: %w", err)
	}
	return nil
}

// openAdmin makes a request to the admin listener, and explains what it refuses. The caller closes
// the body.
func (c *command) openAdmin(ctx context.Context, method, at string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, at, bytes.NewReader(body))
	if err != nil {
		return nil, misuse("--admin: %v", err)
	}
	if token, _ := c.Env("SIGNALBOX_ADMIN_TOKEN"); token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	client := http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true, ResponseHeaderTimeout: adminTime},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("the admin listener is not reachable; set its address with --admin: %w", err)
	}
	if res.StatusCode < http.StatusMultipleChoices {
		return res, nil
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, maxRefusal))
	return nil, errors.Join(refusal(req, res.Status, text), err, res.Body.Close())
}

// printAnswer prints what the admin listener answers at a URL as it is: one JSON object.
func (c *command) printAnswer(ctx context.Context, at string) error {
	var answer json.RawMessage
	if err := c.askAdmin(ctx, http.MethodGet, at, nil, &answer); err != nil {
		return err
	}
	return c.printer().json(answer)
}

// refusal is what the admin listener says to req instead of an answer.
func refusal(req *http.Request, status string, text []byte) error {
	var e struct{ Error struct{ Message string } }
	message := strings.TrimSpace(string(text[:min(len(text), 1<<10)]))
	if json.Unmarshal(text, &e) == nil && e.Error.Message != "" {
		message = e.Error.Message
	}
	return errors.New("the admin listener returned " + status + ": " + message + tokenHint(req, message))
}

// tokenHint says what to do about a refusal of req, where that is known.
func tokenHint(req *http.Request, message string) string {
	switch {
	case !strings.Contains(message, "admin_token"):
		return ""
	case req.Header.Get("Authorization") == "":
		return "; set SIGNALBOX_ADMIN_TOKEN to it"
	case strings.Contains(message, "different token"):
		return "; SIGNALBOX_ADMIN_TOKEN has the wrong value"
	}
	return "; the server has no server.admin_token"
}

func date(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format(time.RFC3339)
}
