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

// folderPattern is the prefix of the socket folders in the folder for temporary files.
const folderPattern = "signalbox-models-"

// folder contains the socket of a worker. Other users cannot read it. It is locked while its
// process lives. The folder of a killed process is removed when another one starts.
type folder struct {
	path string
	lock *os.File // the folder itself; the lock ends with the process; nil if folders cannot be locked
}

func newFolder() (folder, error) {
	sweep(os.TempDir(), time.Now().Add(-time.Minute))
	path, err := os.MkdirTemp("", folderPattern)
	if err != nil {
		return folder{}, fmt.Errorf("worker: %w", err)
	}
	f, err := lock(path)
	if err != nil {
		f = nil // some network file systems have no locks; then no process can lock, and nothing is swept
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

// lock locks a folder, unless it is locked already.
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

// sweep removes unlocked folders in dir. A folder created after before may be about to be locked
// and is kept.
func sweep(dir string, before time.Time) {
	found, _ := os.ReadDir(dir) // an unreadable folder is not swept
	for _, e := range found {
		info, err := e.Info()
		if err != nil || !info.IsDir() || !strings.HasPrefix(e.Name(), folderPattern) || info.ModTime().After(before) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if f, err := lock(path); err == nil { // folders of other users cannot be opened
			_ = os.RemoveAll(path) // the next sweep tries again
			_ = f.Close()
		}
	}
}
