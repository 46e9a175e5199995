package testkit

// Fewer returns how many of n rounds a test runs: all, or with the race detector a quarter, at
// least 1.
func Fewer(n int) int {
	if Race {
		return max(1, n/4)
	}
	return n
}
