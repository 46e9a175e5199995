package hub

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"signalbox/classify/bundle"
	"signalbox/internal/hub/local"
)

// Selection selects files of a repository.
type Selection struct {
	// Precision of the graph: fp32, fp16 or int8. Empty selects the best for a CPU: int8 if there
	// is such a graph, else fp32; or the first graph of a bundle.
	Precision string
	// Graph selects the graph by its path instead.
	Graph string
	// Include are patterns of additional files (path.Match). A pattern without a slash is matched
	// with the last part of a path; one that ends in "/" selects everything below.
	Include []string
}

// Validate returns all problems, joined.
func (s *Selection) Validate() error {
	var errs []error
	switch s.Precision {
	case "", fp32, fp16, int8Graph:
	default:
		errs = append(errs, fmt.Errorf("precision %q is not one of fp32, fp16, int8", s.Precision))
	}
	for _, p := range s.Include {
		if _, err := path.Match(p, ""); err != nil {
			errs = append(errs, fmt.Errorf("pattern %q: %w", p, err))
		}
	}
	return errors.Join(errs...)
}

const (
	fp32      = "fp32"
	fp16      = "fp16"
	int8Graph = "int8"

	graphSuffix = ".onnx"
	tokenizer   = "tokenizer.json" //nolint:gosec // of text, not of access
)

// Choice is the result of a selection.
type Choice struct {
	// Graph is the path of the graph, and Precision its precision (empty if its name does not state
	// it).
	Graph, Precision string
	// Files are the wanted files in the listing's order.
	Files []Remote
}

// flash matches graphs that need a vendor-specific operator (com.ck, CKFlashAttention), which ONNX
// Runtime does not have: model_fa.onnx, model_fa_fp16.onnx.
var flash = regexp.MustCompile(`(^|[_-])fa([_-]|$)`)

func isFlash(name string) bool {
	return path.Ext(name) == graphSuffix && flash.MatchString(strings.TrimSuffix(strings.ToLower(path.Base(name)), graphSuffix))
}

// Choose selects the files. manifest is the content of the repository's bundle.yaml, nil if it has
// none. Errors wrap ErrNoModel, ErrNoFile or local.ErrPath.
func Choose(l *Listing, s Selection, manifest []byte) (*Choice, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	index := make(map[string]Remote, len(l.Files))
	for _, f := range l.Files {
		if !isFlash(f.Path) {
			index[f.Path] = f
		}
	}
	p := &picker{listing: l, index: index, want: make(map[string]bool), s: s}
	out := new(Choice)
	var err error
	if manifest != nil {
		out.Graph, out.Precision, err = p.bundle(manifest)
	} else {
		out.Graph, out.Precision, err = p.huggingFace()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.Repo, err)
	}
	if err := p.tooLarge(append(p.externalData(out.Graph), out.Graph)); err != nil {
		return nil, fmt.Errorf("%s: %w", l.Repo, err)
	}
	for _, f := range l.Files {
		if _, ok := index[f.Path]; ok && (isCard(f.Path) || included(f.Path, s.Include)) {
			p.want[f.Path] = true
		}
	}
	for _, f := range l.Files {
		if !p.want[f.Path] {
			continue
		}
		if err := local.CheckPath(f.Path); err != nil {
			return nil, fmt.Errorf("%s: %w", l.Repo, err)
		}
		out.Files = append(out.Files, f)
	}
	return out, nil
}

type picker struct {
	listing *Listing
	index   map[string]Remote
	want    map[string]bool
	s       Selection
}

// take selects the file with a name, if it exists.
func (p *picker) take(name string) bool {
	_, ok := p.index[name]
	if ok {
		p.want[name] = true
	}
	return ok
}

func (p *picker) named() (string, error) {
	if isFlash(p.s.Graph) {
		return "", fmt.Errorf("%w: %s needs an operator that ONNX Runtime does not have (com.ck)", ErrNoModel, p.s.Graph)
	}
	if path.Ext(p.s.Graph) != graphSuffix || !p.take(p.s.Graph) {
		return "", fmt.Errorf("%w: %q is not one of its graphs: %s", ErrNoFile, p.s.Graph, p.graphs())
	}
	return p.s.Graph, nil
}

// graphs lists the available graphs, for messages.
func (p *picker) graphs() string {
	const most = 12
	var names []string
	for _, f := range p.listing.Files {
		if _, ok := p.index[f.Path]; ok && path.Ext(f.Path) == graphSuffix {
			names = append(names, f.Path)
		}
	}
	if len(names) == 0 {
		return "it has none"
	}
	if len(names) > most {
		names = append(names[:most], "...")
	}
	return strings.Join(names, ", ")
}

// huggingFace selects from the hub's usual layout.
func (p *picker) huggingFace() (graph, precision string, err error) {
	if graph, err = p.graph(); err != nil {
		return "", "", errors.Join(append([]error{err}, p.lacks("onnx")...)...)
	}
	dir := path.Dir(graph)
	for _, base := range []string{tokenizer, "tokenizer_config.json", "special_tokens_map.json"} {
		// The folder of a graph may have a separate tokenizer; the one in the root is used.
		if !p.take(base) {
			p.take(path.Join(dir, base))
		}
	}
	if lacking := p.lacks(dir); lacking != nil {
		return "", "", errors.Join(lacking...)
	}
	for _, name := range []string{"config.json", "modules.json", "config_sentence_transformers.json", "sentence_bert_config.json", "1_Pooling/config.json"} {
		p.take(name)
	}
	for _, base := range []string{"config.json", "model_config.json"} {
		p.take(path.Join(dir, base))
		p.take(path.Join("onnx", base))
	}
	for _, f := range p.listing.Files {
		if d := path.Dir(f.Path); (d == "." || d == dir) && strings.HasSuffix(f.Path, "_mapping.json") {
			p.take(f.Path)
		}
	}
	return graph, local.Precision(graph), nil
}

// lacks lists the files that the repository lacks for a graph in dir, before anything is
// downloaded.
func (p *picker) lacks(dir string) []error {
	var out []error
	has := func(names ...string) (found []string) {
		for _, n := range names {
			if _, ok := p.index[n]; ok {
				found = append(found, n)
			}
		}
		return found
	}
	if has(tokenizer, path.Join(dir, tokenizer)) == nil {
		other := ""
		if f := has("vocab.txt", "tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "spm.model", "vocab.json"); f != nil {
			other = fmt.Sprintf(" (it has %s): AutoTokenizer.from_pretrained(%q).save_pretrained(DIR) of transformers "+
				"writes one", strings.Join(f, ", "), p.listing.Repo)
		}
		out = append(out, fmt.Errorf("%w: it has no %s, and no other tokenizer format is read%s", ErrNoModel, tokenizer, other))
	}
	if has("config.json") == nil {
		out = append(out, fmt.Errorf("%w: it has no config.json at its root, which tells what the outputs mean", ErrNoModel))
	}
	return out
}

// pytorch lists the weights of a repository in other formats.
func (p *picker) pytorch() []string {
	var out []string
	for _, f := range p.listing.Files {
		switch ext := path.Ext(f.Path); {
		case ext == ".safetensors", ext == ".bin" && strings.HasPrefix(path.Base(f.Path), "pytorch_model"):
			out = append(out, f.Path)
		}
	}
	const most = 3
	if len(out) > most {
		out = append(out[:most], "...")
	}
	return out
}

// graph selects one graph: by precision, then by folder (the root, onnx/, then the deepest
// onnx/layer-N/ of a model with early exits), then by name.
func (p *picker) graph() (string, error) {
	if p.s.Graph != "" {
		return p.named()
	}
	precisions := []string{int8Graph, fp32, fp16}
	if p.s.Precision != "" {
		precisions = []string{p.s.Precision}
	}
	for _, precision := range precisions {
		for _, dir := range p.folders() {
			for _, base := range graphNames(precision) {
				if name := path.Join(dir, base); p.take(name) {
					return name, nil
				}
			}
		}
	}
	graphs := p.graphs()
	switch {
	case graphs == "it has none":
		weights := ""
		if w := p.pytorch(); w != nil {
			weights = fmt.Sprintf(", only %s", strings.Join(w, ", "))
		}
		folder, err := local.FolderName(p.listing.Repo)
		if err != nil {
			return "", fmt.Errorf("%w: it has no ONNX graph%s", ErrNoModel, weights)
		}
		return "", fmt.Errorf("%w: it has no ONNX graph%s; export one into models_dir: pip install \"optimum[onnxruntime]\" && "+
			"optimum-cli export onnx --model %s %s", ErrNoModel, weights, p.listing.Repo, folder)
	case p.s.Precision != "":
		return "", fmt.Errorf("%w: it has no graph of precision %s; it has %s", ErrNoModel, p.s.Precision, graphs)
	}
	return "", fmt.Errorf("%w: none of its graphs has a usual name; name one with --graph: %s", ErrNoModel, graphs)
}

var layer = regexp.MustCompile(`^(onnx/)?layer-([0-9]{1,4})/`)

func (p *picker) folders() []string {
	depth := make(map[string]int)
	for _, f := range p.listing.Files {
		if m := layer.FindStringSubmatch(f.Path); m != nil {
			n, err := strconv.Atoi(m[2])
			if err == nil {
				depth[strings.TrimSuffix(m[0], "/")] = n
			}
		}
	}
	layers := slices.SortedFunc(maps.Keys(depth), func(a, b string) int {
		return cmp.Or(cmp.Compare(depth[b], depth[a]), cmp.Compare(a, b))
	})
	return append([]string{".", "onnx"}, layers...)
}

// graphNames lists the file names of a precision in order of preference: those that package bundle
// finds in a folder without a manifest. Graphs with other names, such as those that
// sentence-transformers quantises for one processor, are only selected by name.
func graphNames(precision string) []string {
	switch precision {
	case fp32:
		return []string{"model.onnx"}
	case fp16:
		return []string{"model_sdpa_fp16.onnx", "model_fp16.onnx"}
	}
	return []string{"model_quantized.onnx", "model_int8.onnx", "model_uint8.onnx"}
}

// externalData selects the files that hold the weights of a graph, under the names that exporters
// use: model.onnx.data, model.onnx_data, model.onnx_data_1, model.data.
func (p *picker) externalData(graph string) (taken []string) {
	stem := strings.TrimSuffix(graph, graphSuffix)
	for _, f := range p.listing.Files {
		rest, ok := strings.CutPrefix(f.Path, graph)
		if f.Path == stem+".data" || ok && (rest == ".data" || rest == "_data" || strings.HasPrefix(rest, "_data_") || strings.HasPrefix(rest, ".data_")) {
			p.take(f.Path)
			taken = append(taken, f.Path)
		}
	}
	return taken
}

// tooLarge reports a graph that could not be opened because its files, the last of which is the
// graph, exceed the size limit of a protobuf message.
func (p *picker) tooLarge(files []string) error {
	var total int64
	for _, name := range files {
		total += max(0, p.index[name].Bytes)
	}
	if total < bundle.MaxGraphBytes {
		return nil
	}
	return fmt.Errorf("%w: %s has %d bytes with its weights, the limit is %d: choose another with "+
		"--precision or --graph, of %s",
		ErrNoModel, files[len(files)-1], total, int64(bundle.MaxGraphBytes), p.graphs())
}

// manifestFiles is the part of a bundle.yaml that lists files. It is read leniently: a manifest of
// a later format can be downloaded, and a version that cannot load it rejects it later.
type manifestFiles struct {
	Graphs []struct {
		File      string `yaml:"file"`
		Precision string `yaml:"precision"`
	} `yaml:"graphs"`
}

func (p *picker) bundle(manifest []byte) (graph, precision string, err error) {
	var m manifestFiles
	var root yaml.Node
	if err := errors.Join(yaml.Unmarshal(manifest, &m), yaml.Unmarshal(manifest, &root)); err != nil {
		return "", "", fmt.Errorf("%w: %s: %w", ErrNoModel, bundle.ManifestFile, err)
	}
	var have []string
	for _, g := range m.Graphs {
		have = append(have, fmt.Sprintf("%s (%s)", g.File, g.Precision))
		wanted := p.s.Graph == g.File || p.s.Graph == "" && (p.s.Precision == "" || p.s.Precision == g.Precision)
		if graph == "" && wanted && path.Ext(g.File) == graphSuffix {
			graph, precision = g.File, g.Precision
		}
	}
	if graph == "" {
		return "", "", fmt.Errorf("%w: %s has no such graph; it has %s", ErrNoModel, bundle.ManifestFile, strings.Join(have, ", "))
	}
	p.take(bundle.ManifestFile)
	names := []string{graph}
	for _, name := range fileKeys(&root) {
		if path.Ext(name) != graphSuffix {
			names = append(names, name)
		}
	}
	for _, name := range names {
		if !p.take(name) {
			return "", "", fmt.Errorf("%w: %s names %q, which the repository does not have", ErrNoFile, bundle.ManifestFile, name)
		}
	}
	return graph, precision, nil
}

// fileKeys returns the values of all keys "file" of a manifest, at any depth.
func fileKeys(n *yaml.Node) []string {
	var out []string
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			if value := n.Content[i+1]; child.Value == "file" && value.Kind == yaml.ScalarNode && value.Value != "" {
				out = append(out, value.Value)
			}
			continue
		}
		out = append(out, fileKeys(child)...)
	}
	return out
}

// isCard matches the files at the root that describe a model and its permitted use.
func isCard(name string) bool {
	if strings.Contains(name, "/") {
		return false
	}
	upper := strings.ToUpper(name)
	return slices.ContainsFunc([]string{"LICENSE", "LICENCE", "NOTICE", "README", "MODEL_CARD", "COPYING"}, func(p string) bool {
		return upper == p || strings.HasPrefix(upper, p+".")
	})
}

func included(name string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		if strings.HasSuffix(p, "/") {
			return strings.HasPrefix(name, p)
		}
		subject := name
		if !strings.Contains(p, "/") {
			subject = path.Base(name)
		}
		ok, err := path.Match(p, subject)
		return ok && err == nil
	})
}
