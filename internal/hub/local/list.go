package local

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"signalbox/classify/bundle"
	"signalbox/classify/head"
)

// Kind is the kind of a model folder.
type Kind string

// The kinds of model folders.
const (
	Bundle      Kind = "bundle"       // has a readable bundle.yaml
	HuggingFace Kind = "hugging face" // has a config.json or an ONNX graph in the hub's layout
	Classifier  Kind = "classifier"   // created by `signalbox fit`
	Adapter     Kind = "adapter"      // a file, NAME.onnx, that extends a bundle
	Incomplete  Kind = "incomplete"   // an incomplete download
	Broken      Kind = "broken"       // none of these; Problem has the reason
)

// Model describes one model for a list. It is read from names and small files; for models in the
// hub's layout and for bundles no digest is computed.
type Model struct {
	// Name is the name of the model in classify.tasks[].model.
	Name string `json:"name"`
	Kind Kind   `json:"kind"`
	// Tasks are the tasks of a bundle, or the output of a Hugging Face model's architecture:
	// sequence, token or embedding. Empty if the files do not state it. For a Classifier or an
	// Adapter, its labels.
	Tasks []string `json:"tasks"`
	// Precisions are those of the graphs, sorted: fp32, fp16, int8.
	Precisions []string `json:"precisions"`
	// Bytes is the size of all files.
	Bytes   int64  `json:"bytes"`
	License string `json:"license,omitempty"`
	// Version is the version stated by a bundle, Commit the downloaded commit.
	Version string `json:"version,omitempty"`
	Commit  string `json:"commit,omitempty"`
	// VerifiedAt is when every file last matched its checksum; zero if never, or if the last check
	// failed.
	VerifiedAt time.Time `json:"verified_at,omitzero"`
	// Dir is the folder, for an Adapter its file, or empty for the embedded bundle.
	Dir string `json:"dir,omitempty"`
	// Problem describes the problem of a broken folder.
	Problem string `json:"problem,omitempty"`
}

// List describes the models below modelsDir, sorted by name. The list is empty if modelsDir does
// not exist.
func List(modelsDir string) ([]Model, error) {
	entries, err := os.ReadDir(modelsDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list models: %w", err)
	}
	var out []Model
	for _, e := range entries {
		dir := filepath.Join(modelsDir, e.Name())
		if strings.HasSuffix(e.Name(), adapterSuffix) && !strings.HasPrefix(e.Name(), ".") {
			if m, ok := describeAdapter(dir); ok {
				out = append(out, m)
			}
			continue
		}
		if info, err := os.Stat(dir); err != nil || !info.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue // links to folders count; files beside the folders do not
		}
		if e.Name() == HalfModels {
			half, err := listHalf(dir)
			if err != nil {
				return nil, err
			}
			out = append(out, half...)
			continue
		}
		m := describeDir(dir)
		if m.Name == "" {
			m.Name = ModelName(e.Name())
		}
		m.Dir = dir
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b Model) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// HalfModels is the folder of models_dir for the half-precision graphs, which are too large to
// embed: a folder with a bundle for each embedded bundle.
const HalfModels = "embedded-fp16"

// listHalf describes the half-precision bundles in dir.
func listHalf(dir string) (out []Model, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list models: %w", err)
	}
	for _, e := range entries {
		at := filepath.Join(dir, e.Name())
		if info, err := os.Stat(at); err != nil || !info.IsDir() {
			continue
		}
		m := describeDir(at)
		m.Name, m.Dir = HalfModels+"/"+e.Name(), at
		out = append(out, m)
	}
	return out, nil
}

// adapterSuffix is the suffix of adapters, which are files beside the model folders.
const adapterSuffix = ".onnx"

// describeAdapter describes a file that may be an adapter; false if there is no such file.
func describeAdapter(file string) (Model, bool) {
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() {
		return Model{}, false
	}
	m := Model{
		Name: strings.TrimSuffix(filepath.Base(file), adapterSuffix), Kind: Adapter, Dir: file, Bytes: info.Size(),
		Tasks: []string{}, Precisions: []string{},
	}
	a, err := ReadAdapter(filepath.Dir(file), filepath.Base(file))
	if err != nil {
		m.Kind, m.Problem = Broken, err.Error()
		return m, true
	}
	m.Tasks, m.Version = a.Labels, "for "+a.Base.Name+" "+a.Base.Version
	return m, true
}

// ReadAdapter reads an adapter, a file of modelsDir, and checks its graph against the checksum in
// it. The error wraps fs.ErrNotExist if the file does not exist.
func ReadAdapter(modelsDir, name string) (*bundle.Adapter, error) {
	files := Files(modelsDir)
	info, err := fs.Stat(files, name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read adapter: %w", err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("read adapter: %s is not a file", filepath.Join(modelsDir, name))
	case info.Size() > bundle.MaxAdapterBytes:
		return nil, fmt.Errorf("read adapter: %d bytes, the limit is %d", info.Size(), bundle.MaxAdapterBytes)
	}
	data, err := fs.ReadFile(files, name)
	if err != nil {
		return nil, fmt.Errorf("read adapter: %w", err)
	}
	return bundle.ReadAdapter(data) //nolint:wrapcheck // it says what it is about
}

func describeDir(dir string) Model {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Model{Kind: Broken, Tasks: []string{}, Precisions: []string{}, Problem: err.Error()}
	}
	defer func() { _ = root.Close() }()
	m := Describe(root.FS())
	rec, err := ReadRecord(dir)
	switch {
	case err == nil:
		m.Commit, m.VerifiedAt = rec.Commit, rec.VerifiedAt
		m.License = cmp.Or(m.License, rec.License)
	case !errors.Is(err, fs.ErrNotExist):
		m.Kind, m.Problem = Broken, err.Error()
	default:
		if _, err := fs.Stat(root.FS(), PartialDir); err == nil {
			m.Kind, m.Problem = Incomplete, ""
		}
	}
	return m
}

// Describe describes the model at the root of files. The caller sets Name and Dir.
func Describe(files fs.FS) Model {
	m := Model{Tasks: []string{}, Precisions: []string{}}
	graphs, err := m.walk(files)
	if err != nil {
		m.Kind, m.Problem = Broken, err.Error()
		return m
	}
	b, err := bundle.Load(files)
	switch {
	case err == nil:
		m.ofManifest(&b.Manifest)
		return m
	case !errors.Is(err, fs.ErrNotExist):
		m.Kind, m.Problem = Broken, err.Error()
		return m
	}
	if data, err := fs.ReadFile(files, head.InfoFile); err == nil {
		m.Kind = Classifier
		info, err := head.DecodeInfo(data)
		if err != nil {
			m.Kind, m.Problem = Broken, err.Error()
			return m
		}
		m.Tasks = info.Labels
		return m
	}
	m.Kind = HuggingFace
	for _, g := range graphs {
		m.Precisions = append(m.Precisions, Precision(g))
	}
	m.Precisions = tidy(m.Precisions)
	task, err := architecture(files)
	switch {
	case err != nil && len(graphs) == 0:
		m.Kind, m.Problem = Broken, "no ONNX graph, no "+bundle.ManifestFile+" and no config.json"
	case len(graphs) == 0:
		m.Kind, m.Problem = Broken, "no ONNX graph"
	case task != "":
		m.Tasks = []string{task}
	}
	return m
}

func (m *Model) ofManifest(man *bundle.Manifest) {
	m.Kind, m.License, m.Version = Bundle, man.License, man.Version
	for _, t := range man.Tasks {
		m.Tasks = append(m.Tasks, t.Name)
	}
	for _, g := range man.Graphs {
		m.Precisions = append(m.Precisions, g.Precision)
	}
	m.Precisions = tidy(m.Precisions)
}

// walk adds up the sizes and returns the graphs.
func (m *Model) walk(files fs.FS) ([]string, error) {
	var graphs []string
	err := fs.WalkDir(files, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		if isOwn(name) {
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return err //nolint:wrapcheck // wrapped below
		}
		if info.Mode().IsRegular() {
			m.Bytes += info.Size()
		}
		if path.Ext(name) == ".onnx" {
			graphs = append(graphs, name)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read model: %w", err)
	}
	return graphs, nil
}

func tidy(s []string) []string {
	s = slices.DeleteFunc(s, func(p string) bool { return p == "" })
	slices.Sort(s)
	return slices.Compact(s)
}

// Precision derives the precision from the file name of a graph: int8, fp16, fp32, or "" if the
// name does not state it. The names are those of Optimum, sentence-transformers and published
// classifiers: model.onnx is fp32.
func Precision(name string) string {
	base := strings.TrimSuffix(strings.ToLower(path.Base(name)), ".onnx")
	switch {
	case strings.Contains(base, "int8"), strings.Contains(base, "_quantized"), strings.Contains(base, "quint8"):
		return "int8"
	case strings.HasSuffix(base, "fp16"), strings.HasSuffix(base, "_f16"):
		return "fp16"
	case base == "model", strings.HasSuffix(base, "fp32"):
		return "fp32"
	}
	return ""
}

// architecture reads the output of a Hugging Face model from its config.json, or from the
// modules.json that sentence-transformers writes.
func architecture(files fs.FS) (string, error) {
	if _, err := fs.Stat(files, "modules.json"); err == nil {
		return "embedding", nil
	}
	data, err := fs.ReadFile(files, "config.json")
	if err != nil {
		return "", fmt.Errorf("read architecture: %w", err)
	}
	var c struct {
		Architectures []string `json:"architectures"`
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return "", fmt.Errorf("read architecture: %w", err)
	}
	for _, a := range c.Architectures {
		switch {
		case strings.HasSuffix(a, "ForSequenceClassification"):
			return "sequence", nil
		case strings.HasSuffix(a, "ForTokenClassification"):
			return "token", nil
		case strings.HasSuffix(a, "Model"):
			return "embedding", nil
		}
	}
	return "", nil
}
