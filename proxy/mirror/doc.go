// Package mirror sends copies of requests to another model, discards the responses, and reports how
// they differ from those that clients received.
//
// A Pool is safe for concurrent use and owns a goroutine for each copy in flight, which Close ends
// and waits for. A Copy belongs to its request until that has ended, and then to the goroutine that
// sends it.
package mirror
