//go:build cgo && amd64 && !windows

package dense

/*
#cgo linux LDFLAGS: -ldl
#include <stdlib.h>
#include "dense.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"golang.org/x/sys/cpu"
)

// Supported reports whether this processor and this build can run the operator.
func Supported() bool { return cpu.X86.HasAVX512F && cpu.X86.HasAVX512VNNI }

//nolint:gochecknoglobals // the C side registers into the process's one library
var registering sync.Mutex

// Register registers the operator with the options of a session, an OrtSessionOptions. library is
// the path from which ONNX Runtime was loaded. It fails for ONNX Runtime older than 1.17. Safe for
// concurrent use.
func Register(library string, options unsafe.Pointer) error {
	if options == nil {
		return errors.New("register operator Dense: no options")
	}
	path := C.CString(library)
	defer C.free(unsafe.Pointer(path))
	registering.Lock()
	defer registering.Unlock()
	if failed := C.signalbox_dense_register(path, options); failed != nil {
		return fmt.Errorf("register operator Dense: %s", C.GoString(failed))
	}
	return nil
}

// Runs returns how often the operator has run in this process. Safe for concurrent use.
func Runs() uint64 { return uint64(C.signalbox_dense_runs()) }

// Shared returns the number of layers whose weights are read by several nodes: nodes created with
// equal weights share one copy. Safe for concurrent use.
func Shared() uint64 { return uint64(C.signalbox_dense_shared()) }
