// Package blob packs the bytes of contexts: compressed, with a header that tells how, and named by
// the SHA-256 of what they hold. The packed form is the same in RAM and in Redis.
//
// It knows neither tiers nor tenants. All functions are safe for concurrent use. Pack works on the
// sum and the payload side by side. The codecs are made by the first call and kept, with channels
// inside: a test binary that uses synctest must call Pack, Tighten and Unpack once before, Pack
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

// Sum names bytes by their SHA-256.
type Sum [sha256.Size]byte

// Of is the sum of b.
func Of(b []byte) Sum { return sha256.Sum256(b) }

// String is the sum in hexadecimal digits.
func (s Sum) String() string { return hex.EncodeToString(s[:]) }

// MarshalText is the form of String.
func (s Sum) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, s[:]), nil }

// UnmarshalText reads the form of String.
func (s *Sum) UnmarshalText(b []byte) error {
	if len(b) != hex.EncodedLen(len(s)) {
		return fmt.Errorf("sum of %d characters, want %d", len(b), hex.EncodedLen(len(s)))
	}
	if _, err := hex.Decode(s[:], b); err != nil {
		return fmt.Errorf("read sum: %w", err)
	}
	return nil
}

// ErrDamaged is wrapped by the errors of Unpack: the packed bytes are not what was packed.
var ErrDamaged = errors.New("damaged blob")

// HeaderSize is the length of the header in front of the payload, in bytes: the version, the codec,
// 1 when the payload is packed tightly and else 0, a zero byte, the id of the key that the payload
// is encrypted with (4 bytes, 0: not encrypted), the length of the unpacked bytes (8 bytes),
// numbers in big-endian order, and the seal.
const HeaderSize = plainHeader + sealSize

// The seal is the first half of a SHA-256 over the sum of the unpacked bytes, the header before it
// and the payload. It is a third as long to work out as the sum itself, and damaged bytes do not
// reach the decoder.
const sealSize = sha256.Size / 2

// plainHeader is the length of the header without the seal, which is that of version 1; there the
// sum was compared after unpacking.
const plainHeader = 16

// MaxSize is the most that Unpack makes of one blob, in bytes; Pack refuses more.
const MaxSize = 1 << 30

const (
	unsealed = 1 // version, only read
	sealed   = 2
)

// codec is how the payload is spelled.
type codec byte

const (
	plain codec = iota
	zstandard
	pieces // only read; see pieces.go
	seamed
)

// Small is up to how many bytes Pack packs tightly at once: that takes a millisecond at most.
const Small = 64 << 10

// Pack compresses raw and returns its sum too: fast (zstd "fastest"), so that nobody waits, but
// what is Small tightly. What does not become smaller is kept as it is. raw is at most MaxSize
// bytes long; longer is a bug of the caller and panics.
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

// Tighten is Pack for bytes that will rest, whose sum is known: it takes two to three times as long
// (zstd "better") and saves a tenth or so.
func Tighten(raw []byte, sum Sum) []byte { return seal(pack(raw, thorough(), 1), sum) }

// Repack packs tightly what Pack has packed; size and sum are those of Unpack, as is the error.
// What does not become smaller stays as it is, and counts as tight.
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

// Tight tells whether packed bytes are from Tighten or Repack, or no blob.
func Tight(packed []byte) bool { return len(packed) < plainHeader || packed[2] == 1 }

// pack leaves the seal open.
func pack(raw []byte, e *zstd.Encoder, tight byte) []byte {
	dst := header(raw, zstandard, tight, len(raw)/3)
	return kept(e.EncodeAll(raw, dst), raw)
}

// header is an open header with room for a payload of some bytes behind it.
func header(raw []byte, c codec, tight byte, room int) []byte {
	if len(raw) > MaxSize {
		panic(fmt.Sprintf("blob: %d bytes are over the limit of %d", len(raw), MaxSize))
	}
	dst := make([]byte, HeaderSize, HeaderSize+room)
	dst[0], dst[1], dst[2] = sealed, byte(c), tight
	binary.BigEndian.PutUint64(dst[8:], uint64(len(raw)))
	return dst
}

// kept is what is kept of packed bytes: raw as it is where they are no shorter, and no more memory
// than they need.
func kept(dst, raw []byte) []byte {
	if len(dst) >= HeaderSize+len(raw) {
		dst = append(dst[:HeaderSize], raw...)
		dst[1] = byte(plain)
	}
	if cap(dst)-len(dst) > len(dst)/32 {
		dst = append(make([]byte, 0, len(dst)), dst...) // it will be kept
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
	_, _ = h.Write(sum[:]) // it never fails
	_, _ = h.Write(packed[:plainHeader])
	_, _ = h.Write(packed[HeaderSize:])
	copy(s[:], h.Sum(nil))
	return s
}

// Unpack is the inverse of Pack. It returns size bytes that were packed under the sum want, as the
// seal says, or an error that wraps ErrDamaged; it never takes more memory than that, whatever
// packed says.
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
		return raw[:size:size], nil // what is appended to it must not come to lie in the slack
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

// slack is how much memory is behind unpacked bytes while they are made: with as much, the decoder
// copies blocks of 16 bytes up to the end (klauspost/compress v1.20, zstd/blockdec.go,
// compressedBlockOverAlloc), which takes a seventh less time for 290 KiB of prose.
const slack = 16

// decode unpacks a payload into raw, which has slack behind its end.
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

// unframe unpacks a frame that holds as many bytes as raw, into raw. It may write up to its
// capacity.
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
		zstd.WithWindowSize(window), zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true), // the sum checks more than a CRC; one segment writes the size
		zstd.WithAllLitEntropyCompression(true)) // "fastest" would keep digits that repeat nothing as they are
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
