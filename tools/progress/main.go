// Command progress runs go test with the given arguments and reports progress: a line for each
// completed package, the complete output of failed packages, and every few seconds the running
// ones. Its exit status is that of go test.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// every is the maximum time without output.
const every = 15 * time.Second

// event is a line of go test -json (go doc test2json, go help buildjson).
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64
}

// said is output of a test, or of its package if test is empty.
type said struct{ test, text string }

// progress is the state of the packages.
type progress struct {
	out     io.Writer
	begun   time.Time
	running map[string]int    // completed tests of running packages
	said    map[string][]said // output of tests that have not passed, in order
	passed  int               // packages
	failed  []string          // packages
}

func main() {
	status, err := run(os.Args[1:], os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "progress:", err)
		status = max(status, 1)
	}
	os.Exit(status)
}

func run(args []string, out io.Writer) (status int, err error) {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	cmd.Env = environment(os.Environ())
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return 1, err
	}
	if err := cmd.Start(); err != nil {
		return 1, err
	}
	p := &progress{out: out, begun: time.Now(), running: map[string]int{}, said: map[string][]said{}}
	fmt.Fprintln(out, "compiling the tests")
	lines, ended := make(chan []byte), make(chan error, 1)
	go func() {
		r := bufio.NewReader(pipe)
		for {
			line, err := r.ReadBytes('\n')
			if len(line) > 0 {
				lines <- line
			}
			if err != nil {
				close(lines)
				if errors.Is(err, io.EOF) {
					err = nil
				}
				ended <- err
				return
			}
		}
	}()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for open := true; open; {
		select {
		case line, more := <-lines:
			if open = more; more {
				p.read(line)
			}
		case <-tick.C:
			p.tell()
		}
	}
	err = <-ended
	waited := cmd.Wait()
	p.finish()
	if exit := new(exec.ExitError); errors.As(waited, &exit) {
		return max(exit.ExitCode(), 1), err // less than 0: a signal
	}
	return 0, errors.Join(err, waited)
}

// environment adds an option to env that makes programs with the race detector exit immediately,
// unless env configures the detector. By default each waits a second, in which remaining goroutines
// could still race (https://go.dev/doc/articles/race_detector), and tests start hundreds of
// programs. A detected race is still reported and fails the program.
func environment(env []string) []string {
	if slices.ContainsFunc(env, func(v string) bool { return strings.HasPrefix(v, "GORACE=") }) {
		return env
	}
	return append(env, "GORACE=atexit_sleep_ms=0")
}

// read processes a line. A line that is not an event is printed unchanged.
func (p *progress) read(line []byte) {
	var e event
	if err := json.Unmarshal(line, &e); err != nil || e.Action == "" {
		_, _ = p.out.Write(line)
		return
	}
	top, _, _ := strings.Cut(e.Test, "/")
	switch e.Action {
	case "build-output":
		fmt.Fprint(p.out, e.Output)
	case "start":
		p.running[e.Package] = 0
	case "output":
		p.said[e.Package] = append(p.said[e.Package], said{top, e.Output})
	case "pass", "skip":
		if e.Test == "" {
			p.end(&e, true)
		} else if e.Test == top {
			p.running[e.Package]++
			p.said[e.Package] = slices.DeleteFunc(p.said[e.Package], func(s said) bool { return s.test == top })
		}
	case "fail":
		if e.Test == "" {
			p.end(&e, false)
		} else if e.Test == top {
			p.running[e.Package]++
			fmt.Fprintf(p.out, "     %s: %s fails\n", e.Package, e.Test)
		}
	}
}

// end reports a completed package, with all its output if it failed.
func (p *progress) end(e *event, ok bool) {
	word := "ok  "
	if !ok {
		word = "FAIL"
		p.failed = append(p.failed, e.Package)
		for _, s := range p.said[e.Package] {
			fmt.Fprint(p.out, s.text)
		}
	} else {
		p.passed++
	}
	fmt.Fprintf(p.out, "%s %6.1fs %s, %d tests\n", word, e.Elapsed, e.Package, p.running[e.Package])
	delete(p.running, e.Package)
	delete(p.said, e.Package)
}

// tell reports the running packages.
func (p *progress) tell() {
	names := make([]string, 0, len(p.running))
	for name, tests := range p.running {
		names = append(names, fmt.Sprintf("%s (%d tests done)", name, tests))
	}
	slices.Sort(names)
	if len(names) == 0 {
		names = append(names, "compiling")
	}
	fmt.Fprintf(p.out, "... %s, %d packages done: %s\n",
		time.Since(p.begun).Round(time.Second), p.passed+len(p.failed), strings.Join(names, ", "))
}

// finish prints a summary, with the output of packages that never completed.
func (p *progress) finish() {
	for name := range p.running {
		p.end(&event{Package: name}, false)
	}
	fmt.Fprintf(p.out, "%d packages passed, %d failed %s, in %s\n",
		p.passed, len(p.failed), strings.Join(p.failed, " "), time.Since(p.begun).Round(time.Second))
}
