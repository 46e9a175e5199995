package gpu

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// widenFloat16 is the exact value of a binary16 number, written from the definition.
func widenFloat16(h uint16) float64 {
	sign, exponent, fraction := 1-2*float64(h>>15), int(h>>10)&0x1f, float64(h&0x3ff)/1024
	switch exponent {
	case 0:
		return sign * math.Ldexp(fraction, -14)
	case 0x1f:
		return sign * math.Inf(1)
	}
	return sign * math.Ldexp(1+fraction, exponent-15)
}

func TestHalfPrecisionIsTheNearestNumber(t *testing.T) {
	for h := range uint32(1 << 16) {
		exact := widenFloat16(uint16(h))
		if h&0x7c00 == 0x7c00 && h&0x3ff != 0 { // not a number: any of them will do
			continue
		}
		if got := float16(float32(exact)); got != uint16(h) {
			t.Fatalf("%v becomes %#04x, want %#04x", exact, got, h)
		}
		if h&0x7fff >= 0x7bff { // no finite number above
			continue
		}
		above := widenFloat16(uint16(h + 1))
		middle := float32((exact + above) / 2) // exact in float32
		even := uint16(h + h&1)
		for f, want := range map[float32]uint16{
			middle:                                   even,
			math.Nextafter32(middle, float32(exact)): uint16(h),
			math.Nextafter32(middle, float32(above)): uint16(h + 1),
		} {
			if got := float16(f); got != want {
				t.Fatalf("%v, between %v and %v, becomes %#04x, want %#04x", f, exact, above, got, want)
			}
		}
	}
	for f, want := range map[float32]uint16{
		65519.996: 0x7bff, 65520: 0x7c00, math.MaxFloat32: 0x7c00, -math.MaxFloat32: 0xfc00,
		float32(math.Inf(-1)): 0xfc00, math.SmallestNonzeroFloat32: 0,
	} {
		if got := float16(f); got != want {
			t.Errorf("%v becomes %#04x, want %#04x", f, got, want)
		}
	}
	if got := float16(float32(math.NaN())); got&0x7c00 != 0x7c00 || got&0x3ff == 0 {
		t.Errorf("no number becomes %#04x", got)
	}
}

func TestNarrowingIsInTheOrderOfTheMachine(t *testing.T) {
	ints := appendInt32([]byte{9}, []int64{1, -2})
	if diff := cmp.Diff([]uint32{1, 0xfffffffe}, []uint32{binary.NativeEndian.Uint32(ints[1:]), binary.NativeEndian.Uint32(ints[5:])}); diff != "" {
		t.Error(diff)
	}
	halves := appendFloat16(nil, []float32{1, -2})
	if diff := cmp.Diff([]uint16{0x3c00, 0xc000}, []uint16{binary.NativeEndian.Uint16(halves), binary.NativeEndian.Uint16(halves[2:])}); diff != "" {
		t.Error(diff)
	}
}
