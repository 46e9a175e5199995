// Package recall is the response cache as requests use it: which responses are stored, under which
// key, the recording of a response while it streams, and the replay of a stored stream. Package
// memory/cache stores them.
//
// It does not decide whether a request may be answered from the cache; the pipeline does. Answers
// and Cache are safe for concurrent use; a Lookup, a Tape and a Replay belong to one request.
package recall
