// Package disk has operations on shared files: locks between processes, and atomic replacement of
// files.
package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// ErrHeld says that the lock is held by another process, or through another open file of this
// process.
var ErrHeld = errors.New("another process holds it")

// Try takes the lock of an open file without waiting. The lock ends when the file is closed or the
// process ends. Errors are ErrHeld, errors.ErrUnsupported on a system without locks, and errors of
// file systems without locks.
func Try(f *os.File) error {
	if err := try(f); err != nil {
		return fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return nil
}

// Lock calls Try for the file at a path, and creates the file with perm if it does not exist.
// Closing the returned file releases the lock.
func Lock(path string, perm os.FileMode) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, perm)
		if err != nil {
			return nil, fmt.Errorf("lock: %w", err)
		}
		if err := Try(f); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		// The previous holder may have removed the file together with its folder.
		mine, err1 := f.Stat()
		now, err2 := os.Stat(path)
		if err1 == nil && err2 == nil && os.SameFile(mine, now) {
			return f, nil
		}
		_ = f.Close()
	}
}

// Replace writes a file atomically, also in case of a power loss: concurrent readers see the old
// file or the new one. It calls Clean first.
func Replace(path string, perm os.FileMode, content []byte) error {
	Clean(path)
	f, err := Temp(path)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(perm), f.Sync())
	if !locks { // such a system may not rename open files
		err = errors.Join(err, f.Close())
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if locks {
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	if folder, err := os.Open(filepath.Dir(path)); err == nil {
		_ = folder.Sync() // some systems cannot; the file itself is synced
		_ = folder.Close()
	}
	return nil
}

// Temp creates a temporary file beside path, to be renamed to path. It is locked until it is
// closed, so that Clean leaves it alone. A caller that does not rename it removes it.
func Temp(path string) (*os.File, error) {
	front, end := tempName(path)
	f, err := os.CreateTemp(filepath.Dir(path), front+"*"+end)
	if err == nil {
		_ = Try(f) // without locks its age protects it
	}
	return f, err
}

// tempName returns the prefix and suffix of the names of files created by Temp.
func tempName(path string) (front, end string) {
	return "." + strings.TrimPrefix(filepath.Base(path), ".") + "-", ".tmp"
}

// left is how long a file of Temp must be untouched before it counts as left behind by a process.
// With locks, its writer holds the lock until then; without locks, no writer takes that long.
const (
	left         = time.Minute
	leftUnlocked = time.Hour
)

// Clean removes the files of Temp for a path whose processes were killed while writing. Files of
// live processes, and files that cannot be removed, stay.
func Clean(path string) {
	dir := filepath.Dir(path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	front, end := tempName(path)
	for _, e := range entries {
		rest, ours := strings.CutPrefix(e.Name(), front)
		number, whole := strings.CutSuffix(rest, end)
		if ours && whole && strings.Trim(number, "0123456789") == "" && e.Type().IsRegular() {
			clean(filepath.Join(dir, e.Name()))
		}
	}
}

func clean(name string) {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return
	}
	age := time.Since(info.ModTime())
	switch err := Try(f); {
	case err == nil && age >= left:
		_ = os.Remove(name) // still locked, so that no other process takes it
	case err != nil && !errors.Is(err, ErrHeld) && age >= leftUnlocked:
		_ = f.Close() // such a system may not remove open files
		_ = os.Remove(name)
	}
}
