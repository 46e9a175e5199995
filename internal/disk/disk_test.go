package disk_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"signalbox/internal/disk"
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
	if err := disk.Try(first); errors.Is(err, errors.ErrUnsupported) {
		t.Skipf("this system has no locks: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	if err := disk.Try(second); !errors.Is(err, disk.ErrHeld) {
		t.Errorf("beside another: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := disk.Try(second); err != nil {
		t.Errorf("after another: %v", err)
	}
}

func TestAFileIsReplacedAsAWhole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, ".file")
	for _, text := range []string{"first", "second"} {
		if err := disk.Replace(path, 0o640, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(path); err != nil || string(b) != text {
			t.Errorf("%q, %v", b, err)
		}
	}
	if err := disk.Replace(filepath.Join(dir, "none", "file"), 0o600, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left over: %v, %v", left, err)
	}
}
