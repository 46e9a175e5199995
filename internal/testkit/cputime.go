package testkit

import (
	"runtime"
	"syscall"
	"testing"
	"time"
)

// threadUsage is RUSAGE_THREAD of getrusage(2), which package syscall does not name.
const threadUsage = 1

// CPUTime runs f, which must not start goroutines for its work, and returns the CPU time that it took: what else the
// machine does counts for little. Linux only.
func CPUTime(tb testing.TB, f func()) time.Duration {
	tb.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := threadTime(tb)
	f()
	return threadTime(tb) - before
}

func threadTime(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(threadUsage, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
