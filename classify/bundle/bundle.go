// Package bundle reads model bundles: a folder with a manifest (bundle.yaml), one or more ONNX
// graphs and a tokenizer.json. The manifest is decoded strictly, and every file is checked against
// the size and SHA-256 that the manifest gives before anyone reads it. The package knows what a
// manifest says, not what a model computes.
//
// A Bundle is immutable and safe for concurrent use as long as its file system is.
package bundle

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"go.yaml.in/yaml/v3"
)

// ManifestFile is the name of the manifest inside a bundle.
const ManifestFile = "bundle.yaml"

// ErrChecksum reports a file whose size or SHA-256 is not what the manifest says.
var ErrChecksum = errors.New("file does not match the manifest")

// ErrNoGraph reports that a bundle has no graph of the precision asked for.
var ErrNoGraph = errors.New("no graph of this precision")

// Error is a problem with one file of a bundle, at Key where the file is a manifest.
type Error struct {
	File string
	Key  string // path such as tasks[1].labels, or empty
	Err  error
}

// Error returns "FILE: KEY: problem".
func (e *Error) Error() string {
	if e.Key == "" {
		return e.File + ": " + e.Err.Error()
	}
	return e.File + ": " + e.Key + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Bundle is a loaded bundle: a checked manifest and the files it names.
type Bundle struct {
	Manifest Manifest
	files    fs.FS
}

// Load reads and checks the manifest at the root of files. Problems are *Error values, joined. The
// other files are read, and verified, when they are asked for.
func Load(files fs.FS) (*Bundle, error) {
	data, err := fs.ReadFile(files, ManifestFile)
	if err != nil {
		return nil, &Error{File: ManifestFile, Err: err}
	}
	m, err := ParseManifest(data)
	if err != nil {
		return nil, err
	}
	return &Bundle{Manifest: *m, files: files}, nil
}

// ParseManifest decodes and checks a manifest. Unknown keys are errors. Problems are *Error values, joined.
func ParseManifest(data []byte) (*Manifest, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	m := new(Manifest)
	if err := dec.Decode(m); err != nil {
		return nil, &Error{File: ManifestFile, Err: err}
	}
	var extra yaml.Node
	if err := dec.Decode(&extra); !errors.Is(err, io.EOF) {
		return nil, &Error{File: ManifestFile, Err: errors.New("more than one YAML document")}
	}
	if err := m.Validate(); err != nil {
		return nil, err
	}
	return m, nil
}

// Tokenizer reads and verifies the tokenizer.json.
func (b *Bundle) Tokenizer() ([]byte, error) { return b.read(b.Manifest.Tokenizer) }

// Graph reads and verifies the graph of the given precision (fp32, fp16 or int8), or the first of
// the manifest when precision is empty. ErrNoGraph when the bundle has none.
func (b *Bundle) Graph(precision string) ([]byte, error) {
	for _, g := range b.Manifest.Graphs {
		if precision == "" || g.Precision == precision {
			return b.read(g.File)
		}
	}
	return nil, fmt.Errorf("bundle %q: %w: %s", b.Manifest.Name, ErrNoGraph, precision)
}

// Verify reads every file that the manifest names and returns all problems, joined.
func (b *Bundle) Verify() error {
	_, err := b.Tokenizer()
	errs := []error{err}
	for _, g := range b.Manifest.Graphs {
		_, err := b.read(g.File)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (b *Bundle) read(f File) ([]byte, error) {
	info, err := fs.Stat(b.files, f.Name)
	if err != nil {
		return nil, &Error{File: f.Name, Err: err}
	}
	if info.Size() != f.Bytes { // before a wrong file of any size is read
		return nil, &Error{File: f.Name, Err: fmt.Errorf("%w: %d bytes, want %d", ErrChecksum, info.Size(), f.Bytes)}
	}
	data, err := fs.ReadFile(b.files, f.Name)
	if err != nil {
		return nil, &Error{File: f.Name, Err: err}
	}
	sum := sha256.Sum256(data)
	if got := hex.EncodeToString(sum[:]); got != f.SHA256 {
		return nil, &Error{File: f.Name, Err: fmt.Errorf("%w: sha256 %s, want %s", ErrChecksum, got, f.SHA256)}
	}
	return data, nil
}
