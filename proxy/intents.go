package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/go-chi/chi/v5"

	"signalbox/internal/openai"
	"signalbox/proxy/downstream"
	"signalbox/proxy/fault"
)

// IntentTeacher is implemented by a Classifier whose private intents can be looked at and added to
// while it runs. Implementations are safe for concurrent use.
type IntentTeacher interface {
	// Intents lists the intents in the order of the configuration; nil when there are none.
	Intents() []IntentSummary
	// AddExamples adds examples to an intent, at once and for this process only, and returns how
	// many were new and how many it has then. Errors: ErrUnknownIntent, *ExampleError, ctx's; any
	// other means that examples cannot be compared now. Nothing was added then.
	AddExamples(ctx context.Context, intent string, examples []string) (added, total int, err error)
}

// IntentSummary is what is known of one private intent.
type IntentSummary struct {
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

// maxExamples bounds the examples of one request: each costs a run of the model.
const maxExamples = 1024

// listIntents serves GET /signalbox/v1/intents.
func (*Proxy) listIntents(st *State, w *downstream.Writer, r *http.Request) error {
	who, err := st.identify(w, r)
	if err != nil {
		return err
	}
	if !st.auth.MayExplain(who) {
		return fault.ErrForbidden
	}
	list := []IntentSummary{}
	if t, ok := st.classifier.(IntentTeacher); ok {
		list = append(list, t.Intents()...)
	}
	return downstream.WriteJSON(w, http.StatusOK, map[string]any{"intents": list})
}

// addExamples serves POST /signalbox/v1/intents/{name}/examples. What is added is kept in memory,
// by this process alone, as long as it runs.
func (*Proxy) addExamples(st *State, w *downstream.Writer, r *http.Request) error {
	who, body, err := st.admit(w, r)
	if err != nil {
		return err
	}
	if !st.auth.MayExplain(who) {
		return fault.ErrForbidden
	}
	examples, err := readExamples(body)
	if err != nil {
		return err
	}
	name, err := intentName(r)
	if err != nil {
		return err
	}
	t, ok := st.classifier.(IntentTeacher)
	if !ok {
		return intentNotFound(name)
	}
	st.answers.Teach(name, examples) // before and behind, so that no decision of one moment is kept under another
	added, total, err := t.AddExamples(r.Context(), name, examples)
	st.answers.Teach(name, examples)
	var bad *ExampleError
	switch {
	case err == nil:
		return downstream.WriteJSON(w, http.StatusOK, map[string]any{"intent": name, "added": added, "examples": total})
	case errors.Is(err, ErrUnknownIntent):
		return intentNotFound(name)
	case errors.As(err, &bad):
		return fault.InvalidField(fmt.Sprintf("examples[%d]", bad.Index), bad.Msg)
	case r.Context().Err() != nil:
		return fault.ErrClientGone
	}
	return fmt.Errorf("%w: %w", fault.ErrSignalUnavailable, err)
}

// intentName returns the intent that a path names. The router matches the path as it was sent where
// that differs from its canonical form, and leaves the name escaped then.
func intentName(r *http.Request) (string, error) {
	name := chi.URLParam(r, "name")
	if r.URL.RawPath == "" {
		return name, nil
	}
	plain, err := url.PathUnescape(name)
	if err != nil {
		return "", intentNotFound(name)
	}
	return plain, nil
}

func intentNotFound(name string) error {
	return &openai.Error{
		Status: http.StatusNotFound, Type: openai.TypeInvalidRequest, Code: "intent_not_found",
		Message: fmt.Sprintf("the intent %.200q does not exist", name),
	}
}

func readExamples(body []byte) ([]string, error) {
	var in struct {
		Examples []string `json:"examples"`
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		return nil, fault.InvalidField("", "the body must be an object with examples, a list of texts")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, fault.InvalidField("", "something follows the object")
	}
	if len(in.Examples) == 0 || len(in.Examples) > maxExamples {
		return nil, fault.InvalidField("examples", fmt.Sprintf("between 1 and %d texts are required", maxExamples))
	}
	return in.Examples, nil
}
