//go:build race

package numeric_test

const raceEnabled = true
