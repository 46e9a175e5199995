package blob

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func samples() map[string][]byte {
	return map[string][]byte{
		"empty":          nil,
		"one byte":       []byte("a"),
		"short":          []byte("the tenant pays on the first of the month"),
		"repeated":       []byte(strings.Repeat("the lessee pays. ", 10_000)),
		"not compressed": noise(70_000),
		"hexadecimal":    fmt.Appendf(nil, "%x", noise(50_000)),
	}
}

// large are samples that are packed in pieces where there is more than one processor.
func large() map[string][]byte {
	return map[string][]byte{"long hexadecimal": fmt.Appendf(nil, "%x", noise(2*pieceSize)), "long, not compressed": noise(3*pieceSize + 1)}
}

// old is packed bytes as version 1 had them: without the seal.
func old(packed []byte) []byte {
	b := append(bytes.Clone(packed[:plainHeader]), packed[HeaderSize:]...)
	b[0] = unsealed
	return b
}

// seamless is raw in n pieces without seams, as the codec pieces had them.
func seamless(raw []byte, n int) []byte {
	frames := make([][]byte, n)
	packed := append(header(raw, pieces, 0, 0), byte(n))
	for i := range n {
		from, to := bounds(i, n, len(raw))
		frames[i] = fast().EncodeAll(raw[from:to], nil)
		packed = binary.BigEndian.AppendUint32(packed, uint32(len(frames[i])))
	}
	return seal(append(packed, bytes.Join(frames, nil)...), Of(raw))
}

// noise is n bytes that do not compress.
func noise(n int) []byte {
	var b []byte
	for s := Of(nil); len(b) < n; s = Of(s[:]) {
		b = append(b, s[:]...)
	}
	return b[:n]
}

func TestWhatWasPackedComesBack(t *testing.T) {
	t.Parallel()
	all := large()
	maps.Copy(all, samples())
	for name, raw := range all {
		packed, sum := Pack(raw)
		if sum != Of(raw) {
			t.Errorf("%s: the sum is %v", name, sum)
		}
		for _, packed := range [][]byte{packed, Tighten(raw, sum), old(packed)} {
			if len(packed) > len(raw)+HeaderSize {
				t.Errorf("%s: %d bytes became %d", name, len(raw), len(packed))
			}
			got, err := Unpack(packed, int64(len(raw)), Of(raw))
			if err != nil || !bytes.Equal(got, raw) {
				t.Errorf("%s: %d bytes came back as %d, %v", name, len(raw), len(got), err)
			}
			if cap(got) != len(got) {
				t.Errorf("%s: two users could append to the same %d bytes behind it", name, cap(got)-len(got))
			}
		}
	}
	if packed, _ := Pack(samples()["repeated"]); len(packed) > 1000 {
		t.Errorf("170,000 repetitive bytes take %d", len(packed))
	}
}

func TestLargeBytesArePackedFastAndSmallOnesTightly(t *testing.T) {
	t.Parallel()
	for name, raw := range samples() {
		packed, _ := Pack(raw)
		if tight := len(raw) <= Small; Tight(packed) != tight {
			t.Errorf("%s, %d bytes: tight is %t", name, len(raw), !tight)
		}
		for _, first := range [][]byte{packed, old(packed)} {
			again, err := Repack(first, int64(len(raw)), Of(raw))
			if err != nil || !Tight(again) || len(again) > len(first) {
				t.Errorf("%s: %d bytes were packed again to %d, %v", name, len(first), len(again), err)
			}
			if got, err := Unpack(again, int64(len(raw)), Of(raw)); err != nil || !bytes.Equal(got, raw) {
				t.Errorf("%s: %d bytes came back as %d, %v", name, len(raw), len(got), err)
			}
		}
	}
	if packed, _ := Pack(samples()["hexadecimal"]); len(packed) > 60_000 {
		t.Errorf("100,000 hexadecimal digits take %d bytes, packed fast", len(packed))
	}
	if !Tight(nil) {
		t.Error("what is no blob is not to be packed again")
	}
}

func TestPiecesComeBackWhereverTheyWereCut(t *testing.T) {
	t.Parallel()
	for name, raw := range large() {
		sum := Of(raw)
		for _, n := range []int{2, 3, 7, mostPieces} {
			packed := seamless(raw, n)
			got, err := Unpack(packed, int64(len(raw)), sum)
			if err != nil || !bytes.Equal(got, raw) {
				t.Errorf("%s in %d pieces without seams: %d bytes came back as %d, %v", name, n, len(raw), len(got), err)
			}
			packed = seal(packPieces(raw, n), sum)
			got, err = Unpack(packed, int64(len(raw)), sum)
			if err != nil || !bytes.Equal(got, raw) {
				t.Errorf("%s in %d pieces: %d bytes came back as %d, %v", name, n, len(raw), len(got), err)
			}
			if codec(packed[1]) != seamed || n > 3 {
				continue
			}
			for i := range min(len(packed)-HeaderSize, 1+4*n+(n-1)*seamSize+8) { // the table, the seams and the beginning of a frame
				bad := bytes.Clone(packed)
				bad[HeaderSize+i] ^= 0x41
				bad = seal(bad, sum) // what the seal does not see must not be worse than an error
				if got, err := Unpack(bad, int64(len(raw)), sum); err != nil && !errors.Is(err, ErrDamaged) || len(got) > len(raw) {
					t.Fatalf("%s in %d pieces, byte %d changed: %d bytes, %v", name, n, i, len(got), err)
				}
			}
			for _, cut := range []int{1, len(packed) / 2, len(packed) - HeaderSize} {
				if _, err := Unpack(seal(packed[:len(packed)-cut:len(packed)-cut], sum), int64(len(raw)), sum); !errors.Is(err, ErrDamaged) {
					t.Errorf("%s in %d pieces, %d bytes cut off: %v", name, n, cut, err)
				}
				packed = seal(packPieces(raw, n), sum)
			}
			if _, err := Unpack(seal(append(packed, 0), sum), int64(len(raw)), sum); !errors.Is(err, ErrDamaged) {
				t.Errorf("%s in %d pieces: a byte behind them: %v", name, n, err)
			}
		}
	}
}

// S12: whatever byte of a packed snapshot is changed, wherever it is cut, and whatever other bytes
// it is taken for.
func TestNoDamageGoesUnseen(t *testing.T) {
	t.Parallel()
	for name, raw := range samples() {
		packed, sum := Pack(raw)
		for i := range min(len(packed), 400) {
			bad := bytes.Clone(packed)
			bad[i] ^= 0x41
			if _, err := Unpack(bad, int64(len(raw)), sum); !errors.Is(err, ErrDamaged) {
				t.Fatalf("%s: byte %d changed: %v", name, i, err)
			}
			bad = old(packed)
			bad[min(i, len(bad)-1)] ^= 0x41
			if got, err := Unpack(bad, int64(len(raw)), sum); err == nil && !bytes.Equal(got, raw) {
				t.Fatalf("%s: byte %d of the old form changed, and other bytes came back without an error", name, i)
			} else if err != nil && !errors.Is(err, ErrDamaged) {
				t.Fatalf("%s: byte %d of the old form changed: %v does not wrap ErrDamaged", name, i, err)
			}
		}
		for n := range min(len(packed), 64) {
			if _, err := Unpack(packed[:n], int64(len(raw)), sum); !errors.Is(err, ErrDamaged) {
				t.Fatalf("%s: cut at %d: %v", name, n, err)
			}
		}
		if _, err := Unpack(packed, int64(len(raw)), Of([]byte("other"))); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: taken for other bytes: %v", name, err)
		}
	}
}

func TestWhatWasSealedUnderAWrongSumIsNotSealedAgain(t *testing.T) {
	t.Parallel()
	a, b := samples()["repeated"], samples()["hexadecimal"]
	if _, err := Repack(seal(pack(b, fast(), 0), Of(a)), int64(len(b)), Of(a)); !errors.Is(err, ErrDamaged) {
		t.Errorf("got %v", err)
	}
}

func TestSumsAreReadBack(t *testing.T) {
	t.Parallel()
	want := Of([]byte("x"))
	text, err := want.MarshalText()
	var got Sum
	if err != nil || got.UnmarshalText(text) != nil || got != want || string(text) != want.String() {
		t.Errorf("%v became %s and then %v", want, text, got)
	}
	for _, bad := range []string{"", "ab", strings.Repeat("g", 64), want.String() + "00"} {
		if err := got.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q is taken for a sum", bad)
		}
	}
}

// S12: bytes that nobody wrote are an error.
func FuzzUnpack(f *testing.F) {
	f.Add(seal(packPieces(large()["long hexadecimal"], 2), Sum{})[:1000])
	f.Add(seamless(large()["long hexadecimal"], 2)[:1000])
	for _, raw := range samples() {
		packed, _ := Pack(raw)
		f.Add(packed[:min(HeaderSize+500, len(packed))])
		f.Add(old(packed)[:min(plainHeader+500, len(packed)-sealSize)])
	}
	f.Fuzz(func(t *testing.T, packed []byte) {
		if _, err := Unpack(packed, int64(len(packed)), Sum{}); err == nil {
			t.Fatal("bytes with the sum 0 were found")
		}
	})
}

// S27: what unpacks to more than was stored is refused before it is unpacked, and what lies about
// it, as somebody could write it who can reach the store, takes no more memory than what is stored.
func TestS27ABombIsNotUnpacked(t *testing.T) {
	const stored = 1 << 20
	raw := make([]byte, 64<<20)
	sum := Of(raw)
	whole, inPieces := pack(raw, fast(), 0), packPieces(raw, 2)
	resized := func(packed []byte) []byte {
		packed = bytes.Clone(packed)
		binary.BigEndian.PutUint64(packed[8:], stored)
		return seal(packed, sum)
	}
	inside := bytes.Clone(whole) // the size behind the magic number and the descriptor of a single segment (RFC 8878, section 3.1.1)
	frame := inside[HeaderSize:]
	if binary.LittleEndian.Uint32(frame[5:]) != uint32(len(raw)) {
		t.Fatalf("the frame begins with % x", frame[:16])
	}
	binary.LittleEndian.PutUint32(frame[5:], stored)
	for name, packed := range map[string][]byte{
		"as it was packed": seal(whole, sum), "with a size that lies": resized(whole), "without a seal": old(resized(whole)), "in pieces": resized(inPieces),
		"with two sizes that lie": resized(inside), "with two sizes that lie and no seal": old(resized(inside)),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Unpack(packed, stored, sum)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 16<<20 {
			t.Errorf("%s: it took %d MiB", name, took>>20)
		}
	}
}
