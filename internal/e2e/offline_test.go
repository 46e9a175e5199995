//go:build linux

package e2e

import (
	"bytes"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"signalbox/internal/app"
	"signalbox/internal/config"
)

const offlineEnv = "SIGNALBOX_TEST_OFFLINE" // set in the process that has no network

// F5: the program starts and decides on a machine without a network. This test runs itself in a
// network namespace that has the loopback device and nothing else, and starts the demo there.
func TestF5ItStartsWithoutANetwork(t *testing.T) {
	if os.Getenv(offlineEnv) != "" {
		demoWithoutANetwork(t)
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), offlineEnv+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EINVAL) {
		t.Skipf("SKIPPED, this system gives no namespaces: %v", err)
	}
	if err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name())) {
		t.Errorf("%v\n%s", err, out)
	}
}

func demoWithoutANetwork(t *testing.T) {
	t.Helper()
	raiseLoopback(t)
	if c, err := new(net.Dialer).DialContext(t.Context(), "tcp", "192.0.2.1:443"); !errors.Is(err, syscall.ENETUNREACH) {
		t.Fatalf("there is a network: %v, %v", c, err)
	}
	const address = "127.0.0.1:18080" // every port is free here
	cmd := exec.CommandContext(t.Context(), "signalbox", "demo", "--listen", address, "--admin-listen", "127.0.0.1:19090")
	defer begin(t, cmd)()
	for end := time.Now().Add(readyTimeout); ; {
		code, _, err := request(t.Context(), http.MethodGet, "http://"+address+"/healthz", nil, nil)
		if err == nil && code == http.StatusOK {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("it is not ready: %d, %v", code, err)
		}
	}
	code, answer, err := request(t.Context(), http.MethodPost, "http://"+address+"/v1/chat/completions", []byte(`{"model":"auto","messages":[{"role":"user","content":"What is the derivative of x^2?"}]}`), nil)
	settings, problem := config.ReadSettings(pflag.NewFlagSet("test", pflag.ContinueOnError))
	if problem != nil {
		t.Fatal(problem)
	}
	if app.Versions(settings).Err != nil { // without models the demo blocks what it cannot judge
		return
	}
	if err != nil || code != http.StatusOK || !strings.Contains(answer, `"choices"`) {
		t.Errorf("got %d %s, %v", code, answer, err)
	}
}

// begin starts the program, and returns what interrupts it and waits for its end. What it wrote is
// shown when the test failed.
func begin(t *testing.T, cmd *exec.Cmd) (end func()) {
	t.Helper()
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return func() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		if err := <-ended; err != nil || t.Failed() {
			t.Errorf("the program ended with %v\n%s", err, log.String())
		}
	}
}

// raiseLoopback turns the loopback device on, which a new namespace has turned off.
func raiseLoopback(t *testing.T) {
	t.Helper()
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(s) }()
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		t.Fatal(err)
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, lo); err != nil {
		t.Fatal(err)
	}
}
