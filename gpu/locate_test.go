package gpu

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// place writes a library of the given content and returns its path and checksum.
func place(t *testing.T, dir, name, content string, mode os.FileMode) (path, sum string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // whatever the umask took away
		t.Fatal(err)
	}
	h := sha256.Sum256([]byte(content))
	return path, hex.EncodeToString(h[:])
}

func TestTheSearchOrderIsConfigEnvironmentCacheBinarySystem(t *testing.T) {
	root := t.TempDir()
	const file = "libonnxruntime.so." + LibraryVersion
	// One content everywhere, so that one expected checksum fits all of them.
	config, sum := place(t, filepath.Join(root, "config"), "custom.so", "library", 0o644)
	env, _ := place(t, filepath.Join(root, "env"), "libonnxruntime.so", "library", 0o644)
	cacheDir := filepath.Join(root, "cache")
	cache, _ := place(t, LibraryDir(cacheDir), file, "library", 0o644)
	binary, _ := place(t, filepath.Join(root, "bin"), "libonnxruntime.so.1", "library", 0o644)
	system, _ := place(t, filepath.Join(root, "lib"), file, "library", 0o644)

	o := Options{Library: config, EnvLibrary: filepath.Dir(env), CacheDir: cacheDir, LibrarySHA256: sum}
	find := func() Library {
		t.Helper()
		lib, err := locate(o, filepath.Dir(binary), []string{filepath.Join(root, "none"), filepath.Dir(system)})
		if err != nil {
			t.Fatal(err)
		}
		return lib
	}
	for _, step := range []struct {
		want Library
		then func() error // takes the place away
	}{
		{Library{config, sum}, func() error { o.Library = ""; return nil }},
		{Library{env, sum}, func() error { o.EnvLibrary = ""; return nil }},
		{Library{cache, sum}, func() error { return os.Remove(cache) }},
		{Library{binary, sum}, func() error { o.LibrarySHA256 = ""; return nil }},
		{Library{binary, sum}, func() error { return os.Remove(binary) }},
		{Library{system, sum}, func() error { return os.Remove(system) }},
	} {
		if diff := cmp.Diff(step.want, find()); diff != "" {
			t.Error(diff)
		}
		if err := step.then(); err != nil {
			t.Fatal(err)
		}
	}
	_, err := locate(o, filepath.Dir(binary), []string{filepath.Dir(system)})
	if !errors.Is(err, ErrUnavailable) {
		t.Fatalf("got %v", err)
	}
	for _, tried := range []string{cache, filepath.Dir(binary), filepath.Dir(system)} {
		if !strings.Contains(err.Error(), tried) {
			t.Errorf("the error does not tell that %s was tried: %v", tried, err)
		}
	}
}

// S32: a library is loaded from a path that is known in full, when nobody else can replace it and
// its sum is the expected one.
func TestLibrariesThatMustNotBeLoaded(t *testing.T) {
	for _, c := range []struct {
		name    string
		mode    os.FileMode
		dirMode os.FileMode
		options func(dir, file, sum string) Options
		want    string // in the error
	}{
		{"a cached file without the built-in checksum", 0o644, 0o755, func(dir, _, _ string) Options {
			return Options{CacheDir: dir}
		}, "sha256 is "},
		{"a configured file without the configured checksum", 0o644, 0o755, func(_, file, _ string) Options {
			return Options{Library: file, LibrarySHA256: strings.Repeat("0", 64)}
		}, "sha256 is "},
		{"a file that everybody may write", 0o666, 0o755, func(_, file, _ string) Options {
			return Options{Library: file}
		}, "writable by everybody"},
		{"a file in a directory that everybody may write", 0o644, 0o777, func(_, file, _ string) Options {
			return Options{Library: file}
		}, "directory writable by everybody"},
		{"a link to a file that everybody may write", 0o666, 0o755, func(dir, _, _ string) Options {
			return Options{Library: filepath.Join(dir, "link")}
		}, "libonnxruntime.so." + LibraryVersion + ": writable by everybody"},
		{"a directory without a library", 0o644, 0o755, func(dir, _, _ string) Options {
			return Options{EnvLibrary: dir}
		}, "no libonnxruntime.so in it"},
		{"no such file, although the cache has one", 0o644, 0o755, func(dir, file, sum string) Options {
			return Options{Library: file + ".missing", CacheDir: dir, LibrarySHA256: sum}
		}, "no such file"},
		{"a device", 0o644, 0o755, func(string, string, string) Options {
			return Options{Library: "/dev/null"}
		}, "not a regular file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			file, sum := place(t, LibraryDir(dir), "libonnxruntime.so."+LibraryVersion, "library", c.mode)
			if err := os.Chmod(filepath.Dir(file), c.dirMode); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(file, filepath.Join(dir, "link")); err != nil {
				t.Fatal(err)
			}
			_, err := locate(c.options(dir, file, sum), "", nil)
			if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
		})
	}
}

func TestTheFetchScriptHasTheSamePins(t *testing.T) {
	script, err := os.ReadFile(filepath.Join("..", "tools", "fetch-onnxruntime.sh"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"version=" + LibraryVersion + "\n", "x64_sha256=" + pinLinuxAMD64 + "\n", "arm64_sha256=" + pinLinuxARM64 + "\n",
	} {
		if !strings.Contains(string(script), line) {
			t.Errorf("tools/fetch-onnxruntime.sh has no line %q", line)
		}
	}
}

// The container of the CUDA provider has to bring the library that this package is built for.
func TestTheDockerfileNamesThisVersion(t *testing.T) {
	b, err := os.ReadFile("../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), "ARG ORT_VERSION="+LibraryVersion+"\n") {
		t.Errorf("the Dockerfile does not fetch ONNX Runtime %s", LibraryVersion)
	}
}

func TestAFileThatChangesIsSummedAgain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lib.so")
	start := time.Now().Add(-time.Hour)
	for i, content := range []string{"one", "two", "three"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, start, start.Add(time.Duration(i)*time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		want := sha256.Sum256([]byte(content))
		for range 2 {
			if got, err := sumOf(path); err != nil || got != hex.EncodeToString(want[:]) {
				t.Errorf("%q: %s, error %v", content, got, err)
			}
		}
	}
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	if _, err := sumOf(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is gone: %v", err)
	}
}
