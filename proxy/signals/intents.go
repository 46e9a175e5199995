package signals

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"signalbox/internal/openai"
)

// Teacher is implemented by a Classifier whose private intents can be looked at and added to
// while it runs. Implementations are safe for concurrent use.
type Teacher interface {
	// Intents lists the intents in the order of the configuration; nil when there are none.
	Intents() []Intent
	// AddExamples adds examples to an intent, at once and for this process only, and returns how
	// many were new and how many it has then. Errors: ErrUnknownIntent, *ExampleError, ctx's; any
	// other means that examples cannot be compared now. Nothing was added then.
	AddExamples(ctx context.Context, intent string, examples []string) (added, total int, err error)
}

// Intent is what is known of one private intent.
type Intent struct {
	Name      string  `json:"name"`
	Examples  int     `json:"examples"`
	Live      int     `json:"live"` // of the examples, those that were added while running
	Negatives int     `json:"negatives"`
	Threshold float64 `json:"threshold"` // the score from which a text belongs to it, in [0,1]
	Auto      bool    `json:"auto"`      // the threshold was derived from the examples
}

// ErrUnknownIntent reports a name that no intent of the configuration has.
var ErrUnknownIntent = errors.New("no such intent")

// ExampleError is an example that cannot be added.
type ExampleError struct {
	Index int // in the list given
	Msg   string
}

// Error names the example and the problem.
func (e *ExampleError) Error() string { return fmt.Sprintf("examples[%d] %s", e.Index, e.Msg) }

// IntentThreshold returns the score from which a text belongs to a private intent; ok is false for
// one that is not known.
func (r *Reader) IntentThreshold(name string) (threshold float64, ok bool) {
	teacher, teaches := r.Classifier.(Teacher)
	if !teaches {
		return 0, false
	}
	for _, in := range teacher.Intents() {
		if in.Name == name {
			return in.Threshold, true
		}
	}
	return 0, false
}

// maxExamples bounds the examples of one request: each costs a run of the model.
const maxExamples = 1024

// ParseExamples reads the body of a request that adds examples. Errors are those of the API.
func ParseExamples(body []byte) ([]string, error) {
	var in struct {
		Examples []string `json:"examples"`
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		return nil, openai.Invalid("", "the body must be an object with examples, a list of texts")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, openai.Invalid("", "something follows the object")
	}
	if len(in.Examples) == 0 || len(in.Examples) > maxExamples {
		return nil, openai.Invalid("examples", fmt.Sprintf("between 1 and %d texts are required", maxExamples))
	}
	return in.Examples, nil
}
