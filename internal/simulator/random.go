package simulator

import "github.com/cespare/xxhash/v2"

// mix is the finalizer of SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number
// Generators", OOPSLA 2014): every input bit reaches every output bit.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// hashString returns a number that depends only on seed and s.
func hashString(seed uint64, s string) uint64 {
	return mix(seed ^ xxhash.Sum64String(s))
}

// appendHexID appends 32 lower-case hexadecimal digits, the form of vLLM's request ids, that depend
// only on seed and n.
func appendHexID(dst []byte, seed, n uint64) []byte {
	const digits = "0123456789abcdef"
	for _, word := range [2]uint64{mix(seed ^ mix(n)), mix(mix(seed) + n)} {
		for shift := 60; shift >= 0; shift -= 4 {
			dst = append(dst, digits[word>>shift&15])
		}
	}
	return dst
}
