package lean

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
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

// ErrHead is wrapped by every error of LoadHead.
var ErrHead = errors.New("not a head for turns")

// Head combines the features of a turn with its embedding and with the component-wise product of
// that and the embedding of the previous turn: a layer of units with GELU, and their weighted sum.
// It is trained for the embeddings of one model. It is immutable.
type Head struct {
	dims  int
	bias  float64
	units []unit
}

type unit struct {
	fixed struct {
		Scale, Bias, Out float32
		Features         [NumFeatures]float32
	}
	own, both []int8 // weights of the embedding and of the product, times Scale
}

// Dims returns the number of components of the embeddings.
func (h *Head) Dims() int { return h.dims }

// LoadHead decodes a head in the format that the training writes. It does not retain data. It
// refuses, with an error that wraps ErrHead, another version, a wrong length or checksum, and
// weights that are not numbers.
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
	body := bytes.NewReader(data[headStart:]) // the length has been checked
	read := func(to any) { _ = binary.Read(body, binary.LittleEndian, to) }
	var bias float32
	read(&bias)
	h := &Head{dims: dims, bias: float64(bias), units: make([]unit, units)}
	for i := range h.units {
		u := &h.units[i]
		u.own, u.both = make([]int8, dims), make([]int8, dims)
		read(&u.fixed)
		read(u.own)
		read(u.both)
	}
	if !h.finite() {
		return nil, fmt.Errorf("a weight that is no number: %w", ErrHead)
	}
	return h, nil
}

// finite reports whether all weights are numbers.
func (h *Head) finite() bool {
	odd := func(x float32) bool { return math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) }
	return !odd(float32(h.bias)) && !slices.ContainsFunc(h.units, func(u unit) bool {
		f := &u.fixed
		return odd(f.Scale) || odd(f.Bias) || odd(f.Out) || slices.ContainsFunc(f.Features[:], odd)
	})
}

// LogOdds is Turn.LogOdds computed from embeddings by the head: own is that of t and before that of
// the previous turn, each of Dims components.
func (h *Head) LogOdds(t *Turn, near []*Turn, cosine float64, own, before []float32) float64 {
	x := t.Features(near, cosine)
	a := unitLength(own)
	b := a * unitLength(before)
	both := make([]float32, len(own))
	for i, o := range own {
		both[i] = o * before[i]
	}
	z := h.bias
	for i := range h.units {
		u := &h.units[i]
		v := float64(u.fixed.Bias) + float64(u.fixed.Scale)*(a*dot(u.own, own)+b*dot(u.both, both))
		for k, f := range x {
			v += float64(u.fixed.Features[k]) * f
		}
		z += float64(u.fixed.Out) * v * (1 + math.Erf(v/math.Sqrt2)) / 2
	}
	return t.least(z)
}

func dot(w []int8, v []float32) float64 {
	var sum float32
	for i, x := range v {
		sum += float32(w[i]) * x
	}
	return float64(sum)
}

// unitLength returns the factor that scales the components of v to a mean square of 1, as in the
// training; 0 without a direction.
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
