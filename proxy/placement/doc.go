// Package placement picks the endpoint of each attempt: of the models that are left to try the first
// one with a free slot, and there the endpoint that has most of the prompt for the least wait, or
// else the less loaded of two. Its files:
//
//   - plan: models and endpoints in the order in which they are tried, and the slot of an attempt
//   - prompt: what a request belongs to, and its text in blocks
//   - placement: what placement notes of an attempt, and what it tells the endpoint and the client
//   - residency: where a stored context is
//
// It sends nothing. Which endpoint holds what is kept by package affinity, for each model. Places
// are safe for concurrent use; a Plan belongs to one request.
package placement
