package disk_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

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

// A process that is killed while it writes leaves its file behind.
func TestWhatAKilledProcessLeftIsRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	old := time.Now().Add(-2 * time.Hour)
	for name, at := range map[string]time.Time{
		".file-123.tmp": old, ".file-124.tmp": time.Now(), ".file-a.tmp": old, ".file-123.tmp.x": old,
		".file-other-123.tmp": old, "file-123.tmp": old,
	} {
		name = filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(name, nil, 0o600), os.Chtimes(name, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	writes, err := disk.Temp(path) // of a process that lives, and has waited for the disk for hours
	if err != nil {
		t.Fatal(err)
	}
	locks := disk.Try(writes)
	if err := os.Chtimes(writes.Name(), old, old); err != nil {
		t.Fatal(err)
	}
	want := []string{".file-123.tmp.x", ".file-124.tmp", ".file-a.tmp", ".file-other-123.tmp", "file-123.tmp"}
	if !errors.Is(locks, errors.ErrUnsupported) {
		want = append(want, filepath.Base(writes.Name()))
	}
	slices.Sort(want)
	disk.Clean(path)
	if got := names(t, dir); !slices.Equal(got, want) {
		t.Errorf("left are %q, want %q", got, want)
	}
	if err := writes.Close(); err != nil { // it is killed now
		t.Fatal(err)
	}
	if err := disk.Replace(path, 0o600, nil); err != nil {
		t.Fatal(err)
	}
	want = append(slices.DeleteFunc(want, func(s string) bool { return s == filepath.Base(writes.Name()) }), "file")
	slices.Sort(want)
	if got := names(t, dir); !slices.Equal(got, want) {
		t.Errorf("after a file was written %q are left, want %q", got, want)
	}
	disk.Clean(filepath.Join(dir, "none", "file")) // there is nothing to remove
}

func names(t *testing.T, dir string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	slices.Sort(out)
	return out
}
