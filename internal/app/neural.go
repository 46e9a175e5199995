package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"signalbox/classify"
	"signalbox/classify/knn"
	"signalbox/gpu"
	"signalbox/internal/config"
	"signalbox/internal/signal"
	"signalbox/internal/telemetry"
	"signalbox/models"
	"signalbox/proxy/guardrail"
)

// neural owns the ONNX Runtime library and a session for every bundle in use. A classifier of one
// configuration borrows them; a reload opens what is new and gives back what nobody uses any more.
// It is not safe for concurrent use: builds come one after the other.
type neural struct {
	host      host  // nil without ONNX Runtime
	missing   error // why there is none
	files     fs.FS // the embedded bundles
	modelsDir string
	required  bool // a bundle that cannot be opened is an error
	tel       *telemetry.Telemetry
	loaded    map[string]*loaded  // of the current configuration, by placement.opened
	mended    map[string]*loaded  // that could not be opened before, for the next set
	grounding *grounding          // judges claims; nil without a model for it
	taught    *taught             // nil without intents, or without a model to compare by
	kept      map[string][]string // examples that were added to intents, by name, while taught is nil
	examples  *knn.Cache          // vectors of examples, for the life of the process
	judges    []*judged           // classifiers on other servers
	tails     map[string]*tailed  // graphs of adapters, by the sum of their files
	unusable  map[string]bool     // adapters that cannot be used, by the sum of their files
}

// closer is a model that is open.
type closer interface{ close() error }

// loaded is a bundle ready to run, or one that could not be opened.
type loaded struct {
	engine  *classify.Engine
	session session // nil when it could not be opened
	err     error   // why
	remote  bool    // it runs on another server
	place   *placement
}

func (l *loaded) close() error {
	if l.session == nil {
		return nil
	}
	return l.session.Close()
}

// openNeural loads ONNX Runtime. Without it every neural signal is unknown, unless the options
// require it.
func openNeural(ctx context.Context, cfg *config.Config, o Options, tel *telemetry.Telemetry) (*neural, error) {
	n := &neural{
		files: o.files, tel: tel, required: o.RequireModels,
		examples: knn.NewCache(examplesDir(o.Settings.CacheDir)),
	}
	if n.files == nil {
		n.files = models.FS
	}
	var err error
	if n.host, err = n.openHost(ctx, cfg, &o); err == nil {
		if o.around != nil {
			n.host = o.around(n.host)
		}
		return n, nil
	}
	n.host = nil
	if o.RequireModels || !errors.Is(err, gpu.ErrUnavailable) {
		return nil, err
	}
	n.missing = err
	tel.Log.WarnContext(ctx,
		"neural signals are unavailable: routes that read one take their on_unknown action,"+
			" and routes that fail closed return 503; "+
			"install ONNX Runtime (make onnxruntime) or set its path in classify.library",
		slog.String("cause", err.Error()))
	return n, nil
}

// examplesDir is where vectors of examples are kept between runs; empty: nowhere.
func examplesDir(cacheDir string) string {
	if cacheDir == "" {
		return ""
	}
	return filepath.Join(cacheDir, "signalbox", "examples")
}

// modelSet is what one configuration needs of the models: prepared, and not in use until commit.
type modelSet struct {
	classifier *classify.Classifier
	loaded     map[string]*loaded
	taught     *taught
	grounding  *grounding
	claims     guardrail.Claims // that grounding judges
	intents    []knn.Intent     // as configured
	state      func() hostState
	fresh      []closer  // opened for this set
	judges     []*judged // classifiers on other servers
	tails      map[string]*tailed
	unusable   map[string]bool
	broken     []error  // why adapters are unusable
	dropped    []closer // that only the set before uses
}

// prepare makes the extractor of one configuration. It opens the bundles that are not open yet. A
// bundle that cannot be opened leaves its signals unknown when the product starts; when it is new
// in a reload it is an error, and the old configuration stays. The set is committed or discarded.
func (n *neural) prepare(ctx context.Context, cfg *config.Config) (*modelSet, error) {
	placed, err := placeFrom(n.files, &cfg.Classify)
	if err != nil {
		return nil, err
	}
	n.modelsDir = cfg.Classify.ModelsDir
	list, err := adapters(&cfg.Classify, placed)
	if err != nil {
		return nil, err
	}
	set := &modelSet{
		loaded: make(map[string]*loaded, len(placed)), intents: cfg.Signals.Intents, state: n.state,
		tails: make(map[string]*tailed), unusable: make(map[string]bool),
	}
	sources := make([]classify.Source, 0, len(placed))
	for i := range placed {
		l, err := n.get(ctx, &placed[i], set)
		if err != nil {
			return nil, errors.Join(err, set.discard())
		}
		sources = append(sources, classify.Source{
			Engine: l.engine, Signals: placed[i].signals,
			Foreign: placed[i].foreign,
		})
		if len(cfg.Signals.Intents) > 0 && placed[i].signals.Has(signal.Embedding) && l.err == nil {
			o := knn.Options{Model: placed[i].key + placed[i].graphs(), Latin: l.engine.LatinAlone()}
			if set.taught, err = n.teach(ctx, cfg, l.engine.Embed, o); err != nil {
				return nil, errors.Join(err, set.discard())
			}
		}
	}
	if err := n.attach(ctx, list, sources, set); err != nil {
		return nil, errors.Join(err, set.discard())
	}
	opts := classify.DefaultOptions()
	opts.Timeout, opts.Windows = time.Duration(cfg.Classify.Timeout), cfg.Classify.Windows
	opts.Memo, opts.Timeouts = cfg.Classify.Memo, cfg.Classify.SignalTimeouts()
	opts.Keywords = cfg.Signals.Keywords
	opts.Origins, opts.Read = cfg.Classify.Origins(), cfg.Reads()
	opts.Patterns = slices.ContainsFunc(cfg.Classify.Tasks, func(t config.Task) bool { return t.Model == classify.PatternsModel })
	opts.Logger = n.tel.Log
	if set.taught != nil {
		opts.Intents = set.taught.index
	} else if len(cfg.Signals.Intents) > 0 {
		sources = append(sources, classify.Source{Engine: classify.Missing("intents", signal.MaskOf(signal.Intent))})
	}
	if opts.Own, opts.Given, err = n.own(cfg, list, set); err != nil {
		return nil, errors.Join(err, set.discard())
	}
	if set.classifier, err = classify.New(sources, opts); err != nil {
		return nil, errors.Join(fmt.Errorf("classifier: %w", err), set.discard())
	}
	if err = n.prepareClaims(ctx, cfg, set); err != nil {
		return nil, errors.Join(err, set.discard())
	}
	for key, l := range n.loaded {
		if set.loaded[key] != l {
			set.dropped = append(set.dropped, l)
		}
	}
	return set, nil
}

// prepareClaims adds the model that judges claims to a set.
func (n *neural) prepareClaims(ctx context.Context, cfg *config.Config, set *modelSet) (err error) {
	if set.grounding, err = n.prepareGrounding(ctx, cfg); err != nil {
		return err
	}
	if set.grounding != n.grounding {
		if n.grounding != nil {
			set.dropped = append(set.dropped, n.grounding)
		}
		if set.grounding != nil {
			set.fresh = append(set.fresh, set.grounding)
		}
	}
	set.claims, err = set.grounding.claims(leastMark(&cfg.Classify), cfg.Guard.Strict)
	set.claims.Wanted = cfg.Guarded
	return err
}

// get returns the bundle of a placement, opening it when it is not open.
func (n *neural) get(ctx context.Context, p *placement, set *modelSet) (*loaded, error) {
	old := n.loaded[p.opened()]
	l := old
	if old == nil || old.err != nil {
		if l = n.mended[p.opened()]; l != nil {
			delete(n.mended, p.opened())
		} else {
			l = n.load(ctx, p)
		}
		set.fresh = append(set.fresh, l)
		reloads := n.loaded != nil && old == nil && n.missing == nil && !l.again()
		// without the one for other languages all goes on
		if l.err != nil && (n.required || reloads && !p.foreign) {
			return nil, l.err
		}
	}
	set.loaded[p.opened()] = l
	return l, nil
}

// commit puts a set into use. What it drops is for the caller to close.
func (n *neural) commit(set *modelSet) {
	n.loaded, n.taught, n.grounding = set.loaded, set.taught, set.grounding
	n.judges, n.tails, n.unusable = set.judges, set.tails, set.unusable
	if n.taught != nil {
		n.kept = nil
	}
}

// discard closes what was opened for a set that is not used.
func (s *modelSet) discard() error {
	var errs []error
	for _, l := range s.fresh {
		errs = append(errs, l.close())
	}
	return errors.Join(errs...)
}

// load opens a bundle. It never fails: what cannot be opened is a loaded with the reason.
func (n *neural) load(ctx context.Context, p *placement) *loaded {
	if n.missing != nil && p.remote.URL == "" {
		return missingEngine(p, n.missing)
	}
	l, err := n.openSession(ctx, p)
	if err != nil {
		effect := "its signals are unknown"
		if p.foreign {
			effect = "the multilingual model is used for its languages"
		}
		n.tel.Log.ErrorContext(ctx, "model not usable", slog.String("effect", effect),
			slog.String("bundle", p.bundle.Manifest.Name), slog.String("cause", err.Error()))
		return missingEngine(p, err)
	}
	n.tellProvider(ctx, p, l.session)
	return l
}

func (n *neural) openSession(ctx context.Context, p *placement) (*loaded, error) {
	var s session
	var err error
	if p.remote.URL != "" {
		s, err = n.dialRemote(ctx, p)
	} else {
		s, err = n.host.open(ctx, p.sessionOptions(n.modelsDir))
	}
	if err != nil {
		return nil, fmt.Errorf("open session: %w", err)
	}
	engine, err := classify.OpenEngine(p.bundle, s)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return &loaded{engine: engine, session: s, remote: p.remote.URL != "", place: p}, nil
}

func (n *neural) close() error {
	var errs []error
	for _, l := range n.loaded {
		errs = append(errs, l.close())
	}
	if n.grounding != nil {
		errs = append(errs, n.grounding.close())
	}
	for _, l := range n.mended {
		errs = append(errs, l.close())
	}
	for _, j := range n.judges {
		errs = append(errs, j.close())
	}
	for _, t := range n.tails {
		errs = append(errs, t.close())
	}
	if n.host != nil {
		errs = append(errs, n.host.Close())
	}
	return errors.Join(errs...)
}
