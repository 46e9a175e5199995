package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"signalbox/internal/openai"
	"signalbox/memory/outcomes"
	"signalbox/proxy/decide"
	"signalbox/proxy/downstream"
)

// The bounds of feedback.
const maxFeedbackLabel = 128 // bytes

// feedbackBody is the body of POST /signalbox/v1/feedback.
type feedbackBody struct {
	RequestID string `json:"request_id"` // x-request-id of the answer
	// how good the response was, in [0,1]
	Outcome *float64 `json:"outcome,omitempty"`
	Rating  string   `json:"rating,omitempty"` // in place of outcome: up is 1, down 0
	Label   string   `json:"label,omitempty"`  // at most 128 bytes, exported with the outcome
}

// Judged is the response to feedback.
type Judged struct {
	RequestID string  `json:"request_id"`
	Model     string  `json:"model"` // that answered
	Outcome   float64 `json:"outcome"`
	Label     string  `json:"label,omitempty"`
	Outcomes  int     `json:"outcomes"` // that are kept of the tenant
}

// score is the outcome that a body tells.
func (b *feedbackBody) score() (float64, error) {
	invalid := func(param, msg string) error {
		return &openai.Error{
			Status: http.StatusBadRequest, Type: openai.TypeInvalidRequest, Param: param, Message: msg,
		}
	}
	switch {
	case b.RequestID == "":
		return 0, invalid("request_id", "the x-request-id of the answer is required")
	case len(b.Label) > maxFeedbackLabel:
		return 0, invalid("label", "it has more than 128 bytes")
	case b.Outcome != nil && b.Rating != "":
		return 0, invalid("rating", "outcome and rating are both given: send one of them")
	case b.Outcome != nil && !(*b.Outcome >= 0 && *b.Outcome <= 1):
		return 0, invalid("outcome", "a number between 0 and 1 is required")
	case b.Outcome != nil:
		return *b.Outcome, nil
	case b.Rating == "up":
		return 1, nil
	case b.Rating == "down":
		return 0, nil
	case b.Rating != "":
		return 0, invalid("rating", "it is up or down")
	}
	return 0, invalid("outcome", "outcome, a number between 0 and 1, or rating, up or down, is required")
}

// feedbackRequest serves POST /signalbox/v1/feedback: who may send requests may judge those of its
// tenant.
func (*Proxy) feedbackRequest(st *State, w *downstream.Writer, r *http.Request) error {
	who, body, err := st.admit(w, r)
	if err != nil {
		return err
	}
	if st.Outcomes == nil {
		return &openai.Error{
			Status: http.StatusNotFound, Type: openai.TypeInvalidRequest, Code: "feedback_off",
			Message: "no feedback is kept here: outcomes.learn is off",
		}
	}
	var in feedbackBody
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	err = dec.Decode(&in)
	if _, end := dec.Token(); err != nil || !errors.Is(end, io.EOF) {
		return &openai.Error{
			Status: http.StatusBadRequest, Type: openai.TypeInvalidRequest,
			Message: "the body must be an object with request_id, outcome or rating, and optionally label",
		}
	}
	score, err := in.score()
	if err != nil {
		return err
	}
	o, err := st.Outcomes.Judge(who.Tenant, in.RequestID, score, 1, in.Label, decide.LearnFeedback)
	switch {
	case errors.Is(err, outcomes.ErrUnknown):
		return &openai.Error{
			Status: http.StatusNotFound, Type: openai.TypeInvalidRequest, Code: "request_not_found",
			Param:   "request_id",
			Message: "no answer waits for feedback under this id: it was not chosen among models, or too long ago",
		}
	case err != nil:
		return err
	}
	return downstream.WriteJSON(w, http.StatusOK, Judged{
		RequestID: in.RequestID, Model: o.Model, Outcome: o.Score, Label: o.Label,
		Outcomes: st.Outcomes.Len(who.Tenant),
	})
}
