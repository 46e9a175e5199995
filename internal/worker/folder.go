//go:build unix

package worker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// folderPattern begins the names of the folders of sockets, in the folder for temporary files.
const folderPattern = "signalbox-models-"

// folder is where the socket of a worker is. Nobody else may read it. It is locked as long as its
// process lives, and what a process left that was killed goes when another one starts.
type folder struct {
	path string
	lock *os.File // the folder itself; the lock ends with the process; nil where folders cannot be locked
}

func newFolder() (folder, error) {
	sweep(os.TempDir(), time.Now().Add(-time.Minute))
	path, err := os.MkdirTemp("", folderPattern)
	if err != nil {
		return folder{}, fmt.Errorf("worker: %w", err)
	}
	f, err := lock(path)
	if err != nil {
		f = nil // some file systems of networks cannot; nobody else can then, and nothing is swept
	}
	return folder{path, f}, nil
}

func (f folder) socket() string { return filepath.Join(f.path, "socket") }

func (f folder) remove() error {
	err := os.RemoveAll(f.path)
	if f.lock != nil {
		err = errors.Join(err, f.lock.Close())
	}
	return err
}

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

// sweep removes folders in dir that nobody holds. One that was made after before may be about to be
// locked.
func sweep(dir string, before time.Time) {
	found, _ := os.ReadDir(dir) // one that cannot be read is not swept
	for _, e := range found {
		info, err := e.Info()
		if err != nil || !info.IsDir() || !strings.HasPrefix(e.Name(), folderPattern) || info.ModTime().After(before) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if f, err := lock(path); err == nil { // another user's does not open
			_ = os.RemoveAll(path) // it is tried again
			_ = f.Close()
		}
	}
}
