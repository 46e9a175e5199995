package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"signalbox/classify"
	"signalbox/classify/knn"
	"signalbox/internal/hub/local"
	"signalbox/internal/option"
	"signalbox/internal/signal"
)

// EmbeddedModel is the name of the bundle inside the binary.
const EmbeddedModel = "embedded"

// Catalog says what the configured bundles can compute.
type Catalog struct {
	Signals    signal.Mask              // every kind that some component extracts
	Labels     map[signal.Kind][]string // what kinds can report, in the order of signal.Value.Labels, where that is known
	Thresholds map[signal.Kind]float64  // before the configuration's own
	Grounding  bool                     // some model judges claims for the guard
	Own        []signal.OwnClassifier   // the classifiers of one's own, in the order of the file
	Elsewhere  signal.Mask              // those of them that are on other servers
	Lexical    signal.Mask              // those of them that need no model
}

// TaskError is a problem with what one entry of classify.tasks, or of classify.classifiers, names.
// A catalog function returns them, joined.
type TaskError struct {
	Index int    // in Classify.Tasks; -1 for the embedded bundle that no entry names
	Field string // of the entry: name, model, ...
	Err   error
	Own   bool // Index is in Classify.Classifiers
}

// Error names the entry and the problem.
func (e *TaskError) Error() string {
	return fmt.Sprintf("%s[%d].%s: %v", e.list(), e.Index, e.Field, e.Err)
}

func (e *TaskError) list() string {
	if e.Own {
		return "classifiers"
	}
	return "tasks"
}

// Unwrap returns the problem.
func (e *TaskError) Unwrap() error { return e.Err }

// GroundingTask is the entry of classify.tasks that names the guard's model. It is no signal.
const GroundingTask = "grounding"

// maxRowTokens bounds max_tokens; attention is quadratic in it.
const maxRowTokens = 32768

func (c *checker) classify() Catalog {
	k := &c.cfg.Classify
	if k.Timeout <= 0 {
		c.at("classify.timeout", "must be longer than 0s")
	}
	c.timeouts()
	if k.Windows < 1 {
		c.at("classify.windows", "%d is less than 1", k.Windows)
	}
	if k.Memo < 0 {
		c.at("classify.memo", "%d is negative; 0 turns it off", k.Memo)
	}
	for _, path := range []*string{&k.Library, &k.ProviderLibrary, &k.EngineCache} {
		*path = c.locate(*path)
	}
	if k.Library != "" {
		if _, err := os.Stat(k.Library); errors.Is(err, fs.ErrNotExist) {
			c.warn("classify.library", "file %s does not exist on this machine: without it no model runs, "+
				"and routes that block on what models say refuse every request", k.Library)
		}
	}
	c.oneOf("classify.isolation", k.Isolation, IsolationNone, IsolationProcess)
	c.modelsDir()
	c.section("classify", k.Options.Validate())
	c.names("classify.tasks", len(k.Tasks), func(i int) string { return k.Tasks[i].Name })
	for i := range k.Tasks {
		c.task(&k.Tasks[i], fmt.Sprintf("classify.tasks[%d]", i))
	}
	c.classifiers()
	catalog, err := c.catalog(k)
	c.taskErrors(err)
	if c.broken("classify") {
		catalog.Signals = 1<<signal.NumKinds - 1 // what does not give them was said
	}
	for _, t := range k.Tasks {
		if kind, ok := signal.ParseKind(t.Name); ok && t.Threshold > 0 && catalog.Signals.Has(kind) {
			catalog.Thresholds[kind] = t.Threshold
		}
	}
	return catalog
}

// timeouts checks the deadlines of single signals.
func (c *checker) timeouts() {
	k := &c.cfg.Classify
	for _, name := range slices.Sorted(maps.Keys(k.Timeouts)) {
		path, d := "classify.timeouts."+name, k.Timeouts[name]
		switch kind, ok := signal.ParseKind(name); {
		case !ok || !classify.TimedKinds.Has(kind):
			c.at(path, "%s", untimed(name, kind))
		case d <= 0:
			c.at(path, "must be longer than 0s")
		case d > k.Timeout:
			c.at(path, "%v is longer than classify.timeout, %v, which bounds all signals", time.Duration(d), time.Duration(k.Timeout))
		}
	}
}

// untimed says why a name cannot have a deadline.
func untimed(name string, kind signal.Kind) string {
	if kind == signal.Language {
		return "detecting the language takes microseconds for any text: it needs no deadline"
	}
	known := make([]string, 0, classify.TimedKinds.Len())
	for _, k := range classify.TimedKinds.Kinds() {
		known = append(known, k.String())
	}
	return fmt.Sprintf("no signal %q, expected one of %s", name, strings.Join(known, ", "))
}

// intents checks the private intents and adds them to what can be computed.
func (c *checker) intents(catalog *Catalog) {
	list := c.cfg.Signals.Intents
	if err := knn.ValidateIntents(list); err != nil {
		c.section("signals", err)
	}
	o := knn.DefaultOptions()
	o.Margin = c.cfg.Signals.IntentMargin
	if err := o.Validate(); err != nil {
		c.at("signals.intent_margin", "%s", strings.TrimPrefix(err.Error(), "margin: "))
	}
	if len(list) > 0 && catalog.Signals.Has(signal.Embedding) {
		catalog.Signals |= signal.MaskOf(signal.Intent)
		catalog.Labels[signal.Intent] = names(list)
	} else if len(list) > 0 {
		c.at("signals.intents", "no model provides the signal embedding, which is used to compare texts")
	}
	c.cfg.Catalog = *catalog
}

func names(intents []knn.Intent) []string {
	out := make([]string, 0, len(intents))
	for i := range intents {
		out = append(out, intents[i].Name)
	}
	return out
}

// modelsDir makes the folder of downloaded models an absolute path, where there is one.
func (c *checker) modelsDir() {
	k := &c.cfg.Classify
	home, _ := c.env("HOME")
	if k.ModelsDir == "" {
		cache, _ := c.env("XDG_CACHE_HOME")
		if cache == "" && home != "" {
			cache = filepath.Join(home, ".cache")
		}
		k.ModelsDir = local.DefaultDir(cache)
		return
	}
	k.ModelsDir = c.locate(local.Expand(k.ModelsDir, home))
}

// task checks what can be said about an entry of classify.tasks without opening its model.
func (c *checker) task(t *Task, path string) {
	if t.Name == "" {
		c.at(path+".name", "a name is required, such as domain, jailbreak, injection or pii")
	}
	if t.Classifier != "" {
		c.givenTask(t, path)
	} else if t.Model == "" {
		t.Model = EmbeddedModel
	}
	if t.Model == classify.PatternsModel && t.Name != signal.PII.String() {
		c.at(path+".model", "patterns can only be used for pii")
	}
	if t.Threshold < 0 || t.Threshold > 1 || math.IsNaN(t.Threshold) {
		c.at(path+".threshold", "found %v, expected a probability from 0 to 1", t.Threshold)
	}
	c.origins(t, path+".origins")
	if t.Temperature < 0 || math.IsNaN(t.Temperature) || math.IsInf(t.Temperature, 0) {
		c.at(path+".temperature", "found %v, expected a positive number", t.Temperature)
	}
	if t.MaxTokens < 0 || t.MaxTokens > maxRowTokens {
		c.at(path+".max_tokens", "%d is not between 0 and %d", t.MaxTokens, maxRowTokens)
	}
	c.window(t, path+".window")
	if t.Dims < 0 {
		c.at(path+".dims", "%d is negative", t.Dims)
	}
	if t.Layer < 0 {
		c.at(path+".layer", "%d is negative", t.Layer)
	}
	c.remote(t, path)
	c.oneOf(path+".kind", t.Kind, "sequence", "token", "pair", "embedding")
	c.oneOf(path+".pooling", t.Pooling, "mean", "cls", "last_token", "none")
}

// givenTask checks a task that a classifier on another server gives, and finds which and what it
// looks for.
func (c *checker) givenTask(t *Task, path string) {
	list := c.cfg.Classify.Classifiers
	k, _ := signal.ParseKind(t.Name)
	at := slices.IndexFunc(list, func(o OwnClassifier) bool { return o.Name == t.Classifier })
	switch {
	case !classify.GivenKinds.Has(k):
		c.at(path+".classifier", "%s cannot come from a classifier; domain, complexity, factcheck, jailbreak and "+
			"injection can", t.Name)
	case at < 0:
		c.at(path+".classifier", "%q is not in classify.classifiers%s", t.Classifier,
			meant("; ", t.Classifier, c.cfg.Classify.Names()))
	case !list[at].Remote():
		c.at(path+".classifier", "%q has no http section: rules refer to classifiers trained with `signalbox fit` by name",
			t.Classifier)
	}
	if t.Model != "" || t.Remote != (Remote{}) || t.Window != (TaskWindow{}) || t.Kind != "" || t.Pooling != "" ||
		t.Prefix != nil || len(t.Labels) > 0 || t.MaxTokens != 0 || t.Temperature != 0 || t.Dims != 0 || t.Layer != 0 {
		c.at(path+".classifier", "only name, threshold, origins and positive can be combined with it")
	}
}

// NoTask says that a bundle has no task of a name, and which was probably meant or is there.
func NoTask(name string, known []string) error {
	if !slices.Contains(known, GroundingTask) { // any bundle may be named for it
		known = append(slices.Clip(known), GroundingTask)
	}
	return fmt.Errorf("the bundle has no task %q%s", name,
		cmp.Or(meant(", ", name, known), ", expected one of "+strings.Join(known, ", ")))
}

// CheckTaskName reports a name that no task has, whatever its model, and which was probably meant.
func CheckTaskName(name string) error {
	known := make([]string, 0, classify.ModelKinds.Len()+1)
	for _, k := range classify.ModelKinds.Kinds() {
		known = append(known, k.String())
	}
	known = append(known, GroundingTask)
	if slices.Contains(known, name) {
		return nil
	}
	return fmt.Errorf("no task is called %q%s", name, cmp.Or(meant(", ", name, known),
		", expected one of "+strings.Join(known, ", ")+"; for anything else see classify.classifiers"))
}

// window checks how long texts are read, as far as that does not depend on the model.
func (c *checker) window(t *Task, path string) {
	w := &t.Window
	if w.Tokens != 0 && (w.Tokens < minRowTokens || w.Tokens > maxRowTokens) {
		c.at(path+".tokens", "%d is not between %d and %d", w.Tokens, minRowTokens, maxRowTokens)
	}
	if t.MaxTokens > 0 && w.Tokens > t.MaxTokens {
		c.at(path+".tokens", "%d is more than max_tokens, %d", w.Tokens, t.MaxTokens)
	}
	if w.Stride < 0 || w.Tokens > 0 && w.Stride > w.Tokens {
		c.at(path+".stride", "%d is not between 1 and tokens", w.Stride)
	}
	if w.Max < 0 {
		c.at(path+".max", "%d is negative", w.Max)
	}
	c.oneOf(path+".long", w.Long, "skeleton", "windows")
}

// minRowTokens is the shortest row that a model reads.
const minRowTokens = 8

// origins checks whose text a task reads.
func (c *checker) origins(t *Task, path string) {
	if t.Origins == nil {
		return
	}
	k, ok := signal.ParseKind(t.Name)
	switch {
	case !ok || signal.DefaultOrigins(k) == 0:
		c.at(path, "only jailbreak and injection distinguish the origin of a text")
	case len(t.Origins) == 0:
		c.at(path, "found an empty list, expected at least one of %s",
			strings.Join(originWords(), ", "))
	}
	for i, word := range t.Origins {
		at := fmt.Sprintf("%s[%d]", path, i)
		if _, known := signal.ParseOrigin(word); !known {
			c.at(at, "unknown origin %q%s", word,
				cmp.Or(meant(", ", word, originWords()), ", expected one of "+strings.Join(originWords(), ", ")))
		} else if slices.Contains(t.Origins[:i], word) {
			c.at(at, "%q is listed twice", word)
		}
	}
}

func originWords() []string {
	var out []string
	for o := signal.OriginInstructions; o < signal.NumOrigins; o++ {
		out = append(out, o.String())
	}
	return out
}

// defaultRemoteTimeout is generous against a network of one site and a batch on a GPU.
const defaultRemoteTimeout = option.Duration(2 * time.Second)

// remote checks where a model runs, if not here.
func (c *checker) remote(t *Task, path string) {
	r := &t.Remote
	if *r == (Remote{}) {
		return
	}
	path += ".remote"
	if t.Model == classify.PatternsModel {
		c.at(path, "patterns cannot run on a server")
	}
	c.server(path, r.URL, "http://triton:8000", r.APIKey, &r.Timeout)
	if r.Model == "" {
		c.at(path+".model", "the name of the model on the server is required")
	}
}

// server checks how a model on another server is reached, and sets the timeout where none is given.
func (c *checker) server(path, address, example, key string, timeout *option.Duration) {
	if u, err := url.Parse(address); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		c.at(path+".url", "found %q, expected the address of a server such as %s", address, example)
	} else if err := option.Port(u); err != nil {
		c.at(path+".url", "%v", err)
	}
	if !option.VisibleASCII(key) {
		c.at(path+".api_key", "contains characters that are not allowed in a header")
	}
	if *timeout < 0 {
		c.at(path+".timeout", "must be longer than 0s")
	}
	*timeout = cmp.Or(*timeout, defaultRemoteTimeout)
}

// oneOf reports a word that is neither empty nor known.
func (c *checker) oneOf(path, word string, known ...string) {
	if word != "" && !slices.Contains(known, word) {
		c.at(path, "%q is not one of %s", word, strings.Join(known, ", "))
	}
}

// taskErrors places the problems that opening the models showed.
func (c *checker) taskErrors(err error) {
	if err == nil {
		return
	}
	if j, ok := err.(interface{ Unwrap() []error }); ok { // joined, also of joined ones
		for _, err := range j.Unwrap() {
			c.taskErrors(err)
		}
		return
	}
	var t *TaskError
	if !errors.As(err, &t) || t.Index < 0 {
		c.at("classify.tasks", "%v", err)
		return
	}
	c.at(fmt.Sprintf("classify.%s[%d].%s", t.list(), t.Index, t.Field), "%v", t.Err)
}
