// Package placement selects the endpoint of each attempt: among the models left to try, the first
// one with a free slot, and there the endpoint that has most of the prompt cached for the least
// wait, or else the less loaded of two. Its files:
//
//   - plan: models and endpoints in the order in which they are tried, and the slot of an attempt
//   - prompt: what a request belongs to, and its text in blocks
//   - placement: the placement data of an attempt, and what endpoint and client receive of it
//   - residency and load: where a stored context is cached, and what operators see of endpoints
//
// It sends nothing. Package affinity tracks which endpoint has what cached, per model. Places are
// safe for concurrent use; a Plan belongs to one request.
package placement
