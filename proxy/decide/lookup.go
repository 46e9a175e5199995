package decide

import (
	"context"
	"errors"
	"time"

	"signalbox/internal/signal"
	"signalbox/memory/cache"
	"signalbox/proxy/recall"
)

// Embed computes the embedding of the last question, unless the decision already has it.
func (d *Decision) Embed(ctx context.Context) {
	need := signal.MaskOf(signal.Embedding)
	if d.Set.Have()&need != 0 || d.Base.Signals.Signals()&need == 0 {
		return
	}
	if d.Text.Segments == nil {
		d.Text = d.Request.Text()
	}
	asked := time.Now()
	d.Base.Signals.Extract(ctx, &d.Text, need, d.Set)
	d.Set.Fail(need, signal.ReasonInternal)
	d.Classified += time.Since(asked)
	d.Elapsed += time.Since(asked)
}

// Similar finds the cached response to an equivalent question from one of the models that the
// request may go to now. When there is none, err is that of the last lookup.
func (d *Decision) Similar(ctx context.Context) (hit cache.Hit, ok bool, err error) {
	v, c := d.Vector(), d.Base.Caching
	if v == nil {
		return hit, false, errNoVector
	}
	ctx, done := d.Lookup.Within(ctx, c)
	defer done()
	for _, model := range d.Eligible() {
		hit, err = c.Cache.Similar(ctx, &d.Lookup.ID, c.Partition(model, d.Action), v)
		if err == nil && d.Base.ByName[hit.Model] != nil {
			return hit, true, nil
		}
	}
	return hit, false, err
}

// errNoVector means that the last question has no embedding to compare.
var errNoVector = errors.New("no embedding of the question")

// Eligible lists the models whose cached responses a request may get: the model that it would go
// to, or all candidates when weights draw the model.
func (d *Decision) Eligible() []string {
	if d.Arm == ArmCanary {
		return nil // the canary's responses are not cached, and cached ones are not its own
	}
	ranked := d.Base.Chooser.Rank(d.ChoiceRequest())
	d.Base.preferConversation(d, ranked)
	out := make([]string, 0, len(ranked))
	for i := range ranked {
		if ranked[i].Out {
			continue
		}
		if out = append(out, ranked[i].Name); d.Action.By != "weight" && d.Action.Escalate == nil {
			break
		}
	}
	return out
}

// lookUp computes the signal cache: the similarity of the nearest equivalent question that has a
// response from any model that the rules lead to; 0 if there is none.
func (d *Decision) lookUp(ctx context.Context) {
	v := signal.Value{State: signal.Known, Source: recall.Semantic}
	defer func() { d.Set.Put(signal.Cache, v) }()
	m, c := d.Lookup, d.Base.Caching
	if m == nil || m.Fresh || m.ID.Similar != cache.Eligible {
		return
	}
	e := d.Set.Value(signal.Embedding)
	if e.State != signal.Known {
		v = signal.Value{State: signal.Unknown, Reason: e.Reason, Elapsed: e.Elapsed}
		return
	}
	begun := time.Now()
	ctx, done := m.Within(ctx, c)
	defer done()
	for _, model := range d.Base.Models {
		for action := range c.Treatments {
			hit, err := c.Cache.Similar(ctx, &m.ID, c.Partition(model.Name, action), e.Vector)
			if err == nil && hit.Similarity > v.Score {
				v.Label, v.Score = model.Name, min(hit.Similarity, 1)
			}
		}
	}
	v.Elapsed = e.Elapsed + time.Since(begun)
}
