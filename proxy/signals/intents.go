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

// Teacher is implemented by a Classifier whose private intents can be listed and extended at run
// time. Implementations are safe for concurrent use.
type Teacher interface {
	// Intents lists the intents in the order of the configuration; nil if there are none.
	Intents() []Intent
	// AddExamples adds examples to an intent, effective immediately and for this process only. It
	// returns the number of new examples and the total. Errors are ErrUnknownIntent, *ExampleError
	// and that of ctx; any other error means that examples cannot be compared now. On an error
	// nothing was added.
	AddExamples(ctx context.Context, intent string, examples []string) (added, total int, err error)
}

// Intent describes one private intent.
type Intent struct {
	Name      string  `json:"name"`
	Examples  int     `json:"examples"`
	Live      int     `json:"live"` // examples added at run time
	Negatives int     `json:"negatives"`
	Threshold float64 `json:"threshold"` // minimum score of a text, in [0,1]
	Auto      bool    `json:"auto"`      // the threshold was derived from the examples
}

// ErrUnknownIntent reports a name that no configured intent has.
var ErrUnknownIntent = errors.New("no such intent")

// ExampleError reports an example that cannot be added.
type ExampleError struct {
	Index int // in the list
	Msg   string
}

// Error names the example and the problem.
func (e *ExampleError) Error() string { return fmt.Sprintf("examples[%d] %s", e.Index, e.Msg) }

// IntentThreshold returns the minimum score of a private intent; ok is false for an unknown name.
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

// maxExamples is the maximum number of examples in one request, since each requires a pass of the
// model.
const maxExamples = 1024

// ParseExamples parses the body of a request that adds examples. Errors are API errors.
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
		return nil, openai.Invalid("", "unexpected data after the JSON object")
	}
	if len(in.Examples) == 0 || len(in.Examples) > maxExamples {
		return nil, openai.Invalid("examples", fmt.Sprintf("between 1 and %d texts are required", maxExamples))
	}
	return in.Examples, nil
}
