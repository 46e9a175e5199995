package gpu

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
)

// LibraryVersion is the release of ONNX Runtime for which this package is built and tested.
const LibraryVersion = "1.30.0"

// The SHA-256 of the library in npm's onnxruntime-node@1.30.0, which tools/fetch-onnxruntime.sh
// puts into the cache. A test keeps the two consistent.
const (
	pinLinuxAMD64 = "ffb75a925ba05e47b235bb66e3e3911714a80b328a9c9425539feb204aa32a23"
	pinLinuxARM64 = "1f549d46250b005580b597f4164984aaf75b3bcb9f3aeb07c7f8a8fe60b23c76"
)

// Library is a shared library that Locate accepted.
type Library struct {
	Path   string // absolute, symbolic links resolved
	SHA256 string // of the file's content, in hexadecimal
}

// LibraryDir returns the directory for the library below a user's cache directory.
func LibraryDir(cacheDir string) string {
	return filepath.Join(cacheDir, "signalbox", "onnxruntime", LibraryVersion)
}

// Locate finds the shared library of ONNX Runtime without loading it. It looks, in this order, at
// Options.Library, Options.EnvLibrary, the cache directory, the directory of the running binary and
// the system's library directories. If an explicitly configured place does not work, the search
// ends. A file is accepted only if it is a regular file that other users cannot replace, and if it
// has the expected checksum: LibrarySHA256 if set, else for the cache directory the built-in one.
// The error wraps ErrUnavailable and lists everything that was tried. Safe for concurrent use.
func Locate(o Options) (Library, error) {
	if err := o.Validate(); err != nil {
		return Library{}, err
	}
	binaryDir := ""
	if exe, err := os.Executable(); err == nil {
		binaryDir = filepath.Dir(exe)
	}
	if o.CacheDir == "" {
		if dir, err := os.UserCacheDir(); err == nil {
			o.CacheDir = dir
		}
	}
	return locate(o, binaryDir, systemDirs())
}

func systemDirs() []string {
	dirs := []string{"/usr/local/lib", "/opt/onnxruntime/lib", "/usr/lib64", "/usr/lib"}
	switch runtime.GOARCH {
	case "amd64":
		dirs = append(dirs, "/usr/lib/x86_64-linux-gnu")
	case "arm64":
		dirs = append(dirs, "/usr/lib/aarch64-linux-gnu")
	}
	return dirs
}

// builtinPin returns the expected checksum of a cached library on this platform, or an empty
// string.
func builtinPin() string {
	switch runtime.GOOS + "/" + runtime.GOARCH {
	case "linux/amd64":
		return pinLinuxAMD64
	case "linux/arm64":
		return pinLinuxARM64
	}
	return ""
}

func locate(o Options, binaryDir string, system []string) (Library, error) {
	for _, named := range []struct{ source, path string }{{"configuration", o.Library}, {"environment", o.EnvLibrary}} {
		if named.path == "" {
			continue
		}
		lib, err := inspectAny(named.path, o.LibrarySHA256)
		if err != nil {
			return Library{}, fmt.Errorf("%w: library named in the %s: %w", ErrUnavailable, named.source, err)
		}
		return lib, nil
	}

	var tried []error
	if o.CacheDir != "" {
		lib, err := inspectCache(o)
		if err == nil {
			return lib, nil
		}
		tried = append(tried, err)
	}
	if binaryDir != "" {
		system = append([]string{binaryDir}, system...)
	}
	for _, dir := range system {
		lib, err := inspectAny(dir, o.LibrarySHA256)
		if err == nil {
			return lib, nil
		}
		tried = append(tried, err)
	}
	return Library{}, fmt.Errorf("%w: no shared library found (make onnxruntime fetches it):\n%w", ErrUnavailable, errors.Join(tried...))
}

// inspectCache accepts only libraries with a known checksum from the cache.
func inspectCache(o Options) (Library, error) {
	want := cmp.Or(o.LibrarySHA256, builtinPin())
	path := filepath.Join(LibraryDir(o.CacheDir), "libonnxruntime.so."+LibraryVersion)
	if want == "" {
		return Library{}, fmt.Errorf("%s: no known checksum for %s/%s", path, runtime.GOOS, runtime.GOARCH)
	}
	return inspect(path, want)
}

// inspectAny accepts a file, or a directory that contains the library under one of its usual names.
func inspectAny(path, want string) (Library, error) {
	st, err := os.Stat(path)
	if err != nil {
		return Library{}, err
	}
	if !st.IsDir() {
		return inspect(path, want)
	}
	for _, name := range []string{"libonnxruntime.so." + LibraryVersion, "libonnxruntime.so.1", "libonnxruntime.so"} {
		lib, err := inspect(filepath.Join(path, name), want)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		return lib, err
	}
	return Library{}, fmt.Errorf("%s: no libonnxruntime.so in it", path)
}

// inspect checks one file. want is the expected checksum; empty accepts any.
func inspect(path, want string) (Library, error) {
	full, err := filepath.EvalSymlinks(path)
	if err != nil {
		return Library{}, err
	}
	if full, err = filepath.Abs(full); err != nil {
		return Library{}, err
	}
	if err := notReplaceable(full); err != nil {
		return Library{}, err
	}
	sum, err := sumOf(full)
	if err != nil {
		return Library{}, err
	}
	if want != "" && !strings.EqualFold(sum, want) {
		return Library{}, fmt.Errorf("%s: sha256 is %s, expected %s", full, sum, want)
	}
	return Library{Path: full, SHA256: sum}, nil
}

const (
	otherWrite = 0o002
	wrongType  = "not a regular file"
)

// notReplaceable refuses a file that any user of the machine could replace between check and load.
func notReplaceable(path string) error {
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !st.Mode().IsRegular() {
		return fmt.Errorf("%s: %s", path, wrongType)
	}
	if st.Mode().Perm()&otherWrite != 0 {
		return fmt.Errorf("%s: writable by everybody", path)
	}
	dir := filepath.Dir(path)
	if st, err = os.Stat(dir); err != nil {
		return err
	}
	if st.Mode().Perm()&otherWrite != 0 && st.Mode()&fs.ModeSticky == 0 {
		return fmt.Errorf("%s: directory writable by everybody", dir)
	}
	return nil
}

// summed is the state of a file when its checksum was computed.
type summed struct {
	os.FileInfo
	sum string
}

// sums caches the checksums of files by path. A process loads the library once, so an undetected
// replacement after that has no effect on it.
var sums sync.Map //nolint:gochecknoglobals // of summed; a memo

// sumOf returns the SHA-256 of a file; it is computed again if the file was replaced or has
// changed.
func sumOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // read only
	st, err := f.Stat()
	if err != nil {
		return "", err
	}
	v, _ := sums.Load(path)
	if known, ok := v.(summed); ok && os.SameFile(known.FileInfo, st) &&
		known.Size() == st.Size() && known.ModTime().Equal(st.ModTime()) {
		return known.sum, nil
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	sum := hex.EncodeToString(h.Sum(nil))
	sums.Store(path, summed{st, sum})
	return sum, nil
}
