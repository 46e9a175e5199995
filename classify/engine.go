package classify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"signalbox/classify/bundle"
	"signalbox/classify/lean"
	"signalbox/classify/pii"
	"signalbox/classify/scan"
	"signalbox/classify/tokenize"
	"signalbox/classify/tokenize/sugarme"
	"signalbox/internal/signal"
)

// Engine is one bundle with the session that runs it: a tokenizer, a graph whose names and shapes
// were checked, a canary that passed, and a memory of its verdicts on texts. It is safe for
// concurrent use; several Classifiers may share it, at once or one after another. Use OpenEngine or
// Missing to make one.
type Engine struct {
	name         string // of the bundle
	manifest     *bundle.Manifest
	tokens       tokenize.Engine
	session      Session // nil when no graph can run
	provider     string
	tasks        []task
	signals      signal.Mask // the kinds of tasks
	lead         int         // number of special tokens at the start of a row
	specials     int         // number of special tokens in a row
	pairSpecials int         // number of special tokens in a row of two texts
	pairLead     int         // number of special tokens before the second text
	separator    []int32     // the special tokens between the texts
	scanner      scanner     // nil when the bundle has none
	turns        *lean.Head  // nil when the bundle has none
	memo         *memo       // of earlier verdicts; shared with the engines made by WithTail
	passes       sync.Pool   // of *pass
}

// scanner ranks the windows of a long text. Implementations must be safe for concurrent use.
type scanner interface {
	// Windows appends the windows of text to dst, in the order of the text; windows are size bytes
	// long and stride bytes apart. It returns ctx's error soon after ctx ends.
	Windows(ctx context.Context, text string, size, stride int, dst []scan.Window) ([]scan.Window, error)
	// Score returns how much a short text looks like an attack, in [0,1].
	Score(text string) float32
}

var _ scanner = (*scan.Scanner)(nil)

// task is a task of a bundle that is in use.
type task struct {
	*bundle.Task
	kind     signal.Kind  // NumKinds for tasks that are not signals, such as the pairs of the guard
	positive int          // index of the positive label, -1 if there is none
	decoder  *pii.Decoder // for token tasks that find personal data
	tail     *tail        // for tasks added by adapters
}

const (
	// attackKinds are the signals that look for attacks, each in the text of certain origins.
	attackKinds signal.Mask = 1<<signal.Jailbreak | 1<<signal.Injection
	// safetyKinds are the signals that read segment by segment. They share the windows that they
	// read.
	safetyKinds = attackKinds | 1<<signal.PII
)

// safety reports whether the task reads segment by segment.
func (t *task) safety() bool { return safetyKinds.Has(t.kind) }

// width returns the length of the task's output per row or token.
func (t *task) width() int {
	if t.tail != nil {
		return t.tail.width
	}
	if t.Kind != bundle.Embedding {
		return len(t.Labels)
	}
	return cmp.Or(max(t.Width, 0), t.Dims)
}

// perToken reports whether the task's output has a token dimension.
func (t *task) perToken() bool {
	return t.Kind == bundle.Token || t.Kind == bundle.Embedding && t.Pooling != "" && t.Pooling != bundle.NoPooling
}

// OpenEngine makes an Engine from a bundle and a session that runs one of its graphs. It checks the
// tokenizer, the names, types and shapes of the graph (*GraphError) and the labels of the bundle's
// canary (*CanaryError). session may be nil; the bundle's signals are then unknown (no_model). The
// Engine does not own the session: whoever opened it closes it once no Extract is running.
func OpenEngine(b *bundle.Bundle, session Session) (*Engine, error) {
	e := &Engine{name: b.Manifest.Name, manifest: &b.Manifest, session: session, memo: new(memo)}
	if session != nil {
		if err := b.Resolve(session.Inputs(), session.Outputs()); err != nil {
			return nil, fmt.Errorf("bundle %q: %w", e.name, err)
		}
	}
	var err error
	if e.tasks, err = tasksOf(&b.Manifest); err != nil {
		return nil, err
	}
	for i := range e.tasks {
		if k := e.tasks[i].kind; k < signal.NumKinds {
			e.signals |= signal.MaskOf(k)
		}
	}
	if session == nil {
		return e, nil
	}
	e.provider = session.Provider()
	if err := e.load(b); err != nil {
		return nil, fmt.Errorf("bundle %q: %w", e.name, err)
	}
	if err := e.checkGraph(); err != nil {
		return nil, err
	}
	if err := e.runCanary(); err != nil {
		return nil, err
	}
	return e, nil
}

// load reads the files of the bundle that the engine itself uses.
func (e *Engine) load(b *bundle.Bundle) error {
	data, err := b.Tokenizer()
	if err != nil {
		return err
	}
	if e.tokens, err = tokenize.Open(b.Manifest.Tokenizer.Engine, data, sugarme.Alternative()); err != nil {
		return err
	}
	if err := b.CheckVocabulary(e.tokens.VocabSize()); err != nil {
		return err
	}
	e.specials, e.pairSpecials = e.tokens.Specials(), e.tokens.PairSpecials()
	e.measureRows()
	if err := e.loadScan(b); err != nil {
		return err
	}
	return e.loadTurns(b)
}

func (e *Engine) loadScan(b *bundle.Bundle) error {
	data, err := b.Scan()
	if errors.Is(err, bundle.ErrNoScan) {
		return nil
	}
	if err != nil {
		return err
	}
	s, err := scan.Load(data)
	if err != nil {
		return err
	}
	e.scanner = s
	return nil
}

// tellsTurns reports whether the engine computes the inputs of its head for turns.
func (e *Engine) tellsTurns() bool {
	t := e.taskOf(signal.Embedding)
	return e.turns != nil && t != nil && t.Dims == e.turns.Dims()
}

// ofTurns returns an engine whose embedding is the turnVector. It shares everything else with e.
func (e *Engine) ofTurns() *Engine {
	out := e.clone()
	out.taskOf(signal.Embedding).kind = turnVector
	out.signals = out.signals&^(1<<signal.Embedding) | 1<<turnVector
	return out
}

func (e *Engine) loadTurns(b *bundle.Bundle) error {
	data, err := b.Turns()
	if errors.Is(err, bundle.ErrNoTurns) {
		return nil
	}
	if err != nil {
		return err
	}
	e.turns, err = lean.LoadHead(data)
	return err
}

// measureRows determines where the tokenizer puts special tokens.
func (e *Engine) measureRows() {
	const first, second = -1, -2 // ids that no tokenizer produces
	e.lead = slices.Index(e.tokens.AppendRow(nil, []int32{first}), first)
	row, _ := e.tokens.AppendPair(nil, nil, []int32{first}, []int32{second})
	from, to := slices.Index(row, first), slices.Index(row, second)
	e.pairLead = to
	e.separator = nil
	if from < to {
		e.pairLead-- // the first text is not a special token
		for _, id := range row[from+1 : to] {
			e.separator = append(e.separator, int32(id))
		}
	}
}

// Missing returns an engine in place of a bundle that could not be opened: its signals are unknown
// (no_model), and all others work without them.
func Missing(name string, signals signal.Mask) *Engine {
	return &Engine{name: name, signals: signals, memo: new(memo)}
}

// Name returns the name of the bundle.
func (e *Engine) Name() string { return e.name }

// Signals returns the kinds that the engine is responsible for, whether it can compute them or not.
func (e *Engine) Signals() signal.Mask { return e.signals }

// Ready reports whether the engine can compute its signals.
func (e *Engine) Ready() bool { return e.session != nil }

// taskOf returns the task that computes k, or nil.
func (e *Engine) taskOf(k signal.Kind) *task {
	for i := range e.tasks {
		if e.tasks[i].kind == k {
			return &e.tasks[i]
		}
	}
	return nil
}

// tasksOf binds the tasks of a manifest to signals. A task that is not a signal of this package, or
// whose type does not suit its signal, is an error.
func tasksOf(m *bundle.Manifest) ([]task, error) {
	tasks := make([]task, 0, len(m.Tasks))
	for i := range m.Tasks {
		t := task{Task: &m.Tasks[i], positive: -1}
		if !t.bind() {
			return nil, fmt.Errorf("bundle %q: tasks[%d]: no signal %q of kind %s is known", m.Name, i, t.Name, t.Kind)
		}
		t.positive = slices.Index(t.Labels, t.Positive)
		if t.Kind == bundle.Token && !t.Judges() {
			var err error
			if t.decoder, err = pii.NewDecoder(t.Labels); err != nil {
				return nil, fmt.Errorf("bundle %q: tasks[%d]: %w", m.Name, i, err)
			}
			if t.Latin {
				t.decoder.LatinAlone()
			}
		}
		tasks = append(tasks, t)
	}
	return tasks, nil
}

// ModelKinds are the signals that a task of a model can provide.
const ModelKinds signal.Mask = GivenKinds | 1<<signal.PII | 1<<signal.Embedding

// GivesSignal reports whether an Engine can provide the signal that the task is named after.
func GivesSignal(t *bundle.Task) bool {
	bound := task{Task: t}
	return bound.bind() && ModelKinds.Has(bound.kind)
}

// bind sets the task's signal. It reports whether there is a signal of that name for this type of
// task.
func (t *task) bind() bool {
	kind, ok := signal.ParseKind(t.Name)
	t.kind = kind
	if !ok {
		return t.Kind == bundle.Pair || t.Judges()
	}
	switch kind { //nolint:exhaustive // the others come from no bundle
	case signal.Domain, signal.Complexity, signal.FactCheck:
		return t.Kind == bundle.Sequence
	case signal.Jailbreak, signal.Injection:
		return t.Kind == bundle.Sequence && t.Positive != ""
	case signal.PII:
		return t.Kind == bundle.Token && !t.Judges()
	case signal.Embedding:
		return t.Kind == bundle.Embedding
	}
	return false
}

// extract computes the kinds of need in one pass and settles each of them in g. If foreign is set,
// it looks for attacks only in texts of other languages. Its error is the reason why kinds are
// unknown.
func (e *Engine) extract(ctx context.Context, g *gather, need signal.Mask, foreign bool,
	o *Options,
) (err error) {
	start := time.Now()
	p, ok := e.passes.Get().(*pass)
	if !ok {
		p = new(pass)
	}
	p.reset(e, g.req, o)
	p.g, p.begun, p.foreign = g, start, foreign
	defer func() {
		if v := recover(); v != nil {
			err = recovered(v)
			if need.Has(signal.Embedding) {
				need |= signal.MaskOf(signal.Intent) | g.c.made()
			}
			g.fail(need, signal.ReasonInternal)
			g.narrow()
		}
	}()
	if err = p.plan(ctx, need); err == nil {
		err = p.run(ctx)
	}
	why := reasonOf(ctx, err)
	p.finish(ctx, need, why)
	p.keepParts(ctx, why)
	if p.small() {
		p.release()
		e.passes.Put(p)
	}
	return err
}

// LatinAlone reports whether the embedding only covers words in the Latin script.
func (e *Engine) LatinAlone() bool {
	t := e.taskOf(signal.Embedding)
	return t != nil && t.Latin
}

// Embed returns the L2-normalised vectors of texts, [len(texts)][dims], which the caller owns. Its
// errors are those of the session, an *outputError for a vector without direction, and ctx's.
func (e *Engine) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	o := DefaultOptions()
	out := make([][]float32, len(texts))
	for i, text := range texts {
		var set signal.Set
		t := singleText(text)
		embedding := signal.MaskOf(signal.Embedding)
		g := newGather(nil, newRequest(&t, everyWindow, &o), embedding, &set, nil, nil)
		err := e.extract(ctx, g, embedding, false, &o)
		v := set.Value(signal.Embedding)
		switch {
		case err != nil:
			return nil, fmt.Errorf("embed text %d: %w", i, err)
		case v.State != signal.Known:
			return nil, fmt.Errorf("embed text %d: the vector is unknown (%s)", i, v.Reason)
		}
		out[i] = v.Vector
	}
	return out, nil
}

// singleText returns a text as the only message of a user.
func singleText(text string) signal.Text {
	return signal.Text{LastUser: text, Segments: []signal.Segment{{Role: "user", Text: text}}}
}
