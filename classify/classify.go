// Package classify turns the text of a request into signals: keywords and its language by scanning
// it, the neural signals by one pass of each bundle's graph, private intents by comparing it with
// examples. It knows labels, probabilities, windows and tokens. It knows no HTTP, no rules and no
// native code: graphs run behind the Session interface, and without a Session every neural signal is
// unknown, never a default label.
//
// # What is read
//
// Domain, complexity, factcheck, embedding and intent are about the request: they read
// Text.LastUser, in one row. What does not fit into one is compressed to a skeleton, see package
// compress.
//
// Jailbreak and pii are about safety: they read every segment that has text, whoever said it, tool
// results included, joined by line breaks; never a skeleton. Jailbreak also reads the normalised
// twin of the segments that hide what they say, see package views. Texts longer than a row are read
// in windows. Prompts of more than Options.Windows windows are scanned as a whole by a linear model,
// see package scan, and the graph reads the first window, the last and those that the scan finds
// most worth reading; Value.Windows and Value.Read say how many of how many. ExtractAll reads every
// window. Patterns of personal data are looked for in the whole text in any case.
//
// # One pass a bundle
//
// All kinds of one Extract that come from one bundle share a pass. Windows with equal tokens become
// one row, so a short request of a single message is one row and one run. Rows of similar length are
// batched, up to Options.MaxBatch; the context is checked between runs. Bundles run beside each
// other, and the fault of one makes only its own signals unknown.
//
// # Concurrency
//
// A Classifier is immutable, its live intents aside, and safe for concurrent use. Extract works on
// the caller's goroutine, starts one more for every further bundle that it needs, and waits for
// them. Nothing outlives it, and no lock is held while a graph runs.
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
	"signalbox/internal/signal"
)

// LexicalKinds are the kinds that every Classifier computes: no model is needed.
const LexicalKinds signal.Mask = 1<<signal.Keyword | 1<<signal.Language

// PatternsModel is the name of the model that finds personal data by patterns alone.
const PatternsModel = "patterns"

// Classifier extracts signals. Make it with New.
type Classifier struct {
	opts     Options
	keywords *lexical.Matcher
	sources  []Source
	neural   signal.Mask // the kinds of sources
	scanner  scanner     // of the first engine that has one; may be nil
}

// Source is an engine and the signals that a Classifier takes from it.
type Source struct {
	Engine  *Engine
	Signals signal.Mask // 0 for all of the engine's
}

// New makes a Classifier. No signal may have two sources. It does not own the engines. It starts
// nothing and is cheap: a reload makes a new one over the engines that stay.
func New(sources []Source, opts Options) (*Classifier, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	keywords, err := lexical.New(opts.Keywords)
	if err != nil {
		return nil, err
	}
	c := &Classifier{opts: opts, keywords: keywords}
	for _, s := range sources {
		if s.Signals == 0 {
			s.Signals = s.Engine.signals
		}
		if lacks := s.Signals &^ s.Engine.signals; lacks != 0 {
			return nil, fmt.Errorf("bundle %q: it does not give %v", s.Engine.name, lacks.Kinds())
		}
		if twice := c.neural & s.Signals; twice != 0 {
			return nil, fmt.Errorf("bundle %q: %v come from another bundle already", s.Engine.name, twice.Kinds())
		}
		c.neural |= s.Signals
		if c.scanner == nil {
			c.scanner = s.Engine.scanner
		}
		c.sources = append(c.sources, s)
	}
	if opts.Patterns && c.neural.Has(signal.PII) {
		return nil, errors.New("pii comes from a bundle and from patterns alone")
	}
	return c, nil
}

// Signals returns the kinds that Extract can compute now.
func (c *Classifier) Signals() signal.Mask {
	m := LexicalKinds
	for _, s := range c.sources {
		if s.Engine.Ready() {
			m |= s.Signals
		}
	}
	if c.opts.Patterns {
		m |= signal.MaskOf(signal.PII)
	}
	if c.opts.Intents != nil && m.Has(signal.Embedding) {
		m |= signal.MaskOf(signal.Intent)
	}
	return m
}

// Degraded names what does not work as configured, in words for people; empty when all is well.
func (c *Classifier) Degraded() []string {
	var lost signal.Mask
	for _, s := range c.sources {
		if !s.Engine.Ready() {
			lost |= s.Signals
		}
	}
	if c.opts.Intents != nil && lost.Has(signal.Embedding) {
		lost |= signal.MaskOf(signal.Intent)
	}
	out := make([]string, 0, lost.Len())
	for _, k := range lost.Kinds() {
		out = append(out, "no model for "+k.String())
	}
	return out
}

// Thresholds returns the threshold of every task with labels, as its bundle gives it: the probability
// from which its answer counts, in (0,1]. The caller owns the map.
func (c *Classifier) Thresholds() map[signal.Kind]float64 {
	out := make(map[signal.Kind]float64)
	for _, s := range c.sources {
		for i := range s.Engine.tasks {
			if t := &s.Engine.tasks[i]; s.Signals.Has(t.kind) && t.Kind != bundle.Embedding {
				out[t.kind] = t.Threshold
			}
		}
	}
	return out
}

// Extract sets every kind of need that set does not have yet to known or unknown: unknown with
// no_model for kinds that nothing here computes, with no_text where there is nothing to read. For
// intent it sets embedding as well. It keeps neither text nor set, and what it stored is not changed
// afterwards. It returns soon after ctx ends.
func (c *Classifier) Extract(ctx context.Context, text *signal.Text, need signal.Mask, set *signal.Set) {
	c.extract(ctx, newRequest(text, bestWindows), need, set)
}

// ExtractAll is Extract with safety signals that read every window of the longest prompt, which takes
// as long as it takes, up to Options.Timeout.
func (c *Classifier) ExtractAll(ctx context.Context, text *signal.Text, need signal.Mask, set *signal.Set) {
	c.extract(ctx, newRequest(text, everyWindow), need, set)
}

func (c *Classifier) extract(ctx context.Context, req *request, need signal.Mask, set *signal.Set) {
	need &^= set.Have()
	req.scanner = c.scanner
	if c.opts.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.opts.Timeout)
		defer cancel()
	}
	c.scan(ctx, req, need, set)
	neural := need & c.neural
	if need.Has(signal.Intent) && c.opts.Intents != nil {
		neural |= signal.MaskOf(signal.Embedding) & c.neural &^ set.Have()
	}
	if neural != 0 {
		c.runEngines(ctx, req, neural, set)
	}
	if need.Has(signal.Intent) && c.opts.Intents != nil {
		set.Values[signal.Intent] = c.intent(req, &set.Values[signal.Embedding])
	}
	set.Fail(need, signal.ReasonNoModel)
}

// scan sets the kinds that need no model.
func (c *Classifier) scan(ctx context.Context, req *request, need signal.Mask, set *signal.Set) {
	if need.Has(signal.Keyword) {
		start := time.Now()
		v := signal.Value{State: signal.Known, Source: "lexical"}
		var err error
		if v.Labels, err = c.matchKeywords(ctx, req); err != nil {
			v = unknown(&v, reasonOf(ctx, err))
		}
		v.Elapsed = time.Since(start)
		set.Values[signal.Keyword] = v
	}
	if need.Has(signal.Language) {
		set.Values[signal.Language] = detectLanguage(ctx, req)
	}
	if need.Has(signal.PII) && c.opts.Patterns {
		req.join()
		set.Values[signal.PII] = patternsOnly(ctx, req)
	}
}

// matchKeywords looks for the keyword sets in the text as written and in its normalised twin, which
// sees through zero-width characters and look-alike letters. Its error is that of ctx.
func (c *Classifier) matchKeywords(ctx context.Context, req *request) ([]string, error) {
	if len(c.opts.Keywords) == 0 {
		return nil, nil
	}
	if err := req.normalise(ctx); err != nil {
		return nil, err
	}
	if len(req.twins) == 0 {
		return c.keywords.Match(ctx, req.text)
	}
	both := signal.Text{Segments: append([]signal.Segment(nil), req.text.Segments...)}
	for _, t := range req.twins {
		both.Segments = append(both.Segments, signal.Segment{Text: t})
	}
	return c.keywords.Match(ctx, &both)
}

// runEngines sets the kinds of need. Engines write to values of their own only, so they need no lock.
func (c *Classifier) runEngines(ctx context.Context, req *request, need signal.Mask, set *signal.Set) {
	prepared := req.prepare(ctx, need)
	var mine Source // runs here
	var wg sync.WaitGroup
	for _, s := range c.sources {
		s.Signals &= need
		if s.Signals == 0 || !s.Engine.Ready() {
			continue
		}
		if prepared != nil {
			set.Fail(s.Signals, reasonOf(ctx, prepared))
			continue
		}
		if other := mine; other.Engine != nil {
			wg.Go(func() { c.run(ctx, other, req, set) })
		}
		mine = s
	}
	if mine.Engine != nil {
		c.run(ctx, mine, req, set)
	}
	wg.Wait()
}

func (c *Classifier) run(ctx context.Context, s Source, req *request, set *signal.Set) {
	if err := s.Engine.extract(ctx, req, s.Signals, &c.opts, set); err != nil {
		c.log(ctx, s.Engine, err)
	}
}

// log reports a fault that the values of a set only name. Load and lost clients are no faults.
func (c *Classifier) log(ctx context.Context, e *Engine, err error) {
	if c.opts.Logger == nil {
		return
	}
	switch why := reasonOf(ctx, err); why {
	case signal.ReasonInternal, signal.ReasonInvalid:
		c.opts.Logger.ErrorContext(ctx, "neural signals are unknown", slog.String("bundle", e.name),
			slog.String("reason", string(why)), slog.String("error", err.Error()))
	case signal.ReasonNone, signal.ReasonTimeout, signal.ReasonOverload, signal.ReasonNoModel, signal.ReasonNoText,
		signal.ReasonUndecided, signal.ReasonCanceled:
	}
}
