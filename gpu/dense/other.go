//go:build !cgo || !amd64 || windows

package dense

import (
	"errors"
	"unsafe"
)

// Supported reports whether this processor and this build can run the operator: no.
func Supported() bool { return false }

// Register fails.
func Register(string, unsafe.Pointer) error {
	return errors.New("register operator Dense: not in this build")
}

// Runs is how often the operator has run in this process: never.
func Runs() uint64 { return 0 }

// Shared is how many layers have weights that several nodes read: none.
func Shared() uint64 { return 0 }
