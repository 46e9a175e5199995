package testkit

import (
	"testing"
	"time"
)

// Eventually polls until ok returns true, for events without notification. It fails with what after
// Patience.
func Eventually(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for end := time.Now().Add(Patience); !ok(); <-poll.C {
		if time.Now().After(end) {
			tb.Fatalf("in vain: %s", what)
		}
	}
}
