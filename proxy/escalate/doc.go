// Package escalate judges complete responses: whether one is good enough, or a better model should
// be asked. It examines the response itself: how it ended, whether it is empty or declines, whether
// its tool calls and JSON match the request, and how certain the model was of its tokens.
//
// It knows nothing about HTTP, models, or what is done with the result. It never claims that a
// response is correct.
//
// Invariants: what cannot be read, or would take too long to check, shows no sign; the work is
// nearly linear in response and schema. Nothing here starts a goroutine; all values belong to one
// response.
package escalate
