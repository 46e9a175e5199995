package worker

import "syscall"

// attributes make the worker end with its parent, and keep the signals of a terminal to the parent.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
