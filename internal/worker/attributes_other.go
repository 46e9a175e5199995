//go:build unix && !linux

package worker

import "syscall"

// attributes keep the signals of a terminal to the parent. The worker ends when its standard input
// does.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
