package decisionlog

import "time"

// Refusal is a line of requests that a limit has refused before they were decided: of one, or with
// Refused greater than 1 of several of one caller, of which ID and Time are those of the last.
type Refusal struct {
	Version    int          `json:"v"`
	Time       time.Time    `json:"time"`
	ID         string       `json:"id"`
	Generation uint64       `json:"generation"`
	Config     string       `json:"config,omitempty"`
	Request    RefusalFacts `json:"request"`
	Route      string       `json:"route"`   // none
	Outcome    string       `json:"outcome"` // refused
	Action     RefusalVerb  `json:"action"`
	Status     int          `json:"status"` // 429
	Error      string       `json:"error"`
	// as in Entry; absent also where there are too many callers to tell apart
	Key     string `json:"key,omitempty"`
	Limit   string `json:"limit,omitempty"` // requests, tokens or concurrency
	Refused int64  `json:"refused"`         // how many
}

// RefusalFacts is what is known of requests that were refused.
type RefusalFacts struct {
	Role   string `json:"role,omitempty"`
	Tenant string `json:"tenant,omitempty"`
}

// RefusalVerb stands where other lines have their action.
type RefusalVerb struct {
	Verb string `json:"verb"` // refuse
}

// NewRefusal is a Refusal with the words that all have.
func NewRefusal() Refusal {
	return Refusal{Version: Version, Route: "none", Outcome: outcomeRefused, Action: RefusalVerb{"refuse"}}
}
