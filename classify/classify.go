// Package classify computes signals from the text of a request: keywords and the language by
// scanning the text, neural signals with one pass of each bundle's graph, and private intents by
// comparison with examples. It handles labels, probabilities, windows and tokens. It contains no
// HTTP, no rules and no native code: graphs run behind the Session interface. Without a Session
// every neural signal is unknown; it never has a default label.
//
// # Which text is read
//
// Domain, complexity, factcheck, embedding and intent describe the request. They read Text.LastUser
// in one row. A text too long for a row is compressed to a skeleton of as many tokens as the bundle
// specifies, see package compress. These signals except the embedding, and the language, also take
// over the subject of the turns in Text.Before to the degree that the last turn follows them; see
// package lean and Value.Leans.
//
// Jailbreak and injection look for attacks. Each covers the text of the origins in Options.Origins.
// Text of the additional origins in Options.Read only gets verdicts. Material that a user's message
// quotes or pastes (see package origin) is data as well as part of the message: jailbreak reads the
// whole message, injection the pasted parts. Both read text of OriginAny unchanged. Pii reads every
// segment that has text, regardless of its origin. None of these signals reads a skeleton. Attacks
// are also looked for in the normalised twin of a text if it differs from the text, see package
// views.
//
// These three signals read each text separately, so the verdict on one text depends on no other. A
// text of up to three windows is read completely. Of a longer text, and of its twin, a linear model
// scans everything (see package scan) and the graph reads the windows that the scan ranks first: 3
// for 11,000 characters, 10 for 50,000 tokens and more, and 3 windows of the twin that do not occur
// in the text. Pii reads the windows chosen from the text and two more with the most possible
// personal data; if no signal looks for attacks, it reads as many windows as they would, all chosen
// by that measure. Patterns of personal data are always matched against the whole text.
// Value.Windows and Value.Read count the windows that cover the text of a signal and those that
// were read. ExtractAll reads every window.
//
// An engine remembers its verdicts on texts, see Options.Memo: a turn of a long conversation only
// costs its new text. If a whole conversation is new, at most Options.Windows windows are read, or
// the same number of tokens in shorter rows: the newest text first, then the windows that the scan
// ranks highest. Text that was left out is not remembered, so later turns may read it.
//
// The probability of a text is that of its highest window, or the result of bundle.Document. The
// probability of several texts is the highest one: a harmless text does not offset an attack. The
// label is the positive one exactly if the probability reaches the threshold of the task.
//
// # One pass per bundle
//
// All kinds that one Extract needs from one bundle share a pass. Windows with equal tokens become
// one row, so a short request with a single message is one row and one run. Rows of similar length
// are batched, up to Options.MaxBatch; the context is checked between runs. Bundles run in
// parallel, and a fault in one makes only its own signals unknown. A source for other languages
// than English can be used beside one for all texts, see Source.
//
// # What ends early
//
// Options.Timeout limits the whole Extract, Options.Timeouts a single signal: a late signal is
// unknown, the others continue. With ExtractWhile the caller reports which kinds still matter
// whenever new values arrive. In both cases rows that no task waits for any more are not run, and a
// run that no task needs is cancelled. A task is done after its last row, even if the pass still
// runs rows of others; rows of the tasks with the earliest deadline come first. The windows of one
// safety signal are never cut short because of the results of the first of them: the value is
// computed from all selected windows, and every condition on it, including an upper bound, refers
// to that value.
//
// # Concurrency
//
// A Classifier is immutable, except for its live intents and the memories of its engines, and safe
// for concurrent use. Extract works on the caller's goroutine, starts one more for every further
// bundle that it needs, and waits for them and for the deadline timers that have fired, also after
// a cancellation. No goroutine outlives it, and no lock is held while a graph runs.
package classify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"signalbox/classify/lean"
	"signalbox/classify/lexical"
	"signalbox/internal/signal"
)

// LexicalKinds are the kinds that every Classifier computes because they need no model.
const LexicalKinds signal.Mask = 1<<signal.Keyword | 1<<signal.Language

// PatternsModel is the model name reported for personal data that was found with patterns alone.
const PatternsModel = "patterns"

// Classifier extracts signals. Make it with New.
type Classifier struct {
	opts     Options
	keywords *lexical.Matcher
	sources  []Source
	neural   signal.Mask // the kinds that sources provide
	foreign  signal.Mask // those of them that a second source provides for other languages
	scanner  scanner     // of the first engine that has one; may be nil
	turns    *lean.Head  // of the engine that provides the embedding; may be nil
	abroad   *Engine     // the engine for other languages, if it has a head for turns; may be nil
	subjects *subjects   // subjects of conversations; nil if none are kept
}

// Source is an engine and the signals that a Classifier takes from it.
type Source struct {
	Engine  *Engine
	Signals signal.Mask // 0: all signals of the engine
	// Foreign marks a source for texts in other languages than English, used beside a source for
	// all texts. It provides ForeignTopics if the last user message is in such a language: Domain
	// is the geometric mean of the probabilities of both sources, the other kinds come from this
	// source alone. It looks for attacks in the texts in such languages, as the other source does:
	// the higher score counts, after the score of the other source has been lowered by
	// foreignDoubt.
	Foreign bool
}

// ForeignTopics are the kinds describing a request that a foreign source can provide. The embedding
// is not one of them because embeddings of two models cannot be compared.
const ForeignTopics signal.Mask = 1<<signal.Domain | 1<<signal.Complexity | 1<<signal.FactCheck

// ForeignKinds are all kinds that a foreign source can provide.
const ForeignKinds = ForeignTopics | attackKinds

// New returns a Classifier. No signal may have two sources, unless one of them is foreign. The
// Classifier does not own the engines. New starts no goroutines and is cheap: a reload calls it
// again with the engines that remain.
func New(sources []Source, opts Options) (*Classifier, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	keywords, err := lexical.New(opts.Keywords)
	if err != nil {
		return nil, err
	}
	c := &Classifier{opts: opts, keywords: keywords, subjects: newSubjects(opts.Memo)}
	for _, s := range sources {
		if err := c.take(s); err != nil {
			return nil, err
		}
	}
	if alone := c.foreign &^ c.neural; alone != 0 {
		return nil, fmt.Errorf("%v come from a bundle for other languages alone", alone.Kinds())
	}
	if err := errors.Join(c.sameLabels(), c.onlyGiven()); err != nil {
		return nil, err
	}
	if opts.Patterns && c.neural.Has(signal.PII) {
		return nil, errors.New("pii comes from a bundle and from patterns alone")
	}
	return c, nil
}

// take adds a source to c.
func (c *Classifier) take(s Source) error {
	if s.Signals == 0 {
		if s.Signals = s.Engine.signals; s.Foreign {
			s.Signals &= ForeignKinds
		}
	}
	if lacks := s.Signals &^ s.Engine.signals; lacks != 0 {
		return fmt.Errorf("bundle %q: it does not give %v", s.Engine.name, lacks.Kinds())
	}
	have := &c.neural
	if s.Foreign {
		have = &c.foreign
		if other := s.Signals &^ ForeignKinds; other != 0 {
			return fmt.Errorf("bundle %q: %v cannot come from a bundle for other languages",
				s.Engine.name, other.Kinds())
		}
	}
	if twice := *have & s.Signals; twice != 0 {
		return fmt.Errorf("bundle %q: %v come from another bundle already", s.Engine.name,
			twice.Kinds())
	}
	*have |= s.Signals
	if c.scanner == nil {
		c.scanner = s.Engine.scanner
	}
	switch {
	case s.Foreign && s.Engine.tellsTurns():
		c.abroad = s.Engine
		s.Engine, s.Signals = s.Engine.ofTurns(), s.Signals|1<<turnVector
	case s.Signals.Has(signal.Embedding):
		c.turns = s.Engine.turns
	}
	c.sources = append(c.sources, s)
	return nil
}

// Signals returns the kinds that Extract can compute now.
func (c *Classifier) Signals() signal.Mask {
	m := LexicalKinds
	for _, s := range c.sources {
		if s.Engine.Ready() && !s.Foreign {
			m |= s.Signals
		}
	}
	if c.opts.Patterns {
		m |= signal.MaskOf(signal.PII)
	}
	if m.Has(signal.Embedding) {
		m |= c.made()
	}
	return m | c.opts.judges() | c.opts.given() | c.opts.worded()
}

// Degraded lists, in words for operators, what does not work as configured; empty if everything
// does.
func (c *Classifier) Degraded() []string {
	var lost signal.Mask
	var out []string
	for _, s := range c.sources {
		switch {
		case s.Engine.Ready():
		case s.Foreign:
			out = append(out, fmt.Sprintf("no model %q for other languages", s.Engine.name))
		default:
			lost |= s.Signals
		}
	}
	if lost.Has(signal.Embedding) {
		lost |= c.made()
	}
	for i := range c.opts.Own {
		kind := signal.MaskOf(ownKind(i))
		if c.opts.Own[i].Head == nil && c.opts.Own[i].Judge == nil && c.Signals()&kind == 0 {
			lost |= kind
		}
	}
	names := c.names()
	for _, k := range lost.Kinds() {
		out = append(out, "no model for "+names.Of(k))
	}
	return out
}

// Extract sets every kind of need that set does not contain yet, to known or unknown. Kinds that
// nothing here computes are unknown (no_model); kinds without text to read are unknown (no_text).
// If a kind derived from the embedding is needed, Extract also sets the embedding. It retains
// neither text nor set, and does not modify stored values afterwards. It returns soon after ctx
// ends.
func (c *Classifier) Extract(ctx context.Context, text *signal.Text, need signal.Mask, set *signal.Set) {
	c.extract(ctx, newRequest(text, bestWindows, &c.opts), need, set, nil)
}

// ExtractAll is Extract with safety signals that read every window, however long the prompt is. Its
// duration is limited by Options.Timeout only.
func (c *Classifier) ExtractAll(ctx context.Context, text *signal.Text, need signal.Mask, set *signal.Set) {
	c.extract(ctx, newRequest(text, everyWindow, &c.opts), need, set, nil)
}

// ExtractWhile is Extract for a caller that can decide early that some kinds no longer matter.
// Whenever some kinds have arrived and others have not, it calls still, which returns the kinds
// that still matter given the current contents of set. Work for other kinds is cancelled, and set
// is left without a value for them. A kind that has been dropped is not taken up again. still is
// called by one goroutine at a time, not always the caller's, and may read set. Apart from that,
// set must not be accessed before ExtractWhile returns.
func (c *Classifier) ExtractWhile(ctx context.Context, text *signal.Text, need signal.Mask, set *signal.Set, still func() signal.Mask) {
	c.extract(ctx, newRequest(text, bestWindows, &c.opts), need, set, still)
}

// ExtractAllWhile is ExtractAll with the argument still of ExtractWhile.
func (c *Classifier) ExtractAllWhile(ctx context.Context, text *signal.Text, need signal.Mask, set *signal.Set, still func() signal.Mask) {
	c.extract(ctx, newRequest(text, everyWindow, &c.opts), need, set, still)
}

func (c *Classifier) extract(ctx context.Context, req *request, need signal.Mask, set *signal.Set, still func() signal.Mask) {
	need &^= set.Have()
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	c.extractTurn(ctx, req, need, set, still, c.open(ctx, req, need))
}

// bounded returns a context that ends after Options.Timeout.
func (c *Classifier) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.opts.Timeout <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, c.opts.Timeout)
}

// extractTurn is extract for a turn with the history t; t is nil for a turn without one.
func (c *Classifier) extractTurn(ctx context.Context, req *request, need signal.Mask, set *signal.Set, still func() signal.Mask, t *history) {
	req.scanner = c.scanner
	g := newGather(c, req, need, set, still, t)
	defer g.close()
	g.watch(&c.opts.Timeouts)
	if v := set.Value(signal.Embedding); v.State != signal.NotExtracted {
		for _, k := range (need & c.made()).Kinds() {
			g.store(k, c.derive(k, req, v))
		}
	}
	g.fail(need&^c.Signals(), signal.ReasonNoModel)
	c.scan(ctx, g)
	g.narrow()
	c.runAll(ctx, g)
	g.finish()
	g.fail(need, signal.ReasonNoModel)
}

// scans returns the kinds that need no model.
func (c *Classifier) scans() signal.Mask {
	m := LexicalKinds | c.opts.worded()
	if c.opts.Patterns {
		m |= signal.MaskOf(signal.PII)
	}
	return m
}

// scan settles the kinds that need no model.
func (c *Classifier) scan(ctx context.Context, g *gather) {
	req := g.req
	if g.wanted(signal.MaskOf(signal.Language)) != 0 {
		g.put(signal.Language, detectLanguage(ctx, req, g.history))
	}
	if keyword := signal.MaskOf(signal.Keyword); g.wanted(keyword) != 0 {
		start := time.Now()
		ctx, leave := g.enter(ctx, keyword)
		v := signal.Value{State: signal.Known, Source: "lexical"}
		var err error
		if v.Labels, err = c.matchKeywords(ctx, req); err != nil {
			v = unknown(&v, reasonOf(ctx, err))
		}
		leave()
		v.Elapsed = time.Since(start)
		g.put(signal.Keyword, v)
	}
	if personal := signal.MaskOf(signal.PII); c.opts.Patterns && g.wanted(personal) != 0 {
		ctx, leave := g.enter(ctx, personal)
		v := patternsOnly(ctx, req)
		leave()
		g.put(signal.PII, v)
	}
	for _, k := range g.wanted(c.opts.worded()).Kinds() {
		g.put(k, c.byWords(ctx, k, req))
	}
}

// matchKeywords returns the keyword sets that match the text as written or its normalised twin,
// which removes zero-width characters and replaces look-alike letters. Its error is that of ctx.
func (c *Classifier) matchKeywords(ctx context.Context, req *request) ([]string, error) {
	if len(c.opts.Keywords) == 0 {
		return nil, nil
	}
	twins, err := req.twins(ctx)
	if err != nil {
		return nil, err
	}
	if len(twins) == 0 {
		return c.keywords.Match(ctx, req.text)
	}
	both := signal.Text{Segments: append([]signal.Segment(nil), req.text.Segments...)}
	for _, t := range twins {
		both.Segments = append(both.Segments, signal.Segment{Text: t})
	}
	return c.keywords.Match(ctx, &both)
}

// names returns the names of the configuration's own classifiers.
func (c *Classifier) names() signal.Names {
	out := make(signal.Names, len(c.opts.Own))
	for i := range c.opts.Own {
		out[i] = c.opts.Own[i].Name
	}
	return out
}

// runAll settles the kinds that models provide: local engines and remote models in parallel.
func (c *Classifier) runAll(ctx context.Context, g *gather) {
	elsewhere := g.wanted(c.opts.judges() | c.opts.given())
	if elsewhere == 0 {
		c.runEngines(ctx, g)
		return
	}
	g.watched = true
	var wg sync.WaitGroup
	for _, k := range elsewhere.Kinds() {
		wg.Go(func() { c.ask(ctx, g, k) })
	}
	c.runEngines(ctx, g)
	wg.Wait()
}

// runEngines settles the kinds that engines provide. Engines run in parallel, one of them on this
// goroutine.
func (c *Classifier) runEngines(ctx context.Context, g *gather) {
	need := g.wanted(c.neural | 1<<turnVector)
	if need == 0 {
		return
	}
	c.askForeign(g.req, need)
	if err := g.prepare(ctx, need); err != nil {
		g.fail(need, reasonOf(ctx, err))
		return
	}
	work := c.share(g)
	if len(work) == 0 {
		return
	}
	if len(work) > 1 && !g.watched { // others may be reading the set
		g.watched = true
	}
	var wg sync.WaitGroup
	for _, s := range work[1:] {
		wg.Go(func() { c.run(ctx, s, g) })
	}
	c.run(ctx, work[0], g)
	wg.Wait()
}

// share returns the sources that have work to do, with the signals that are taken from them.
func (c *Classifier) share(g *gather) []Source {
	var work []Source
	// what a foreign source provides instead of another source, and together with it
	var elsewhere, joint signal.Mask
	for _, foreign := range [...]bool{true, false} {
		for _, s := range c.sources {
			if s.Foreign != foreign || !s.Engine.Ready() {
				continue
			}
			if s.Signals = g.wanted(s.Signals); foreign {
				s.Signals = g.req.foreignKinds(s.Signals)
				both := s.Signals & jointKinds & c.ready()
				elsewhere |= s.Signals & ForeignTopics &^ both
				joint |= both
			} else {
				s.Signals &^= elsewhere
			}
			if s.Signals != 0 {
				work = append(work, s)
			}
		}
	}
	g.join(joint)
	return work
}

// ready returns the kinds that the sources for all texts can currently compute.
func (c *Classifier) ready() signal.Mask {
	var m signal.Mask
	for _, s := range c.sources {
		if !s.Foreign && s.Engine.Ready() {
			m |= s.Signals
		}
	}
	return m
}

func (c *Classifier) run(ctx context.Context, s Source, g *gather) {
	if err := s.Engine.extract(ctx, g, s.Signals, s.Foreign, &c.opts); err != nil {
		c.log(ctx, s.Engine, err)
	}
}

// log reports errors that the values of a set show only as a reason. Overload and disconnected
// clients are not logged.
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
