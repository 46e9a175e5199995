package lean

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

// The file of a Head, little endian, for d components of an embedding and n units:
//
//	 0  8 bytes     magic
//	 8  uint16      version
//	10  uint16      d
//	12  uint16      n
//	14  uint16      0
//	16  uint32      CRC-32 (IEEE) of all that follows
//	20  float32     bias of the output
//	    n units of: float32 scale, float32 bias, float32 weight of its output,
//	                NumFeatures float32, 2*d int8
const (
	headMagic   = "sbxturns"
	headVersion = 1
	headStart   = 20
	maxDims     = 4 << 10
	maxUnits    = 1 << 10
)

// ErrHead is in the chain of every error of LoadHead.
var ErrHead = errors.New("not a head for turns")

// Head weighs the features of a turn together with its embedding and with the product, component by
// component, of that and the embedding of the turn before: a layer of units with GELU, and their
// sum. It knows the embeddings of one model. It is immutable.
type Head struct {
	dims  int
	bias  float64
	units []unit
}

type unit struct {
	features  [NumFeatures]float64
	bias, out float64
	scale     float64
	own, both []int8 // weights of the embedding and of the product, times scale
}

// Dims is the number of components of the embeddings.
func (h *Head) Dims() int { return h.dims }

// LoadHead reads a head in the format that the training writes. It keeps no reference to data. It
// refuses, with an error that wraps ErrHead, another version, a wrong length or checksum, and
// numbers that are none.
func LoadHead(data []byte) (*Head, error) {
	if len(data) < headStart || string(data[:8]) != headMagic {
		return nil, fmt.Errorf("read header: %w", ErrHead)
	}
	if v := binary.LittleEndian.Uint16(data[8:]); v != headVersion {
		return nil, fmt.Errorf("version %d, want %d: %w", v, headVersion, ErrHead)
	}
	dims, units := int(binary.LittleEndian.Uint16(data[10:])), int(binary.LittleEndian.Uint16(data[12:]))
	size := 4*(3+NumFeatures) + 2*dims
	switch {
	case dims == 0 || dims > maxDims || units == 0 || units > maxUnits:
		return nil, fmt.Errorf("%d components, %d units: %w", dims, units, ErrHead)
	case len(data) != headStart+4+units*size:
		return nil, fmt.Errorf("%d bytes, want %d: %w", len(data), headStart+4+units*size, ErrHead)
	}
	if sum, want := crc32.ChecksumIEEE(data[headStart:]), binary.LittleEndian.Uint32(data[16:]); sum != want {
		return nil, fmt.Errorf("checksum %08x, want %08x: %w", sum, want, ErrHead)
	}
	r := reader{data: data[headStart:]}
	h := &Head{dims: dims, bias: r.float(), units: make([]unit, units)}
	for i := range h.units {
		u := &h.units[i]
		u.scale, u.bias, u.out = r.float(), r.float(), r.float()
		for k := range u.features {
			u.features[k] = r.float()
		}
		u.own, u.both = r.bytes(dims), r.bytes(dims)
	}
	if r.odd {
		return nil, fmt.Errorf("a weight that is no number: %w", ErrHead)
	}
	return h, nil
}

// reader takes numbers from the front of data, which is long enough.
type reader struct {
	data []byte
	odd  bool // one of them was none
}

func (r *reader) float() float64 {
	v := float64(math.Float32frombits(binary.LittleEndian.Uint32(r.data)))
	r.data = r.data[4:]
	r.odd = r.odd || math.IsNaN(v) || math.IsInf(v, 0)
	return v
}

func (r *reader) bytes(n int) []int8 {
	out := make([]int8, n)
	for i := range out {
		out[i] = int8(r.data[i])
	}
	r.data = r.data[n:]
	return out
}

// LogOdds is Turn.LogOdds by what the head makes of embeddings: own is that of t and before that of
// the turn before it, each of Dims components.
func (h *Head) LogOdds(t *Turn, near []*Turn, cosine float64, own, before []float32) float64 {
	x := t.Features(near, cosine)
	a, b := unitLength(own), unitLength(before)
	z := h.bias
	for i := range h.units {
		z += h.units[i].of(&x, own, before, a, b)
	}
	return t.least(z)
}

// of is what a unit adds. The factors give the embeddings the length that the training had.
func (u *unit) of(x *[NumFeatures]float64, own, before []float32, a, b float64) float64 {
	v := u.bias
	for i, f := range x {
		v += u.features[i] * f
	}
	var single, product float32
	for i, o := range own {
		single += float32(u.own[i]) * o
		product += float32(u.both[i]) * o * before[i]
	}
	v += u.scale * a * (float64(single) + b*float64(product))
	return u.out * v * (1 + math.Erf(v/math.Sqrt2)) / 2
}

// unitLength is the factor that brings the components of v to a mean square of 1; 0 for no direction.
func unitLength(v []float32) float64 {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if sum == 0 {
		return 0
	}
	return math.Sqrt(float64(len(v)) / sum)
}
