// Package classify turns the text of a request into signals: keywords and its language by scanning
// it, the neural signals by one pass of each bundle's graph, private intents by comparing it with
// examples. It knows labels, probabilities, windows and tokens. It knows no HTTP, no rules and no
// native code: graphs run behind the Session interface, and without a Session every neural signal
// is unknown, never a default label.
//
// # What is read
//
// Domain, complexity, factcheck, embedding and intent are about the request: they read
// Text.LastUser, in one row. But for the embedding they, and the language, take over what the turns
// of Text.Before were about as far as the last one follows them, see package lean: Value.Leans.
// What does not fit into one is compressed to a skeleton, see package compress, of as many tokens
// as the bundle says.
//
// Jailbreak and injection look for attacks in what somebody said: each in the text of some origins,
// Options.Origins, and beside them of those of Options.Read, on which there are verdicts alone.
// What a user's message shows, see package origin, is data as well as a part of the message:
// jailbreak reads all of the message, injection what is shown. Text of OriginAny is read by both as
// it is. Pii reads every segment that has text, whoever said it. None of them reads a skeleton, and
// attacks are looked for in the normalised twin of a text as well, where that differs, see package
// views.
//
// These three read text by text, so that what they say of one depends on nothing else. A text of up
// to three windows is read whole. Of a longer one, and of its twin, a linear model scans all, see
// package scan, and the graph reads the windows that the scan puts first: 3 of 11,000 characters,
// 10 of 50,000 tokens and more, and 3 of a twin, among those that are not in the text as well. Pii
// reads these of the text and two of those with the most that may be personal data, or, where
// nobody looks for attacks, as many of the latter. Patterns of personal data are looked for in the
// whole text in any case. Value.Windows and Value.Read say how many windows cover what a signal
// speaks for and how many of them were read. ExtractAll reads every window.
//
// What an engine said of a text it remembers, see Options.Memo: a turn of a long conversation costs
// its new text. A conversation that is new as a whole is read up to Options.Windows windows, or as
// many tokens in shorter rows: the newest text first, then those in which the scan finds most, and
// what was left out is not remembered. In later turns it has its chance.
//
// The windows of a text give one probability: that of the window with the greatest, or as
// bundle.Document says. Of several texts the greatest counts: no text beside an attack clears it.
// The label is the positive one exactly from the threshold of the task on.
//
// # One pass a bundle
//
// All kinds of one Extract that come from one bundle share a pass. Windows with equal tokens become
// one row, so a short request of a single message is one row and one run. Rows of similar length
// are batched, up to Options.MaxBatch; the context is checked between runs. Bundles run beside each
// other, and the fault of one makes only its own signals unknown. A source for other languages than
// English can stand beside one for all texts, see Source.
//
// # What ends early
//
// Options.Timeout bounds all of an Extract, Options.Timeouts a signal: one that is late is unknown,
// the others go on. With ExtractWhile the caller says what still matters whenever something came
// in. Either way rows that nobody waits for any more are not run, and a run that works for nobody
// is cancelled. A task is done with its last row, whatever the pass still runs for others; rows of
// tasks with the earliest deadline come first. The windows of one safety signal are never cut short
// by what the first of them say: its value is made of all that were chosen, and every test of it,
// an upper bound too, is meant for that.
//
// # Concurrency
//
// A Classifier is immutable, its live intents and what its engines remember aside, and safe for
// concurrent use. Extract works on the caller's goroutine, starts one more for every further bundle
// that it needs, and waits for them and for the deadlines that have passed, cancelled ones
// included. Nothing outlives it, and no lock is held while a graph runs.
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
	foreign  signal.Mask // those of them that another source gives for other languages
	scanner  scanner     // of the first engine that has one; may be nil
	turns    *lean.Head  // of the engine that gives the embedding; may be nil
	abroad   *Engine     // the one for other languages, if it has a head for turns; may be nil
	subjects *subjects   // what conversations are about; nil for none
}

// Source is an engine and the signals that a Classifier takes from it.
type Source struct {
	Engine  *Engine
	Signals signal.Mask // 0 for all of the engine's
	// Foreign: it serves texts in other languages than English, beside a source that serves all. Of
	// the request it gives ForeignTopics when the last user message is in such a language: Domain
	// together with the other source, by the geometric mean of the probabilities, the rest in its
	// place. Attacks it looks for in the texts that are, as the other source does as well: the
	// higher score counts, that of the other source lowered by foreignDoubt.
	Foreign bool
}

// ForeignTopics are the kinds about a request that a foreign source can give. Embeddings are none
// of them: those of two models cannot be compared.
const ForeignTopics signal.Mask = 1<<signal.Domain | 1<<signal.Complexity | 1<<signal.FactCheck

// ForeignKinds are all kinds that a foreign source can give.
const ForeignKinds = ForeignTopics | attackKinds

// New makes a Classifier. No signal may have two sources, unless one of them is foreign. It does
// not own the engines. It starts nothing and is cheap: a reload makes a new one over the engines
// that stay.
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

// take adds a source.
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

// Degraded names what does not work as configured, in words for people; empty when all is well.
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

// Extract sets every kind of need that set does not have yet to known or unknown: unknown with
// no_model for kinds that nothing here computes, with no_text where there is nothing to read. For
// what is made of the embedding it sets that as well. It keeps neither text nor set, and what it
// stored is not changed afterwards. It returns soon after ctx ends.
func (c *Classifier) Extract(ctx context.Context, text *signal.Text, need signal.Mask, set *signal.Set) {
	c.extract(ctx, newRequest(text, bestWindows, &c.opts), need, set, nil)
}

// ExtractAll is Extract with safety signals that read every window of the longest prompt, which
// takes as long as it takes, up to Options.Timeout.
func (c *Classifier) ExtractAll(ctx context.Context, text *signal.Text, need signal.Mask, set *signal.Set) {
	c.extract(ctx, newRequest(text, everyWindow, &c.opts), need, set, nil)
}

// ExtractWhile is Extract for a caller who can tell early that some kinds do not matter any more.
// Each time that kinds came in and others did not yet, it calls still, which returns the kinds that
// still matter, given what set holds by then. Work for kinds outside of them is cancelled, and set
// is left without a value of them. What mattered once and does not now is not taken up again. still
// is called by one goroutine at a time, not always the caller's, and may read set; outside of it
// set is not to be touched before ExtractWhile returns.
func (c *Classifier) ExtractWhile(ctx context.Context, text *signal.Text, need signal.Mask, set *signal.Set, still func() signal.Mask) {
	c.extract(ctx, newRequest(text, bestWindows, &c.opts), need, set, still)
}

// ExtractAllWhile is ExtractAll as ExtractWhile is Extract.
func (c *Classifier) ExtractAllWhile(ctx context.Context, text *signal.Text, need signal.Mask, set *signal.Set, still func() signal.Mask) {
	c.extract(ctx, newRequest(text, everyWindow, &c.opts), need, set, still)
}

func (c *Classifier) extract(ctx context.Context, req *request, need signal.Mask, set *signal.Set, still func() signal.Mask) {
	need &^= set.Have()
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	c.extractTurn(ctx, req, need, set, still, c.open(ctx, req, need))
}

// bounded ends with Options.Timeout.
func (c *Classifier) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.opts.Timeout <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, c.opts.Timeout)
}

// extractTurn is extract for a turn with a history; t is nil where it stands for itself.
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

// scans are the kinds that need no model.
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

// matchKeywords looks for the keyword sets in the text as written and in its normalised twin, which
// sees through zero-width characters and look-alike letters. Its error is that of ctx.
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

// names are those of the configuration's own classifiers.
func (c *Classifier) names() signal.Names {
	out := make(signal.Names, len(c.opts.Own))
	for i := range c.opts.Own {
		out[i] = c.opts.Own[i].Name
	}
	return out
}

// runAll settles the kinds that models give: those here beside those elsewhere.
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

// runEngines settles the kinds that engines give. Engines run beside each other, one of them here.
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
	if len(work) > 1 && !g.watched { // others may be reading it
		g.watched = true
	}
	var wg sync.WaitGroup
	for _, s := range work[1:] {
		wg.Go(func() { c.run(ctx, s, g) })
	}
	c.run(ctx, work[0], g)
	wg.Wait()
}

// share returns the sources that have something to do, with the signals that are taken from them.
func (c *Classifier) share(g *gather) []Source {
	var work []Source
	// what a foreign source gives in place of another, and beside it
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

// ready returns the kinds of the sources for all texts that can run.
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
