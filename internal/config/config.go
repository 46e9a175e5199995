// Package config reads the one YAML file: flags and environment through viper, the file itself
// strictly, so that every problem carries file, line, column, path and the nearest known key.
// It composes the Options of the other packages and owns none of their meaning; checks that need
// more than one section (a route naming a model) live here and in rules.
//
// Load is pure in the file and the environment it is given. The result is immutable.
package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"signalbox/classify"
	"signalbox/classify/knn"
	"signalbox/classify/lexical"
	"signalbox/gpu"
	"signalbox/internal/option"
	"signalbox/internal/signal"
	"signalbox/internal/telemetry"
	"signalbox/proxy/auth"
	"signalbox/proxy/backend"
	"signalbox/proxy/decide"
	"signalbox/proxy/decisionlog"
	"signalbox/proxy/guardrail"
	"signalbox/proxy/recall"
	"signalbox/proxy/settings"
	"signalbox/rules"
)

// Config is the whole configuration. Each section is documented where its type is.
type Config struct {
	// Server holds listeners, limits and timeouts of the HTTP edge.
	Server settings.Server `yaml:"server"`
	// Limits keeps requests from using up the process.
	Limits settings.Limits `yaml:"limits"`
	// Auth says who may call and as whom.
	Auth auth.Options `yaml:"auth"`
	// Models is the pool: what routes name and clients may ask for.
	Models []backend.ModelOptions `yaml:"models"`
	// Classify configures the neural signals.
	Classify Classify `yaml:"classify"`
	// Signals declares keywords and private intents.
	Signals Signals `yaml:"signals"`
	// Prompts are the system prompts that routes name.
	Prompts []settings.Prompt `yaml:"prompts"`
	// Conditions are named conditions, used as `condition: NAME`.
	Conditions yaml.Node `yaml:"conditions"`
	// Routes are tried in order; the first that is true wins.
	Routes yaml.Node `yaml:"routes"`
	// Default answers what no route matched; it takes the same keys as a route's `use`.
	Default yaml.Node `yaml:"default"`
	// Guard checks answers against facts while they stream. Without the section no answer is
	// checked, unless a route or a request asks for it.
	Guard guardrail.Options `yaml:"guard"`
	// Memory keeps contexts, which requests name instead of sending a long text again.
	Memory Memory `yaml:"memory"`
	// Cache keeps answers and gives them again. Without the section it is off, unless a route turns
	// it on.
	Cache recall.Options `yaml:"cache"`
	// Stick keeps conversations with their models. Without the section it is on.
	Stick decide.StickOptions `yaml:"stick"`
	// Outcomes are how good answers were, which the choice among models learns from. Without the
	// section nothing is learnt.
	Outcomes decide.OutcomeOptions `yaml:"outcomes"`
	// Telemetry configures logs, metrics and traces.
	Telemetry telemetry.Options `yaml:"telemetry"`

	// File is the path the configuration was read from.
	File string `yaml:"-"`
	// Fingerprint tells the content of the file apart from that of another.
	Fingerprint string `yaml:"-"`
	// Text is the content of the file. Its secrets are references.
	Text string `yaml:"-"`
	// Warnings are what Load warned of.
	Warnings []rules.Problem `yaml:"-"`
	// SecretFiles are the files that references of the form file:PATH were read from.
	SecretFiles []string `yaml:"-"`
	// Program is what the routes compile to.
	Program *rules.Program `yaml:"-"`

	// Catalog says what the configured models can compute.
	Catalog Catalog `yaml:"-"`
	// Guarded: the section `guard`, or a route, turns the guard on.
	Guarded bool `yaml:"-"`
}

// SignalTimeouts returns the deadlines of single signals; 0 for those without one of their own.
func (c *Classify) SignalTimeouts() (out [signal.NumKinds]time.Duration) {
	for name, d := range c.Timeouts {
		if k, ok := signal.ParseKind(name); ok {
			out[k] = time.Duration(d)
		}
	}
	return out
}

// Origins returns the origins of text that the signals about attacks read by default: what their
// scores speak for. The caller owns the map.
func (c *Classify) Origins() map[signal.Kind]signal.Origins {
	out := make(map[signal.Kind]signal.Origins)
	for k := range signal.NumKinds {
		if origins := signal.DefaultOrigins(k); origins != 0 {
			out[k] = origins
		}
	}
	for i := range c.Tasks {
		t := &c.Tasks[i]
		var own signal.Origins
		for _, word := range t.Origins {
			if o, ok := signal.ParseOrigin(word); ok {
				own |= signal.OriginsOf(o)
			}
		}
		if k, ok := signal.ParseKind(t.Name); ok && own != 0 && out[k] != 0 {
			out[k] = own
		}
	}
	return out
}

// Reads returns the origins that the signals about attacks read at all: by default, and because
// rules name them. The caller owns the map.
func (c *Config) Reads() map[signal.Kind]signal.Origins {
	out := c.Classify.Origins()
	if c.Program == nil {
		return out
	}
	for k, origins := range c.Program.Origins() {
		out[k] |= origins
	}
	return out
}

// Threshold returns the probability from which a yes-or-no signal counts as yes.
func (c *Config) Threshold(k signal.Kind) float64 { return threshold(&c.Catalog, k) }

// defaultThreshold is that of signals whose model tells none.
const defaultThreshold = 0.5

// Classify is the section of the neural signals.
type Classify struct {
	gpu.Options `yaml:",inline"`

	// ModelsDir is where downloaded models and bundles are looked for. Default
	// ~/.cache/signalbox/models. Reloadable.
	ModelsDir string `yaml:"models_dir"`
	// Timeout bounds the extraction of the signals of one request; those that are not there by then
	// are unknown. The safety signal reads the whole prompt, so this bounds the length of prompts
	// that pass a safety route. Default 10s. Reloadable.
	Timeout option.Duration `yaml:"timeout"`
	// Timeouts bounds single signals, as in {jailbreak: 300ms, keyword: 20ms}: one that is not
	// there by then is unknown, which its routes' on_unknown answers, and the others go on. The
	// time counts from when the signal is asked for. Names are keyword, domain, jailbreak,
	// injection, pii, complexity, factcheck, embedding and intent; the time of embedding holds for
	// intent too. Each is at most timeout. Default none. Reloadable.
	Timeouts map[string]option.Duration `yaml:"timeouts"`
	// Windows bounds what the safety signals read of the texts of one request that they do not
	// remember: so many windows, or as many tokens in shorter texts, and at least what the newest
	// text asks for. The newest text is read first, then those in which a fast scan of all of it
	// finds most. Routes with `windows: all` read every window. Default 12. Reloadable.
	Windows int `yaml:"windows"`
	// Memo is how many verdicts on texts each model remembers at most, so that what was read in one
	// turn of a conversation is not read again in the next: about 400 bytes a verdict, named by the
	// SHA-256 of its text, in memory alone. 0 turns it off. Default 65536. Reloadable.
	Memo int `yaml:"memo"`
	// Isolation is none (default) or process: models run in a process of their own, which is
	// started again when a fault in native code ends it; signals are unknown meanwhile. Restart
	// needed.
	Isolation string `yaml:"isolation" words:"none process"`
	// Tasks says which model computes which signal; a signal without an entry comes from the
	// embedded bundle. Reloadable.
	Tasks []Task `yaml:"tasks"`
	// Classifiers are classifiers of one's own, which rules ask as they ask signals. At most 12.
	// See classifiers.md. Reloadable.
	Classifiers []OwnClassifier `yaml:"classifiers"`
}

// Task binds one neural signal to a bundle.
type Task struct {
	// Name is the signal: domain, jailbreak, injection, pii, complexity, factcheck or embedding; or
	// grounding, the model that judges claims for the guard: one over pairs (premise, claim), or
	// one that marks tokens of the answer.
	Name string `yaml:"name"`
	// Model is `embedded`, a model of models_dir such as ORG/NAME, or, for pii, `patterns`, which
	// finds what patterns alone can. Default embedded.
	Model string `yaml:"model"`
	// Classifier is the name of one of classify.classifiers with http, which gives the signal in
	// place of a model here: domain and complexity by its labels, jailbreak, injection and
	// factcheck by the probability of positive. Attacks are asked about text by text. It is asked
	// only where all that is computed here does not settle a decision. Default: a model here does.
	// Reloadable.
	Classifier string `yaml:"classifier"`
	// Threshold is the probability from which a yes-or-no signal counts as yes, in (0,1]. 0 takes
	// the bundle's, with classifier 0.5.
	Threshold float64 `yaml:"threshold"`
	// Origins says whose text jailbreak or injection reads: instructions (system and developer
	// messages, descriptions of tools), user, model (earlier answers and tool calls) and data
	// (results of tools, contexts, documents, quoted material). Rules that name origins read those
	// besides. Default [user] for jailbreak, [data] for injection. Reloadable.
	Origins []string `yaml:"origins" words:"instructions user model data"`

	// MaxTokens is the longest row that the model reads. 0 takes what the model says. This key and
	// those below describe models in the Hugging Face layout; a bundle says the same in its own
	// file.
	MaxTokens int `yaml:"max_tokens"`
	// Window is how a text is read that is longer than one row.
	Window TaskWindow `yaml:"window"`
	// Kind is sequence, token, pair or embedding. Default: found in the files.
	Kind string `yaml:"kind" words:"sequence token pair embedding"`
	// Positive is the model's label that jailbreak, injection or factcheck looks for. Default:
	// found by its name; with classifier what that looks for, such as unsafe.
	Positive string `yaml:"positive"`
	// Labels renames labels of the model, as in {LABEL_1: jailbreak}. A model that names none has
	// LABEL_0, LABEL_1 and so on.
	Labels map[string]string `yaml:"labels"`
	// Temperature divides the logits before they become probabilities. 0 stands for 1.
	Temperature float64 `yaml:"temperature"`
	// Pooling is mean, cls, last_token or none, for embedding. Default: found in the files.
	Pooling string `yaml:"pooling" words:"mean cls last_token none"`
	// Dims cuts the vectors of embedding to their first numbers. 0 keeps all.
	Dims int `yaml:"dims"`
	// Prefix is put before every text that embedding reads. Default: found in the files.
	Prefix *string `yaml:"prefix"`
	// Layer is the layer at which embedding leaves a model that allows several. 0 takes the
	// deepest.
	Layer int `yaml:"layer"`

	// Remote is the server that runs the graph. The model named above still gives tokenizer, labels
	// and thresholds; of a bundle the graph need not be here, a folder in the Hugging Face layout
	// is read with its graph. Default: it runs here.
	Remote Remote `yaml:"remote"`
}

// TaskWindow is how a model reads a text that is longer than one row.
type TaskWindow struct {
	// Tokens is the length of a row, 8 to 32768, special tokens included, and at most max_tokens.
	// Memory and time of most models grow with its square. Default: 512, or max_tokens where that
	// is less; 4096 for models that judge the tokens of an answer.
	Tokens int `yaml:"tokens"`
	// Stride is the distance between the starts of two rows; they overlap by the rest. Default:
	// three quarters of tokens.
	Stride int `yaml:"stride"`
	// Max is the most rows of a text that are read: the first ones and the last. Default 4; all for
	// jailbreak, injection and pii.
	Max int `yaml:"max"`
	// Long, of domain, complexity, factcheck and embedding, is how a text is read that does not fit
	// into one row: skeleton, one row of what says most of it, or windows, all of it, row by row, of
	// which the mean counts. Default skeleton.
	Long string `yaml:"long" words:"skeleton windows"`
}

// Where models run.
const (
	IsolationNone    = "none"
	IsolationProcess = "process"
)

// Remote is a model on a server that speaks the Open Inference Protocol v2, such as KServe or
// Triton.
type Remote struct {
	// URL is where the server is, as in http://triton:8000, without the /v2.
	URL string `yaml:"url"`
	// Model is the name that the model has there.
	Model string `yaml:"model"`
	// Version is the version of the model there. Default: the server's choice.
	Version string `yaml:"version"`
	// Timeout bounds one request; signals that are not there by then are unknown (timeout). Default
	// 2s.
	Timeout option.Duration `yaml:"timeout"`
	// APIKey is sent as a bearer token. A reference, ${NAME} or file:PATH. Default: none is sent.
	APIKey string `yaml:"api_key" secret:"true"`
}

// Signals is the section of the signals that a user defines.
type Signals struct {
	// Keywords are named sets of words and phrases. They are looked for in what a text says and in
	// what it hides behind look-alike letters, invisible characters and encodings.
	Keywords []lexical.Options `yaml:"keywords"`
	// Intents are private intents, each known by a few examples.
	Intents []knn.Intent `yaml:"intents"`
	// IntentMargin is how far the score of an intent has to be above the next best for a text to
	// belong to it, in [0,1). Reloadable.
	IntentMargin float64 `yaml:"intent_margin"`
}

// Override applies what flags and environment say.
func (c *Config) Override(s Settings) {
	if s.Listen != "" {
		c.Server.Listen = s.Listen
	}
	if s.AdminListen != "" {
		c.Server.AdminListen = s.AdminListen
	}
}

// Default returns the configuration that an empty file stands for.
func Default() Config {
	extractor := classify.DefaultOptions()
	return Config{
		Server: settings.DefaultServer(),
		Limits: settings.DefaultLimits(),
		Auth:   auth.DefaultOptions(),
		Classify: Classify{
			Options: gpu.DefaultOptions(),
			Timeout: option.Duration(extractor.Timeout), Windows: extractor.Windows,
			Memo: extractor.Memo,
		},
		Signals:   Signals{IntentMargin: knn.DefaultOptions().Margin},
		Guard:     guardrail.DefaultOptions(),
		Memory:    DefaultMemory(),
		Cache:     recall.DefaultOptions(),
		Stick:     decide.DefaultStickOptions(),
		Outcomes:  decide.DefaultOutcomeOptions(),
		Telemetry: telemetry.DefaultOptions(),
	}
}

// Error is every problem of one file. Its text has one line a problem, `FILE:LINE:COL: path:
// message`.
type Error struct {
	File     string
	Problems []rules.Problem
	// Files are those that references to secrets and server.tls name, whether they could be read or
	// not.
	Files []string
}

// Error implements error.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = Format(e.File, p)
	}
	return strings.Join(lines, "\n")
}

// Format prints one problem as `FILE:LINE:COL: path: message`.
func Format(file string, p rules.Problem) string {
	s := fmt.Sprintf("%s:%d:%d: ", file, p.Line, p.Col)
	if p.Path != "" {
		s += p.Path + ": "
	}
	if p.Warning {
		s += "warning: "
	}
	return s + p.Msg
}

// Load reads and checks a file. It returns the configuration with its warnings, or an *Error that
// holds every problem at once. env looks up environment variables; os.LookupEnv outside tests.
// catalog says what the bundle that the file names can compute.
func Load(file string, env func(string) (string, bool), catalog func(*Classify) (Catalog, error)) (*Config, []rules.Problem, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, fmt.Errorf("read configuration: %w", err)
	}
	return Parse(file, b, env, catalog)
}

// Parse is Load for a file that is already in memory. Relative paths resolve against file's folder.
func Parse(file string, b []byte, env func(string) (string, bool), catalog func(*Classify) (Catalog, error)) (*Config, []rules.Problem, error) {
	return parse(b, &decoder{dir: filepath.Dir(file), env: env}, file, catalog)
}

// Check is Parse where secrets may be missing, as on the machine of whoever writes the file: each
// that is not set is a warning. The configuration is for nothing but to be looked at, since a
// secret that was missing is one that everybody knows.
func Check(file string, b []byte, env func(string) (string, bool), catalog func(*Classify) (Catalog, error)) (*Config, []rules.Problem, error) {
	d := &decoder{dir: filepath.Dir(file), env: env, unset: true}
	return parse(b, d, file, catalog)
}

func parse(b []byte, d *decoder, file string, catalog func(*Classify) (Catalog, error)) (*Config, []rules.Problem, error) {
	cfg := Default()
	cfg.File, cfg.Fingerprint, cfg.Text = file, decisionlog.Fingerprint(b), string(b)
	root, err := document(b)
	if err != nil {
		return nil, nil, &Error{File: file, Problems: []rules.Problem{*err}}
	}
	if root != nil {
		d.decode(root, reflect.ValueOf(&cfg).Elem(), "")
	}
	cfg.SecretFiles = d.files
	cfg.Telemetry.Decisions.File = d.locate(cfg.Telemetry.Decisions.File)
	if root == nil || root.Kind == yaml.MappingNode {
		c := &checker{decoder: d, root: root, cfg: &cfg, catalog: catalog}
		c.check()
	}
	problems := d.problems
	slices.SortStableFunc(problems, func(a, b rules.Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	warnings := slices.DeleteFunc(slices.Clone(problems), func(p rules.Problem) bool { return !p.Warning })
	if len(warnings) < len(problems) {
		return nil, nil, &Error{File: file, Problems: problems, Files: append(d.files, cfg.Server.TLS.Files()...)}
	}
	cfg.Warnings = warnings
	return &cfg, warnings, nil
}

// document returns the root mapping of the only document in b, nil for an empty file.
func document(b []byte) (*yaml.Node, *rules.Problem) {
	dec := yaml.NewDecoder(strings.NewReader(string(b)))
	var doc, extra yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if len(strings.TrimSpace(string(b))) == 0 || err.Error() == "EOF" {
			return nil, nil
		}
		return nil, syntaxProblem(string(b), err)
	}
	switch err := dec.Decode(&extra); {
	case err == nil:
		return nil, &rules.Problem{Line: extra.Line, Col: extra.Column, Msg: "a second YAML document starts here, expected one"}
	case !errors.Is(err, io.EOF):
		return nil, syntaxProblem(string(b), err)
	}
	root := doc.Content[0]
	if isNull(root) {
		return nil, nil
	}
	return root, nil
}

// IsInvalid reports whether err is about the content of a file, not about reading it.
func IsInvalid(err error) bool {
	_, invalid := errors.AsType[*Error](err)
	return invalid
}

func keys(known map[string]field) string { return strings.Join(slices.Sorted(maps.Keys(known)), ", ") }

func example(t reflect.Type) string {
	known := keys(fieldsOf(t))
	if parts := strings.Split(known, ", "); len(known) > 60 && len(parts) > 1 {
		return strings.Join(parts[:min(5, len(parts))], ", ")
	}
	return known
}

// restartOnly is where settings are, by their names, that cannot change while running.
func (c *Config) restartOnly() map[string]any {
	return map[string]any{
		"server.connect_timeout":     &c.Server.ConnectTimeout,
		"server.drain_delay":         &c.Server.DrainDelay,
		"server.admin_token":         &c.Server.AdminToken,
		"server.pprof":               &c.Server.Pprof,
		"server.drain_timeout":       &c.Server.DrainTimeout,
		"server.idle_timeout":        &c.Server.IdleTimeout,
		"server.read_header_timeout": &c.Server.ReadHeaderTimeout,
		"server.listen":              &c.Server.Listen,
		"server.admin_listen":        &c.Server.AdminListen,
		"limits.max_connections":     &c.Limits.MaxConnections,
		"cache.max_shared_bytes":     &c.Cache.MaxSharedBytes,
		"classify.library":           &c.Classify.Library,
		"classify.library_sha256":    &c.Classify.LibrarySHA256,
		"classify.provider":          &c.Classify.Provider,
		"classify.provider_library":  &c.Classify.ProviderLibrary,
		"classify.devices":           &c.Classify.Devices,
		"classify.device_memory":     &c.Classify.MemoryLimit,
		"classify.engine_cache":      &c.Classify.EngineCache,
		"classify.batch":             &c.Classify.Batch,
		"classify.isolation":         &c.Classify.Isolation,
		"classify.intra_op_threads":  &c.Classify.IntraOpThreads,
		"classify.max_concurrent":    &c.Classify.MaxConcurrent,
		"classify.queue_depth":       &c.Classify.QueueDepth,
	}
}

// RestartNeeded names the settings of next whose changes take effect only after a restart. Names of
// settings, never values: some are secret.
func (c *Config) RestartNeeded(next *Config) []string {
	kept := *next
	kept.KeepRestartOnly(c)
	var out []string
	stays := kept.restartOnly()
	for name, wanted := range next.restartOnly() {
		if !reflect.DeepEqual(wanted, stays[name]) {
			out = append(out, name)
		}
	}
	if !reflect.DeepEqual(next.Server.TLS, kept.Server.TLS) {
		out = append(out, "server.tls")
	}
	for path, pair := range map[string][2]any{
		"outcomes": {next.Outcomes, kept.Outcomes}, "auth.virtual": {next.Auth.Virtual, kept.Auth.Virtual},
		"memory": {next.Memory, kept.Memory}, "telemetry": {next.Telemetry, kept.Telemetry},
	} {
		out = append(out, changedKeys(path, reflect.ValueOf(pair[0]), reflect.ValueOf(pair[1]))...)
	}
	slices.Sort(out)
	return out
}

// changedKeys names the keys by which two structs of options differ, each behind the path of the
// section.
func changedKeys(path string, a, b reflect.Value) []string {
	if a.Kind() != reflect.Struct {
		if reflect.DeepEqual(a.Interface(), b.Interface()) {
			return nil
		}
		return []string{path}
	}
	var out []string
	for i := range a.NumField() {
		key, _, _ := strings.Cut(a.Type().Field(i).Tag.Get("yaml"), ",")
		out = append(out, changedKeys(path+"."+key, a.Field(i), b.Field(i))...)
	}
	return out
}

// KeepRestartOnly gives c the settings of old that cannot change while running.
func (c *Config) KeepRestartOnly(old *Config) {
	was := old.restartOnly()
	for name, to := range c.restartOnly() {
		reflect.ValueOf(to).Elem().Set(reflect.ValueOf(was[name]).Elem())
	}
	if (c.Server.TLS.CertFile != "") != (old.Server.TLS.CertFile != "") {
		c.Server.TLS = old.Server.TLS
	}
	prompts := c.Telemetry.RecordPrompts && old.Telemetry.RecordPrompts // may end while running, not begin
	c.Telemetry = old.Telemetry
	c.Telemetry.RecordPrompts = prompts
	c.Auth.Virtual = old.Auth.Virtual
	learn, explore := c.Outcomes.Learn, c.Outcomes.Explore
	c.Outcomes = old.Outcomes
	c.Outcomes.Learn, c.Outcomes.Explore = learn, explore
	quotas, tenants := c.Memory.Quotas, c.Memory.Tenants
	c.Memory = old.Memory
	c.Memory.Quotas, c.Memory.Tenants = quotas, tenants
}

// GPU returns the options of the ONNX Runtime package, with what the environment says.
func (c *Classify) GPU(s Settings) gpu.Options {
	o := c.Options
	o.EnvLibrary, o.CacheDir = s.Library, s.CacheDir
	return o
}
