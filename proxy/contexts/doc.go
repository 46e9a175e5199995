// Package contexts is the API of stored contexts, and what the proxy knows about their texts.
//
// A Service answers the requests below /v1/contexts and /v1/sessions over a memory.Store: it reads
// bodies strictly, names the field of every problem, and describes contexts as clients see them. A
// Deriver works out, once, what every request that names a context would else have to work out
// again: what its text says of its safety, how many tokens it has, and a skeleton to classify by.
//
// It knows no keys and no routes: the proxy admits a request and says whose contexts it may use. It
// reads no text for its safety itself and asks no model server; both are functions that it is
// given. Errors of the store pass through; the table in the proxy gives them their place on the
// wire.
//
// A Service and a Deriver are safe for concurrent use. A Deriver starts one goroutine for each
// derivation, which counts tokens, and waits for it.
package contexts
