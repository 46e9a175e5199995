// Package affinity predicts how much of a prompt each endpoint of a model has in its key-value
// cache, and selects the endpoint for a request accordingly.
//
// Endpoints usually report nothing in advance. What they hold is predicted from what was sent to
// them and corrected by the cached tokens that their responses report. All of it is a hint: a wrong
// one costs time, never a response.
//
// How a request is placed:
//
//	class  what must be equal to share a cache: model, adapter, tenant's salt, template parameters
//	chain  the prompt's text in blocks of 256 bytes, each hashed together with all before it
//	key    what requests belong to: a context, a session, else the first blocks of the text
//	home   the endpoint that rendezvous hashing assigns to a key, the same one at every proxy
//	table  for each endpoint, the blocks that it should have, in order of use
//	cost   seconds until the first token: text to compute, text queued before it, running requests
//
// The cheapest endpoint gets the request, but the home keeps it unless another endpoint saves more
// than a tenth and more than 50 ms. A request that leaves goes to the second home if that is about
// as good as the best. A prompt that has left stays with the endpoint that has it in the same way,
// until the home has it too. Text to compute counts twice, because it delays other requests and
// takes their place in the cache. The exception is a key that keeps its home busy: it has several
// homes.
//
// Text is hashed without its class, which is added when a block is looked up. So the chain of a
// stored context is made once for all models and tenants, and two classes still share no block.
//
// A Placer is safe for concurrent use and starts no goroutine. Chains and tickets belong to one
// request. Locks are leaves: nothing else is locked or called while one is held.
package affinity
