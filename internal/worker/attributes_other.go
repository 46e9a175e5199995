//go:build unix && !linux

package worker

import "syscall"

// attributes do not pass the signals of a terminal to the worker. The worker ends when its standard
// input is closed.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
