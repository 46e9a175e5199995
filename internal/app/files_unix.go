//go:build unix

package app

import "syscall"

// openFiles returns how many files the process may open, 0 if unknown. At its start the Go runtime
// raises the soft limit to the hard limit.
func openFiles() uint64 {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil {
		return 0
	}
	return uint64(l.Cur) //nolint:unconvert // signed on some systems
}
