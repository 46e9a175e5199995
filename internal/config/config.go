// Package config reads the configuration, which is a single YAML file. Flags and environment are
// read through viper; the file is read strictly, so that every problem is reported with file, line,
// column, path and the nearest known key. The package composes the Options of other packages
// without interpreting them. Checks that involve more than one section, such as a route naming a
// model, live here and in rules.
//
// Load depends only on the file and the environment it is given. The result is immutable.
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

// Config is the whole configuration. Each section is documented at its type.
type Config struct {
	// Server configures listeners, size limits and timeouts of the HTTP server, and general
	// settings of routing.
	Server settings.Server `yaml:"server"`
	// Limits sets bounds that keep requests from exhausting the process.
	Limits settings.Limits `yaml:"limits"`
	// Auth configures who may call, and as whom.
	Auth auth.Options `yaml:"auth"`
	// Models lists the models that routes refer to and clients may ask for.
	Models []backend.ModelOptions `yaml:"models"`
	// Classify configures the neural signals.
	Classify Classify `yaml:"classify"`
	// Signals defines keywords and private intents.
	Signals Signals `yaml:"signals"`
	// Prompts lists the system prompts that routes refer to.
	Prompts []settings.Prompt `yaml:"prompts"`
	// Conditions defines named conditions, used as `condition: NAME`.
	Conditions yaml.Node `yaml:"conditions"`
	// Routes lists the routes. They are evaluated in order; the first whose condition is true
	// applies.
	Routes yaml.Node `yaml:"routes"`
	// Default handles requests that no route matches. It takes the same keys as a route's `use`.
	Default yaml.Node `yaml:"default"`
	// Guard checks responses against evidence while they stream. Without the section, no response
	// is checked unless a route or a request asks for it.
	Guard guardrail.Options `yaml:"guard"`
	// Memory stores contexts, which requests reference instead of sending a long text again.
	Memory Memory `yaml:"memory"`
	// Cache stores responses and returns them for repeated requests. Without the section it is off,
	// unless a route turns it on.
	Cache recall.Options `yaml:"cache"`
	// Stick keeps conversations with their models. Without the section it is on, with its defaults.
	Stick decide.StickOptions `yaml:"stick"`
	// Outcomes configures learning from ratings of responses, for the choice among models. Without
	// the section, nothing is learnt.
	Outcomes decide.OutcomeOptions `yaml:"outcomes"`
	// Telemetry configures logs, metrics and traces.
	Telemetry telemetry.Options `yaml:"telemetry"`

	// File is the path the configuration was read from.
	File string `yaml:"-"`
	// Fingerprint identifies the content of the file.
	Fingerprint string `yaml:"-"`
	// Text is the content of the file. Secrets appear in it as references.
	Text string `yaml:"-"`
	// Warnings are the warnings of Load.
	Warnings []rules.Problem `yaml:"-"`
	// SecretFiles are the files that references of the form file:PATH were read from.
	SecretFiles []string `yaml:"-"`
	// Program is the compiled form of the routes.
	Program *rules.Program `yaml:"-"`

	// Catalog lists what the configured models can compute.
	Catalog Catalog `yaml:"-"`
	// Guarded reports whether the section `guard`, or a route, turns the guard on.
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

// Classify is the section `classify`: the neural signals.
type Classify struct {
	gpu.Options `yaml:",inline"`

	// ModelsDir is the folder in which downloaded models and bundles are looked up. Default
	// ~/.cache/signalbox/models. Reloadable.
	ModelsDir string `yaml:"models_dir"`
	// Timeout limits the computation of all signals of one request. Signals that are missing by
	// then are unknown. The safety signals read the whole prompt, so this limits the length of
	// prompts that can pass a safety route. Default 10s. Reloadable.
	Timeout option.Duration `yaml:"timeout"`
	// Timeouts limits individual signals, such as {jailbreak: 300ms, keyword: 20ms}. A signal that
	// is late is unknown, and the on_unknown of its routes applies; the other signals continue. The
	// time counts from the moment the signal is requested. Names are keyword, domain, jailbreak,
	// injection, pii, complexity, factcheck, embedding and intent; the timeout of embedding also
	// applies to intent. Each is at most timeout. Default none. Reloadable.
	Timeouts map[string]option.Duration `yaml:"timeouts"`
	// Windows limits how much text the safety signals read per request, not counting texts whose
	// verdicts are remembered: this many windows, or the same number of tokens in shorter texts,
	// but at least what the newest text needs. The newest text is read first, then those in which a
	// fast scan of all texts finds the most. Routes with `windows: all` read every window. Default
	// 12. Reloadable.
	Windows int `yaml:"windows"`
	// Memo is the maximum number of verdicts on texts that each model remembers, so that a text
	// read in one turn of a conversation is not read again in the next. A verdict takes about 400
	// bytes, is keyed by the SHA-256 of its text, and is kept in memory only. 0 disables the memo.
	// Default 65536. Reloadable.
	Memo int `yaml:"memo"`
	// Isolation selects where models run: none, in the proxy's process, or process, in a separate
	// process. If a fault in native code ends the separate process, it is started again; signals
	// are unknown meanwhile. Default none. Restart needed.
	Isolation string `yaml:"isolation" words:"none process"`
	// Tasks configures which model computes which signal. A signal without an entry comes from the
	// embedded bundle. Reloadable.
	Tasks []Task `yaml:"tasks"`
	// Classifiers lists classifiers of your own, which rules use like signals. At most 12. See
	// classifiers.md. Reloadable.
	Classifiers []OwnClassifier `yaml:"classifiers"`
}

// Task binds one neural signal to a model.
type Task struct {
	// Name is the signal: domain, jailbreak, injection, pii, complexity, factcheck or embedding.
	// grounding is the model that judges claims for the guard: either a model for pairs (premise,
	// claim), or one that marks tokens of the response.
	Name string `yaml:"name"`
	// Model is `embedded`, a model in models_dir such as ORG/NAME, or, for pii only, `patterns`,
	// which detects what patterns alone can find. Default embedded.
	Model string `yaml:"model"`
	// Classifier is the name of an entry of classify.classifiers with http that computes the signal
	// in place of a local model. domain and complexity take its labels; jailbreak, injection and
	// factcheck take the probability of positive. For attacks, each text is sent separately. It is
	// called only if the signals computed in this process do not settle a decision. Default: a
	// local model. Reloadable.
	Classifier string `yaml:"classifier"`
	// Threshold is the probability from which a yes-or-no signal is yes, in (0,1]. 0 selects the
	// threshold of the bundle, or 0.5 with classifier.
	Threshold float64 `yaml:"threshold"`
	// Origins lists the origins of the texts that jailbreak or injection reads: instructions
	// (system and developer messages, tool descriptions), user, model (earlier responses and tool
	// calls) and data (tool results, contexts, documents, quoted material). Rules that name origins
	// read those in addition. Default [user] for jailbreak, [data] for injection. Reloadable.
	Origins []string `yaml:"origins" words:"instructions user model data"`

	// MaxTokens is the longest row that the model reads, in tokens. 0 selects the value of the
	// model. This key and those below it describe models in the Hugging Face layout; a bundle has
	// the same settings in its manifest.
	MaxTokens int `yaml:"max_tokens"`
	// Window configures how a text that is longer than one row is read.
	Window TaskWindow `yaml:"window"`
	// Kind is the kind of the model: sequence, token, pair or embedding. Default: detected from the
	// files.
	Kind string `yaml:"kind" words:"sequence token pair embedding"`
	// Positive is the label that jailbreak, injection or factcheck looks for. Default: detected by
	// its name; with classifier, the label that the classifier looks for, such as unsafe.
	Positive string `yaml:"positive"`
	// Labels renames labels of the model, such as {LABEL_1: jailbreak}. A model without label names
	// has LABEL_0, LABEL_1 and so on.
	Labels map[string]string `yaml:"labels"`
	// Temperature divides the logits before they are converted to probabilities. 0 means 1.
	Temperature float64 `yaml:"temperature"`
	// Pooling is how an embedding model pools token vectors: mean, cls, last_token or none.
	// Default: detected from the files.
	Pooling string `yaml:"pooling" words:"mean cls last_token none"`
	// Dims truncates embedding vectors to this many dimensions. 0 keeps all.
	Dims int `yaml:"dims"`
	// Prefix is prepended to every text that an embedding model reads. Default: detected from the
	// files.
	Prefix *string `yaml:"prefix"`
	// Layer is the layer whose output an embedding model returns, if it supports several. 0 selects
	// the deepest.
	Layer int `yaml:"layer"`

	// Remote is a server that runs the graph. The model named by model still supplies tokenizer,
	// labels and thresholds. A bundle may lack its graph; a folder in the Hugging Face layout must
	// contain it. Default: the graph runs here.
	Remote Remote `yaml:"remote"`
}

// TaskWindow configures how a model reads a text that is longer than one row.
type TaskWindow struct {
	// Tokens is the length of a row, including special tokens. 8 to 32768, and at most max_tokens.
	// Memory and time of most models grow with its square. Default: 512, or max_tokens if that is
	// less; 4096 for models that judge the tokens of a response.
	Tokens int `yaml:"tokens"`
	// Stride is the distance between the starts of two consecutive rows, in tokens; rows overlap by
	// the rest. Default: three quarters of tokens.
	Stride int `yaml:"stride"`
	// Max is the maximum number of rows of a text that are read: the first ones and the last.
	// Default 4; all for jailbreak, injection and pii.
	Max int `yaml:"max"`
	// Long selects how domain, complexity, factcheck and embedding read a text that does not fit
	// into one row: skeleton reads one row with the most informative parts; windows reads the whole
	// text row by row and takes the mean. Default skeleton.
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
	// URL is the base URL of the server, without /v2, such as http://triton:8000.
	URL string `yaml:"url"`
	// Model is the name of the model on the server.
	Model string `yaml:"model"`
	// Version is the version of the model on the server. Default: chosen by the server.
	Version string `yaml:"version"`
	// Timeout limits one request. Signals that are missing by then are unknown (timeout). Default
	// 2s.
	Timeout option.Duration `yaml:"timeout"`
	// APIKey is sent as a bearer token. A reference, ${NAME} or file:PATH. Default: none is sent.
	APIKey string `yaml:"api_key" secret:"true"`
}

// Signals is the section `signals`: signals that the operator defines.
type Signals struct {
	// Keywords lists named sets of words and phrases. They are searched for in the text as written
	// and in text disguised by look-alike letters, invisible characters and encodings.
	Keywords []lexical.Options `yaml:"keywords"`
	// Intents lists private intents, each defined by a few examples.
	Intents []knn.Intent `yaml:"intents"`
	// IntentMargin is the lead that the score of an intent must have over the next best for a text
	// to belong to it, in [0,1). Default 0. Reloadable.
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
