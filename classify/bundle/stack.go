package bundle

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"signalbox/internal/wire"
)

// ErrUnlike reports adapters that cannot be combined into one graph.
var ErrUnlike = errors.New("adapters of different forms")

// Field numbers of onnx.proto3 for the value of an initializer.
const (
	tensorDims     = 1
	tensorDataType = 2

	tensorFloat = 1 // data_type
	floatBytes  = 4
)

// stackRank is the maximum number of axes of a stacked value.
const stackRank = 4

// ownValue is an initializer of one adapter alone: float32 of dims, little-endian.
type ownValue struct {
	dims []int
	data []byte
}

// Stack returns the model of several adapters as one: the frozen layers, which all of them share,
// run once over the rows of all, and the values of each adapter alone are concatenated along their
// first axis. Adapters with a smaller rank, width or number of labels are zero-padded. The result
// is exact for operators that map zeros to zeros, such as products, sums and Gelu, but not for
// others (a softmax over labels); the caller has to compare results. The inputs are those of the
// adapters. The output logits is float32 [rows, adapters, widest], where the first Width numbers of
// adapter i equal those of its own graph, except for rounding.
//
// Errors wrap ErrUnlike if the adapters do not have the same Form or would together exceed
// MaxAdapterBytes, and ErrGraph.
func Stack(list []*Adapter) ([]byte, error) {
	if len(list) == 0 {
		return nil, fmt.Errorf("%w: there is none", ErrUnlike)
	}
	values := make([]map[string]ownValue, len(list))
	for i, a := range list {
		if a.Form == "" || a.Form != list[0].Form {
			return nil, fmt.Errorf("%w: %d of them", ErrUnlike, len(list))
		}
		var err error
		if _, values[i], err = a.form(a.File); err != nil {
			return nil, err
		}
	}
	var model, graph []byte
	err := wire.Fields(list[0].File, func(num int, field, body []byte) error {
		switch num {
		case modelMetadata: // describes one adapter
		case modelGraph:
			return wire.Fields(body, func(num int, field, body []byte) error {
				name := initializer(num, body)
				if !slices.Contains(list[0].Stack, name) {
					graph = append(graph, field...)
					return nil
				}
				value, err := stacked(name, values, MaxAdapterBytes-len(graph))
				graph = append(graph, value...)
				return err
			})
		default:
			model = append(model, field...)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return wire.AppendMessage(model, modelGraph, graph), nil
}

// initializer returns the name of an initializer, given a field of a graph; empty for other fields.
func initializer(num int, body []byte) (name string) {
	if num != graphInitializer {
		return ""
	}
	// An error is reported when the value is read.
	_ = wire.Fields(body, func(num int, _, body []byte) error {
		if num == tensorName {
			name = string(body)
		}
		return nil
	})
	return name
}

// form returns the digest of everything that adapters need to have in common to be stacked (the
// model without the description and the values of this adapter alone), and these values.
func (a *AdapterInfo) form(file []byte) (string, map[string]ownValue, error) {
	if len(a.Stack) == 0 {
		return "", nil, nil
	}
	own, sum := make(map[string]ownValue), sha256.New()
	inGraph := func(num int, field, body []byte) error {
		name := initializer(num, body)
		if name == "" || !slices.Contains(a.Stack, name) {
			_, _ = sum.Write(field) // never fails
			return nil
		}
		if _, twice := own[name]; twice {
			return fmt.Errorf("%w: stack: %q is there twice", ErrAdapter, name)
		}
		v, err := readOwn(body)
		if err != nil {
			return fmt.Errorf("%w: stack: %q: %w", ErrAdapter, name, err)
		}
		own[name] = v
		_, _ = fmt.Fprintf(sum, "%q %d\n", name, len(v.dims))
		return nil
	}
	err := wire.Fields(file, func(num int, field, body []byte) error {
		switch num {
		case modelMetadata:
		case modelGraph:
			return wire.Fields(body, inGraph)
		default: // operators and their versions
			_, _ = sum.Write(field)
		}
		return nil
	})
	if err != nil {
		return "", nil, err
	}
	for _, name := range a.Stack {
		if _, ok := own[name]; !ok {
			return "", nil, fmt.Errorf("%w: stack: the graph has no value %q", ErrAdapter, name)
		}
	}
	_, _ = sum.Write([]byte(a.Base.SHA256))
	return hex.EncodeToString(sum.Sum(nil)), own, nil
}

// readOwn reads a value of one adapter alone from its TensorProto.
func readOwn(tensor []byte) (v ownValue, err error) {
	typ := uint64(0)
	err = wire.Values(tensor, func(num int, body []byte, n uint64) (err error) {
		switch num {
		case tensorDims:
			v.dims, err = wire.Ints(v.dims, body, n)
		case tensorDataType:
			typ = n
		case tensorRaw:
			v.data = body
		}
		return err
	})
	if err != nil {
		return v, err
	}
	size := len(v.data) / floatBytes
	for _, d := range v.dims {
		if d <= 0 || size%d != 0 {
			return v, fmt.Errorf("%d bytes are not float32 of %v", len(v.data), v.dims)
		}
		size /= d
	}
	if typ != tensorFloat || size != 1 || len(v.data)%floatBytes != 0 ||
		len(v.dims) < 2 || len(v.dims) > stackRank || v.dims[0] != 1 {
		return v, fmt.Errorf("it is not float32 [1, ...] of 2 to %d axes that stands in the graph", stackRank)
	}
	return v, nil
}

// stacked returns the graph field that holds the concatenated values of a name, of at most room
// bytes.
func stacked(name string, values []map[string]ownValue, room int) ([]byte, error) {
	most := slices.Clone(values[0][name].dims)
	for _, own := range values[1:] {
		for axis, d := range own[name].dims {
			most[axis] = max(most[axis], d)
		}
	}
	size := floatBytes
	for _, d := range most {
		if size *= d; size > room/len(values) {
			return nil, fmt.Errorf("%w: together they are larger than %d bytes", ErrUnlike, MaxAdapterBytes)
		}
	}
	data := make([]byte, len(values)*size)
	for i, own := range values {
		corner(data[i*size:(i+1)*size], most, own[name].data, own[name].dims)
	}
	most[0] = len(values)
	var tensor []byte
	for _, d := range most {
		tensor = wire.AppendNumber(tensor, tensorDims, uint64(d))
	}
	tensor = wire.AppendNumber(tensor, tensorDataType, tensorFloat)
	tensor = wire.AppendMessage(tensor, tensorName, []byte(name))
	return wire.AppendMessage(nil, graphInitializer, wire.AppendMessage(tensor, tensorRaw, data)), nil
}

// corner copies numbers of shape dims into the corner of an array of shape most, whose numbers are
// 0.
func corner(to []byte, most []int, from []byte, dims []int) {
	if len(dims) == 1 {
		copy(to, from)
		return
	}
	step, take := len(to)/most[0], len(from)/dims[0]
	for i := range dims[0] {
		corner(to[i*step:(i+1)*step], most[1:], from[i*take:(i+1)*take], dims[1:])
	}
}
