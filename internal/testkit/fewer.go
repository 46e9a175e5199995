package testkit

// Fewer is how many of n rounds a test does: all, or a quarter, at least 1, with the race detector.
func Fewer(n int) int {
	if Race {
		return max(1, n/4)
	}
	return n
}
