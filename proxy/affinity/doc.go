// Package affinity says which endpoint of a model has most of a prompt in its key-value cache, and
// where a request is best sent with that in mind.
//
// Nothing here is told by the endpoints as a rule: what they hold is predicted from what was sent
// to them, and put right by what they report as cached tokens afterwards. So all of it is a hint. A
// wrong one costs time and never an answer.
//
// How a request finds its place:
//
//	class  what must be equal for a cache to be shared: model, adapter, tenant's salt, template parameters
//	chain  the prompt's text in blocks of 1 KiB, each hashed together with all before it
//	key    what belongs together: a context, a session, else the first 4 KiB of text
//	home   the endpoint that rendezvous hashing gives a key; every proxy finds the same one without asking
//	table  for each endpoint the blocks that it should have, the ones used last kept
//	cost   the seconds until the first token: text to compute, text queued before it, company
//
// The cheapest endpoint gets the request, but the home keeps it unless another saves more than a
// tenth and more than 50 ms; who leaves goes to the second home rather than anywhere. A prompt that
// has left is kept by who has it in the same way, until home has it too. Text to compute counts
// twice, because it delays others and takes their place in the cache, but for a key that keeps its
// home busy: that has several homes.
//
// Text is hashed without its class, which comes in when a block is looked up. So the chain of a
// stored context is made once and serves every model and tenant, and two classes still share no
// block.
//
// A Placer is safe for concurrent use and starts no goroutine. Chains and tickets belong to one
// request. Locks are leaves: nothing else is locked or called under one.
package affinity
