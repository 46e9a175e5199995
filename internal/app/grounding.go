package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"signalbox/classify"
	"signalbox/classify/bundle"
	"signalbox/internal/config"
	"signalbox/internal/eval"
	"signalbox/models"
	"signalbox/proxy/guardrail"
	"signalbox/stream/check"
	"signalbox/stream/evidence"
)

// groundingFolder holds the guard's bundle beside the default one.
const groundingFolder = "grounding"

// placeGrounding opens the bundle of the model that judges claims: the one that classify.tasks
// names, else the embedded one. nil without an error says that there is none. Errors are
// *config.TaskError.
func placeGrounding(c *config.Classify) (*placement, error) {
	p := &placement{model: config.EmbeddedModel, files: models.FS, folder: groundingFolder}
	at := slices.IndexFunc(c.Tasks, func(t config.Task) bool { return t.Name == config.GroundingTask })
	if at >= 0 {
		p.model, p.entries, p.remote = c.Tasks[at].Model, []int{at}, c.Tasks[at].Remote
	}
	if p.model == config.EmbeddedModel {
		switch _, err := fs.Stat(models.FS, groundingFolder+"/"+bundle.ManifestFile); {
		case err == nil:
		case at < 0:
			return nil, nil
		default:
			return nil, &config.TaskError{Index: at, Field: "model", Err: errors.New("this binary holds no model that judges claims")}
		}
	}
	if err := p.open(c); err != nil {
		return nil, err
	}
	if p.judging() == nil {
		return nil, &config.TaskError{Index: at, Field: "model", Err: fmt.Errorf("it has neither a task for pairs nor one for tokens of responses; it has %s", strings.Join(taskNames(p.bundle), ", "))}
	}
	return p, nil
}

// judging is the task of the bundle that judges claims, nil when it has none.
func (p *placement) judging() *bundle.Task {
	tasks := p.bundle.Manifest.Tasks
	for i := range tasks {
		if tasks[i].Kind == bundle.Pair || tasks[i].Judges() {
			return &tasks[i]
		}
	}
	return nil
}

// grounding is the model that judges claims, of one configuration or of several that name the same
// one. It is opened at the first claim, or before by warm. Safe for concurrent use.
type grounding struct {
	neural *neural
	place  *placement

	once   sync.Once
	opened atomic.Pointer[judge] // nil before
}

// judge is a grounding that was opened.
type judge struct {
	loaded     *loaded
	classifier *classify.Classifier // over the bundle alone
	err        error                // why it cannot be used
}

// open opens the model at the first call.
func (g *grounding) open(ctx context.Context) *judge {
	g.once.Do(func() { g.opened.Store(g.load(context.WithoutCancel(ctx))) })
	return g.opened.Load()
}

func (g *grounding) load(ctx context.Context) *judge {
	j := &judge{loaded: g.neural.load(ctx, g.place)}
	if j.err = j.loaded.err; j.err != nil {
		return j
	}
	opts := classify.DefaultOptions()
	opts.Logger = g.neural.tel.Log
	j.classifier, j.err = classify.New([]classify.Source{{Engine: j.loaded.engine}}, opts)
	return j
}

// broken reports a model that was opened in vain.
func (g *grounding) broken() bool {
	j := g.opened.Load()
	return j != nil && j.err != nil
}

// close releases the model. Nothing may use it any more.
func (g *grounding) close() error {
	if j := g.opened.Load(); j != nil {
		return j.loaded.close()
	}
	return nil
}

// lacking says why no model judges claims, as far as is known: one that was not needed yet is taken
// for good.
func (g *grounding) lacking() string {
	switch {
	case g == nil:
		return "no model judges claims: the guard compares only numbers"
	case g.neural.missing != nil && g.place.remote.URL == "":
		return "no ONNX Runtime: the guard compares only numbers"
	}
	if g.broken() {
		return fmt.Sprintf("bundle %s cannot be used: the guard compares only numbers", g.place.bundle.Manifest.Name)
	}
	return ""
}

// verifyTime bounds the time that the embedded model takes for one text of /signalbox/v1/verify. A
// model behind a URL takes no processor time here, and its own timeouts hold.
const verifyTime = time.Second

// claims makes what the proxy checks answers with. least is the probability that marks a token; 0
// leaves what the bundle says. strict is check.Options.Strict. g may be nil.
func (g *grounding) claims(least float64, strict bool) (guardrail.Claims, error) {
	out := guardrail.Claims{Lacking: g.lacking}
	o, err := g.readers(least)
	if err != nil {
		return out, err
	}
	if g != nil && g.place.remote.URL == "" {
		o.Time = verifyTime
	}
	o.Strict = strict
	out.Checker, err = check.New(o)
	return out, err
}

// readers are those that the bundle gives a checker, none without a model.
func (g *grounding) readers(least float64) (o check.Options, err error) {
	if g == nil || g.neural.missing != nil && g.place.remote.URL == "" {
		return o, nil
	}
	task := g.place.judging()
	if task.Judges() {
		o.Marker = &marker{g, task.Name, least}
		return o, nil
	}
	labels, err := inferenceLabels(task.Labels)
	if err != nil {
		return o, fmt.Errorf("bundle %q, task %s: %w", g.place.bundle.Manifest.Name, task.Name, err)
	}
	o.Judge = &pairJudge{g, task.Name, labels}
	o.English = slices.Equal(g.place.bundle.Manifest.Languages, []string{"en"})
	o.Fusion, err = fusionOf(g.place.bundle)
	return o, err
}

// fusionOf reads how a bundle weighs what it finds; nil when it does not say.
func fusionOf(b *bundle.Bundle) (*check.Fusion, error) {
	data, err := b.Fusion()
	if errors.Is(err, bundle.ErrNoFusion) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	f, err := check.ReadFusion(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("bundle %q: %w", b.Manifest.Name, err)
	}
	return f, nil
}

// pairJudge reads premise and claim as one row.
type pairJudge struct {
	grounding *grounding
	task      string
	labels    [3]int // of entailment, neutral and contradiction; -1 where the model has none
}

var _ check.Judge = (*pairJudge)(nil)

// Judge implements check.Judge.
func (p *pairJudge) Judge(ctx context.Context, pairs []check.Pair) ([]check.Inference, error) {
	j := p.grounding.open(ctx)
	if j.err != nil {
		return nil, j.err
	}
	rows := make([]classify.Pair, len(pairs))
	for i, pair := range pairs {
		rows[i] = classify.Pair{First: pair.Premise, Second: pair.Claim}
	}
	probs, err := j.classifier.ClassifyPairs(ctx, p.task, rows)
	if err != nil {
		return nil, err
	}
	out := make([]check.Inference, len(probs))
	for i, of := range probs {
		at := func(label int) float32 {
			if label < 0 {
				return 0
			}
			return of[label]
		}
		out[i] = check.Inference{Entailment: at(p.labels[0]), Neutral: at(p.labels[1]), Contradiction: at(p.labels[2])}
	}
	return out, nil
}

// inferenceLabels finds the labels of natural language inference, and those of models that only
// know whether a claim follows: what does not is neutral.
func inferenceLabels(labels []string) ([3]int, error) {
	out := [3]int{-1, -1, -1}
	for i, l := range labels {
		switch strings.NewReplacer("-", "_", " ", "_").Replace(strings.ToLower(l)) {
		case "entailment", "entailed", "supported", "consistent", "entail":
			out[0] = i
		case "neutral", "not_entailment", "not_entailed", "unsupported", "not_supported", "inconsistent":
			out[1] = i
		case "contradiction", "contradicted", "refuted", "contradict":
			out[2] = i
		}
	}
	if out[0] < 0 || out[1] < 0 && out[2] < 0 {
		return out, fmt.Errorf("labels %s do not distinguish entailment, neutral and contradiction; set labels", strings.Join(labels, ", "))
	}
	return out, nil
}

// marker reads evidence, question and answer as one text and marks tokens of the answer.
type marker struct {
	grounding *grounding
	task      string
	least     float64
}

var _ check.Marker = (*marker)(nil)

// Mark implements check.Marker.
func (m *marker) Mark(ctx context.Context, premises []string, question, answer string) ([]check.Mark, error) {
	j := m.grounding.open(ctx)
	if j.err != nil {
		return nil, j.err
	}
	found, err := j.classifier.MarkTokens(ctx, m.task, premises, question, answer)
	if err != nil {
		return nil, err
	}
	out := make([]check.Mark, 0, len(found))
	for _, f := range found {
		if f.Score >= m.least {
			out = append(out, check.Mark(f))
		}
	}
	return out, nil
}

// prepareGrounding finds the model that judges claims for a configuration: the one in use when it
// is the same. When some route uses the guard it is opened now. nil without an error: there is
// none.
func (n *neural) prepareGrounding(ctx context.Context, cfg *config.Config) (*grounding, error) {
	p, err := placeGrounding(&cfg.Classify)
	if err != nil || p == nil {
		return nil, err
	}
	g := n.grounding
	if g == nil || g.place.key != p.key || g.broken() {
		g = &grounding{neural: n, place: p}
	}
	if !cfg.Guarded || n.missing != nil && p.remote.URL == "" {
		return g, nil // without a runtime numbers alone decide, which readyz tells
	}
	if j := g.open(ctx); j.err != nil && (n.required || n.loaded != nil && g != n.grounding && !j.loaded.again()) {
		return nil, errors.Join(j.err, g.close())
	}
	return g, nil
}

// leastMark is the threshold that the configuration gives the task; 0 leaves the bundle's.
func leastMark(c *config.Classify) float64 {
	for i := range c.Tasks {
		if c.Tasks[i].Name == config.GroundingTask {
			return c.Tasks[i].Threshold
		}
	}
	return 0
}

// defaultDoubt is 1 - support from which eval calls an answer unsupported: support is calibrated.
const defaultDoubt = 0.5

// groundingEvaluator checks answers as the proxy does. Its score is 1 - the least support of a
// claim; an answer of which no claim could be judged is unknown.
func (a *App) groundingEvaluator() eval.Classifier {
	return func(ctx context.Context, ex *eval.Example) eval.Answer {
		start := time.Now()
		report, err := a.verify(ctx, ex)
		if err != nil {
			return eval.Answer{Took: time.Since(start)}
		}
		out := eval.Answer{Positive: 1 - report.Support, Known: true, Took: time.Since(start)}
		unchecked := 0
		for i := range report.Claims {
			c := &report.Claims[i]
			switch c.Verdict {
			case check.Contradicted, check.Unsupported:
				out.Spans = append(out.Spans, eval.Span{Start: c.Runes.Start, End: c.Runes.End})
			case check.Unchecked:
				unchecked++
			case check.Supported, check.NotCheckable:
			}
		}
		out.Known = unchecked == 0 || len(out.Spans) > 0
		return out
	}
}

func (a *App) verify(ctx context.Context, ex *eval.Example) (check.Report, error) {
	sources := make([]evidence.Source, len(ex.Facts))
	for i, f := range ex.Facts {
		sources[i] = evidence.Source{Text: f, Fact: true}
	}
	e, err := evidence.New(ctx, sources, evidence.Options{MaxFacts: len(sources), MaxBytes: maxEvaluated})
	if err != nil {
		return check.Report{}, fmt.Errorf("evaluate grounding: %w", err)
	}
	return a.checker.Load().Text(ctx, e, ex.Question, ex.Answer)
}

// maxEvaluated bounds the facts of an example, in bytes.
const maxEvaluated = 16 << 20
