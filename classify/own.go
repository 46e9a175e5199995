package classify

import (
	"context"
	"errors"
	"fmt"
	"time"

	trained "signalbox/classify/head"
	"signalbox/internal/signal"
)

// Own is a classifier defined by the configuration: a head over the embedding or over n-grams
// alone, a remote model, or an adapter of a bundle, see Engine.WithTail. It reads Text.LastUser.
type Own struct {
	Name string
	Head *trained.Head // nil for classifiers without one
	// Judge is asked if there is no head. If both are nil, an engine with a tail of that kind
	// provides the classifier; without such an engine it is unknown (no_model).
	Judge Judge
}

// Judge is a remote model that labels a text. Implementations must be safe for concurrent use.
type Judge interface {
	// Judge returns the labels of a text with their probabilities in [0,1], which need not add up
	// to 1, and the label that applies, empty for none. It does not retain the text. Its errors are
	// Reasoned or wrap ctx's.
	Judge(ctx context.Context, x signal.Exchange) (signal.Judgement, error)
}

// ownKind returns the kind of the classifier at index i.
func ownKind(i int) signal.Kind { return signal.Own + signal.Kind(i) }

func checkOwn(own []Own) error {
	if len(own) > signal.MaxOwn {
		return fmt.Errorf("%d classifiers of one's own, want at most %d", len(own), signal.MaxOwn)
	}
	for i := range own {
		if own[i].Name == "" || own[i].Head != nil && own[i].Judge != nil {
			return errors.New("a classifier of one's own has a name, and a head or a judge")
		}
	}
	return nil
}

// heads returns the own classifiers that are computed from the embedding.
func (o Options) heads() signal.Mask {
	return o.ownWhere(func(x *Own) bool { return x.Head != nil && x.Head.Info().Dims > 0 })
}

// worded returns the own classifiers that are computed from n-grams alone and need no model.
func (o Options) worded() signal.Mask {
	return o.ownWhere(func(x *Own) bool { return x.Head != nil && x.Head.Info().Dims == 0 })
}

// judges returns the own classifiers that ask a remote model.
func (o Options) judges() signal.Mask {
	return o.ownWhere(func(x *Own) bool { return x.Judge != nil })
}

func (o Options) ownWhere(holds func(*Own) bool) signal.Mask {
	var m signal.Mask
	for i := range o.Own {
		if holds(&o.Own[i]) {
			m |= signal.MaskOf(ownKind(i))
		}
	}
	return m
}

// made returns the kinds that are derived from the embedding; none for a nil Classifier.
func (c *Classifier) made() signal.Mask {
	if c == nil {
		return 0
	}
	m := c.opts.heads()
	if c.opts.Intents != nil {
		m |= signal.MaskOf(signal.Intent)
	}
	return m
}

// derive returns the value of a kind that is derived from the embedding.
func (c *Classifier) derive(k signal.Kind, req *request, embedding *signal.Value) signal.Value {
	if k == signal.Intent {
		return c.intent(req, embedding)
	}
	own := &c.opts.Own[k-signal.Own]
	v := signal.Value{Source: own.Name, Provider: embedding.Provider, Elapsed: embedding.Elapsed}
	if embedding.State != signal.Known {
		why := embedding.Reason
		if embedding.State == signal.NotExtracted {
			why = signal.ReasonNoModel
		}
		return unknown(&v, why)
	}
	v.Coverage, v.Windows, v.Read = embedding.Coverage, embedding.Windows, embedding.Read
	own.predict(req.text.LastUser, embedding.Vector, &v)
	return v
}

// byWords returns the value of a kind that is computed from n-grams alone.
func (c *Classifier) byWords(ctx context.Context, k signal.Kind, req *request) signal.Value {
	own := &c.opts.Own[k-signal.Own]
	v := signal.Value{Source: own.Name}
	switch empty, err := blank(ctx, req.text.LastUser); {
	case err != nil:
		return unknown(&v, reasonOf(ctx, err))
	case empty:
		return unknown(&v, signal.ReasonNoText)
	}
	if len(req.text.LastUser) > trained.MostBytes {
		v.Coverage = signal.Compressed
	}
	own.predict(req.text.LastUser, nil, &v)
	return v
}

// predict sets v to the result of the head for a text and its embedding.
func (o *Own) predict(text string, vector []float32, v *signal.Value) {
	start := time.Now()
	r, err := o.Head.Predict(text, vector)
	if err != nil {
		*v = unknown(v, signal.ReasonInvalid)
		return
	}
	v.State, v.Label, v.Score = signal.Known, r.Label, r.Score
	v.Labels, v.Probs = o.Head.Info().Labels, r.Probs
	v.Elapsed += time.Since(start)
}

// Moderate puts signal k of an answer, or of a piece of it, into set. A remote model also receives
// the prompt, and is asked for k alone. A local model reads the text once, for k and for the kinds
// of also that set lacks.
func (c *Classifier) Moderate(
	ctx context.Context, k signal.Kind, also signal.Mask, x signal.Exchange, set *signal.Set,
) {
	if c.elsewhere(k) != nil {
		set.Put(k, c.judge(ctx, k, x))
		return
	}
	need := signal.MaskOf(k)
	if scans := c.scans(); scans.Has(k) {
		also &= scans // the scans may be enough
	}
	for _, other := range also.Kinds() {
		if c.elsewhere(other) == nil {
			need |= signal.MaskOf(other)
		}
	}
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	text := singleText(x.Judged()) // it is not part of a conversation
	c.extractTurn(ctx, newRequest(&text, bestWindows, &c.opts), need&^set.Have(), set, nil, nil)
}
