package kv

import "time"

// Request is a request to a server. Its slices must not change until the request has ended.
type Request struct {
	Seed   Seed
	Prompt []uint32 // token ids; at least one
	Answer []uint32 // token ids of the response; at least one
	// Remote is the main memory of another server, from which blocks are taken that are in neither
	// memory of this one; nil means none. It corresponds to kv_transfer_params.remote_kv_source.
	Remote *Tier
	// Decode is the time per response token after the first, without other requests; 0 means
	// Options.Decode.
	Decode time.Duration
	// Priority orders waiting requests: lower values first, equal ones in order of arrival.
	Priority int
}

// State is the state of a request.
type State uint8

// The states of a request, in order.
const (
	Waiting  State = iota // for a seat
	Prefill               // its prompt is being computed
	Decode                // its response is being generated
	Finished              // its response is complete
	Gone                  // it was cancelled, or its server was restarted
)

// String returns the state in lower case.
func (s State) String() string {
	switch s {
	case Waiting:
		return "waiting"
	case Prefill:
		return "prefill"
	case Decode:
		return "decode"
	case Finished:
		return "finished"
	case Gone:
	}
	return "gone"
}

// Sequence is a request in an Engine, which owns it. Its fields are read-only.
type Sequence struct {
	State    State
	Cached   int       // prompt tokens that were not computed, as in usage.prompt_tokens_details; valid from Prefill on
	External int       // those from main memory
	Started  time.Time // zero while it waits
	First    time.Time // of the first token; zero before it
	Ended    time.Time // zero before the end

	req    Request
	chain  []Hash
	lease  *Lease
	ready  time.Time     // when its prompt, or then its response, will be complete at the current pace
	pace   time.Duration // current time per response token
	tokens int           // response tokens at its end
}

// Prompt returns the length of the prompt in tokens.
func (s *Sequence) Prompt() int { return len(s.req.Prompt) }

// Due returns when token k of the response, counted from 0, will be available at the current pace,
// or was available. It returns false before Decode, and for tokens that a sequence in state Gone
// never had.
func (s *Sequence) Due(k int) (time.Time, bool) {
	switch s.State {
	case Decode:
		return s.ready.Add(-time.Duration(len(s.req.Answer)-1-k) * s.pace), true
	case Finished, Gone:
		return s.Ended, k < s.tokens
	case Waiting, Prefill:
	}
	return time.Time{}, false
}

// Event is a change of a sequence's state.
type Event struct {
	At       time.Time
	State    State // the new state: Prefill, Decode (the first token is available), Finished or Gone
	Sequence *Sequence
}
