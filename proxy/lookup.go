package proxy

import (
	"context"
	"errors"
	"time"

	"signalbox/internal/signal"
	"signalbox/memory/cache"
	"signalbox/proxy/recall"
)

// embed extracts the embedding of the last question, unless it came with the signals of the
// decision.
func (d *decision) embed(ctx context.Context) {
	need := signal.MaskOf(signal.Embedding)
	if d.set.Have()&need != 0 || d.state.signals.Signals()&need == 0 {
		return
	}
	if d.text.Segments == nil {
		d.text = d.request.Text()
	}
	asked := time.Now()
	d.state.signals.Extract(ctx, &d.text, need, d.set)
	d.set.Fail(need, signal.ReasonInternal)
	d.classified += time.Since(asked)
	d.elapsed += time.Since(asked)
}

// similar finds the response to a question that asks the same, of the models that the request may
// go to now. Without one err is that of the last look-up.
func (d *decision) similar(ctx context.Context) (hit cache.Hit, ok bool, err error) {
	v, c := d.vector(), d.state.caching
	if v == nil {
		return hit, false, errNoVector
	}
	ctx, done := d.lookup.Within(ctx, c)
	defer done()
	for _, model := range d.eligible() {
		hit, err = c.Cache.Similar(ctx, &d.lookup.ID, c.Partition(model, d.Action), v)
		if err == nil && d.state.byName[hit.Model] != nil {
			return hit, true, nil
		}
	}
	return hit, false, err
}

// errNoVector: the last question has no embedding to be compared by.
var errNoVector = errors.New("no embedding of the question")

// eligible lists the models whose responses a request may get: the one that it would go to, or,
// where weights draw one, all of them.
func (d *decision) eligible() []string {
	if d.inArm == armCanary {
		return nil // its answers are not kept, and others are not its
	}
	ranked := d.state.chooser.Rank(d.choiceRequest())
	d.state.preferConversation(d, ranked)
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

// lookUp computes the signal cache: the similarity of the nearest question that asks the same and
// has a response, of any model that answers under one of the rules, and 0 without one.
func (d *decision) lookUp(ctx context.Context) {
	v := signal.Value{State: signal.Known, Source: recall.Semantic}
	defer func() { d.set.Put(signal.Cache, v) }()
	m, c := d.lookup, d.state.caching
	if m == nil || m.Fresh || m.ID.Similar != cache.Eligible {
		return
	}
	e := d.set.Value(signal.Embedding)
	if e.State != signal.Known {
		v = signal.Value{State: signal.Unknown, Reason: e.Reason, Elapsed: e.Elapsed}
		return
	}
	begun := time.Now()
	ctx, done := m.Within(ctx, c)
	defer done()
	for _, model := range d.state.models {
		for action := range c.Treatments {
			hit, err := c.Cache.Similar(ctx, &m.ID, c.Partition(model.Name, action), e.Vector)
			if err == nil && hit.Similarity > v.Score {
				v.Label, v.Score = model.Name, min(hit.Similarity, 1)
			}
		}
	}
	v.Elapsed = e.Elapsed + time.Since(begun)
}

// LearnQuestion takes in a question that another replica has the response to.
func (p *Proxy) LearnQuestion(key cache.Key, q cache.Question, ttl time.Duration) {
	st := p.acquire()
	defer st.release()
	st.answers.Learn(key, q, ttl)
}
