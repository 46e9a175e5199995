// Package record is what a request leaves behind when it has ended, however it ended: metrics, its log
// line and that of the decision log, what operators look at, what limits and budgets are settled
// with, what is learnt from the response, and the response in the cache.
//
// It decides nothing and writes nothing to the client. Recorder and Book are safe for concurrent use.
package record
