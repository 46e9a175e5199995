//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package local

import (
	"errors"
	"fmt"
)

// Lock is the right to change the files of one model folder. This system offers no lock that goes
// with its process, so models are not changed on it.
type Lock struct{}

// TryLock returns an error that wraps errors.ErrUnsupported.
func TryLock(dir string) (*Lock, error) {
	return nil, fmt.Errorf("lock %s: %w on this system", dir, errors.ErrUnsupported)
}

// Unlock does nothing.
func (*Lock) Unlock() error { return nil }

func isReadOnly(error) bool { return false }
