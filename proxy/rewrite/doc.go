// Package rewrite makes the body that a model receives from the client's body. It removes the
// proxy's own fields and inserts what the decision requires, as splices, so that everything else
// keeps its spelling. Its files:
//
//   - change: what is to be done to one request, and what a body asks of a model
//   - body: all edits in order, and the body of the current attempt
//   - prompt, limits, contexts: the system prompt, the limit on the response, stored contexts
//
// It makes no decisions and sends nothing. Options are safe for concurrent use; everything else
// belongs to one request.
package rewrite
