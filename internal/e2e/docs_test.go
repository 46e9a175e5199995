package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"signalbox/internal/app"
	"signalbox/internal/config"
	"signalbox/internal/simulator"
	"signalbox/internal/testkit"
)

// command is a command of the documentation and what it is said to print.
type command struct {
	text string
	want []string
}

// commands returns those of a block that shows what is printed: lines behind a dollar sign, and
// what follows them.
func commands(text string) (out []command) {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
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

// parses reports what is wrong with the form of a script, by a program that reads it. Where that
// program is not here nothing is looked at.
func parses(t *testing.T, text, program string, args ...string) error {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		return nil //nolint:nilerr // nobody to ask
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// Every command of the documentation is run, against the demo or against what the page serves, and
// prints what the page says.
func TestCommandsOfTheDocumentation(t *testing.T) {
	s, err := config.ReadSettings(pflag.NewFlagSet("test", pflag.ContinueOnError))
	if err != nil || app.Versions(s).Err != nil {
		t.Skip("ONNX Runtime is not here: run make test")
	}
	for _, name := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip(name + " is not here")
		}
	}
	d := &documentation{}
	d.recordedBy, d.decisions = recorded(t)
	for name, model := range map[string]string{"10.0.0.11:8000": "sim/Tiny-1B", "10.0.0.12:8000": "sim/Large-70B"} {
		d.replaced = append(d.replaced, name, strings.TrimPrefix(simulated(t, model), "http://"))
	}
	d.demo = sync.OnceValues(func() (string, string) {
		main, admin := testkit.FreeAddress(t), testkit.FreeAddress(t)
		launch(t, main, "demo", "--listen", main, "--admin-listen", admin)
		return main, admin
	})
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		all, err := blocksOf(filepath.ToSlash(page), text)
		if err != nil {
			t.Fatal(err)
		}
		d.page(t, all)
	}
	if d.ran < 25 {
		t.Errorf("only %d commands were run", d.ran)
	}
}

// documentation is what its commands are run with.
type documentation struct {
	demo                  func() (main, admin string) // the addresses of the demo, which the first call starts
	decisions, recordedBy []byte                      // a decision log, and the configuration of it
	replaced              []string                    // words of pages and what they stand for, in pairs
	ran                   int
}

// page runs the commands of one page, in a folder of its own with the files that it names.
func (d *documentation) page(t *testing.T, all []block) {
	t.Helper()
	shell := slices.ContainsFunc(all, func(b block) bool {
		return b.why == "" && (b.language == "sh" || b.language == "console")
	})
	if !shell {
		return
	}
	dir := t.TempDir()
	other, err := os.ReadFile(filepath.FromSlash("internal/setup/testdata/litellm.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "litellm.yaml", other)
	write(t, dir, "new.yaml", d.recordedBy)
	write(t, dir, "decisions.jsonl", d.decisions)
	write(t, dir, "rows.jsonl", toxic())
	if err := os.Mkdir(filepath.Join(dir, "old"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "old"), "decisions.gz", zipped(t, d.decisions))
	words := slices.Clone(d.replaced)
	var main, admin, id string
	for i := range all {
		b := &all[i]
		if b.language != "yaml" && b.language != "json" || b.class == "" || b.class == "kubernetes" || b.class == "after" {
			continue
		}
		text := []byte(strings.NewReplacer(words...).Replace(b.text))
		if b.class != "serve" {
			if !strings.HasSuffix(b.class, ".jsonl") {
				write(t, dir, b.class, text)
			}
			continue
		}
		text, err := complete(b.text, func(served string) string { return simulated(t, served) + "/v1" })
		if err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		// Addresses of the page are those of servers that are not here.
		text = regexp.MustCompile(`http://10\.[0-9.:]+/v1`).ReplaceAllFunc(text, func([]byte) []byte {
			return []byte(simulated(t, "") + "/v1")
		})
		write(t, dir, "served.yaml", text)
		main, admin = testkit.FreeAddress(t), testkit.FreeAddress(t)
		launch(t, main, "serve", filepath.Join(dir, "served.yaml"), "--listen", main, "--admin-listen", admin)
	}
	if main == "" {
		main, admin = d.demo()
	}
	id = askedID(t, main)
	for _, host := range []string{"127.0.0.1", "localhost"} {
		words = append(words, host+":8080", main, host+":9090", admin)
	}
	words = append(words, "bin/signalbox ", "signalbox ", "req_...", id,
		"/var/log/signalbox/decisions.jsonl*", "decisions.jsonl")
	r := &runner{dir: dir, admin: admin, listen: testkit.FreeAddress(t), adminListen: testkit.FreeAddress(t), words: strings.NewReplacer(words...)}
	for i := range all {
		b := &all[i]
		if b.why != "" {
			continue
		}
		switch b.language {
		case "sh":
			d.ran++
			if out, err := r.bash(t.Context(), failing+r.exports+b.text); err != nil {
				t.Errorf("%s: %v\n%s\n%s", b, err, b.text, out)
			}
			for line := range strings.Lines(b.text) {
				if strings.HasPrefix(line, "export ") {
					r.exports += line
				}
			}
		case "yaml":
			if b.class == "after" {
				r.after(t, b)
			}
		case "console":
			for _, c := range commands(b.text) {
				d.ran++
				r.check(t, b, &c)
			}
		}
	}
}

func write(t *testing.T, dir, name string, text []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// runner runs commands of a page.
type runner struct {
	dir, admin          string
	listen, adminListen string // addresses for what a command serves
	words               *strings.Replacer
	exports             string // lines of earlier scripts that later ones build on
}

// failing makes a script end with the first answer that is an error.
const failing = "curl() { command curl -sS --fail-with-body \"$@\"; }\n"

// prelude lets commands that do not end be run until they are ready, and be stopped then; what asks
// the admin listener is told where it is.
const prelude = `set -euo pipefail
signalbox() {
  local pid
  case $1 in
  serve | demo)
    command signalbox "$@" &
    pid=$!
    until command curl -sf "http://$SIGNALBOX_LISTEN/readyz" >/dev/null; do
      kill -0 "$pid" 2>/dev/null || { wait "$pid"; return; }
      sleep 0.05
    done
    kill -TERM "$pid"
    wait "$pid"
    ;;
  top) command signalbox "$@" --admin "http://$ADMIN_ADDRESS" ;;
  keys)
    if [ "$2" = new ]; then command signalbox "$@"; else command signalbox "$@" --admin "http://$ADMIN_ADDRESS"; fi
    ;;
  *) command signalbox "$@" ;;
  esac
}
`

func (r *runner) bash(ctx context.Context, script string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", prelude+r.words.Replace(script))
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "HOME="+r.dir, "XDG_CACHE_HOME="+cache, "ADMIN_ADDRESS="+r.admin,
		"SIGNALBOX_LISTEN="+r.listen, "SIGNALBOX_ADMIN_LISTEN="+r.adminListen, "SIGNALBOX_ADMIN_TOKEN=")
	cmd.WaitDelay = testkit.Patience
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%w: %s", err, said.String())
	}
	return out.String(), nil
}

// after checks a configuration that needs what commands made.
func (r *runner) after(t *testing.T, b *block) {
	t.Helper()
	text, err := complete(b.text, nil)
	if err != nil {
		t.Errorf("%s: %v", b, err)
		return
	}
	write(t, r.dir, "after.yaml", text)
	if out, err := r.bash(t.Context(), "signalbox check after.yaml"); err != nil {
		t.Errorf("%s: %v\n%s", b, err, out)
	}
}

// toxic are rows to train a classifier with.
func toxic() []byte {
	var out bytes.Buffer
	things := []string{"invoice", "parcel", "account", "report", "garden", "train", "lesson", "phone", "recipe", "meeting"}
	for _, thing := range things {
		for _, fine := range []string{"could you look at my %s again?", "when will the %s be ready?", "thank you for the %s"} {
			fmt.Fprintf(&out, `{"text": "`+fine+`", "label": "fine"}`+"\n", thing)
		}
		for _, bad := range []string{"you idiot, you broke the %s", "shut up about your stupid %s", "only a moron needs a %s"} {
			fmt.Fprintf(&out, `{"text": "`+bad+`", "label": "toxic"}`+"\n", thing)
		}
	}
	return out.Bytes()
}

func zipped(t *testing.T, text []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, err := z.Write(text)
	if err = errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// check runs a command and compares what it prints.
func (r *runner) check(t *testing.T, b *block, c *command) {
	t.Helper()
	out, err := r.bash(t.Context(), c.text)
	if err != nil {
		t.Errorf("%s: %s: %v\n%s", b, c.text, err, out)
		return
	}
	if b.class == "sample" {
		if strings.TrimSpace(out) == "" {
			t.Errorf("%s: %s prints nothing", b, c.text)
		}
		return
	}
	lines := strings.Split(out, "\n")
	for _, want := range c.want {
		at := 0
		for at < len(lines) && !regexp.MustCompile(pattern(want)).MatchString(lines[at]) {
			at++
		}
		if at == len(lines) {
			t.Errorf("%s: %s: no line (behind the one before) is\n%s\nin\n%s", b, c.text, want, out)
			return
		}
		lines = lines[at+1:]
	}
}

// simulated starts a model server in this process and returns its URL. Without a name it serves
// whatever it is asked for.
func simulated(t *testing.T, model string) string {
	t.Helper()
	o := simulator.DefaultOptions()
	if o.Model = model; model == "" {
		o.Model = "sim"
	}
	s, err := simulator.New(o)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.Close)
	return server.URL
}

// launch starts the program and waits until it is ready at an address. It ends with the test.
func launch(t *testing.T, address string, args ...string) {
	t.Helper()
	binary, err := exec.LookPath("signalbox") // TestMain puts it there
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = testkit.Patience
	cmd.Stdout = io.Discard
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() {
		stop()
		<-done
	})
	go func() {
		_ = cmd.Wait()
		close(done)
	}()
	for end := time.Now().Add(readyTimeout); ; {
		code, _, err := request(t.Context(), http.MethodGet, "http://"+address+"/readyz", nil, nil)
		if err == nil && code == http.StatusOK {
			return
		}
		select {
		case <-done:
			t.Fatalf("%v ended: %s", args, said.String())
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(end) {
			t.Fatalf("%v is not ready", args)
		}
	}
}

// askedID is the id of a request that was answered, or refused for want of a key.
func askedID(t *testing.T, address string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/v1/chat/completions",
		strings.NewReader(`{"model":"auto","messages":[{"role":"user","content":"Hello"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Body.Close() }()
	if b, err := io.ReadAll(w.Body); err != nil || w.StatusCode != http.StatusOK && w.StatusCode != http.StatusUnauthorized {
		t.Fatalf("%d %s %v", w.StatusCode, b, err)
	}
	return w.Header.Get("X-Request-Id")
}

// recorded is a decision log of a few requests, and the configuration that decided them.
func recorded(t *testing.T) (configuration, decisions []byte) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "decisions.jsonl")
	text, err := complete("routes:\n  - {name: long, when: {tokens: {gt: 20}}, use: {models: [m]}}\ntelemetry: {decisions: {file: "+file+"}}\n",
		func(served string) string { return simulated(t, served) + "/v1" })
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "signalbox.yaml", text)
	main, admin := testkit.FreeAddress(t), testkit.FreeAddress(t)
	launch(t, main, "serve", filepath.Join(dir, "signalbox.yaml"), "--listen", main, "--admin-listen", admin)
	for range 3 {
		askedID(t, main)
	}
	for end := time.Now().Add(testkit.Patience); ; {
		log, err := os.ReadFile(file)
		if err == nil && bytes.Count(log, []byte("\n")) == 3 {
			return text, log
		}
		if time.Now().After(end) {
			t.Fatalf("the log holds %s, %v", log, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
