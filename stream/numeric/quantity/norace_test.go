//go:build !race

package quantity_test

const raceEnabled = false
