//go:build unix

package app

import "syscall"

// openFiles is how many files the process may have open, 0 where that is not known. At its start
// the runtime raises what holds to what may hold.
func openFiles() uint64 {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil {
		return 0
	}
	return uint64(l.Cur) //nolint:unconvert // signed on some systems
}
