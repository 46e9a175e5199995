package app

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"go.yaml.in/yaml/v3"

	"signalbox/classify/bundle"
	"signalbox/gpu"
	"signalbox/internal/config"
	"signalbox/internal/signal"
	"signalbox/internal/telemetry"
	"signalbox/internal/tensor"
	"signalbox/internal/worker"
	"signalbox/models"
)

// forAll returns placements without the one for other languages.
func forAll(placed []placement) []placement {
	return slices.DeleteFunc(slices.Clone(placed), func(p placement) bool { return p.foreign })
}

// modelsForAll returns the models of a product by name, without the one for other languages.
func modelsForAll(a *App) map[string]*loaded {
	out := map[string]*loaded{}
	for _, l := range a.neural.loaded {
		if !l.place.foreign {
			out[l.engine.Name()] = l
		}
	}
	return out
}

// otherName is the name of the bundle for other languages in these tests.
const otherName = "other-languages"

var otherKinds = signal.MaskOf(signal.Domain, signal.Jailbreak)

// withOther is the embedded default bundle and, beside it, some of its tasks as the bundle for
// other languages.
func withOther(tb testing.TB) fs.FS {
	tb.Helper()
	root, err := fs.Sub(models.FS, defaultFolder)
	if err != nil {
		tb.Fatal(err)
	}
	b, err := bundle.Open(root, bundle.OpenOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	m := b.Manifest
	m.Name, m.Scan, m.Canary.Expect = otherName, bundle.File{},
		map[string]string{"domain": "law", "jailbreak": "jailbreak"}
	m.Tasks = slices.DeleteFunc(slices.Clone(m.Tasks), func(t bundle.Task) bool {
		k, ok := signal.ParseKind(t.Name)
		return !ok || !otherKinds.Has(k)
	})
	text, err := yaml.Marshal(&m)
	if err != nil {
		tb.Fatal(err)
	}
	out := fstest.MapFS{foreignFolder + "/" + bundle.ManifestFile: {Data: text}}
	for _, name := range []string{
		bundle.ManifestFile, m.Graphs[0].Name, m.Tokenizer.Name,
		"scan.bin", "turns.bin",
	} {
		data, err := fs.ReadFile(root, name)
		if err != nil {
			tb.Fatal(err)
		}
		out[defaultFolder+"/"+name] = &fstest.MapFile{Data: data}
		if name != bundle.ManifestFile {
			out[foreignFolder+"/"+name] = &fstest.MapFile{Data: data}
		}
	}
	return out
}

// fakes is a host without ONNX Runtime. The model for other languages is sure of law and of an
// attack in every text, the other one of neither.
type fakes struct {
	fail error // of the model for other languages
	cpu  map[string]bool

	mu   sync.Mutex // the two models run beside each other
	runs map[string]int
}

// count adds a run of a model.
func (f *fakes) count(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.runs[name]++
}

// counted returns how often a model has run.
func (f *fakes) counted(name string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.runs[name]
}

var _ host = (*fakes)(nil)

func (f *fakes) open(_ context.Context, o worker.SessionOptions) (session, error) {
	f.cpu[o.Name] = o.CPU
	if _, err := o.Graph(gpu.Choice{
		Provider:  gpu.ProviderCPU,
		Precision: bundle.Int8,
	}); err != nil {
		return nil, err
	}
	if o.Name == otherName && f.fail != nil {
		return nil, f.fail
	}
	return &fakeSession{f, o.Name}, nil
}

func (*fakes) found() hostState      { return hostState{version: "fake"} }
func (*fakes) Choices() []gpu.Choice { return nil }
func (*fakes) Close() error          { return nil }

type fakeSession struct {
	host *fakes
	name string
}

func (*fakeSession) Inputs() []tensor.Spec {
	shape := []int64{tensor.Dynamic, tensor.Dynamic}
	return []tensor.Spec{
		{Name: "input_ids", DType: tensor.Int64, Shape: shape},
		{Name: "attention_mask", DType: tensor.Int64, Shape: shape},
	}
}

// fakeWidths are the widths of the outputs of the default bundle.
func fakeWidths() map[string]int {
	return map[string]int{
		"domain_logits": 14, "jailbreak_logits": 2, "injection_logits": 2,
		"complexity_logits": 3, "factcheck_logits": 2, "pii_logits": 35, "embedding": 384,
	}
}

func (*fakeSession) Outputs() []tensor.Spec {
	var out []tensor.Spec
	for name := range fakeWidths() {
		out = append(out, tensor.Spec{Name: name, DType: tensor.Float32})
	}
	return out
}

func (s *fakeSession) Run(_ context.Context, in []tensor.Tensor,
	outputs []string,
) ([]tensor.Tensor, error) {
	s.host.count(s.name)
	out := make([]tensor.Tensor, len(outputs))
	for i, name := range outputs {
		rows, width := in[0].Shape[0], int64(fakeWidths()[name])
		shape := []int64{rows, width}
		if name == "pii_logits" {
			shape = []int64{rows, in[0].Shape[1], width}
		}
		size := int64(1)
		for _, n := range shape {
			size *= n
		}
		values := make([]float32, size)
		for at := int64(0); at < size; at += width { // math, benign; law, an attack
			switch {
			case name == "domain_logits" && s.name == otherName:
				values[at+8] = 6
			case name == "domain_logits":
				values[at+9] = 3
			case s.name == otherName:
				values[at+1] = 6
			default:
				values[at] = 6
			}
		}
		out[i] = tensor.Tensor{Name: name, Shape: shape, F32: values}
	}
	return out, nil
}

func (*fakeSession) Provider() string { return "fake" }
func (*fakeSession) Fallback() string { return "" }
func (*fakeSession) Close() error     { return nil }

// prepareOther makes the models of a configuration with sections, of which those of the embedded
// bundles are fakes.
func prepareOther(t *testing.T, f *fakes, log io.Writer, sections string) *modelSet {
	t.Helper()
	cfg := parse(t, "http://127.0.0.1:9/v1", sections)
	tel, err := telemetry.New(t.Context(), cfg.Telemetry, "test", log)
	if err != nil {
		t.Fatal(err)
	}
	f.cpu, f.runs = map[string]bool{}, map[string]int{}
	n := &neural{files: withOther(t), tel: tel, host: f}
	set, err := n.prepare(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	n.commit(set)
	return set
}

func extractFrom(t *testing.T, s *modelSet, text string) *signal.Set {
	t.Helper()
	set := new(signal.Set)
	s.classifier.Extract(t.Context(), &signal.Text{
		LastUser: text,
		Segments: []signal.Segment{{Role: "user", Text: text}},
	},
		otherKinds|signal.MaskOf(signal.Complexity), set)
	return set
}

const (
	englishText = "What is the weather like in the north of the country today, and will it rain tomorrow?"
	germanText  = "Wie wird heute das Wetter im Norden des Landes, und regnet es morgen wieder den ganzen Tag?"
)

func TestTheBundleForOtherLanguagesStandsBesideTheDefaultOne(t *testing.T) {
	f := new(fakes)
	s := prepareOther(t, f, io.Discard, "")
	want := []string{"signalbox-minilm", otherName}
	var names []string
	for _, l := range s.extractor().Engine().Bundles {
		names = append(names, l.Name)
	}
	if !slices.Equal(names, want) {
		t.Errorf("readyz lists %v, want %v", names, want)
	}
	if d := s.extractor().Degraded(); len(d) > 0 {
		t.Errorf("degraded: %v", d)
	}
	if !f.cpu[otherName] || f.cpu["signalbox-minilm"] {
		t.Errorf("bound to the CPU: %v", f.cpu)
	}
	before := f.counted(otherName)
	set := extractFrom(t, s, englishText)
	if d, j := set.Value(signal.Domain), set.Value(signal.Jailbreak); d.Label != "math" ||
		j.Label != "benign" || f.counted(otherName) != before {
		t.Errorf("English: %q, %q, %d runs of the other model", d.Label, j.Label,
			f.counted(otherName)-before)
	}
	set = extractFrom(t, s, germanText)
	if d, j := set.Value(signal.Domain), set.Value(signal.Jailbreak); d.Label != "law" ||
		j.Label != "jailbreak" || f.counted(otherName) == before {
		t.Errorf("German: %q, %q, the other model did not run", d.Label, j.Label)
	}
	if c := set.Value(signal.Complexity); c.State != signal.Known ||
		c.Source != "signalbox-minilm" {
		t.Errorf("German: complexity is %+v", c)
	}
}

func TestWithoutTheModelForOtherLanguagesTheDefaultOneGoesOn(t *testing.T) {
	f := &fakes{fail: errors.New("it is broken")}
	var log bytes.Buffer
	s := prepareOther(t, f, &log, "")
	set := extractFrom(t, s, germanText)
	if d, j := set.Value(signal.Domain), set.Value(signal.Jailbreak); d.Label != "math" ||
		j.Label != "benign" {
		t.Errorf("%+v, %+v", d, j)
	}
	if got := strings.Join(s.extractor().Degraded(),
		"; "); got != `no model "`+otherName+`" for other languages` {
		t.Errorf("degraded: %s", got)
	}
	for _, want := range []string{
		"the multilingual model is used for its languages", otherName,
		"it is broken",
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %q: %s", want, &log)
		}
	}
}

func TestTheBundleForOtherLanguagesGoesWithTheEmbeddedOne(t *testing.T) {
	files := withOther(t)
	dir := t.TempDir()
	copyModel(t, dir, "bert-complexity")
	task := func(name, model string) config.Task { return config.Task{Name: name, Model: model} }
	away := task("jailbreak", config.EmbeddedModel)
	away.Remote.URL = "http://127.0.0.1:9"
	for name, c := range map[string]struct {
		tasks []config.Task
		want  signal.Mask
	}{
		"nothing is named": {nil, otherKinds},
		"another task is": {[]config.Task{task("complexity",
			"bert-complexity")}, otherKinds},
		"the embedded one is": {[]config.Task{task("domain",
			config.EmbeddedModel)}, otherKinds},
		"it runs elsewhere": {[]config.Task{away}, otherKinds},
		"one comes from elsewhere": {
			[]config.Task{task("domain", "bert-complexity")},
			signal.MaskOf(signal.Jailbreak),
		},
	} {
		// a model that has not the task is another test's
		placed, _ := placeFrom(files, &config.Classify{ModelsDir: dir, Tasks: c.tasks})
		if last := placed[len(placed)-1]; !last.foreign || last.signals != c.want ||
			last.folder != foreignFolder {
			t.Errorf("%s: %v of %s", name, last.signals.Kinds(), last.folder)
		}
	}
}

func TestADecisionTellsWhichModelsReadOtherLanguages(t *testing.T) {
	c := new(config.Classify)
	both, err := placeFrom(withOther(t), c)
	if err != nil {
		t.Fatal(err)
	}
	//nolint:exhaustive // the kinds that have one
	with, without := map[signal.Kind]string{}, map[signal.Kind]string{}
	define(both, c, with)
	define(forAll(both), c, without)
	for k := range without {
		if (with[k] != without[k]) != otherKinds.Has(k) {
			t.Errorf("%v is %q with the model for other languages, %q without", k,
				with[k], without[k])
		}
	}
}

// TestTheEmbeddedBundleForOtherLanguages opens the real one.
func TestTheEmbeddedBundleForOtherLanguages(t *testing.T) {
	m := openModels(t)
	want := signal.MaskOf(signal.Domain, signal.Jailbreak, signal.Injection)
	placed, err := place(&m.cfg.Classify)
	if err != nil {
		t.Fatal(err)
	}
	last := placed[len(placed)-1]
	if served := placed[0].signals; !last.foreign ||
		last.bundle.Manifest.Name != "signalbox-multilingual" || last.signals != want&served {
		t.Errorf("%s gives %v", last.bundle.Manifest.Name, last.signals.Kinds())
	}
	if d := m.classifier.Degraded(); len(d) > 0 {
		t.Errorf("degraded: %v", d)
	}
	for _, text := range []string{ // of law
		"¿Puede el casero quedarse con la fianza si el contrato de alquiler no lo menciona y el juez aún no ha decidido?",
		"Darf mir der Vermieter wegen Eigenbedarf kündigen, obwohl im Mietvertrag steht, dass er darauf verzichtet?",
	} {
		set := new(signal.Set)
		m.classifier.Extract(t.Context(), &signal.Text{
			LastUser: text,
			Segments: []signal.Segment{{Role: "user", Text: text}},
		}, last.signals, set)
		if v := set.Value(signal.Domain); v.State != signal.Known || v.Label != "law" {
			t.Errorf("%.30q: domain is %q (%s)", text, v.Label, v.Reason)
		}
		for _, k := range signal.MaskOf(signal.Jailbreak, signal.Injection).Kinds() {
			if v := set.Value(k); last.signals.Has(k) &&
				(v.State != signal.Known || v.Label != "benign") {
				t.Errorf("%.30q: %v is %q (%s)", text, k, v.Label, v.Reason)
			}
		}
	}
}
