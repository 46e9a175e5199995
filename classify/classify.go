// Package classify turns the text of a request into signals: keywords by scanning it, the neural
// signals by one pass of a bundle's graph. It knows labels, probabilities, windows and tokens. It
// knows no HTTP, no rules and no native code: graphs run behind the Session interface, and without
// a Session every neural signal is unknown, never a default label.
//
// # What is read
//
// Domain, embedding and the other tasks about the request read Text.LastUser. Jailbreak reads the
// safety view: every segment that has text, whoever said it, tool results included, joined by line
// breaks. Texts longer than a row are read in windows, as many as the manifest allows: for the
// safety view all of them. The safety view is the raw text; homoglyphs, zero-width characters and
// encoded payloads are seen as written and not yet in a normalised twin.
//
// # One pass
//
// All neural kinds of one Extract share a pass. Windows with equal tokens become one row, so a
// short request of a single message is one row and one run. Rows of similar length are batched, up
// to Options.MaxBatch; the context is checked between runs.
//
// # Concurrency
//
// A Classifier is immutable and safe for concurrent use. It starts no goroutines: Extract works on
// the caller's, and waits only for Session.Run.
package classify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"signalbox/classify/bundle"
	"signalbox/classify/lexical"
	"signalbox/classify/tokenize"
	"signalbox/internal/signal"
	"signalbox/internal/tensor"
)

// Session runs one graph. Implementations are safe for concurrent use.
type Session interface {
	// Run feeds in and returns the named outputs in order, as float32 tensors owned by the caller.
	// The tensors of in are borrowed until Run returns. An error may say why the signals are
	// unknown by implementing Reasoned; it returns soon after ctx ends.
	Run(ctx context.Context, in []tensor.Tensor, outputs []string) ([]tensor.Tensor, error)
	// Inputs lists what Run needs. A nil shape leaves the rank open.
	Inputs() []tensor.Spec
	// Outputs lists what Run can return.
	Outputs() []tensor.Spec
	// Provider is the execution provider, such as cpu.
	Provider() string
	// Close releases the graph once no Run is in flight.
	Close() error
}

// Reasoned is an error of a Session that knows what a signal is unknown for. Errors without it are
// a timeout or a cancellation when they wrap the context's error, and internal otherwise.
type Reasoned interface {
	error
	// Reason is the reason that the signals get. It is not ReasonNone.
	Reason() signal.Reason
}

// Options tunes a Classifier.
type Options struct {
	// Timeout bounds the neural pass of one Extract; past it the signals are unknown (timeout).
	// Default 10s; 0 leaves the caller's context alone. Reloadable.
	Timeout time.Duration `yaml:"timeout"`
	// MaxBatch is the most rows of one run, at least 1. Default 8. Reloadable.
	MaxBatch int `yaml:"max_batch"`
	// Keywords are the sets of the keyword signal. Default none. Reloadable.
	Keywords []lexical.Options `yaml:"keywords"`
	// Logger gets the errors behind signals that are unknown for internal or invalid_output. Default
	// none.
	Logger *slog.Logger `yaml:"-"`
}

// defaultTimeout is generous against a pass of some 10 ms and enough for the safety signal to read
// about 40,000 tokens, window by window, on one core of 2025.
const defaultTimeout = 10 * time.Second

// DefaultOptions returns the defaults.
func DefaultOptions() Options { return Options{Timeout: defaultTimeout, MaxBatch: 8} }

// Validate reports every problem of o as "field: problem", joined, or nil.
func (o Options) Validate() error {
	var errs []error
	if o.Timeout < 0 {
		errs = append(errs, fmt.Errorf("timeout: %v is negative", o.Timeout))
	}
	if o.MaxBatch < 1 {
		errs = append(errs, fmt.Errorf("max_batch: %d is less than 1", o.MaxBatch))
	}
	for i, k := range o.Keywords {
		if err := k.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("keywords[%d]: %w", i, err))
		}
	}
	return errors.Join(errs...)
}

// Classifier extracts signals. Make it with New.
type Classifier struct {
	opts     Options
	keywords *lexical.Matcher
	manifest *bundle.Manifest
	tokens   *tokenize.Tokenizer
	session  Session // nil when no graph can run
	provider string
	tasks    []task
	neural   signal.Mask // the kinds of tasks
	passes   sync.Pool   // of *pass
}

// task is a task of the bundle that gives a signal.
type task struct {
	*bundle.Task
	kind     signal.Kind
	positive int // index of the positive label, -1 when there is none
	view     view
}

// width is the length of the task's row of output.
func (t *task) width() int {
	if t.Kind == bundle.Embedding {
		return t.Dims
	}
	return len(t.Labels)
}

// New makes a Classifier from a bundle and a session that runs one of its graphs. It checks the
// tokenizer, the names, types and shapes of the graph (*GraphError) and the labels of the bundle's
// canary (*CanaryError). session may be nil: then the neural kinds are unknown (no_model). New does
// not take ownership of the session; whoever opened it closes it once no Extract is running.
func New(b *bundle.Bundle, session Session, opts Options) (*Classifier, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	keywords, err := lexical.New(opts.Keywords)
	if err != nil {
		return nil, err
	}
	c := &Classifier{opts: opts, keywords: keywords, manifest: &b.Manifest, session: session}
	if c.tasks, err = tasksOf(&b.Manifest); err != nil {
		return nil, err
	}
	for i := range c.tasks {
		c.neural |= signal.MaskOf(c.tasks[i].kind)
	}
	if session == nil {
		return c, nil
	}
	c.provider = session.Provider()
	data, err := b.Tokenizer()
	if err != nil {
		return nil, fmt.Errorf("bundle %q: %w", b.Manifest.Name, err)
	}
	if c.tokens, err = tokenize.New(data); err != nil {
		return nil, fmt.Errorf("bundle %q: %w", b.Manifest.Name, err)
	}
	if err := c.checkGraph(); err != nil {
		return nil, err
	}
	if err := c.runCanary(); err != nil {
		return nil, err
	}
	return c, nil
}

// tasksOf binds the tasks of a manifest to signals. A task that is no signal of this package is an error.
func tasksOf(m *bundle.Manifest) ([]task, error) {
	tasks := make([]task, 0, len(m.Tasks))
	for i := range m.Tasks {
		t := task{Task: &m.Tasks[i], positive: -1, view: lastUser}
		t.kind, _ = signal.ParseKind(t.Name)
		known := false
		switch t.kind {
		case signal.Domain, signal.Complexity, signal.FactCheck:
			known = t.Kind == bundle.Sequence
		case signal.Jailbreak:
			known = t.Kind == bundle.Sequence && t.Positive != ""
			t.view = safety
		case signal.Embedding:
			known = t.Kind == bundle.Embedding
		case signal.Keyword, signal.Language, signal.PII, signal.Intent, signal.Cache, signal.NumKinds:
		}
		if !known {
			return nil, fmt.Errorf("bundle %q: tasks[%d]: no signal %q of kind %s is known", m.Name, i, t.Name, t.Kind)
		}
		for j, l := range t.Labels {
			if l == t.Positive {
				t.positive = j
			}
		}
		tasks = append(tasks, t)
	}
	return tasks, nil
}

// Signals returns the kinds that Extract can compute now.
func (c *Classifier) Signals() signal.Mask {
	m := signal.MaskOf(signal.Keyword)
	if c.session != nil {
		m |= c.neural
	}
	return m
}

// Degraded names what does not work as configured, in words for people; empty when all is well.
func (c *Classifier) Degraded() []string {
	if c.session != nil {
		return nil
	}
	out := make([]string, 0, len(c.tasks))
	for i := range c.tasks {
		out = append(out, "no model for "+c.tasks[i].kind.String())
	}
	return out
}

// Thresholds returns the bundle's threshold of every sequence task, the probability from which its
// answer counts, in (0,1]. The caller owns the map.
func (c *Classifier) Thresholds() map[signal.Kind]float64 {
	out := make(map[signal.Kind]float64, len(c.tasks))
	for i := range c.tasks {
		if c.tasks[i].Kind == bundle.Sequence {
			out[c.tasks[i].kind] = c.tasks[i].Threshold
		}
	}
	return out
}

// Extract sets every kind of need that set does not have yet to known or unknown: unknown with
// no_model for kinds that nothing here computes, with no_text where there is nothing to read. It
// keeps neither text nor set, and what it stored is not changed afterwards. It returns soon after
// ctx ends.
func (c *Classifier) Extract(ctx context.Context, text *signal.Text, need signal.Mask, set *signal.Set) {
	need &^= set.Have()
	if need.Has(signal.Keyword) {
		start := time.Now()
		names := c.keywords.Match(text)
		set.Values[signal.Keyword] = signal.Value{
			State: signal.Known, Labels: names, Source: "lexical", Elapsed: time.Since(start),
		}
	}
	if neural := need & c.neural; neural != 0 && c.session != nil {
		c.log(ctx, c.extractNeural(ctx, text, neural, set))
	}
	set.Fail(need, signal.ReasonNoModel)
}

// log reports a fault that the values of a set only name. Load and lost clients are no faults.
func (c *Classifier) log(ctx context.Context, err error) {
	if err == nil || c.opts.Logger == nil {
		return
	}
	switch why := reasonOf(ctx, err); why {
	case signal.ReasonInternal, signal.ReasonInvalid:
		c.opts.Logger.ErrorContext(ctx, "neural signals are unknown", slog.String("bundle", c.manifest.Name),
			slog.String("reason", string(why)), slog.String("error", err.Error()))
	case signal.ReasonNone, signal.ReasonTimeout, signal.ReasonOverload, signal.ReasonNoModel, signal.ReasonNoText, signal.ReasonCanceled:
	}
}

// extractNeural computes the kinds of need in one pass. Its error is why kinds are unknown, for the
// canary.
func (c *Classifier) extractNeural(ctx context.Context, text *signal.Text, need signal.Mask, set *signal.Set) error {
	start := time.Now()
	if c.opts.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.opts.Timeout)
		defer cancel()
	}
	p, ok := c.passes.Get().(*pass)
	if !ok {
		p = new(pass)
	}
	p.reset(c)
	err := p.plan(ctx, text, need)
	if err == nil {
		err = p.run(ctx)
	}
	p.finish(need, set, time.Since(start), reasonOf(ctx, err))
	if p.small() {
		c.passes.Put(p)
	}
	return err
}

// reasonOf says why signals are unknown after err; ReasonNone for nil.
func reasonOf(ctx context.Context, err error) signal.Reason {
	var r Reasoned
	switch {
	case err == nil:
		return signal.ReasonNone
	case errors.As(err, &r):
		return r.Reason()
	case errors.Is(err, context.DeadlineExceeded):
		return signal.ReasonTimeout
	case errors.Is(err, context.Canceled):
		return signal.ReasonCanceled
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return signal.ReasonTimeout
	case ctx.Err() != nil:
		return signal.ReasonCanceled
	}
	return signal.ReasonInternal
}
