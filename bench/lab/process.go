package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Addresses returns n loopback addresses that were free a moment ago.
func Addresses(ctx context.Context, n int) (out []string, err error) {
	for range n {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a port: %w", err)
		}
		defer func() { _ = l.Close() }() // after all are found, so that none is found twice
		out = append(out, l.Addr().String())
	}
	return out, nil
}

// Port returns a loopback port that was free a moment ago.
func Port(ctx context.Context) (string, error) {
	at, err := Addresses(ctx, 1)
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(at[0])
	return port, err
}

// Binary returns the program to measure: the named one, or that of this checkout, built into dir.
func Binary(ctx context.Context, named, dir string) (string, error) {
	if named != "" {
		return named, nil
	}
	out := filepath.Join(dir, "signalbox")
	build := exec.CommandContext(ctx, "go", "build", "-o", out, "signalbox") //nolint:gosec // a folder of its own
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return "", fmt.Errorf("build signalbox: %w", err)
	}
	return out, nil
}

// Redis starts a redis-server without persistence, and waits until it accepts connections at the
// returned address. If it was started, the caller ends it, even after an error.
func Redis(ctx context.Context, dir string) (cmd *exec.Cmd, at string, err error) {
	port, err := Port(ctx)
	if err != nil {
		return nil, "", err
	}
	cmd = exec.CommandContext(ctx, "redis-server", "--port", port, "--bind", "127.0.0.1", //nolint:gosec // a program of the machine
		"--dir", dir, "--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction")
	if err := cmd.Start(); err != nil {
		return nil, "", fmt.Errorf("redis-server: %w", err)
	}
	at = net.JoinHostPort("127.0.0.1", port)
	err = Wait(ctx, 10*time.Second, "redis-server", func() bool {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", at)
		return err == nil && c.Close() == nil
	})
	return cmd, at, err
}

// Wait polls until yes returns true, for at most most.
func Wait(ctx context.Context, most time.Duration, what string, yes func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !yes() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited for %s: %w", what, ctx.Err())
		case <-tick.C:
		}
	}
	return nil
}

// Stop asks a program to end, and kills it after most.
func Stop(cmd *exec.Cmd, most time.Duration) error {
	err := cmd.Process.Signal(syscall.SIGTERM)
	late := time.AfterFunc(most, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	return errors.Join(err, cmd.Wait())
}

// Spent returns the processor time of this process.
func Spent() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Memory returns a memory value that Linux reports for a process, in bytes, for example VmRSS. The
// process is a number, or "self". 0: unknown.
func Memory(process, key string) int64 {
	status, err := os.ReadFile(filepath.Join("/proc", process, "status"))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, key+":"); ok {
			kb, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kb << 10
		}
	}
	return 0
}
