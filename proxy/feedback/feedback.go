package feedback

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"signalbox/internal/openai"
)

// Limits of feedback.
const maxLabel = 128 // bytes

// Body is the body of POST /signalbox/v1/feedback.
type Body struct {
	RequestID string `json:"request_id"` // x-request-id of the response
	// how good the response was, in [0,1]
	Outcome *float64 `json:"outcome,omitempty"`
	Rating  string   `json:"rating,omitempty"` // instead of outcome: up means 1, down means 0
	Label   string   `json:"label,omitempty"`  // at most 128 bytes, exported with the outcome
}

// Judged is the response to feedback.
type Judged struct {
	RequestID string  `json:"request_id"`
	Model     string  `json:"model"` // the model that answered
	Outcome   float64 `json:"outcome"`
	Label     string  `json:"label,omitempty"`
	Outcomes  int     `json:"outcomes"` // number stored for the tenant
}

// Parse parses a body and returns its outcome, in [0,1]. Errors are API errors.
func Parse(body []byte) (in Body, score float64, err error) {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	err = dec.Decode(&in)
	if _, end := dec.Token(); err != nil || !errors.Is(end, io.EOF) {
		return in, 0, openai.Invalid("",
			"the body must be an object with request_id, outcome or rating, and optionally label")
	}
	score, err = in.score()
	return in, score, err
}

// score returns the outcome in a body.
func (b *Body) score() (float64, error) {
	switch {
	case b.RequestID == "":
		return 0, openai.Invalid("request_id", "request_id is required: the x-request-id of the response")
	case len(b.Label) > maxLabel:
		return 0, openai.Invalid("label", "label must have at most 128 bytes")
	case b.Outcome != nil && b.Rating != "":
		return 0, openai.Invalid("rating", "outcome and rating are mutually exclusive: send one of them")
	case b.Outcome != nil && !(*b.Outcome >= 0 && *b.Outcome <= 1):
		return 0, openai.Invalid("outcome", "outcome must be a number between 0 and 1")
	case b.Outcome != nil:
		return *b.Outcome, nil
	case b.Rating == "up":
		return 1, nil
	case b.Rating == "down":
		return 0, nil
	case b.Rating != "":
		return 0, openai.Invalid("rating", "rating must be up or down")
	}
	return 0, openai.Invalid("outcome", "outcome (a number between 0 and 1) or rating (up or down) is required")
}
