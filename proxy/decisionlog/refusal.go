package decisionlog

import "time"

// Refusal is a line about requests that a limit refused before a decision: one request, or with
// Refused greater than 1 several of one caller, where ID and Time are those of the last.
type Refusal struct {
	Version    int          `json:"v"`
	Time       time.Time    `json:"time"`
	ID         string       `json:"id"`
	Generation uint64       `json:"generation"`
	Config     string       `json:"config,omitempty"`
	Request    RefusalFacts `json:"request"`
	Route      string       `json:"route"`   // "none"
	Outcome    string       `json:"outcome"` // "refused"
	Action     RefusalVerb  `json:"action"`
	Status     int          `json:"status"` // 429
	Error      string       `json:"error"`
	// as in Entry; also absent when there are too many callers to distinguish
	Key     string `json:"key,omitempty"`
	Limit   string `json:"limit,omitempty"` // requests, tokens or concurrency
	Refused int64  `json:"refused"`         // number of requests
}

// RefusalFacts is what is known about refused requests.
type RefusalFacts struct {
	Role   string `json:"role,omitempty"`
	Tenant string `json:"tenant,omitempty"`
}

// RefusalVerb takes the place of the action in other lines.
type RefusalVerb struct {
	Verb string `json:"verb"` // "refuse"
}

// NewRefusal returns a Refusal with the values that all have in common.
func NewRefusal() Refusal {
	return Refusal{Version: Version, Route: "none", Outcome: outcomeRefused, Action: RefusalVerb{"refuse"}}
}
