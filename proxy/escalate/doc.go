// Package escalate judges whole answers: whether one is good enough to be given, or a better model
// is to be asked. It looks at what a response shows by itself: how it ended, whether it says
// anything or declines, whether its calls of tools and its JSON are what the request asked for, and
// how sure the model was of its tokens.
//
// It knows nothing of HTTP, of models and of what is done about a response. It never says that an
// answer is right.
//
// Invariants: what cannot be read, or would take too long to be checked, shows no sign; the work is
// near-linear in response and schema. Nothing here starts a goroutine; all of it belongs to one
// answer.
package escalate
