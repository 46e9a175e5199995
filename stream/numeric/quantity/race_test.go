//go:build race

package quantity_test

const raceEnabled = true
