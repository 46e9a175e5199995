//go:build !cgo || !amd64 || windows

package dense

import (
	"errors"
	"unsafe"
)

// Supported returns false: this build lacks the operator.
func Supported() bool { return false }

// Register always returns an error.
func Register(string, unsafe.Pointer) error {
	return errors.New("register operator Dense: not in this build")
}

// Runs returns 0.
func Runs() uint64 { return 0 }

// Shared returns 0.
func Shared() uint64 { return 0 }
