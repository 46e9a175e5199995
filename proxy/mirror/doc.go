// Package mirror sends copies of requests to another model, whose responses nobody gets, and tells
// how they differ from those that clients got.
//
// A Pool is safe for concurrent use, and owns a goroutine for each copy that is under way, which
// Close ends and waits for. A Copy belongs to its request until that has ended, and to the
// goroutine that sends it from then on.
package mirror
