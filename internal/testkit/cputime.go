package testkit

import (
	"runtime"
	"syscall"
	"testing"
	"time"
)

// threadUsage is RUSAGE_THREAD of getrusage(2), for which package syscall has no constant.
const threadUsage = 1

// CPUTime runs f, which must not start goroutines for its work, and returns the CPU time used,
// which other load on the machine hardly affects. Linux only.
func CPUTime(tb testing.TB, f func()) time.Duration {
	tb.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := usage(tb, threadUsage)
	f()
	return usage(tb, threadUsage) - before
}

// ProcessTime is CPUTime for an f that starts goroutines. Everything in the process counts, so no
// other test may run.
func ProcessTime(tb testing.TB, f func()) time.Duration {
	tb.Helper()
	before := Used(tb)
	f()
	return Used(tb) - before
}

// Used returns the processor time that this process has used so far. On a shared machine it is more
// meaningful than elapsed time.
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
