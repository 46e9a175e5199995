// Package rewrite writes the body that a model receives from the one that a client sent: it takes
// out what is the proxy's own, and puts in what the decision asks for, as splices, so that all else
// stays as it was spelled. Its files:
//
//   - change: what is to be done to one request, and what a body asks of a model
//   - body: all edits in order, and the body of the attempt under way
//   - prompt, limits, contexts: the system prompt, the limit on the response, stored contexts
//
// It decides nothing and sends nothing. Options are safe for concurrent use, everything else belongs
// to one request.
package rewrite
