package testkit

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// leakPatience is how long goroutines may take to end after the last test. The Redis client leaves
// one that sleeps for up to a second when a connection ends (rueidis, clusterRefreshAutoMaxDelay),
// longer than goleak waits by default.
const leakPatience = 10 * time.Second

// VerifyNoLeaks runs the tests of a package that uses Redis, releases shared resources, fails if
// that fails or goroutines are left, and exits. Call it in TestMain.
func VerifyNoLeaks(m *testing.M, release ...func() error) {
	code := m.Run()
	for _, f := range release {
		if err := f(); err != nil {
			fmt.Fprintf(os.Stderr, "after the tests: %v\n", err)
			code = 1
		}
	}
	if code == 0 {
		if err := leaks(leakPatience); err != nil {
			fmt.Fprintf(os.Stderr, "goroutines are left after the tests: %v\n", err)
			code = 1
		}
	}
	os.Exit(code)
}

// leaks checks repeatedly until no goroutine is left or the patience ends. Each check of goleak
// takes about half a second.
func leaks(patience time.Duration) error {
	for end := time.Now().Add(patience); ; {
		err := goleak.Find()
		if err == nil || time.Now().After(end) {
			return err
		}
	}
}
