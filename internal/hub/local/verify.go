package local

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"signalbox/classify/bundle"
	"signalbox/classify/head"
	"signalbox/internal/disk"
)

// ErrUnchecked reports a folder without a record and without a bundle manifest, whose files cannot
// be checked.
var ErrUnchecked = errors.New("no " + RecordFile + " and no " + bundle.ManifestFile + ": nothing to check the files against")

// ErrMismatch reports a file that differs from the record.
var ErrMismatch = errors.New("does not match the record")

// FileError is a problem with one file.
type FileError struct {
	Path string // slash-separated, relative to the folder
	Err  error
}

// Error returns "PATH: problem".
func (e *FileError) Error() string { return e.Path + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *FileError) Unwrap() error { return e.Err }

// Verify reads every file of the model in dir and returns the problems, none if all match. It
// checks the record and the bundle manifest, if they exist. A classifier that was trained locally,
// and an adapter, whose dir is a file, contain their own checksums. A folder with none of these is
// a problem (ErrUnchecked). If ctx ends, reading stops and its error is among the problems.
func Verify(ctx context.Context, dir string) []error {
	if info, err := os.Stat(dir); err == nil && info.Mode().IsRegular() {
		_, err := ReadAdapter(filepath.Dir(dir), filepath.Base(dir))
		return split(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return []error{fmt.Errorf("open model: %w", err)}
	}
	defer func() { _ = root.Close() }()
	var problems []error
	checked := false
	rec, err := ReadRecord(dir)
	switch {
	case err == nil:
		checked = true
		problems = append(problems, rec.verify(ctx, root.FS())...)
	case !errors.Is(err, fs.ErrNotExist):
		checked = true
		problems = append(problems, err)
	}
	if _, err := fs.Stat(root.FS(), bundle.ManifestFile); err == nil && ctx.Err() == nil {
		checked = true
		problems = append(problems, VerifyBundle(root.FS())...)
	}
	if info, err := fs.ReadFile(root.FS(), head.InfoFile); err == nil && ctx.Err() == nil {
		checked = true
		weights, err := fs.ReadFile(root.FS(), head.WeightsFile)
		if err == nil {
			_, err = head.Decode(info, weights)
		}
		problems = append(problems, split(err)...)
	}
	if !checked {
		problems = append(problems, ErrUnchecked)
	}
	return problems
}

// VerifyBundle checks the files that the manifest at the root of files names.
func VerifyBundle(files fs.FS) []error {
	b, err := bundle.Load(files)
	if err == nil {
		err = b.Verify()
	}
	return split(err)
}

// split separates joined errors, so that each prints on its own line.
func split(err error) []error {
	if err == nil {
		return nil
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok { // errors.As would find an inner join
		var out []error
		for _, e := range many.Unwrap() {
			out = append(out, split(e)...)
		}
		return out
	}
	return []error{err}
}

func (r *Record) verify(ctx context.Context, files fs.FS) []error {
	var problems []error
	for _, f := range r.Files {
		if err := ctx.Err(); err != nil {
			return append(problems, err)
		}
		if err := f.verify(ctx, files); err != nil {
			problems = append(problems, &FileError{Path: f.Path, Err: err})
		}
	}
	return problems
}

func (f File) verify(ctx context.Context, files fs.FS) error {
	info, err := fs.Stat(files, f.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("missing: %w", fs.ErrNotExist)
	case err != nil:
		return fmt.Errorf("stat: %w", err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%w: not a regular file", ErrMismatch)
	case info.Size() != f.Bytes: // before a wrong file of any size is read
		return fmt.Errorf("%w: %d bytes, want %d", ErrMismatch, info.Size(), f.Bytes)
	}
	got, err := sum(ctx, files, f.Path)
	if err != nil {
		return err
	}
	if got != f.SHA256 {
		return fmt.Errorf("%w: sha256 %s, want %s", ErrMismatch, got, f.SHA256)
	}
	return nil
}

func sum(ctx context.Context, files fs.FS, name string) (string, error) {
	file, err := files.Open(name)
	if err != nil {
		return "", fmt.Errorf("open: %w", err)
	}
	defer func() { _ = file.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, &Reader{Err: ctx.Err, From: file}); err != nil {
		return "", fmt.Errorf("read: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Reader stops a long read with the error of Err, such as that of a context.
type Reader struct {
	Err  func() error
	From io.Reader
}

// Read implements io.Reader.
func (r *Reader) Read(p []byte) (int, error) {
	if err := r.Err(); err != nil {
		return 0, err
	}
	return r.From.Read(p) //nolint:wrapcheck // io.Reader's contract
}

// MarkVerified stores in the record of a folder when its files last matched: at, or never if at is
// zero. checked is the record that the check read. Nothing is stored if the folder has another
// record by now, is being changed by a pull, or is read-only.
func MarkVerified(dir string, checked *Record, at time.Time) error {
	lock, err := TryLock(dir)
	if errors.Is(err, disk.ErrHeld) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(markVerified(dir, checked, at), lock.Close())
}

func markVerified(dir string, checked *Record, at time.Time) error {
	r, err := ReadRecord(dir)
	if err != nil {
		return err
	}
	if r.Commit != checked.Commit || !slices.Equal(r.Files, checked.Files) {
		return nil
	}
	r.VerifiedAt = at
	return r.Write(dir)
}
