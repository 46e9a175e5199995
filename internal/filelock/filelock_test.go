package filelock_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"signalbox/internal/filelock"
)

func TestALockIsHeldUntilTheFileIsClosed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	open := func() *os.File {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	first, second := open(), open()
	if err := filelock.Try(first); errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	if err := filelock.Try(second); !errors.Is(err, filelock.ErrHeld) {
		t.Errorf("beside another: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := filelock.Try(second); err != nil {
		t.Errorf("after another: %v", err)
	}
}
