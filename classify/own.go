package classify

import (
	"context"
	"errors"
	"fmt"
	"time"

	trained "signalbox/classify/head"
	"signalbox/internal/signal"
)

// Own is a configuration's own classifier: a head over the embedding or over n-grams alone, a model
// elsewhere, or an adapter of a bundle, see Engine.WithTail. It reads Text.LastUser.
type Own struct {
	Name string
	Head *trained.Head // nil for others
	// Judge is asked where there is no head. Neither: an engine with a tail of that kind gives it,
	// and without one the classifier is unknown (no_model).
	Judge Judge
}

// Judge is a model elsewhere that says what a text is. Implementations are safe for concurrent use.
type Judge interface {
	// Judge returns the labels of a text with their probabilities in [0,1], which need not add up
	// to 1, and the label that holds, empty for none. It keeps no text. Its errors are Reasoned or
	// wrap ctx's.
	Judge(ctx context.Context, x signal.Exchange) (signal.Judgement, error)
}

// ownKind is the kind of the classifier at i.
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

// heads are the classifiers of one's own that are made of the embedding.
func (o Options) heads() signal.Mask {
	return o.ownWhere(func(x *Own) bool { return x.Head != nil && x.Head.Info().Dims > 0 })
}

// worded are those that are made of n-grams alone, which need no model.
func (o Options) worded() signal.Mask {
	return o.ownWhere(func(x *Own) bool { return x.Head != nil && x.Head.Info().Dims == 0 })
}

// judges are those that are asked elsewhere.
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

// made are the kinds that are made of the embedding; none for a nil Classifier.
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

// derive returns the value of a kind that is made of the embedding.
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

// byWords returns the value of a kind that is made of n-grams alone.
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

// predict sets v to what a head says of a text and its embedding.
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

// Moderate puts signal k of an answer, or a piece of it, into set. A model elsewhere is told the
// prompt as well, and asked for k alone. One that is here reads the text once for k and for what
// set lacks of also.
func (c *Classifier) Moderate(
	ctx context.Context, k signal.Kind, also signal.Mask, x signal.Exchange, set *signal.Set,
) {
	if c.elsewhere(k) != nil {
		set.Put(k, c.judge(ctx, k, x))
		return
	}
	need := signal.MaskOf(k)
	if scans := c.scans(); scans.Has(k) {
		also &= scans // it may be enough
	}
	for _, other := range also.Kinds() {
		if c.elsewhere(other) == nil {
			need |= signal.MaskOf(other)
		}
	}
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	text := singleText(x.Judged()) // it begins no conversation
	c.extractTurn(ctx, newRequest(&text, bestWindows, &c.opts), need&^set.Have(), set, nil, nil)
}
