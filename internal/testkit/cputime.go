package testkit

import (
	"runtime"
	"syscall"
	"testing"
	"time"
)

// threadUsage is RUSAGE_THREAD of getrusage(2), which package syscall does not name.
const threadUsage = 1

// CPUTime runs f, which must not start goroutines for its work, and returns the CPU time that it
// took: what else the machine does counts for little. Linux only.
func CPUTime(tb testing.TB, f func()) time.Duration {
	tb.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := usage(tb, threadUsage)
	f()
	return usage(tb, threadUsage) - before
}

// ProcessTime is CPUTime for an f that starts goroutines. Whatever else the process does counts, so
// that no other test may run.
func ProcessTime(tb testing.TB, f func()) time.Duration {
	tb.Helper()
	before := Used(tb)
	f()
	return Used(tb) - before
}

// Used is the processor time that this process has used so far. On a machine that others share it
// says more than the clock.
func Used(tb testing.TB) time.Duration {
	tb.Helper()
	return usage(tb, syscall.RUSAGE_SELF)
}

func usage(tb testing.TB, who int) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(who, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
