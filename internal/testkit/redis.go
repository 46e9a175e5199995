package testkit

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Redis is a redis-server for one test, on a free loopback port, with its data in a folder of the
// test. It ends with the test.
type Redis struct {
	tb   testing.TB
	dir  string
	port string
	args []string
	cmd  *exec.Cmd     // nil: not running
	gone chan struct{} // closed when cmd has ended
}

// NewRedis starts a redis-server with additional arguments, such as "--maxmemory", "10mb". Data is
// written to disk before a write is acknowledged. In short mode, and without the program, the test
// is skipped; without the program it fails if CI is set.
func NewRedis(tb testing.TB, args ...string) *Redis {
	tb.Helper()
	if testing.Short() {
		tb.Skip("SKIPPED, it needs redis-server")
	}
	program, err := exec.LookPath("redis-server")
	if err != nil {
		if os.Getenv("CI") != "" {
			tb.Fatalf("redis-server is needed: %v", err)
		}
		tb.Skipf("SKIPPED, redis-server is not installed: %v", err)
	}
	r := &Redis{tb: tb, dir: tb.TempDir(), args: append([]string{program}, args...)}
	tb.Cleanup(r.Stop)
	for range 20 {
		port, err := FreePort(tb.Context())
		if err != nil {
			tb.Fatal(err)
		}
		r.port = port
		if said := r.start(); said == "" {
			return r
		} else if !strings.Contains(said, "Address already in use") {
			tb.Fatalf("redis-server ended: %s", said)
		}
	}
	tb.Fatal("20 ports that were free were taken before redis-server had them")
	return nil
}

// URL returns the URL for clients.
func (r *Redis) URL() string { return "redis://127.0.0.1:" + r.port }

// Addr returns host and port.
func (r *Redis) Addr() string { return "127.0.0.1:" + r.port }

// Start starts the server with the data left by Stop or Kill, and returns when it is ready.
func (r *Redis) Start() {
	r.tb.Helper()
	if said := r.start(); said != "" {
		r.tb.Fatalf("redis-server ended: %s", said)
	}
}

// start starts it and returns when it is ready, or what it said when it ended before.
func (r *Redis) start() string {
	r.tb.Helper()
	args := append([]string{
		"--port", r.port, "--bind", "127.0.0.1", "--dir", r.dir, "--save", "", "--appendonly", "yes", "--appendfsync", "everysec", "--daemonize", "no",
	}, r.args[1:]...)
	log := &readyLog{ready: make(chan struct{})}
	cmd := exec.CommandContext(context.WithoutCancel(r.tb.Context()), r.args[0], args...) //nolint:gosec // a program of the machine
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		r.tb.Fatal(err)
	}
	r.cmd, r.gone = cmd, make(chan struct{})
	go func(gone chan struct{}) {
		defer close(gone)
		_ = cmd.Wait() // its exit code after a signal says nothing
	}(r.gone)
	select {
	case <-log.ready:
	case <-r.gone:
		r.cmd = nil
		return log.text.String()
	case <-time.After(time.Minute):
		r.tb.Fatal("redis-server is not ready after a minute")
	}
	return ""
}

// readyLog closes ready when the server says that it is.
type readyLog struct {
	ready chan struct{}
	once  sync.Once
	text  bytes.Buffer // written by one goroutine, read when that has ended
}

func (l *readyLog) Write(p []byte) (int, error) {
	l.text.Write(p)
	if bytes.Contains(l.text.Bytes(), []byte("Ready to accept connections")) {
		l.once.Do(func() { close(l.ready) })
	}
	return len(p), nil
}

// Stop ends it in order; what was written is on disk. Stopping it twice does nothing.
func (r *Redis) Stop() { r.end(syscall.SIGTERM) }

// Kill ends it at once.
func (r *Redis) Kill() { r.end(syscall.SIGKILL) }

func (r *Redis) end(s syscall.Signal) {
	if r.cmd == nil {
		return
	}
	r.Resume()
	if err := r.cmd.Process.Signal(s); err != nil {
		r.tb.Errorf("end redis-server: %v", err)
	}
	<-r.gone
	r.cmd = nil
}

// Pause lets it hang: connections stay, nothing is answered.
func (r *Redis) Pause() { r.signal(syscall.SIGSTOP) }

// Resume ends a Pause.
func (r *Redis) Resume() { r.signal(syscall.SIGCONT) }

func (r *Redis) signal(s syscall.Signal) {
	if err := r.cmd.Process.Signal(s); err != nil {
		r.tb.Errorf("signal %v to redis-server %s: %v", s, strconv.Itoa(r.cmd.Process.Pid), err)
	}
}
