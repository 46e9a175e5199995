//go:build !race

package testkit

// Race reports whether the tests are built with the race detector.
const Race = false
