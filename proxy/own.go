package proxy

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/go-chi/chi/v5"

	"signalbox/internal/openai"
	"signalbox/proxy/downstream"
	"signalbox/proxy/fault"
	"signalbox/proxy/signals"
)

// classifyRequest serves POST /signalbox/v1/classify: the signals of some texts, each of an origin
// that nobody told, so that every signal reads it, or of the messages of a chat, whose roles tell.
func (*Proxy) classifyRequest(st *State, w *downstream.Writer, r *http.Request) error {
	who, body, err := st.admit(w, r)
	if err != nil {
		return err
	}
	if !st.auth.MayExplain(who) {
		return fault.ErrForbidden
	}
	texts, need, err := st.Signals.Parse(body)
	if err != nil {
		return err
	}
	results := make([]map[string]signals.Result, 0, len(texts))
	for i := range texts {
		result := st.Signals.Results(r.Context(), &texts[i], need)
		if r.Context().Err() != nil {
			return fault.ErrClientGone
		}
		results = append(results, result)
	}
	return downstream.WriteJSON(w, http.StatusOK, map[string]any{"results": results})
}

// listIntents serves GET /signalbox/v1/intents.
func (*Proxy) listIntents(st *State, w *downstream.Writer, r *http.Request) error {
	who, err := st.identify(w, r)
	if err != nil {
		return err
	}
	if !st.auth.MayExplain(who) {
		return fault.ErrForbidden
	}
	list := []signals.Intent{}
	if t, ok := st.Signals.Classifier.(signals.Teacher); ok {
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
	examples, err := signals.ParseExamples(body)
	if err != nil {
		return err
	}
	name, err := intentName(r)
	if err != nil {
		return err
	}
	t, ok := st.Signals.Classifier.(signals.Teacher)
	if !ok {
		return intentNotFound(name)
	}
	st.answers.Teach(name, examples) // before and behind, so that no decision of one moment is kept under another
	added, total, err := t.AddExamples(r.Context(), name, examples)
	st.answers.Teach(name, examples)
	var bad *signals.ExampleError
	switch {
	case err == nil:
		return downstream.WriteJSON(w, http.StatusOK, map[string]any{"intent": name, "added": added, "examples": total})
	case errors.Is(err, signals.ErrUnknownIntent):
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
