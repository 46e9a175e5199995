//go:build race

package rules

// raceDetector reports whether the race detector slows the tests down.
const raceDetector = true
