package classify

import (
	"time"

	"signalbox/internal/signal"
)

// intent compares the last user message with the examples of the private intents.
func (c *Classifier) intent(req *request, embedding *signal.Value) signal.Value {
	v := signal.Value{Source: "knn", Provider: embedding.Provider}
	if embedding.State != signal.Known {
		why := embedding.Reason
		if embedding.State == signal.NotExtracted {
			why = signal.ReasonNoModel
		}
		v.Elapsed = embedding.Elapsed
		return unknown(&v, why)
	}
	start := time.Now()
	r, err := c.opts.Intents.Lookup(req.text.LastUser, embedding.Vector)
	if err != nil {
		return unknown(&v, signal.ReasonInvalid)
	}
	v.State, v.Label, v.Score, v.Labels, v.Probs = signal.Known, r.Intent, r.Score, c.opts.Intents.Names(), r.Scores
	v.Coverage, v.Windows, v.Read = embedding.Coverage, embedding.Windows, embedding.Read
	v.Elapsed = embedding.Elapsed + time.Since(start)
	return v
}
