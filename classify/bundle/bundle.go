package bundle

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"go.yaml.in/yaml/v3"
)

// ManifestFile is the name of the manifest inside a bundle.
const ManifestFile = "bundle.yaml"

// ErrChecksum reports a file whose size or SHA-256 differs from the manifest.
var ErrChecksum = errors.New("file does not match the manifest")

// ErrNoGraph reports that a bundle has no graph of the requested precision.
var ErrNoGraph = errors.New("no graph of this precision")

// ErrNoTurns reports that a bundle has no head for conversation turns.
var ErrNoTurns = errors.New("no head for turns")

// ErrNoScan reports that a bundle has no scanner of long prompts.
var ErrNoScan = errors.New("no scanner of long prompts")

// ErrNoFusion reports that a bundle has no fusion for a guard.
var ErrNoFusion = errors.New("no fusion")

// ErrVocabulary reports a tokenizer with more ids than the graph.
var ErrVocabulary = errors.New("tokenizer does not fit the graph")

// Error is a problem of one file of a bundle, at Key if the file is a manifest.
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
	// the results of Open for a Hugging Face folder; nil for bundles with a manifest
	hub *opened
}

// Load reads and checks the manifest at the root of files. Problems are *Error values, joined. The
// other files are read and verified on demand.
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

// ParseManifest decodes and checks a manifest. Unknown keys are errors. Problems are *Error values,
// joined.
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
	for i := range m.Tasks {
		if t := &m.Tasks[i]; t.Kind == Embedding {
			t.Pooling, t.Width = cmp.Or(t.Pooling, NoPooling), cmp.Or(t.Width, t.Dims)
		}
	}
	return m, nil
}

// Tokenizer reads and verifies the tokenizer.json.
func (b *Bundle) Tokenizer() ([]byte, error) { return b.read(b.Manifest.Tokenizer.File) }

// Scan reads and verifies the scan table for long prompts. It returns ErrNoScan if the bundle has
// none.
func (b *Bundle) Scan() ([]byte, error) { return b.optional(b.Manifest.Scan, ErrNoScan) }

// Turns reads and verifies the head for conversation turns. It returns ErrNoTurns if the bundle has
// none.
func (b *Bundle) Turns() ([]byte, error) { return b.optional(b.Manifest.Turns, ErrNoTurns) }

// Fusion reads and verifies the fusion for a guard. It returns ErrNoFusion if the bundle has none.
func (b *Bundle) Fusion() ([]byte, error) { return b.optional(b.Manifest.Fusion, ErrNoFusion) }

func (b *Bundle) optional(f File, without error) ([]byte, error) {
	if f.Name == "" {
		return nil, fmt.Errorf("bundle %q: %w", b.Manifest.Name, without)
	}
	return b.read(f)
}

// Graph reads and verifies the graph that GraphPrecision selects. External weights are moved into
// it, so that a session needs only the result. During the call this takes twice their size; the
// limit is 2 GiB. Errors: ErrNoGraph, and *Error values that wrap ErrChecksum, ErrGraph,
// ErrExternal or the file system's errors.
func (b *Bundle) Graph(precision string) ([]byte, error) {
	g, err := b.graph(precision)
	if err != nil {
		return nil, err
	}
	model, err := b.read(g.File)
	if err != nil {
		return nil, err
	}
	facts, err := readGraphFacts(bytes.NewReader(model), int64(len(model)))
	if err != nil {
		return nil, &Error{File: g.Name, Err: err}
	}
	if len(facts.external) == 0 {
		return model, nil
	}
	model, err = inline(g.Name, model, facts, b.readWeights)
	if err != nil {
		return nil, &Error{File: g.Name, Err: err}
	}
	return model, nil
}

// GraphPrecision returns the precision of the graph that Graph returns for precision (FP32, FP16 or
// Int8): that one, or else FP32. An empty precision selects the first graph of the manifest.
// Half-precision graphs are only selected explicitly, because they take ten times as long on a CPU.
// It returns ErrNoGraph if the bundle has none that fits.
func (b *Bundle) GraphPrecision(precision string) (string, error) {
	g, err := b.graph(precision)
	if err != nil {
		return "", err
	}
	return g.Precision, nil
}

func (b *Bundle) graph(precision string) (*Graph, error) {
	graphs := b.Manifest.Graphs
	if precision == "" && len(graphs) > 0 {
		return &graphs[0], nil
	}
	for _, want := range []string{precision, FP32} {
		for i := range graphs {
			if graphs[i].Precision == want {
				return &graphs[i], nil
			}
		}
	}
	have := make([]string, len(graphs))
	for i := range graphs {
		have[i] = graphs[i].Precision
	}
	return nil, fmt.Errorf("bundle %q: %w: %s, it has %v", b.Manifest.Name, ErrNoGraph, precision, have)
}

// CheckVocabulary compares the number of ids of a tokenizer with that of the graphs. It returns
// ErrVocabulary if the tokenizer has more, because these ids would be outside the embedding table.
func (b *Bundle) CheckVocabulary(size int) error {
	if known := b.Manifest.Vocab; known > 0 && size > known {
		return &Error{File: b.Manifest.Tokenizer.Name, Err: fmt.Errorf("%w: %d ids, the graph knows %d", ErrVocabulary, size, known)}
	}
	return nil
}

// Verify reads every file in the manifest and returns all problems, joined. For a Hugging Face
// folder without recorded sums it only checks that the files are readable.
func (b *Bundle) Verify() error {
	_, err := b.Tokenizer()
	errs := []error{err}
	for _, g := range b.Manifest.Graphs {
		errs = append(errs, b.verifyGraph(&g))
	}
	if b.Manifest.Scan.Name != "" {
		_, err := b.Scan()
		errs = append(errs, err)
	}
	if b.Manifest.Turns.Name != "" {
		_, err := b.Turns()
		errs = append(errs, err)
	}
	if b.Manifest.Fusion.Name != "" {
		_, err := b.Fusion()
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// verifyGraph reads a graph and its external weights.
func (b *Bundle) verifyGraph(g *Graph) error {
	model, err := b.read(g.File)
	if err != nil {
		return err
	}
	facts, err := readGraphFacts(bytes.NewReader(model), int64(len(model)))
	if err != nil {
		return &Error{File: g.Name, Err: err}
	}
	if _, _, _, err = facts.load(g.Name, b.readWeights); err != nil {
		return &Error{File: g.Name, Err: err}
	}
	return nil
}

// readWeights reads a file of external weights. A manifest must list it; in a Hugging Face folder
// it has the recorded sum, if any.
func (b *Bundle) readWeights(name string) ([]byte, error) {
	f := File{Name: name, Bytes: -1}
	if b.hub != nil {
		if known, ok := b.hub.folder.record[name]; ok {
			f = known
		}
	} else if f = b.Manifest.weights(name); f.Name == "" {
		return nil, &Error{File: name, Err: fmt.Errorf("%w: the manifest does not name this file", ErrExternal)}
	}
	data, err := b.read(f)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: %w", ErrExternal, err)
	}
	return data, err
}

// weights finds a file of external weights; the name is empty if there is none.
func (m *Manifest) weights(name string) File {
	for _, g := range m.Graphs {
		for _, w := range g.Weights {
			if w.Name == name {
				return w
			}
		}
	}
	return File{}
}

// read reads a file and compares it with its sum, if that is known. Bytes is -1 for an unknown
// size.
func (b *Bundle) read(f File) ([]byte, error) {
	info, err := fs.Stat(b.files, f.Name)
	if err != nil {
		return nil, &Error{File: f.Name, Err: err}
	}
	if f.Bytes >= 0 && info.Size() != f.Bytes { // before a wrong file of any size is read
		return nil, &Error{File: f.Name, Err: fmt.Errorf("%w: %d bytes, want %d", ErrChecksum, info.Size(), f.Bytes)}
	}
	file, err := b.files.Open(f.Name)
	if err != nil {
		return nil, &Error{File: f.Name, Err: err}
	}
	defer func() { _ = file.Close() }()
	sum := sha256.New()
	data, err := readAll(file, info.Size(), func(piece []byte) {
		if f.SHA256 != "" {
			_, _ = sum.Write(piece) // never fails
		}
	})
	if err != nil {
		return nil, &Error{File: f.Name, Err: err}
	}
	if got := hex.EncodeToString(sum.Sum(nil)); f.SHA256 != "" && got != f.SHA256 {
		return nil, &Error{File: f.Name, Err: fmt.Errorf("%w: sha256 %s, want %s", ErrChecksum, got, f.SHA256)}
	}
	return data, nil
}

// readAll reads a file of about size bytes and calls show for each piece as it arrives: it can be
// hashed while it is in the processor's cache, and the garbage collector, which cannot stop a
// goroutine during a copy, need not wait for the whole file.
func readAll(file io.Reader, size int64, show func(piece []byte)) ([]byte, error) {
	const piece = 256 << 10
	data := make([]byte, 0, size+1)
	for {
		if len(data) == cap(data) {
			data = slices.Grow(data, piece)
		}
		n, err := file.Read(data[len(data):min(cap(data), len(data)+piece)])
		show(data[len(data) : len(data)+n])
		data = data[:len(data)+n]
		switch {
		case errors.Is(err, io.EOF):
			return data, nil
		case err != nil:
			return nil, err
		}
	}
}
