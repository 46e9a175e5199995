//go:build race

package testkit

// Race reports whether the tests are built with the race detector. It slows pure computation by a
// factor of ten to twenty: such tests may do less work, and must not count allocations.
const Race = true
