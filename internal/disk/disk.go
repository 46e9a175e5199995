// Package disk does with files what those who share them need: locks by which processes see each
// other, and files that are replaced as a whole.
package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
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
// reads meanwhile sees the old one or the new one. It begins with Clean.
func Replace(path string, perm os.FileMode, content []byte) error {
	Clean(path)
	f, err := Temp(path)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(perm), f.Sync())
	if !locks { // such a system may not rename what is open
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
		_ = folder.Sync() // some systems cannot; the file itself is written
		_ = folder.Close()
	}
	return nil
}

// Temp makes the file that is to be renamed to path, beside it. It is locked until it is closed, so
// that Clean leaves it alone; whoever gives it up removes it.
func Temp(path string) (*os.File, error) {
	front, end := tempName(path)
	f, err := os.CreateTemp(filepath.Dir(path), front+"*"+end)
	if err == nil {
		_ = Try(f) // without locks its age protects it
	}
	return f, err
}

// tempName is what the names of the files of Temp begin and end with.
func tempName(path string) (front, end string) {
	return "." + strings.TrimPrefix(filepath.Base(path), ".") + "-", ".tmp"
}

// left is how long a file of Temp must have been left alone so that it can be one that a process left
// behind: where there are locks it is held until then by whoever writes it, and elsewhere nobody
// writes for so long.
const (
	left         = time.Minute
	leftUnlocked = time.Hour
)

// Clean removes the files of Temp for a path that processes left behind which were killed while they
// wrote. Those of a process that lives stay. What cannot be removed stays as well.
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
		_ = os.Remove(name) // still locked, so that nobody else takes it for his
	case err != nil && !errors.Is(err, ErrHeld) && age >= leftUnlocked:
		_ = f.Close() // such a system may not remove what is open
		_ = os.Remove(name)
	}
}
