//go:build race

package testkit

// Race reports whether the tests are built with the race detector. It takes ten to twenty times as
// long over what only computes: such a test may do less of it, and counts no allocations.
const Race = true
