// Package local describes downloaded models on disk: the folder of models_dir that belongs to a
// model name, the checksums recorded at the download, and whether the files still match them. It
// opens no network connection and runs no model. Package hub downloads models; package
// classify/bundle interprets them.
//
// A model folder holds the files of the model under the paths of their repository, and files whose
// names begin with ".signalbox": the record, the lock and unfinished downloads. All functions are
// safe for concurrent use; TryLock excludes other processes.
package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"signalbox/internal/disk"
)

// The names in a model folder that are not files of the model.
const (
	// RecordFile records the source of the files in a folder and their digests.
	RecordFile = ".signalbox.json"
	// LockFile is locked while the files of a folder change. It is empty and never removed.
	LockFile = ".signalbox.lock"
	// PartialDir holds unfinished downloads.
	PartialDir = ".signalbox-partial"

	reserved = ".signalbox"
)

// RecordFormat is the version of the record that this package writes.
const RecordFormat = 1

// ErrName reports an invalid model name.
var ErrName = errors.New("not a model name; want NAME or ORG/NAME of letters, digits, '.', '_' and '-'")

// ErrPath reports a file name that leads out of a model folder.
var ErrPath = errors.New("unsafe file name")

// TryLock takes the lock of a model folder, which must exist, before its files are changed, or
// returns an error that wraps disk.ErrHeld immediately. The lock ends when the file is closed or
// the process ends. On systems without file locks, models are not changed.
func TryLock(dir string) (*os.File, error) { return disk.Lock(filepath.Join(dir, LockFile), 0o644) }

// namePart is one part of a repository name. The hub allows 96 characters in all, and neither "--"
// nor ".." (https://huggingface.co/docs/huggingface_hub, repository names), which makes org--name
// unambiguous.
var namePart = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9._-]{0,94}[A-Za-z0-9_])?$`)

// DefaultDir returns the folder of downloaded models below a user's cache directory, and "" when
// there is no cache directory.
func DefaultDir(cacheDir string) string {
	if cacheDir == "" {
		return ""
	}
	return filepath.Join(cacheDir, "signalbox", "models")
}

// Expand replaces a leading "~" by the home directory. An empty home leaves dir as it is.
func Expand(dir, home string) string {
	rest, ok := strings.CutPrefix(dir, "~")
	if !ok || home == "" || rest != "" && rest[0] != '/' {
		return dir
	}
	return filepath.Join(home, rest)
}

// FolderName returns the name of the folder that holds a model: "org--name" for "org/name", and a
// name without a slash unchanged. The error wraps ErrName.
func FolderName(model string) (string, error) {
	org, name, slash := strings.Cut(model, "/")
	parts := []string{org, name}
	if !slash {
		// A folder created by pull can also be referenced by its own name.
		parts = strings.SplitN(model, "--", 2)
	}
	for _, p := range parts {
		if !namePart.MatchString(p) || strings.Contains(p, "--") || strings.Contains(p, "..") {
			return "", fmt.Errorf("%q: %w", model, ErrName)
		}
	}
	return strings.Join(parts, "--"), nil
}

// ModelName returns the model name of a folder, the inverse of FolderName.
func ModelName(folder string) string { return strings.Replace(folder, "--", "/", 1) }

// Dir returns the folder below modelsDir for a model, whether it exists or not. The error wraps
// ErrName, so that no model name in a configuration leads out of modelsDir.
func Dir(modelsDir, model string) (string, error) {
	name, err := FolderName(model)
	if err != nil {
		return "", err
	}
	return filepath.Join(modelsDir, name), nil
}

// CheckPath returns an error that wraps ErrPath unless name is a slash-separated path that stays
// inside a model folder, has the same meaning on every system and is not one of the folder's own
// files.
func CheckPath(name string) error {
	bad := func(why string) error { return fmt.Errorf("%w: %q %s", ErrPath, name, why) }
	switch {
	case !fs.ValidPath(name) || name == ".":
		return bad("does not stay inside the model's folder")
	case strings.ContainsAny(name, "\\:"):
		return bad("has a backslash or a colon")
	case strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' }):
		return bad("has a control character or is not UTF-8")
	case strings.HasPrefix(strings.ToLower(name), reserved):
		return bad("has a name that signalbox keeps for itself")
	}
	for part := range strings.SplitSeq(name, "/") {
		if len(part) > 255 || strings.HasSuffix(part, ".") || strings.HasSuffix(part, " ") {
			return bad("is not a file name on every system")
		}
	}
	return nil
}

// Record is the file that pull writes beside the files, with their source and digests.
type Record struct {
	// Format is RecordFormat.
	Format int `json:"format"`
	// Repo is the repository, org/name.
	Repo string `json:"repo"`
	// Revision is the requested branch, tag or commit.
	Revision string `json:"revision"`
	// Commit is the commit that the revision referred to, 40 hexadecimal digits.
	Commit string `json:"commit"`
	// Endpoint is the URL of the hub that served the files.
	Endpoint string `json:"endpoint"`
	// License is the licence stated by the hub, or empty.
	License string `json:"license,omitempty"`
	// Graph is the ONNX file that was selected last, and Precision its precision (fp32, fp16, int8,
	// or empty if its name does not state it).
	Graph     string `json:"graph,omitempty"`
	Precision string `json:"precision,omitempty"`
	// PulledAt is when the files were last complete, VerifiedAt when all of them last matched; zero
	// after a failed check.
	PulledAt   time.Time `json:"pulled_at,omitzero"`
	VerifiedAt time.Time `json:"verified_at,omitzero"`
	// Files are the files of the model, sorted by path.
	Files []File `json:"files"`
}

// File is one file of a model.
type File struct {
	// Path is slash-separated and relative to the folder.
	Path string `json:"path"`
	// Bytes is the size.
	Bytes int64 `json:"bytes"`
	// SHA256 is the digest in lower-case hexadecimal digits.
	SHA256 string `json:"sha256"`
}

// File returns the entry of a path.
func (r *Record) File(name string) (File, bool) {
	for _, f := range r.Files {
		if f.Path == name {
			return f, true
		}
	}
	return File{}, false
}

// maxRecord limits the size of a record; a file takes about 200 bytes of it.
const maxRecord = 8 << 20

// ReadRecord reads the record of a model folder. The error wraps fs.ErrNotExist if the folder has
// none, and ErrPath if the record names a file outside the folder.
func ReadRecord(dir string) (*Record, error) {
	name := filepath.Join(dir, RecordFile)
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("read record: %w", err)
	}
	if info.Size() > maxRecord {
		return nil, fmt.Errorf("read record: %s: %d bytes are too many", name, info.Size())
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read record: %w", err)
	}
	r, err := ParseRecord(data)
	if err != nil {
		return nil, fmt.Errorf("read record: %s: %w", name, err)
	}
	return r, nil
}

// ParseRecord decodes and checks a record. Unknown keys are ignored, so that later versions can add
// keys.
func ParseRecord(data []byte) (*Record, error) {
	r := new(Record)
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	if r.Format != RecordFormat {
		return nil, fmt.Errorf("format %d is not supported, want %d", r.Format, RecordFormat)
	}
	seen := make(map[string]bool, len(r.Files))
	for _, f := range r.Files {
		if err := CheckPath(f.Path); err != nil {
			return nil, err
		}
		switch {
		case seen[f.Path]:
			return nil, fmt.Errorf("%q is listed twice", f.Path)
		case f.Bytes < 0:
			return nil, fmt.Errorf("%q: size %d", f.Path, f.Bytes)
		case !hexDigest.MatchString(f.SHA256):
			return nil, fmt.Errorf("%q: sha256 %q is not 64 hexadecimal digits", f.Path, f.SHA256)
		}
		seen[f.Path] = true
	}
	return r, nil
}

var hexDigest = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Write replaces the record of a folder atomically.
func (r *Record) Write(dir string) error {
	r.Format = RecordFormat
	slices.SortFunc(r.Files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	if err := disk.Replace(filepath.Join(dir, RecordFile), 0o644, append(data, '\n')); err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	return nil
}

// isOwn reports whether a path at the root of a model folder is not a file of the model.
func isOwn(name string) bool { return strings.HasPrefix(path.Base(name), reserved) }
