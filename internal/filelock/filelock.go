// Package filelock tells processes that share a file of each other.
package filelock

import (
	"errors"
	"fmt"
	"os"
)

// ErrHeld says that another process holds the lock, or another file that was opened in this one.
var ErrHeld = errors.New("another process holds it")

// Try takes the lock of an open file and does not wait for it. It ends when the file is closed, or
// with the process. Errors are ErrHeld, and those of systems and file systems without locks.
func Try(f *os.File) error {
	if err := try(f); err != nil {
		return fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return nil
}
