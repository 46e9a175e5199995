package scan

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

// The file, little endian:
//
//	 0  8 bytes  magic
//	 8  uint16   version
//	10  uint8    log2 of the number of weights
//	11  uint8    number of spans
//	12  4 uint8  spans in blocks of 64 bytes, ascending, 0 beyond their number
//	16  float32  scale
//	20  float32  bias
//	24  uint32   0
//	28  uint32   CRC-32 (IEEE) of bytes 0 to 27 and of the weights
//	32  int8...  weights
const (
	magic      = "sbxscan\n"
	version    = 1
	headerSize = 32
	minBits    = 10
	maxBits    = 24
	maxSpans   = 4
)

// ErrFormat is wrapped by every error of Load.
var ErrFormat = errors.New("not a scan model")

// Load decodes a model in the format that the training writes. It does not retain data. It refuses,
// with an error that wraps ErrFormat, another version, a wrong length or checksum, and numbers that
// no training could have written.
func Load(data []byte) (*Scanner, error) {
	if len(data) < headerSize || string(data[:8]) != magic {
		return nil, fmt.Errorf("read header: %w", ErrFormat)
	}
	if v := binary.LittleEndian.Uint16(data[8:]); v != version {
		return nil, fmt.Errorf("version %d, want %d: %w", v, version, ErrFormat)
	}
	bits, spans := data[10], int(data[11])
	if bits < minBits || bits > maxBits || spans > maxSpans {
		return nil, fmt.Errorf("%d bits, %d spans: %w", bits, spans, ErrFormat)
	}
	weights := data[headerSize:]
	if len(weights) != 1<<bits {
		return nil, fmt.Errorf("%d weights, want %d: %w", len(weights), 1<<bits, ErrFormat)
	}
	sum := crc32.Update(crc32.ChecksumIEEE(data[:28]), crc32.IEEETable, weights)
	if want := binary.LittleEndian.Uint32(data[28:]); sum != want {
		return nil, fmt.Errorf("checksum %08x, want %08x: %w", sum, want, ErrFormat)
	}
	s := &Scanner{
		shift: 64 - uint(bits),
		scale: float64(math.Float32frombits(binary.LittleEndian.Uint32(data[16:]))),
		bias:  float64(math.Float32frombits(binary.LittleEndian.Uint32(data[20:]))),
	}
	if !(s.scale > 0 && s.scale < 1e6 && math.Abs(s.bias) < 1e6) { // also refuses NaN
		return nil, fmt.Errorf("scale %g, bias %g: %w", s.scale, s.bias, ErrFormat)
	}
	for i := range spans {
		span := int(data[12+i])
		if span == 0 || i > 0 && span <= s.spans[i-1] {
			return nil, fmt.Errorf("spans % d: %w", data[12:12+spans], ErrFormat)
		}
		s.spans = append(s.spans, span)
	}
	s.table = make([]int8, len(weights))
	for i, w := range weights {
		s.table[i] = int8(w)
	}
	return s, nil
}
