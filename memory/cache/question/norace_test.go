//go:build !race

package question_test

const raceEnabled = false
