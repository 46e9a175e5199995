package keyring

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"signalbox/internal/disk"
)

// File is a Store in one file, which several processes on a machine may share. Each change is made
// under a lock on a separate file, and the file is replaced as a whole. On systems other than Unix
// only one process may use it. It is safe for concurrent use.
type File struct {
	path string

	mu       sync.Mutex // guards the fields below
	seen     os.FileInfo
	at       time.Time // when seen was examined
	revision string    // of the content read then
}

// content is the content of the file.
type content struct {
	Version int                       `json:"version"`
	Keys    map[string]jsontext.Value `json:"keys"` // records by name
}

const version = 1

// OpenFile returns the Store in a file. The file need not exist yet, but its folder must exist and
// be writable. An unreadable file is an error.
func OpenFile(path string) (*File, error) {
	f := &File{path: path}
	release, err := lock(context.Background(), f.lockPath())
	if err != nil {
		return nil, err
	}
	disk.Clean(path)
	release()
	_, _, err = f.Load(context.Background(), "")
	return f, err
}

func (f *File) lockPath() string { return f.path + ".lock" }

// settled is how old a file's modification time must be to prove that it is unchanged, since file
// system clocks have a coarse resolution.
const settled = time.Second

// Load implements Store.
func (f *File) Load(_ context.Context, known string) (texts map[string]string, revision string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	info, err := os.Stat(f.path)
	if err == nil && f.seen != nil && known != "" && known == f.revision && os.SameFile(info, f.seen) &&
		info.Size() == f.seen.Size() && info.ModTime().Equal(f.seen.ModTime()) && f.at.Sub(info.ModTime()) > settled {
		return nil, known, nil
	}
	texts, revision, err = f.read()
	if err != nil {
		return nil, "", err
	}
	f.seen, f.at, f.revision = info, now, revision
	if revision == known {
		return nil, known, nil
	}
	return texts, revision, nil
}

// read reads the file and returns its revision.
func (f *File) read() (texts map[string]string, revision string, err error) {
	b, err := os.ReadFile(f.path)
	switch {
	case errors.Is(err, os.ErrNotExist) && f.seen == nil:
		return map[string]string{}, "none", nil
	case err != nil:
		return nil, "", fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if texts, err = decode(b); err != nil {
		return nil, "", fmt.Errorf("%w: %s: %w", ErrUnavailable, f.path, err)
	}
	sum := sha256.Sum256(b)
	return texts, hex.EncodeToString(sum[:]), nil
}

// decode parses the content of a file.
func decode(b []byte) (map[string]string, error) {
	var c content
	if err := json.Unmarshal(b, &c, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("read the file of virtual keys: %w", err)
	}
	if c.Version != version {
		return nil, fmt.Errorf("read the file of virtual keys: version %d, expected %d", c.Version, version)
	}
	texts := make(map[string]string, len(c.Keys))
	for name, v := range c.Keys {
		if err := v.Compact(); err != nil {
			return nil, fmt.Errorf("read the file of virtual keys: %w", err)
		}
		texts[name] = string(v)
	}
	return texts, nil
}

// encode is the inverse of decode.
func encode(texts map[string]string) ([]byte, error) {
	c := content{Version: version, Keys: make(map[string]jsontext.Value, len(texts))}
	for name, text := range texts {
		c.Keys[name] = jsontext.Value(text)
	}
	b, err := json.Marshal(c, json.Deterministic(true), jsontext.WithIndent(" "))
	if err != nil {
		return nil, fmt.Errorf("write the file of virtual keys: %w", err)
	}
	return append(b, '\n'), nil
}

// patience is how long a change waits for one by another process.
const patience = 5 * time.Second

// Swap implements Store.
func (f *File) Swap(ctx context.Context, name, was, text string, most int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	release, err := lock(ctx, f.lockPath())
	if err != nil {
		return err
	}
	defer release()
	f.mu.Lock()
	defer f.mu.Unlock()
	texts, _, err := f.read()
	if err != nil {
		return err
	}
	switch {
	case texts[name] != was:
		return ErrConflict
	case text == "":
		delete(texts, name)
	case was == "" && len(texts) >= most:
		return ErrTooMany
	default:
		texts[name] = text
	}
	b, err := encode(texts)
	if err != nil {
		return err
	}
	if err := disk.Replace(f.path, 0o600, b); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if f.seen == nil { // it exists now, and must not vanish
		f.seen, _ = os.Stat(f.path)
	}
	return nil
}

// lock locks a file for this process and this call, waiting until ctx ends. On systems without
// locks it does nothing, and only one process may use the file.
func lock(ctx context.Context, path string) (release func(), err error) {
	retry := time.NewTicker(5 * time.Millisecond)
	defer retry.Stop()
	for {
		f, err := disk.Lock(path, 0o600)
		switch {
		case err == nil:
			return func() { _ = f.Close() }, nil
		case errors.Is(err, errors.ErrUnsupported):
			return func() {}, nil
		case !errors.Is(err, disk.ErrHeld):
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: lock %s: %w", ErrUnavailable, path, ctx.Err())
		case <-retry.C:
		}
	}
}
