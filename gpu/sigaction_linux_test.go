package gpu

import (
	"errors"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"testing"
	"time"

	"signalbox/internal/testkit"
)

// ignore does to a signal what a native library may do: it replaces Go's handler behind Go's back.
func ignore(sig syscall.Signal) { rtSigaction(int(sig), &sigaction{handler: 1}, nil) } // SIG_IGN

// arrives reports whether Go's handler gets a signal.
func arrives(t *testing.T, c <-chan os.Signal, sig syscall.Signal, wait time.Duration) bool {
	t.Helper()
	if err := syscall.Kill(os.Getpid(), sig); err != nil {
		t.Fatal(err)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-c:
		return true
	case <-timer.C:
		return false
	}
}

func TestHandlersThatAProviderReplacesAreGivenBack(t *testing.T) {
	const sig = syscall.SIGUSR2
	c := make(chan os.Signal, 1)
	signal.Notify(c, sig)
	defer signal.Stop(c)
	broken := errors.New("no device")
	changed, err := keepHandlers(func() error {
		ignore(sig)
		ignore(syscall.SIGSEGV)
		return broken
	})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if want := []os.Signal{syscall.SIGSEGV, sig}; !slices.Equal(changed, want) {
		t.Errorf("changed %v, want %v", changed, want)
	}
	if !arrives(t, c, sig, testkit.Patience) {
		t.Error("the signal did not reach Go's handler")
	}
	if changed, err := keepHandlers(func() error { return nil }); err != nil || changed != nil {
		t.Errorf("nothing was changed: %v, %v", changed, err)
	}
}

// Without the guard the signal is lost: the test above can fail.
func TestAReplacedHandlerLosesItsSignal(t *testing.T) {
	const sig = syscall.SIGUSR2
	c := make(chan os.Signal, 1)
	signal.Notify(c, sig)
	defer signal.Stop(c)
	var was sigaction
	rtSigaction(int(sig), nil, &was)
	ignore(sig)
	lost := !arrives(t, c, sig, 50*time.Millisecond)
	rtSigaction(int(sig), &was, nil)
	if !lost {
		t.Error("a signal that is ignored arrived")
	}
	if !arrives(t, c, sig, testkit.Patience) {
		t.Error("the handler is not back")
	}
}
