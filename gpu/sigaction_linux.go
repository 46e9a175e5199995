package gpu

import (
	"os"
	"sync"
	"syscall"
	"unsafe"
)

// sigaction is the kernel's struct sigaction, from arch/{x86,arm64}/include/uapi/asm/signal.h; it
// is the same on both.
type sigaction struct {
	handler  uintptr
	flags    uint64
	restorer uintptr
	mask     uint64
}

const (
	signals    = 64
	sigsetSize = 8 // size of a mask in bytes
)

// guarding lets one initialisation of a provider run at a time: two would take each other's
// handlers for Go's.
//
//nolint:gochecknoglobals // signal handlers belong to the process
var guarding sync.Mutex

// keepHandlers calls f, then restores every signal handler that f has changed, and returns these
// signals. The CUDA provider replaces Go's handlers when it starts
// (github.com/yalue/onnxruntime_go/issues/140): the next SIGTERM would end the process without
// draining it. It uses the system call directly, so that handlers are restored exactly.
func keepHandlers(f func() error) (changed []os.Signal, err error) {
	guarding.Lock()
	defer guarding.Unlock()
	var before [signals + 1]sigaction
	for n := 1; n <= signals; n++ {
		rtSigaction(n, nil, &before[n])
	}
	defer func() {
		for n := 1; n <= signals; n++ {
			var now sigaction
			if rtSigaction(n, nil, &now); now != before[n] {
				rtSigaction(n, &before[n], nil)
				changed = append(changed, syscall.Signal(n))
			}
		}
	}()
	return nil, f()
}

// rtSigaction sets the action of a signal, if set is not nil, and stores the previous one in was.
// It cannot fail for signals that can be changed, and has no effect on others.
func rtSigaction(n int, set, was *sigaction) {
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(n), uintptr(unsafe.Pointer(set)), //nolint:gosec // the kernel reads and writes these structs
		uintptr(unsafe.Pointer(was)), sigsetSize, 0, 0) //nolint:gosec // as above
}
