package e2e

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"signalbox/internal/app"
	"signalbox/internal/config"
	"signalbox/internal/testkit"
)

// command is a command of the documentation and what it is said to print.
type command struct {
	text string
	want []string
}

// commands returns those of the blocks of a page that show what is printed: lines behind a dollar
// sign, and what follows them. Blocks in lists are indented.
func commands(page string) (out []command) {
	block := regexp.MustCompile("(?ms)^( *)```console\n(.*?)^ *```")
	for _, m := range block.FindAllStringSubmatch(page, -1) {
		for line := range strings.Lines(m[2]) {
			line = strings.TrimSuffix(strings.TrimPrefix(line, m[1]), "\n")
			text, begins := strings.CutPrefix(line, "$ ")
			switch n := len(out); {
			case begins:
				out = append(out, command{text: text})
			case n > 0 && out[n-1].want == nil && goesOn(out[n-1].text):
				out[n-1].text += "\n" + line
			case n > 0:
				out[n-1].want = append(out[n-1].want, line)
			}
		}
	}
	return out
}

// goesOn reports whether a command has another line: it ends with a backslash, or in a quotation.
func goesOn(text string) bool {
	return strings.HasSuffix(text, `\`) || strings.Count(text, "'")%2 == 1
}

// number is what differs from one run to the next.
var number = regexp.MustCompile(`[0-9]+(\.[0-9]+)?`)

// pattern matches a line that a page shows: numbers may be others, and ... stands for anything.
func pattern(line string) string {
	var parts []string
	for p := range strings.SplitSeq(line, "...") {
		p = number.ReplaceAllString(p, "0")
		parts = append(parts, strings.ReplaceAll(regexp.QuoteMeta(p), "0", `[0-9]+(\.[0-9]+)?`))
	}
	return "^" + strings.Join(parts, ".*")
}

// Every command of these pages runs against the demo, and prints what the page says.
func TestCommandsOfTheDocumentation(t *testing.T) {
	if s, err := config.ReadSettings(pflag.NewFlagSet("test", pflag.ContinueOnError)); err != nil || app.Versions(s).Err != nil {
		t.Skip("ONNX Runtime is not here: run make test")
	}
	for _, name := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip(name + " is not here")
		}
	}
	main, admin := demo(t)
	ran := 0
	for _, page := range []string{"README.md", "docs/clients.md", "docs/agents.md", "docs/savings.md"} {
		text, err := os.ReadFile(filepath.FromSlash(page))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range commands(string(text)) {
			if strings.Contains(c.text, " serve ") {
				continue // it does not end
			}
			ran++
			shell := strings.NewReplacer("127.0.0.1:8080", main, "127.0.0.1:9090", admin, "bin/signalbox ", "signalbox ").Replace(c.text)
			out, err := exec.CommandContext(t.Context(), "bash", "-c", shell).Output()
			if err != nil {
				t.Errorf("%s: %s: %v\n%s", page, c.text, err, out)
				continue
			}
			lines := strings.Split(string(out), "\n")
			for _, want := range c.want {
				at := 0
				for at < len(lines) && !regexp.MustCompile(pattern(want)).MatchString(lines[at]) {
					at++
				}
				if at == len(lines) {
					t.Errorf("%s: %s: no line (behind the one before) is\n%s\nin\n%s", page, c.text, want, out)
					break
				}
				lines = lines[at+1:]
			}
		}
	}
	if ran < 8 {
		t.Errorf("only %d commands were found", ran)
	}
}

// demo starts the demo and returns the addresses of its listeners.
func demo(t *testing.T) (main, admin string) {
	t.Helper()
	binary, err := exec.LookPath("signalbox") // TestMain puts this test's own program there
	if err != nil {
		t.Fatal(err)
	}
	main, admin = freeAddress(t), freeAddress(t)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd := exec.CommandContext(ctx, binary, "demo", "--listen", main, "--admin-listen", admin)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = testkit.Patience
	cmd.Stdout = io.Discard
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = cmd.Wait()
	})
	for end := time.Now().Add(readyTimeout); ; {
		if code, _, err := request(t.Context(), http.MethodGet, "http://"+main+"/readyz", nil, nil); err == nil && code == http.StatusOK {
			return main, admin
		}
		if time.Now().After(end) {
			t.Fatal("the demo is not ready")
		}
		time.Sleep(20 * time.Millisecond)
	}
}
