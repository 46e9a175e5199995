//go:build linux

package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"signalbox/internal/testkit"
)

// knocks asks whether the server lives, over a connection of its own that it leaves open. silent
// sends nothing.
func knocks(t *testing.T, address string, silent bool) error { //nolint:revive // a test's table
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		return err
	}
	t.Cleanup(func() { _ = conn.Close() })
	if silent {
		return nil
	}
	_ = conn.SetDeadline(time.Now().Add(readyTimeout))
	if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		return err
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, res.Body)
	return res.Body.Close()
}

// With few files that a process may open, clients that hold connections and ask for nothing keep
// nobody out: neither those that asked once, nor those that never said a word.
func TestIdleConnectionsShutNobodyOut(t *testing.T) {
	t.Parallel()
	bin, err := exec.LookPath("signalbox")
	if err != nil {
		t.Fatal(err)
	}
	for _, silent := range []bool{false, true} {
		t.Run(fmt.Sprintf("silent %v", silent), func(t *testing.T) {
			t.Parallel()
			main, admin := testkit.FreeAddress(t), testkit.FreeAddress(t)
			file := filepath.Join(t.TempDir(), "signalbox.yaml")
			text := fmt.Sprintf("server: {listen: '%s', admin_listen: '%s'}\n", main, admin) +
				"models: [{name: m, endpoints: [{name: a, url: 'http://127.0.0.1:9/v1'}], " +
				"health: {path: 'off'}}]\ndefault: {models: [m]}\n"
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			args := []string{"-c", `ulimit -n 128; exec "$@"`, "sh", bin, "serve", "--config", file}
			cmd := exec.CommandContext(t.Context(), "sh", args...)
			cmd.Env = bare(t)
			defer begin(t, cmd)()
			for end := time.Now().Add(readyTimeout); knocks(t, main, false) != nil; {
				if time.Now().After(end) {
					t.Fatal("it is not there")
				}
			}
			for i := range 200 {
				if err := knocks(t, main, silent); err != nil {
					t.Fatalf("connection %d: %v", i, err)
				}
			}
			if err := knocks(t, main, false); err != nil {
				t.Errorf("a client after 200 idle ones: %v", err)
			}
			if err := knocks(t, admin, false); err != nil {
				t.Errorf("the admin listener: %v", err)
			}
		})
	}
}
