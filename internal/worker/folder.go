//go:build unix

package worker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// folderPattern names the folders of sockets, in the folder for temporary files.
const folderPattern = "signalbox-worker-"

// folder is where the socket of a worker is. Nobody else may read it. It is locked as long as its process lives, and what a process left that
// was killed goes when another one starts.
type folder struct {
	path string
	lock *os.File // the folder itself; the lock ends with the process
}

func newFolder() (folder, error) {
	sweep(os.TempDir(), time.Now().Add(-time.Minute))
	path, err := os.MkdirTemp("", folderPattern)
	if err != nil {
		return folder{}, fmt.Errorf("worker: %w", err)
	}
	f, err := lock(path)
	if err != nil {
		return folder{}, errors.Join(fmt.Errorf("worker: lock %s: %w", path, err), os.Remove(path))
	}
	return folder{path, f}, nil
}

func (f folder) socket() string { return filepath.Join(f.path, "socket") }

// remove removes the folder with what is in it.
func (f folder) remove() error { return errors.Join(os.RemoveAll(f.path), f.lock.Close()) }

// lock locks a folder, unless somebody has.
func lock(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// sweep removes folders in dir that nobody holds. One that was made after before may be about to be locked.
func sweep(dir string, before time.Time) {
	found, _ := filepath.Glob(filepath.Join(dir, folderPattern+"*")) // the pattern is in order
	for _, path := range found {
		if info, err := os.Lstat(path); err != nil || !info.IsDir() || info.ModTime().After(before) {
			continue
		}
		if f, err := lock(path); err == nil { // another user's does not open
			_ = os.RemoveAll(path) // it is tried again
			_ = f.Close()
		}
	}
}
