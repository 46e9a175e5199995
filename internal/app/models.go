package app

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"signalbox/classify"
	"signalbox/classify/bundle"
	"signalbox/classify/language"
	"signalbox/internal/config"
	"signalbox/internal/hub/local"
	"signalbox/internal/signal"
	"signalbox/models"
)

// The folders of the embedded bundles of signals.
const (
	defaultFolder = "default"
	foreignFolder = "foreign" // of texts in other languages
)

// placement is one bundle of the configuration and what it is there for.
type placement struct {
	model   string
	files   fs.FS         // the embedded bundles
	folder  string        // of the embedded files
	entries []int         // of classify.tasks; the embedded bundle also gives what no entry names
	remote  config.Remote // the server that runs it; its URL is empty where this machine does
	bundle  *bundle.Bundle
	signals signal.Mask // that it gives
	// it gives them for texts in other languages, beside a placement that reads all
	foreign bool
	key     string // differs when the model, how it is read, or its files do
	// values of its graph that adapters go on from, and the sum of the graph that has them
	taps   []string
	tapped string
}

// opened is what tells sessions of a placement apart.
func (p *placement) opened() string {
	if len(p.taps) == 0 {
		return p.key
	}
	return p.key + "\x00" + strings.Join(p.taps, " ")
}

// place opens the bundle of every task of a configuration, the embedded one first. It needs no ONNX
// Runtime. Problems are *config.TaskError values, joined; the placements without one are returned
// beside them.
func place(c *config.Classify) ([]placement, error) { return placeFrom(models.FS, c) }

// placeFrom is place with other embedded bundles.
func placeFrom(files fs.FS, c *config.Classify) ([]placement, error) {
	var errs []error
	all := []placement{{model: config.EmbeddedModel, files: files, folder: defaultFolder}}
	for i := range c.Tasks {
		t := &c.Tasks[i]
		if t.Model == classify.PatternsModel || t.Classifier != "" || t.Name == config.GroundingTask {
			continue
		}
		// what the embedded bundle lacks is told by its own tasks
		if err := config.CheckTaskName(t.Name); err != nil && t.Model != config.EmbeddedModel {
			if t.Name != "" { // that one is missing is told already
				errs = append(errs, &config.TaskError{Index: i, Field: "name", Err: err})
			}
			continue
		}
		at := slices.IndexFunc(all, func(p placement) bool {
			return p.model == t.Model && p.remote == t.Remote && shared(c, t.Model)
		})
		if at < 0 {
			at = len(all)
			all = append(all, placement{model: t.Model, remote: t.Remote})
			if t.Model == config.EmbeddedModel {
				all[at].files, all[at].folder = files, defaultFolder
			}
		}
		all[at].entries = append(all[at].entries, i)
	}
	placed, err := openAll(c, all)
	errs = append(errs, err)
	other, err := placeForeign(files, c, placed)
	if err != nil {
		errs = append(errs, err)
	} else if other != nil {
		placed = append(placed, *other)
	}
	return placed, errors.Join(errs...)
}

// openAll opens the bundles of placements and returns those that could be, in the same space.
func openAll(c *config.Classify, all []placement) ([]placement, error) {
	var errs []error
	placed := all[:0]
	for _, p := range all {
		if err := p.open(c); err != nil {
			errs = append(errs, err)
			continue
		}
		if err := p.choose(c); err != nil {
			errs = append(errs, err)
		}
		placed = append(placed, p)
	}
	return placed, errors.Join(errs...)
}

// placeForeign opens the embedded bundle for other languages. It goes with the embedded bundle,
// wherever that runs: what comes from another model is what that model says in every language. nil
// without an error: nothing is asked of it, or this binary does not have it.
func placeForeign(files fs.FS, c *config.Classify, placed []placement) (*placement, error) {
	p := &placement{model: config.EmbeddedModel, files: files, folder: foreignFolder, foreign: true}
	_, err := fs.Stat(files, foreignFolder+"/"+bundle.ManifestFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err := p.open(c); err != nil {
		return nil, err
	}
	var served signal.Mask
	for i := range placed {
		if placed[i].model == config.EmbeddedModel {
			served |= placed[i].signals
		}
	}
	if p.signals = served & p.tasks() & classify.ForeignKinds; p.signals == 0 {
		return nil, nil
	}
	return p, nil
}

// shared reports whether several tasks can come from one model: those of a bundle, not those of a
// model that knows one.
func shared(c *config.Classify, model string) bool {
	if model == config.EmbeddedModel {
		return true
	}
	dir, err := local.Dir(c.ModelsDir, model)
	if err != nil {
		return false
	}
	_, err = os.Stat(dir + string(os.PathSeparator) + bundle.ManifestFile)
	return err == nil
}

// open reads the manifest of a placement's bundle.
func (p *placement) open(c *config.Classify) error {
	entry, o := -1, bundle.OpenOptions{}
	if len(p.entries) > 0 {
		entry = p.entries[0]
		if !shared(c, p.model) {
			o = openOptions(&c.Tasks[entry])
		}
	}
	fail := func(err error) error { return &config.TaskError{Index: entry, Field: "model", Err: err} }
	var root fs.FS
	mark := ""
	if p.model == config.EmbeddedModel {
		sub, err := fs.Sub(p.files, p.folder)
		if err != nil {
			return fail(err)
		}
		root = sub
	} else {
		dir, err := local.Dir(c.ModelsDir, p.model)
		if err != nil {
			return fail(err)
		}
		root = local.Files(dir)
		if mark, err = fingerprintDir(root); err != nil {
			return fail(noFolder(p.model, dir, err))
		}
	}
	b, err := bundle.Open(root, o)
	if err != nil {
		return fail(err)
	}
	p.bundle = b
	p.key = fmt.Sprintf("%s\x00%s\x00%s\x00%s\x00%+v", p.model, p.folder, describe(o), mark, p.remote)
	return nil
}

// noFolder says why a model has no folder that can be read, and how it gets one. err is what came of
// reading it.
func noFolder(model, dir string, err error) error {
	switch info, missing := os.Stat(dir); {
	case errors.Is(missing, fs.ErrNotExist) && strings.Contains(model, "/"):
		return fmt.Errorf("folder %s does not exist: download the model with `signalbox models pull %s`", dir, model)
	case errors.Is(missing, fs.ErrNotExist):
		return fmt.Errorf("folder %s does not exist: put the model there, or correct the name or classify.models_dir", dir)
	case missing == nil && !info.IsDir():
		return fmt.Errorf("%s is not a folder", dir)
	}
	return err
}

// graphs identifies the graphs of a placement's bundle as far as its manifest does.
func (p *placement) graphs() string {
	var b strings.Builder
	for _, g := range p.bundle.Manifest.Graphs {
		b.WriteString(" " + g.SHA256)
	}
	return b.String()
}

// openOptions says how a model in the Hugging Face layout is read.
func openOptions(t *config.Task) bundle.OpenOptions {
	return bundle.OpenOptions{
		Task: t.Name, Kind: bundle.Kind(t.Kind), Name: t.Model, Positive: t.Positive, Labels: t.Labels,
		Pooling: bundle.Pooling(t.Pooling), Dims: t.Dims, Prefix: t.Prefix, Layer: t.Layer,
		MaxTokens: t.MaxTokens, Temperature: t.Temperature,
		Window: bundle.Window{
			Tokens: t.Window.Tokens, Stride: t.Window.Stride, Max: t.Window.Max, Long: bundle.Long(t.Window.Long),
		},
	}
}

// describe makes options comparable as text.
func describe(o bundle.OpenOptions) string {
	prefix := "found"
	if o.Prefix != nil {
		prefix = "given " + *o.Prefix
	}
	o.Prefix = nil
	return fmt.Sprintf("%+v %s", o, prefix)
}

// tasks returns the signals that the bundle of a placement has tasks for.
func (p *placement) tasks() signal.Mask {
	var m signal.Mask
	for _, t := range p.bundle.Manifest.Tasks {
		if k, ok := signal.ParseKind(t.Name); ok {
			m |= signal.MaskOf(k)
		}
	}
	return m
}

// choose decides which signals a placement gives, and checks that its bundle has the tasks.
func (p *placement) choose(c *config.Classify) error {
	if p.model == config.EmbeddedModel && p.remote.URL == "" {
		p.signals = p.tasks()
		for i := range c.Tasks {
			if k, ok := signal.ParseKind(c.Tasks[i].Name); ok && (c.Tasks[i].Model != config.EmbeddedModel || c.Tasks[i].Remote.URL != "") {
				p.signals &^= signal.MaskOf(k)
			}
		}
	}
	var errs []error
	for _, i := range p.entries {
		name := c.Tasks[i].Name
		task, ok := p.bundle.Manifest.Task(name)
		if !ok {
			errs = append(errs, &config.TaskError{
				Index: i, Field: "name", Err: config.NoTask(name, taskNames(p.bundle)),
			})
			continue
		}
		if !classify.GivesSignal(task) {
			errs = append(errs, &config.TaskError{
				Index: i, Field: "model", Err: fmt.Errorf("its task of kind %s cannot give the signal %s", task.Kind, name),
			})
			continue
		}
		if k, ok := signal.ParseKind(name); ok {
			p.signals |= signal.MaskOf(k)
		}
	}
	return errors.Join(errs...)
}

func taskNames(b *bundle.Bundle) []string {
	out := make([]string, 0, len(b.Manifest.Tasks))
	for _, t := range b.Manifest.Tasks {
		out = append(out, t.Name)
	}
	return out
}

// fingerprintDir tells two contents of a model's folder apart by the names, sizes and times of its
// files: the files themselves may be gigabytes.
func fingerprintDir(root fs.FS) (string, error) {
	var b strings.Builder
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		i, err := d.Info()
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(&b, "%s %d %d\n", path, i.Size(), i.ModTime().UnixNano())
		return err
	})
	return b.String(), err
}

// Catalog tells what the bundles named by the configuration can compute. It needs no ONNX Runtime.
// Its errors are *config.TaskError values, joined; what the other bundles give stands beside them.
func Catalog(c *config.Classify) (config.Catalog, error) { return catalog(c, true) }

// CatalogUntrained is Catalog where classifiers of one's own need not be there yet.
func CatalogUntrained(c *config.Classify) (config.Catalog, error) { return catalog(c, false) }

func catalog(c *config.Classify, trained bool) (config.Catalog, error) {
	out := config.Catalog{
		Signals:    classify.LexicalKinds,
		Labels:     map[signal.Kind][]string{signal.Language: language.Codes()}, //nolint:exhaustive // others follow
		Thresholds: make(map[signal.Kind]float64),
	}
	for i := range c.Tasks {
		if c.Tasks[i].Model == classify.PatternsModel {
			out.Signals |= signal.MaskOf(signal.PII)
			out.Labels[signal.PII] = bundle.PIITypes()
		}
	}
	judges, missing := placeGrounding(c)
	out.Grounding = judges != nil
	placed, err := place(c)
	err = errors.Join(err, missing)
	for _, p := range placed {
		if p.foreign {
			continue // what it gives another one gives as well, whose labels and thresholds count
		}
		out.Signals |= p.signals
		for _, t := range p.bundle.Manifest.Tasks {
			k, ok := signal.ParseKind(t.Name)
			if !ok || !p.signals.Has(k) {
				continue
			}
			if t.Threshold > 0 {
				out.Thresholds[k] = t.Threshold
			}
			switch t.Kind {
			case bundle.Sequence:
				out.Labels[k] = t.Labels
			case bundle.Token:
				out.Labels[k] = typesOf(t.Labels)
			case bundle.Embedding, bundle.Pair:
			}
		}
	}
	err = errors.Join(err, catalogOwn(c, placed, &out, trained))
	return out, errors.Join(err, catalogGiven(c, &out))
}

// typesOf returns the types of BIO labels, and those that patterns find.
func typesOf(labels []string) []string {
	types := bundle.PIITypes()
	for _, l := range labels {
		if _, name, ok := strings.Cut(l, "-"); ok && !slices.Contains(types, name) {
			types = append(types, name)
		}
	}
	return types
}
