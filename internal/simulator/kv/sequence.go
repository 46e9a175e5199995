package kv

import "time"

// Request is what a server is asked for. Its slices must not change until the request has ended.
type Request struct {
	Seed   Seed
	Prompt []uint32 // token ids; at least one
	Answer []uint32 // token ids that will be given; at least one
	// Remote is the main memory of another server, to take blocks from that are in neither memory
	// of this one; nil means none. It stands for kv_transfer_params.remote_kv_source.
	Remote *Tier
	// Decode is what a token of the answer after the first takes when nothing else runs; 0 means
	// Options.Decode.
	Decode time.Duration
	// Priority orders requests that wait: lower ones first, equal ones in the order of their
	// arrival.
	Priority int
}

// State is how far a request is.
type State uint8

// The states of a request, in their order.
const (
	Waiting  State = iota // for a seat
	Prefill               // its prompt is being computed
	Decode                // its answer is being given
	Finished              // its answer is complete
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

// Sequence is a request on its way through an Engine, which owns it. Its fields are for reading.
type Sequence struct {
	State    State
	Cached   int       // prompt tokens that were not computed, as in usage.prompt_tokens_details; known from Prefill on
	External int       // those of them that came from main memory
	Started  time.Time // zero while it waits
	First    time.Time // of the first token; zero before it
	Ended    time.Time // zero before the end

	req    Request
	chain  []Hash
	lease  *Lease
	ready  time.Time     // when its prompt, or then its answer, is complete as things stand
	pace   time.Duration // of its answer as things stand
	tokens int           // of the answer at its end
}

// Prompt is the length of the prompt in tokens.
func (s *Sequence) Prompt() int { return len(s.req.Prompt) }

// Due is when token k of the answer, counted from 0, will be there as things stand, or was there.
// It is false before Decode, and for tokens that a sequence which is Gone never had.
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
	State    State // the new one: Prefill, Decode (the first token is there), Finished or Gone
	Sequence *Sequence
}
