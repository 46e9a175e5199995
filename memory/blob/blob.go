// Package blob packs the bytes of contexts: compressed, with a header that describes how, and
// identified by the SHA-256 of the unpacked bytes. The packed form is the same in RAM and in Redis.
//
// It knows neither tiers nor tenants. All functions are safe for concurrent use. Pack computes the
// sum and the payload in parallel. The codecs are created by the first call and kept, and contain
// channels: a test binary that uses synctest must call Pack, Tighten and Unpack once before, Pack
// with more than Small bytes.
package blob

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// Sum identifies bytes by their SHA-256.
type Sum [sha256.Size]byte

// Of returns the sum of b.
func Of(b []byte) Sum { return sha256.Sum256(b) }

// String returns the sum in hexadecimal digits.
func (s Sum) String() string { return hex.EncodeToString(s[:]) }

// MarshalText returns the form of String.
func (s Sum) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, s[:]), nil }

// UnmarshalText parses the form of String.
func (s *Sum) UnmarshalText(b []byte) error {
	if len(b) != hex.EncodedLen(len(s)) {
		return fmt.Errorf("sum of %d characters, want %d", len(b), hex.EncodedLen(len(s)))
	}
	if _, err := hex.Decode(s[:], b); err != nil {
		return fmt.Errorf("read sum: %w", err)
	}
	return nil
}

// ErrDamaged is wrapped by the errors of Unpack: the packed bytes were changed or truncated.
var ErrDamaged = errors.New("damaged blob")

// HeaderSize is the length of the header before the payload, in bytes: the version, the codec, 1 if
// the payload is packed tightly and else 0, a zero byte, the id of the key that the payload is
// encrypted with (4 bytes, 0: not encrypted), the length of the unpacked bytes (8 bytes), numbers
// in big-endian order, and the seal.
const HeaderSize = plainHeader + sealSize

// sealSize is the length of the seal, the first half of a SHA-256 over the sum of the unpacked
// bytes, the header before it and the payload. Verifying it takes a third of the time of the sum
// itself, and damaged bytes do not reach the decoder.
const sealSize = sha256.Size / 2

// plainHeader is the length of the header without the seal, which is the header of version 1; there
// the sum was compared after unpacking.
const plainHeader = 16

// MaxSize is the maximum size of unpacked bytes; Pack refuses more.
const MaxSize = 1 << 30

const (
	unsealed = 1 // a version that is only read
	sealed   = 2
)

// codec is the encoding of the payload.
type codec byte

const (
	plain codec = iota
	zstandard
	pieces // only read; see pieces.go
	seamed
)

// Small is the size in bytes up to which Pack packs tightly immediately, which takes a millisecond
// at most.
const Small = 64 << 10

// Pack compresses raw and returns its sum too. It compresses fast (zstd "fastest"), because a
// client waits, and data up to Small tightly. Data that does not become smaller is stored
// uncompressed. It panics if raw is longer than MaxSize, which is a bug in the caller.
func Pack(raw []byte) (packed []byte, sum Sum) {
	if len(raw) <= Small {
		sum = Of(raw)
		return Tighten(raw, sum), sum
	}
	summed := make(chan Sum, 1)
	go func() { summed <- Of(raw) }()
	if n := pieceCount(len(raw)); n > 1 {
		packed = packPieces(raw, n)
	} else {
		packed = pack(raw, fast(), 0)
	}
	sum = <-summed
	return seal(packed, sum), sum
}

// Tighten is Pack for data that will rest, and whose sum is known: it takes two to three times as
// long (zstd "better") and saves about a tenth.
func Tighten(raw []byte, sum Sum) []byte { return seal(pack(raw, thorough(), 1), sum) }

// Repack packs the result of Pack tightly; size, sum and the error are those of Unpack. If the
// result is not smaller, the old form is kept and marked as tight.
func Repack(packed []byte, size int64, sum Sum) ([]byte, error) {
	raw, err := Unpack(packed, size, sum)
	if err != nil {
		return nil, err
	}
	if got := Of(raw); got != sum { // it would be sealed again
		return nil, fmt.Errorf("%w: sum is %v, want %v", ErrDamaged, got, sum)
	}
	tight := Tighten(raw, sum)
	if len(tight) >= len(packed) {
		tight = bytes.Clone(packed)
		tight[2] = 1
		if tight[0] == sealed {
			tight = seal(tight, sum)
		}
	}
	return tight, nil
}

// Tight reports whether packed bytes come from Tighten or Repack, or are not a blob.
func Tight(packed []byte) bool { return len(packed) < plainHeader || packed[2] == 1 }

// pack packs raw without a seal.
func pack(raw []byte, e *zstd.Encoder, tight byte) []byte {
	dst := header(raw, zstandard, tight, len(raw)/3)
	return kept(e.EncodeAll(raw, dst), raw)
}

// header returns a header without a seal and with room for a payload of room bytes.
func header(raw []byte, c codec, tight byte, room int) []byte {
	if len(raw) > MaxSize {
		panic(fmt.Sprintf("blob: %d bytes are over the limit of %d", len(raw), MaxSize))
	}
	dst := make([]byte, HeaderSize, HeaderSize+room)
	dst[0], dst[1], dst[2] = sealed, byte(c), tight
	binary.BigEndian.PutUint64(dst[8:], uint64(len(raw)))
	return dst
}

// kept returns the packed bytes to keep: raw uncompressed if they are not shorter, and without
// unused memory.
func kept(dst, raw []byte) []byte {
	if len(dst) >= HeaderSize+len(raw) {
		dst = append(dst[:HeaderSize], raw...)
		dst[1] = byte(plain)
	}
	if cap(dst)-len(dst) > len(dst)/32 {
		dst = append(make([]byte, 0, len(dst)), dst...) // it will be retained
	}
	return dst
}

// seal writes the seal of packed bytes into them and returns them.
func seal(packed []byte, sum Sum) []byte {
	s := sealOf(packed, sum)
	copy(packed[plainHeader:], s[:])
	return packed
}

func sealOf(packed []byte, sum Sum) (s [sealSize]byte) {
	h := sha256.New()
	_, _ = h.Write(sum[:]) // never fails
	_, _ = h.Write(packed[:plainHeader])
	_, _ = h.Write(packed[HeaderSize:])
	copy(s[:], h.Sum(nil))
	return s
}

// Unpack is the inverse of Pack. It returns the size bytes that were packed under the sum want,
// verified by the seal, or an error that wraps ErrDamaged. It never allocates more memory than
// that, whatever packed contains.
func Unpack(packed []byte, size int64, want Sum) ([]byte, error) {
	if len(packed) < plainHeader {
		return nil, fmt.Errorf("%w: %d bytes are no header", ErrDamaged, len(packed))
	}
	if packed[2] > 1 || packed[3] != 0 || binary.BigEndian.Uint32(packed[4:]) != 0 {
		return nil, fmt.Errorf("%w: header of an unknown kind", ErrDamaged)
	}
	if n := binary.BigEndian.Uint64(packed[8:]); size < 0 || size > MaxSize || n != uint64(size) {
		return nil, fmt.Errorf("%w: said to hold %d bytes, want %d", ErrDamaged, n, size)
	}
	switch {
	case packed[0] == sealed && len(packed) >= HeaderSize:
		if s := sealOf(packed, want); !bytes.Equal(s[:], packed[plainHeader:HeaderSize]) {
			return nil, fmt.Errorf("%w: the seal is not that of %v", ErrDamaged, want)
		}
		raw := make([]byte, size, size+slack)
		if err := decode(codec(packed[1]), packed[HeaderSize:], raw); err != nil {
			return nil, err
		}
		return raw[:size:size], nil // appending must not write into the slack
	case packed[0] == unsealed:
		raw := make([]byte, size, size+slack)
		if err := decode(codec(packed[1]), packed[plainHeader:], raw); err != nil {
			return nil, err
		}
		if got := Of(raw); got != want {
			return nil, fmt.Errorf("%w: sum is %v, want %v", ErrDamaged, got, want)
		}
		return raw[:size:size], nil
	}
	return nil, fmt.Errorf("%w: header of an unknown version", ErrDamaged)
}

// slack is the extra memory after unpacked bytes while they are decoded: with it, the decoder
// copies blocks of 16 bytes up to the end (klauspost/compress v1.20, zstd/blockdec.go,
// compressedBlockOverAlloc), which takes a seventh less time for 290 KiB of prose.
const slack = 16

// decode unpacks a payload into raw, which has slack after its end.
func decode(c codec, payload, raw []byte) error {
	switch c {
	case plain:
		if len(payload) != len(raw) {
			return fmt.Errorf("%w: %d bytes, want %d", ErrDamaged, len(payload), len(raw))
		}
		copy(raw, payload)
		return nil
	case zstandard:
		return unframe(payload, raw)
	case pieces:
		return unpackPieces(payload, raw, 0)
	case seamed:
		return unpackPieces(payload, raw, seamSize)
	}
	return fmt.Errorf("%w: unknown codec %d", ErrDamaged, c)
}

// unframe unpacks a frame with exactly len(raw) bytes into raw. It may write up to raw's capacity.
func unframe(frame, raw []byte) error {
	var h zstd.Header
	if err := h.Decode(frame); err != nil || !h.HasFCS || h.FrameContentSize != uint64(len(raw)) {
		return fmt.Errorf("%w: frame and header differ in size", ErrDamaged)
	}
	got, err := decoder().DecodeAll(frame, raw[:0])
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if len(got) != len(raw) {
		return fmt.Errorf("%w: %d bytes, want %d", ErrDamaged, len(got), len(raw))
	}
	return nil
}

// fast and thorough are shared: EncodeAll takes a free one of their inner encoders, so concurrency
// is bounded and there is no goroutine. A thorough inner encoder has tables of 4 MiB, and its
// window beside them, so there are few.
//
//nolint:gochecknoglobals // they cost megabytes, and have no state that a caller sees
var (
	fast     = sync.OnceValue(func() *zstd.Encoder { return encoder(zstd.SpeedFastest, runtime.GOMAXPROCS(0)) })
	thorough = sync.OnceValue(func() *zstd.Encoder { return encoder(zstd.SpeedBetterCompression, min(runtime.GOMAXPROCS(0), 4)) })
)

// window is how far back repeated text is found, in bytes. Each inner encoder keeps twice as much
// (klauspost/compress v1.20, zstd/enc_base.go, ensureHist), which is 16 MiB with the default of
// "better".
const window = 2 << 20

func encoder(level zstd.EncoderLevel, concurrency int) *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(level), zstd.WithEncoderConcurrency(concurrency),
		// the sum detects more than a CRC; a single segment stores the size
		zstd.WithWindowSize(window), zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true),
		// "fastest" would not compress digits without repetitions
		zstd.WithAllLitEntropyCompression(true))
	if err != nil {
		panic(err) // the options are constants
	}
	return e
}

// decoder is shared like fast.
//
//nolint:gochecknoglobals // see fast
var decoder = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(runtime.GOMAXPROCS(0)), zstd.WithDecoderMaxMemory(MaxSize))
	if err != nil {
		panic(err) // the options are constants
	}
	return d
})
