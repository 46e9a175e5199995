//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package disk

import (
	"errors"
	"os"
	"syscall"
)

// locks: this system has file locks, so a file stays locked until it has its final name.
const locks = true

func try(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return ErrHeld
		case errors.Is(err, errors.ErrUnsupported): // not supported by the file system: other processes may write the file
			return errors.New(err.Error())
		default:
			return err
		}
	}
}
