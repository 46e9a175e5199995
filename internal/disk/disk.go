// Package disk does with files what those who share them need: locks by which processes see each
// other, and files that are replaced as a whole.
package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// ErrHeld says that another process holds the lock, or another file that was opened in this one.
var ErrHeld = errors.New("another process holds it")

// Try takes the lock of an open file and does not wait for it. It ends when the file is closed, or
// with the process. Errors are ErrHeld, errors.ErrUnsupported on a system without locks, and what a
// file system without them says.
func Try(f *os.File) error {
	if err := try(f); err != nil {
		return fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return nil
}

// Lock is Try with the file at a path, which is made with perm where there is none. It is unlocked
// by closing what is returned.
func Lock(path string, perm os.FileMode) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, perm)
		if err != nil {
			return nil, fmt.Errorf("lock: %w", err)
		}
		if err := Try(f); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		// Whoever held the lock may have removed the file together with its folder.
		mine, err1 := f.Stat()
		now, err2 := os.Stat(path)
		if err1 == nil && err2 == nil && os.SameFile(mine, now) {
			return f, nil
		}
		_ = f.Close()
	}
}

// Replace writes a file that is there as a whole or not at all, after a loss of power too: who
// reads meanwhile sees the old one or the new one.
func Replace(path string, perm os.FileMode, content []byte) error {
	dir, name := filepath.Split(path)
	f, err := os.CreateTemp(filepath.Clean(dir), "."+strings.TrimPrefix(name, ".")+"-*.tmp")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Chmod(perm), f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	if folder, err := os.Open(filepath.Clean(dir)); err == nil {
		_ = folder.Sync() // some systems cannot; the file itself is written
		_ = folder.Close()
	}
	return nil
}
