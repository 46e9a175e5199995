package worker

import "syscall"

// attributes make the worker end with its parent, and do not pass the signals of a terminal to it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
