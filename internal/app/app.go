// Package app builds the product from a configuration and runs it: the one place that knows all
// packages. It starts what they need, reloads and drains; it decides nothing.
//
// An App owns the ONNX Runtime sessions, the proxy and its listeners. Build starts nothing that
// needs stopping but the native sessions; Close releases them. Serve owns every goroutine and
// returns when all of them have.
package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"signalbox/classify"
	"signalbox/internal/config"
	"signalbox/internal/signal"
	"signalbox/internal/telemetry"
	"signalbox/memory/cache"
	"signalbox/memory/conversation"
	"signalbox/memory/outcomes"
	outcomesshared "signalbox/memory/outcomes/shared"
	"signalbox/memory/redis"
	"signalbox/proxy"
	"signalbox/proxy/backend"
	"signalbox/proxy/decisionlog"
	"signalbox/proxy/explain"
	"signalbox/proxy/keyring"
	"signalbox/proxy/recall"
	"signalbox/stream/check"
)

// Options are what a run needs besides the configuration.
type Options struct {
	Version       string
	Settings      config.Settings
	RequireModels bool      // refuse to build without ONNX Runtime
	Once          bool      // for a command that serves nobody: files of a process that does are only read
	Log           io.Writer // where the log goes
	Worker        []string  // the command that runs models in a process of their own; empty: this program's
	Env           func(string) (string, bool)

	mendAfter time.Duration    // when models that could not be opened are tried first; 0: after a second
	around    func(host) host  // what tests put around the host; nil: nothing
	now       func() time.Time // what tests put in place of the clock of virtual keys; nil: nothing
	files     fs.FS            // what tests put in place of the embedded bundles; nil: nothing
}

// App is a built product.
type App struct {
	opts       Options
	cfg        atomic.Pointer[config.Config]
	tel        *telemetry.Telemetry
	neural     *neural
	proxy      *proxy.Proxy
	discovery  *discovery
	redis      *redis.Store  // nil: there is none; connected from Serve on
	shared     *cache.Redis  // answers of all replicas, in redis
	contexts   *contextStore // from Serve on
	classifier atomic.Pointer[classify.Classifier]
	checker    atomic.Pointer[check.Checker]
	current    *proxy.State           // that requests are served from; guarded by reloading
	identity   decisionlog.Identity   // of it; guarded by reloading
	answers    *recall.Answers        // that are kept; guarded by reloading
	talks      *conversation.Store    // states of conversations, of all states
	outcomes   *outcomes.Store        // of answers, of all states
	told       *outcomesshared.Shared // outcomes of replicas; nil where they are not shared
	keys       *keyring.Ring          // virtual keys, of all states; nil: there are none
	read       atomic.Pointer[noted]  // the files as they were last read
	endpoints  atomic.Pointer[string] // addresses of the endpoints that requests are served from
	problem    atomic.Value           // string: why the last reload failed; empty when it did not
	pending    atomic.Value           // []string: settings whose new values wait for a restart
	certs      certificates           // of the main listener
	started    time.Time

	reloading  sync.Mutex // one reload at a time; guards neural and generation
	generation uint64
	retiring   sync.WaitGroup // goroutines that close models which the last requests still use
}

// Build makes everything that cfg asks for. Without ONNX Runtime it builds a degraded product,
// whose neural signals are unknown, unless Options.RequireModels says otherwise.
func Build(ctx context.Context, cfg *config.Config, o Options) (*App, error) {
	tel, err := telemetry.New(ctx, cfg.Telemetry, o.Version, o.Log)
	if err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	a := &App{opts: o, tel: tel, discovery: newDiscovery(o.Env), started: time.Now()}
	a.cfg.Store(cfg)
	a.noteFiles(files(cfg)) // before models are loaded: what is written meanwhile is a change
	if a.neural, err = openNeural(ctx, cfg, o, tel); err != nil {
		return nil, errors.Join(err, tel.Shutdown(ctx))
	}
	if err := a.openRedis(cfg); err != nil {
		return nil, errors.Join(err, a.Close(ctx))
	}
	a.openTalks(cfg)
	if err := a.openOutcomes(ctx, cfg); err != nil {
		return nil, errors.Join(err, a.Close(ctx))
	}
	if err := a.openKeys(ctx, cfg); err != nil {
		return nil, errors.Join(err, a.Close(ctx))
	}
	st, dropped, err := a.state(ctx, cfg)
	for _, c := range dropped { // what could not be used
		err = errors.Join(err, c.close())
	}
	if err != nil {
		return nil, errors.Join(err, a.Close(ctx))
	}
	for _, refusal := range st.Refuses() {
		tel.Log.WarnContext(ctx, "a route refuses requests because a model is missing",
			slog.String("cause", refusal))
	}
	a.proxy = proxy.New(cfg.Server, st, tel)
	a.proxy.Recent().Prompts(cfg.Telemetry.RecordPrompts)
	tel.Metrics.Reloaded(true, a.generation, time.Now())
	return a, nil
}

// state compiles a configuration into what the proxy serves requests from. dropped is what closes
// the models that only the state before uses.
func (a *App) state(ctx context.Context, cfg *config.Config) (st *proxy.State, dropped []closer, err error) {
	if err := config.Open(cfg); err != nil { // flags and environment may have changed the address
		return nil, nil, fmt.Errorf("server.listen %s: %w", cfg.Server.Listen, err)
	}
	if err := a.collides(cfg); err != nil {
		return nil, nil, err
	}
	set, err := a.neural.prepare(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	id, err := identify(cfg)
	if err != nil {
		return nil, nil, errors.Join(err, set.discard())
	}
	answers, err := a.remember(cfg)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("build cache: %w", err), set.discard())
	}
	pools := a.pools(ctx, cfg)
	st, err = proxy.NewState(a.stateOptions(cfg, pools, set, &id, answers), a.tel)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("build routing state: %w", err), set.discard())
	}
	a.neural.commit(set)
	a.generation++
	a.classifier.Store(set.classifier)
	a.checker.Store(set.claims.Checker)
	a.current, a.identity, a.answers = st, id, answers
	at := addresses(pools)
	a.endpoints.Store(&at)
	return st, set.dropped, nil
}

// stateOptions puts together what a state is made of: a configuration, its models, and what
// outlives it.
func (a *App) stateOptions(
	cfg *config.Config, pools []backend.ModelOptions, set *modelSet, id *decisionlog.Identity, answers *recall.Answers,
) *proxy.StateOptions {
	o := &proxy.StateOptions{
		Models: pools, Prompts: cfg.Prompts, Auth: cfg.Auth, Server: cfg.Server, Limits: &cfg.Limits,
		Program: cfg.Program, Classifier: set.extractor(), Generation: a.generation + 1,
		Guard: &cfg.Guard, Claims: set.claims, Identity: *id,
		//nolint:exhaustive // the labels of the others need no threshold
		Thresholds: map[signal.Kind]float64{
			signal.Jailbreak: cfg.Threshold(signal.Jailbreak),
			signal.Injection: cfg.Threshold(signal.Injection),
		},
		Timeout: time.Duration(cfg.Classify.Timeout), Patience: patience(&cfg.Classify),
		Stick: cfg.Stick, Talks: a.talks, Outcomes: cfg.Outcomes, Learnt: a.outcomes,
		Cache: cfg.Cache, Answers: answers, Fingerprint: decides(id, a.opts.Version),
	}
	if a.keys != nil {
		o.Virtual = a.keys
	}
	if secret := cfg.Memory.SaltSecret; secret != "" {
		o.Salt = []byte(secret)
	}
	return o
}

// patience is how long the classifier looks for personal data.
func patience(o *config.Classify) time.Duration {
	if d := o.Timeouts[signal.PII.String()]; d > 0 {
		return time.Duration(d)
	}
	return time.Duration(o.Timeout)
}

// retire takes over what an index learned until now, and what it may learn from requests that still
// use its state; once none does, it ends the guard of that state and closes the models that belong
// to it. The caller holds reloading.
func (a *App) retire(ctx context.Context, old *proxy.State, index *taught, models []closer) {
	a.carry(ctx, index)
	replaced := index != nil && index != a.neural.taught
	a.retiring.Go(func() {
		<-old.Idle()
		old.Close()
		if replaced {
			a.reloading.Lock()
			a.carry(ctx, index)
			a.reloading.Unlock()
		}
		for _, m := range models {
			if err := m.close(); err != nil {
				a.tel.Log.ErrorContext(ctx, "closing an unused model failed", slog.String("cause", err.Error()))
			}
		}
	})
}

func (a *App) carry(ctx context.Context, index *taught) {
	if err := a.neural.carry(ctx, index); err != nil {
		a.tel.Log.ErrorContext(ctx, "examples of private intents are lost", slog.String("cause", err.Error()))
	}
}

// Explain decides a chat completion request without forwarding it, as one with the headers h, which
// may be nil. An empty role or tenant is that of a caller without a key.
func (a *App) Explain(
	ctx context.Context, body []byte, role, tenant string, h http.Header,
) (*explain.Explanation, error) {
	auth := &a.cfg.Load().Auth
	who := proxy.Principal{Role: cmp.Or(role, auth.DefaultRole), Tenant: cmp.Or(tenant, auth.DefaultTenant)}
	return a.proxy.Explain(ctx, body, who, h)
}

// Extract computes signals of one text, as a single user message of which nobody told where it
// comes from.
func (a *App) Extract(ctx context.Context, text string, need signal.Mask) *signal.Set {
	set := &signal.Set{}
	t := &signal.Text{LastUser: text, Segments: []signal.Segment{{Role: "user", Text: text}}}
	a.classifier.Load().Extract(ctx, t, need, set)
	return set
}

// Refuses says which routes answer 503 for want of a model, and what to do; empty when none does.
func (a *App) Refuses() []string {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	return a.current.Refuses()
}

// Degraded says why there are no neural signals, or nil when there are.
func (a *App) Degraded() error { return a.neural.missing }

// Close releases the native sessions and flushes telemetry. Nothing may run any more.
func (a *App) Close(ctx context.Context) error {
	a.retiring.Wait()
	if a.current != nil {
		a.current.Close()
	}
	if a.talks != nil {
		a.talks.Close()
	}
	if a.told != nil {
		a.told.Close()
	}
	if a.redis != nil {
		a.redis.Close()
	}
	if a.outcomes != nil {
		if err := a.outcomes.Close(); err != nil {
			return errors.Join(err, a.neural.close(), a.tel.Shutdown(ctx))
		}
	}
	return errors.Join(a.neural.close(), a.tel.Shutdown(ctx))
}
