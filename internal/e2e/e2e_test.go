package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/pflag"

	"signalbox/internal/app"
	"signalbox/internal/config"
	"signalbox/internal/hub/hubtest"
	"signalbox/internal/testkit"
)

// TestMain runs the tests in the root of the project, where what they build, run and read lies, with
// the program in front of the PATH, built as make builds it, or with the flags of buildFlags.
func TestMain(m *testing.M) {
	status, err := inRoot(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

// buildFlags is a variable of the environment: further flags for building the program. make
// test-programs sets it to -race.
const buildFlags = "SIGNALBOX_TEST_BUILD"

func inRoot(m *testing.M) (status int, err error) {
	if _, err := os.Stat("go.mod"); err == nil {
		return m.Run(), nil // a test has run itself
	}
	if err := os.Chdir("../.."); err != nil {
		return 1, err
	}
	dir, err := os.MkdirTemp("", "signalbox-e2e")
	if err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	args := append([]string{"build", "-pgo=auto", "-trimpath", "-ldflags=-X main.version=dev", "-o", dir},
		strings.Fields(os.Getenv(buildFlags))...)
	build := exec.CommandContext(context.Background(), "go", append(args, ".")...)
	if out, err := build.CombinedOutput(); err != nil {
		return 1, fmt.Errorf("build the program: %w\n%s", err, out)
	}
	if err := os.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH")); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// TestScripts runs the real program in testdata/script. Besides testscript's own commands there are
//
//	freeport VAR...         sets each variable to a loopback port that was free a moment ago
//	ready URL               waits until GET URL answers 200
//	post URL FILE [KEY=VAL] sends FILE as JSON, with headers, and prints status, headers and body
//	get URL                 prints status, headers and body
//	await URL FILE REGEXP   posts until the answer matches
//	hup WORD                sends SIGHUP to the background program with WORD among its arguments
//	hold URL FILE           sends FILE as JSON, waits for the first byte of the answer and leaves it open until the script ends
//	insist WORD             sends SIGTERM to that program until it is gone, which must not take until its requests have ended
//
// $HUB is the address of a model hub with the repository acme/topics.
func TestScripts(t *testing.T) {
	hub := hubtest.New(t, &hubtest.Repo{Name: "acme/topics", License: "mit", Files: []hubtest.File{
		{Path: "config.json", Data: []byte(`{"architectures": ["BertForSequenceClassification"]}`)},
		{Path: "tokenizer.json", Data: []byte("{}")},
		{Path: "model.onnx", Data: bytes.Repeat([]byte("graph "), 1000), LFS: true},
		{Path: "training_args.bin", Data: []byte("not asked for")},
	}})
	testscript.Run(t, testscript.Params{
		Dir:                 "internal/e2e/testdata/script",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			// The library that make fetched lies in the user's cache; scripts get a home of their
			// own.
			dir, err := os.UserCacheDir()
			if err != nil {
				return err
			}
			e.Setenv("XDG_CACHE_HOME", dir)
			e.Setenv("HUB", hub.URL())
			e.Setenv("GORACE", os.Getenv("GORACE"))
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name != "onnxruntime" {
				return false, fmt.Errorf("unknown condition %q", name)
			}
			s, err := config.ReadSettings(pflag.NewFlagSet("test", pflag.ContinueOnError))
			return err == nil && app.Versions(s).Err == nil, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"freeport": freePort, "ready": ready, "post": post, "get": get, "await": await, "hup": hup, "hold": hold, "insist": insist,
		},
	})
}

// freePort sets variables to ports that nobody listens on.
func freePort(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		port, err := testkit.FreePort(context.Background())
		ts.Check(err)
		ts.Setenv(name, port)
	}
}

// readyTimeout bounds the wait for a server; a cold model load on a busy machine takes a second or
// two.
const readyTimeout = testkit.Patience

func ready(ts *testscript.TestScript, _ bool, args []string) {
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for {
		if code, _, err := request(ctx, http.MethodGet, args[0], nil, nil); err == nil && code == http.StatusOK {
			return
		}
		select {
		case <-ctx.Done():
			ts.Fatalf("%s was not ready within %v", args[0], readyTimeout)
		case <-poll.C:
		}
	}
}

func post(ts *testscript.TestScript, _ bool, args []string) {
	send(ts, http.MethodPost, args[0], []byte(ts.ReadFile(args[1])), args[2:])
}

func await(ts *testscript.TestScript, _ bool, args []string) {
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	body, want := []byte(ts.ReadFile(args[1])), regexp.MustCompile(args[2])
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for {
		_, text, err := request(ctx, http.MethodPost, args[0], body, nil)
		if err == nil && want.MatchString(text) {
			return
		}
		select {
		case <-ctx.Done():
			ts.Fatalf("no answer matched %s, the last one was %s", want, text)
		case <-poll.C:
		}
	}
}

// hold keeps a stream open.
func hold(ts *testscript.TestScript, _ bool, args []string) {
	ctx, cancel := context.WithCancel(context.Background())
	ts.Defer(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, args[0], strings.NewReader(ts.ReadFile(args[1])))
	ts.Check(err)
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	ts.Check(err)
	ts.Defer(func() { _ = res.Body.Close() })
	_, err = res.Body.Read(make([]byte, 1))
	ts.Check(err)
}

// insist sends the signal more than once or twice: two that come together are one to a process.
func insist(ts *testscript.TestScript, _ bool, args []string) {
	pid := child(ts, args[0])
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	for syscall.Kill(pid, syscall.SIGTERM) == nil {
		select {
		case <-ctx.Done():
			ts.Fatalf("it went on after a second signal")
		case <-again.C:
		}
	}
}

func hup(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(syscall.Kill(child(ts, args[0]), syscall.SIGHUP))
}

// child looks among the children of this process, which are the programs in the background.
func child(ts *testscript.TestScript, word string) (pid int) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	ts.Check(err)
	for _, dir := range dirs {
		status, err := os.ReadFile(filepath.Join(dir, "status"))
		if err != nil || !strings.Contains(string(status), fmt.Sprintf("\nPPid:\t%d\n", os.Getpid())) {
			continue
		}
		cmdline, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil || !slices.Contains(strings.Split(string(cmdline), "\x00"), word) {
			continue
		}
		pid, err = strconv.Atoi(filepath.Base(dir))
		ts.Check(err)
		return pid
	}
	ts.Fatalf("no background program has the argument %s", word)
	return 0
}

func get(ts *testscript.TestScript, _ bool, args []string) {
	send(ts, http.MethodGet, args[0], nil, args[1:])
}

func send(ts *testscript.TestScript, method, url string, body []byte, headers []string) {
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	_, text, err := request(ctx, method, url, body, headers)
	ts.Check(err)
	_, err = io.WriteString(ts.Stdout(), text)
	ts.Check(err)
}

func request(ctx context.Context, method, url string, body []byte, headers []string) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Content-Type", "application/json")
	for _, h := range headers {
		k, v, _ := strings.Cut(h, "=")
		req.Header.Set(k, v)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	var out strings.Builder
	out.WriteString(resp.Status + "\n")
	if err := resp.Header.Write(&out); err != nil {
		return 0, "", err
	}
	out.WriteString("\n")
	_, err = io.Copy(&out, resp.Body)
	return resp.StatusCode, out.String(), err
}
