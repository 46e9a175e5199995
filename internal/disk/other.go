//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package disk

import (
	"errors"
	"os"
)

// locks: this system has no known file locks.
const locks = false

func try(*os.File) error { return errors.ErrUnsupported }
