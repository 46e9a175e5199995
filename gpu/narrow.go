package gpu

import (
	"encoding/binary"
	"fmt"
	"math"

	"signalbox/internal/tensor"
)

// maxFloat16 is the largest finite number of IEEE 754 binary16.
const maxFloat16 = 65504

// overflow describes a number of t that an input of type e cannot represent, or returns an empty
// string. Only for narrower types does it examine every number.
func (e elemType) overflow(t *tensor.Tensor) string {
	switch e {
	case elemInt32:
		for _, n := range t.I64 {
			if int64(int32(n)) != n {
				return fmt.Sprintf("holds %d, the graph takes int32", n)
			}
		}
	case elemFloat16:
		for _, f := range t.F32 {
			if f > maxFloat16 || f < -maxFloat16 {
				return fmt.Sprintf("holds %v, the graph takes float16", f)
			}
		}
	case elemFloat, elemUint8, elemInt8, elemUint16, elemInt16, elemInt64, elemBool, elemDouble, elemUint32, elemBFloat16:
	}
	return ""
}

// appendInt32 appends the numbers in the machine's byte order.
func appendInt32(dst []byte, src []int64) []byte {
	for _, n := range src {
		dst = binary.NativeEndian.AppendUint32(dst, uint32(int32(n)))
	}
	return dst
}

// appendFloat16 appends the numbers as IEEE 754 binary16 in the machine's byte order.
func appendFloat16(dst []byte, src []float32) []byte {
	for _, f := range src {
		dst = binary.NativeEndian.AppendUint16(dst, float16(f))
	}
	return dst
}

// float16 rounds f to the nearest IEEE 754 binary16 number, ties to even: 1 sign bit, 5 exponent
// bits with a bias of 15, 10 fraction bits. Numbers out of range become infinities.
func float16(f float32) uint16 {
	bits := math.Float32bits(f)
	sign := uint16(bits>>16) & 0x8000
	exponent := int(bits>>23)&0xff - 127 + 15
	fraction := bits & 0x7fffff
	switch {
	case bits&exponentBits == exponentBits:
		if fraction != 0 {
			return sign | 0x7e00 // NaN
		}
		return sign | 0x7c00
	case exponent < -10:
		return sign // less than half of the smallest number
	case exponent < 1: // subnormal: the leading one becomes part of the fraction
		return sign | uint16(roundShift(fraction|0x800000, 14-exponent))
	}
	// A fraction that rounds up to 1.0 carries into the exponent, from the largest number to
	// infinity.
	half := uint32(exponent)<<10 + roundShift(fraction, 13)
	return sign | uint16(min(half, 0x7c00))
}

// roundShift shifts v right by n bits, 1 to 31, and rounds to the nearest, ties to even.
func roundShift(v uint32, n int) uint32 {
	kept, half := v>>n, uint32(1)<<(n-1)
	if rest := v & (half<<1 - 1); rest > half || rest == half && kept&1 == 1 {
		kept++
	}
	return kept
}
