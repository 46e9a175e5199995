package testkit

import (
	"testing"
	"time"
)

// Eventually asks until ok, for what tells nobody when it happens; what is said when Patience is
// over.
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
