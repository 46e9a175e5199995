//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Lock is the right to change the files of one model folder. The operating system gives it up when
// the process ends, however it ends.
type Lock struct{ file *os.File }

// TryLock takes the lock of a folder, which must exist, or returns an error that wraps ErrLocked at
// once.
func TryLock(dir string) (*Lock, error) {
	name := filepath.Join(dir, LockFile)
	for {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644) //nolint:gosec // no content, and other users may share the models
		if err != nil {
			return nil, fmt.Errorf("lock: %w", err)
		}
		if err := flock(f); err != nil {
			_ = f.Close()
			return nil, fmt.Errorf("lock %s: %w", dir, err)
		}
		// Whoever held the lock may have removed the file together with its folder.
		mine, err1 := f.Stat()
		now, err2 := os.Stat(name)
		if err1 == nil && err2 == nil && os.SameFile(mine, now) {
			return &Lock{file: f}, nil
		}
		_ = f.Close()
	}
}

func flock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return ErrLocked
		default:
			return err
		}
	}
}

// Unlock gives the lock up. It may be called once.
func (l *Lock) Unlock() error {
	if err := l.file.Close(); err != nil { // the lock goes with the descriptor
		return fmt.Errorf("unlock: %w", err)
	}
	return nil
}

// isReadOnly reports whether an error says that the file system takes no writes.
func isReadOnly(err error) bool { return errors.Is(err, syscall.EROFS) }
