// Package tensor defines the type shared by classify, which interprets the numbers, and gpu, which
// computes them: a name, a shape and one flat slice. It has no dependencies and no behaviour beyond
// checking its own consistency.
package tensor

import (
	"errors"
	"fmt"
)

// DType is the element type of a tensor.
type DType uint8

// The element types that are exchanged. Package gpu widens half-precision outputs to Float32.
const (
	Invalid DType = iota
	Float32
	Int64
)

// String returns the ONNX name of the type.
func (d DType) String() string {
	switch d {
	case Float32:
		return "float32"
	case Int64:
		return "int64"
	case Invalid:
		return "invalid"
	}
	return fmt.Sprintf("dtype(%d)", uint8(d))
}

// Dynamic marks a dimension of a Spec that is chosen per run, such as batch or sequence length.
const Dynamic = -1

// ErrShape reports a tensor whose slice does not hold exactly the elements of its shape.
var ErrShape = errors.New("shape and data disagree")

// Tensor is a dense row-major array. Exactly one of I64 and F32 is in use, depending on DType. The
// slice is borrowed: its creator owns it again when the call that received it returns.
type Tensor struct {
	Name  string
	Shape []int64
	I64   []int64
	F32   []float32
}

// DType reports which of the slices holds the data.
func (t *Tensor) DType() DType {
	switch {
	case t.F32 != nil:
		return Float32
	case t.I64 != nil:
		return Int64
	}
	return Invalid
}

// Len is the number of elements in Shape, or -1 if a dimension is negative.
func (t *Tensor) Len() int64 {
	n := int64(1)
	for _, d := range t.Shape {
		if d < 0 {
			return -1
		}
		n *= d
	}
	return n
}

// Check returns ErrShape if the data does not fill the shape exactly.
func (t *Tensor) Check() error {
	have := int64(len(t.I64))
	if t.F32 != nil {
		have = int64(len(t.F32))
	}
	if want := t.Len(); want != have {
		return fmt.Errorf("tensor %q: shape %v wants %d elements, has %d: %w", t.Name, t.Shape, want, have, ErrShape)
	}
	return nil
}

// Spec describes one input or output of a graph. A dimension is Dynamic if the graph leaves it
// open.
type Spec struct {
	Name  string
	DType DType
	Shape []int64
}
