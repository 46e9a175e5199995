package oip

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"signalbox/internal/tensor"
)

// headerLength is the number of JSON bytes in a body; tensors follow.
const headerLength = "Inference-Header-Content-Length"

// binaryExtension is the name with which a server announces support for binary tensors.
const binaryExtension = "binary_tensor_data"

// The number types of the protocol.
const (
	typeBool   = "BOOL"
	typeUint8  = "UINT8"
	typeInt8   = "INT8"
	typeUint16 = "UINT16"
	typeInt16  = "INT16"
	typeUint32 = "UINT32"
	typeInt32  = "INT32"
	typeInt64  = "INT64"
	typeFP16   = "FP16"
	typeBF16   = "BF16"
	typeFP32   = "FP32"
	typeFP64   = "FP64"
)

// sizeOf returns the size of a number of a type in bytes; 0 for unsupported types.
func sizeOf(datatype string) int {
	switch datatype {
	case typeBool, typeUint8, typeInt8:
		return 1
	case typeUint16, typeInt16, typeFP16, typeBF16:
		return 2
	case typeUint32, typeInt32, typeFP32:
		return 4
	case typeInt64, typeFP64:
		return 8
	}
	return 0
}

// dtypeOf returns the internal type for numbers of a type.
func dtypeOf(datatype string) tensor.DType {
	switch datatype {
	case typeFP16, typeBF16, typeFP32, typeFP64:
		return tensor.Float32
	}
	if sizeOf(datatype) > 0 {
		return tensor.Int64
	}
	return tensor.Invalid
}

// datatypeOf returns the default wire type of a tensor.
func datatypeOf(d tensor.DType) string {
	if d == tensor.Float32 {
		return typeFP32
	}
	return typeInt64
}

// parameters are the parameters of the extension.
type parameters struct {
	BinarySize    *int64 `json:"binary_data_size,omitempty"`
	Binary        bool   `json:"binary_data,omitempty"`
	BinaryOutputs bool   `json:"binary_data_output,omitempty"`
}

// wireTensor is an input or an output in a body.
type wireTensor struct {
	Name       string          `json:"name"`
	Datatype   string          `json:"datatype,omitempty"`
	Shape      []int64         `json:"shape,omitempty"`
	Parameters *parameters     `json:"parameters,omitempty"`
	Data       json.RawMessage `json:"data,omitempty"`
}

type inferRequest struct {
	ID         string       `json:"id,omitempty"`
	Parameters *parameters  `json:"parameters,omitempty"`
	Inputs     []wireTensor `json:"inputs"`
	Outputs    []wireTensor `json:"outputs,omitempty"`
}

type inferResponse struct {
	Model   string       `json:"model_name"`
	Version string       `json:"model_version,omitempty"`
	ID      string       `json:"id,omitempty"`
	Outputs []wireTensor `json:"outputs"`
}

type wireError struct {
	Error string `json:"error"`
}

// Metadata describes a model to its clients.
type Metadata struct {
	Name     string         `json:"name"`
	Versions []string       `json:"versions,omitempty"`
	Platform string         `json:"platform"`
	Inputs   []TensorDetail `json:"inputs"`
	Outputs  []TensorDetail `json:"outputs"`
}

// TensorDetail describes an input or an output; a dimension of -1 is dynamic.
type TensorDetail struct {
	Name     string  `json:"name"`
	Datatype string  `json:"datatype"`
	Shape    []int64 `json:"shape"`
}

// serverMetadata describes a server.
type serverMetadata struct {
	Name       string   `json:"name"`
	Version    string   `json:"version"`
	Extensions []string `json:"extensions"`
}

// mostElements limits the size of a tensor that is read, so that a shape cannot exhaust memory: 64
// Mi numbers.
const mostElements = 64 << 20

// elements returns the number of elements of a shape, or an error for an invalid or too large
// shape.
func elements(shape []int64) (int, error) {
	n := int64(1)
	for _, d := range shape {
		if d < 0 || d > mostElements {
			return 0, fmt.Errorf("shape %v cannot be", shape)
		}
		if n *= d; n > mostElements {
			return 0, fmt.Errorf("shape %v has more than %d elements", shape, mostElements)
		}
	}
	return int(n), nil
}

// appendBinary appends the numbers of t in the binary form of a type, little-endian.
func appendBinary(dst []byte, t *tensor.Tensor, datatype string) ([]byte, error) {
	switch datatype {
	case typeInt64:
		for _, v := range t.I64 {
			dst = binary.LittleEndian.AppendUint64(dst, uint64(v))
		}
	case typeInt32:
		for _, v := range t.I64 {
			if int64(int32(v)) != v {
				return nil, fmt.Errorf("tensor %q holds %d, the model takes INT32", t.Name, v)
			}
			dst = binary.LittleEndian.AppendUint32(dst, uint32(v))
		}
	case typeFP32:
		for _, v := range t.F32 {
			dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(v))
		}
	default:
		return nil, fmt.Errorf("tensor %q: the model takes %s, which cannot be given", t.Name, datatype)
	}
	return dst, nil
}

// readBinary fills t from the binary form of a type.
func readBinary(t *tensor.Tensor, datatype string, b []byte, n int) error {
	if size := sizeOf(datatype); size == 0 || len(b) != n*size {
		return fmt.Errorf("tensor %q: %d bytes for %d numbers of type %q", t.Name, len(b), n, datatype)
	}
	if dtypeOf(datatype) == tensor.Float32 {
		t.F32 = make([]float32, n)
		for i := range t.F32 {
			t.F32[i] = readFloat(datatype, b, i)
		}
		return nil
	}
	t.I64 = make([]int64, n)
	for i := range t.I64 {
		t.I64[i] = readInt(datatype, b, i)
	}
	return nil
}

func readFloat(datatype string, b []byte, i int) float32 {
	switch datatype {
	case typeFP32:
		return math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	case typeFP64:
		return float32(math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:])))
	case typeBF16:
		return math.Float32frombits(uint32(binary.LittleEndian.Uint16(b[2*i:])) << 16)
	}
	return fromHalf(binary.LittleEndian.Uint16(b[2*i:]))
}

func readInt(datatype string, b []byte, i int) int64 {
	switch datatype {
	case typeInt64:
		return int64(binary.LittleEndian.Uint64(b[8*i:]))
	case typeInt32:
		return int64(int32(binary.LittleEndian.Uint32(b[4*i:])))
	case typeUint32:
		return int64(binary.LittleEndian.Uint32(b[4*i:]))
	case typeInt16:
		return int64(int16(binary.LittleEndian.Uint16(b[2*i:])))
	case typeUint16:
		return int64(binary.LittleEndian.Uint16(b[2*i:]))
	case typeInt8:
		return int64(int8(b[i]))
	}
	return int64(b[i])
}

// fromHalf converts an IEEE 754 binary16 number: 1 sign bit, 5 bits of exponent with a bias of 15,
// 10 bits of fraction.
func fromHalf(h uint16) float32 {
	sign, exponent, fraction := uint32(h>>15)<<31, uint32(h>>10)&0x1f, uint32(h&0x3ff)
	switch exponent {
	case 0x1f: // infinity or not a number
		return math.Float32frombits(sign | 0xff<<23 | fraction<<13)
	case 0: // fraction * 2^-24
		v := float32(fraction) / (1 << 24)
		if sign != 0 {
			v = -v
		}
		return v
	}
	return math.Float32frombits(sign | (exponent+127-15)<<23 | fraction<<13)
}

// appendJSON appends the numbers of t as a flat JSON array. JSON cannot represent numbers that are
// not finite.
func appendJSON(dst []byte, t *tensor.Tensor) ([]byte, error) {
	dst = append(dst, '[')
	for i, v := range t.I64 {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, v, 10)
	}
	for i, v := range t.F32 {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return nil, fmt.Errorf("tensor %q holds %v, which JSON cannot hold", t.Name, v)
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendFloat(dst, float64(v), 'g', -1, 32)
	}
	return append(dst, ']'), nil
}

// deepest is the maximum nesting of arrays.
const deepest = 16

// readJSON fills t from a JSON array of n numbers, flat or nested, both of which the protocol
// allows. data is valid JSON. Memory use is limited to that of the numbers.
func readJSON(t *tensor.Tensor, datatype string, data json.RawMessage, n int) error {
	number := func(text string) error {
		if len(t.F32)+len(t.I64) == n {
			return errors.New("more numbers than its shape has")
		}
		if dtypeOf(datatype) == tensor.Float32 {
			v, err := strconv.ParseFloat(text, 32)
			if err != nil {
				return fmt.Errorf("%.40q is not of type %s", text, datatype)
			}
			t.F32 = append(t.F32, float32(v))
			return nil
		}
		v, err := readInteger(text)
		if err != nil {
			return fmt.Errorf("%.40q is not of type %s", text, datatype)
		}
		t.I64 = append(t.I64, v)
		return nil
	}
	switch dtypeOf(datatype) {
	case tensor.Float32:
		t.F32 = []float32{}
	case tensor.Int64:
		t.I64 = []int64{}
	case tensor.Invalid:
		return fmt.Errorf("tensor %q has type %q, which cannot be read", t.Name, datatype)
	}
	if err := eachNumber(data, number); err != nil {
		return fmt.Errorf("tensor %q: %w", t.Name, err)
	}
	if have := len(t.F32) + len(t.I64); have != n {
		return fmt.Errorf("tensor %q: %d numbers, its shape has %d", t.Name, have, n)
	}
	return nil
}

// readInteger reads an integer; some servers write one as 3.0, and BOOL as true and false.
func readInteger(text string) (int64, error) {
	switch text {
	case "true":
		return 1, nil
	case "false":
		return 0, nil
	}
	if v, err := strconv.ParseInt(text, 10, 64); err == nil {
		return v, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, errors.New("not an integer")
	}
	return int64(f), nil
}

// eachNumber calls f with each literal of nested arrays that contain neither strings nor objects.
func eachNumber(data []byte, f func(text string) error) error {
	depth := 0
	for i := 0; i < len(data); {
		switch c := data[i]; c {
		case ' ', '\t', '\n', '\r', ',':
			i++
		case '[':
			if depth++; depth > deepest {
				return fmt.Errorf("nested deeper than %d", deepest)
			}
			i++
		case ']':
			depth--
			i++
		case '"', '{':
			return errors.New("not an array of numbers")
		default:
			end := i
			for end < len(data) && strings.IndexByte(" \t\n\r,]", data[end]) < 0 {
				end++
			}
			if err := f(string(data[i:end])); err != nil {
				return err
			}
			i = end
		}
	}
	return nil
}

// readTensors reads the tensors of a body: those with a size from the bytes after the JSON, in
// order, the others from the JSON itself.
func readTensors(list []wireTensor, blobs []byte) ([]tensor.Tensor, error) {
	out := make([]tensor.Tensor, len(list))
	for i := range list {
		w := &list[i]
		t := tensor.Tensor{Name: w.Name, Shape: w.Shape}
		n, err := elements(w.Shape)
		if err != nil {
			return nil, fmt.Errorf("tensor %q: %w", w.Name, err)
		}
		switch {
		case w.Parameters != nil && w.Parameters.BinarySize != nil:
			size := *w.Parameters.BinarySize
			if size < 0 || size > int64(len(blobs)) {
				return nil, fmt.Errorf("tensor %q: %d bytes, the body has %d left", w.Name, size, len(blobs))
			}
			err = readBinary(&t, w.Datatype, blobs[:size], n)
			blobs = blobs[size:]
		default:
			err = readJSON(&t, w.Datatype, w.Data, n)
		}
		if err != nil {
			return nil, err
		}
		out[i] = t
	}
	if len(blobs) > 0 {
		return nil, fmt.Errorf("%d bytes belong to no tensor", len(blobs))
	}
	return out, nil
}

// splitBody splits a body into its JSON and the bytes after it. length is the value of
// headerLength, empty if the whole body is JSON.
func splitBody(body []byte, length string) (header, blobs []byte, err error) {
	if length == "" {
		return body, nil, nil
	}
	n, err := strconv.Atoi(length)
	if err != nil || n < 0 || n > len(body) {
		return nil, nil, fmt.Errorf("%s: %q of a body of %d bytes", headerLength, length, len(body))
	}
	return body[:n], body[n:], nil
}

// wrap creates the wire form of tensors. blobs are the bytes that follow the JSON.
func wrap(list []tensor.Tensor, types []string, asBytes func(i int) bool) (out []wireTensor, blobs []byte, err error) {
	out = make([]wireTensor, len(list))
	for i := range list {
		t := &list[i]
		out[i] = wireTensor{Name: t.Name, Datatype: types[i], Shape: t.Shape}
		if !asBytes(i) {
			if out[i].Data, err = appendJSON(nil, t); err != nil {
				return nil, nil, err
			}
			continue
		}
		from := len(blobs)
		if blobs, err = appendBinary(blobs, t, types[i]); err != nil {
			return nil, nil, err
		}
		size := int64(len(blobs) - from)
		out[i].Parameters = &parameters{BinarySize: &size}
	}
	return out, blobs, nil
}
