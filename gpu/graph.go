package gpu

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"signalbox/internal/tensor"
	"signalbox/internal/wire"
)

// Field numbers of onnx.proto3 (onnx/onnx 1.23, IR version 13) and values of TensorProto.DataType.
const (
	modelGraph       = 7
	modelOpset       = 8
	modelFunctions   = 25
	opsetDomain      = 1
	opsetVersion     = 2
	graphNode        = 1
	graphInitializer = 5
	graphInput       = 11
	graphOutput      = 12
	graphSparse      = 15
	nodeInput        = 1
	nodeOutput       = 2
	nodeName         = 3
	nodeOpType       = 4
	nodeAttribute    = 5
	nodeDomain       = 7
	attributeName    = 1
	attributeInt     = 3
	attributeGraph   = 6
	attributeGraphs  = 11
	attributeType    = 20
	attributeTypeInt = 2
	tensorDims       = 1
	tensorDataType   = 2
	tensorName       = 8
	tensorRawData    = 9
	valueName        = 1
	valueType        = 2
	typeTensor       = 1
	tensorElem       = 1
	tensorShape      = 2
	shapeDim         = 1
	dimValue         = 1
)

type elemType uint64

const (
	elemFloat    elemType = 1
	elemUint8    elemType = 2
	elemInt8     elemType = 3
	elemUint16   elemType = 4
	elemInt16    elemType = 5
	elemInt32    elemType = 6
	elemInt64    elemType = 7
	elemBool     elemType = 9
	elemFloat16  elemType = 10
	elemDouble   elemType = 11
	elemUint32   elemType = 12
	elemBFloat16 elemType = 16
)

// widened returns the type in which a value of type e is returned to callers, and false if there is
// none.
func (e elemType) widened() (elemType, bool) {
	switch e {
	case elemFloat, elemFloat16, elemBFloat16, elemDouble:
		return elemFloat, true
	case elemInt64, elemUint8, elemInt8, elemUint16, elemInt16, elemInt32, elemUint32, elemBool:
		return elemInt64, true
	}
	return 0, false
}

// givable reports whether an input of type e can be made from a caller's float32 or int64,
// unchanged or narrowed.
func (e elemType) givable() bool {
	return e == elemFloat || e == elemInt64 || e == elemFloat16 || e == elemInt32
}

// dtype returns the tensor type of e, for the types that widened returns.
func (e elemType) dtype() tensor.DType {
	if e == elemFloat {
		return tensor.Float32
	}
	if e == elemInt64 {
		return tensor.Int64
	}
	return tensor.Invalid
}

// value is one input or output as the graph declares it. elem is 0 if it is not a tensor. shape is
// nil if the graph leaves the rank open.
type value struct {
	name  string
	elem  elemType
	shape []int64
}

// signature is the inputs and outputs of a graph.
type signature struct {
	inputs, outputs []value
	half            bool // most of the weights have half precision
}

// cachePrefix is the prefix of the inputs through which decoders receive the keys and values of
// earlier tokens, in exports by Hugging Face's Optimum and Transformers.js: past_key_values.0.key.
const cachePrefix = "past_key_values."

// isCache reports whether v is such an input, [batch, heads, earlier tokens, size]. Embedding
// models may have them too (Qwen3-Embedding), although they read each text at once.
func (v *value) isCache() bool {
	return strings.HasPrefix(v.name, cachePrefix) && (v.elem == elemFloat || v.elem == elemFloat16) &&
		len(v.shape) == 4 && v.shape[1] > 0 && v.shape[2] == tensor.Dynamic && v.shape[3] > 0
}

// splitCaches separates the caches from the inputs that callers provide.
func splitCaches(inputs []value) (given, caches []value) {
	for _, v := range inputs {
		if v.isCache() {
			caches = append(caches, v)
		} else {
			given = append(given, v)
		}
	}
	return given, caches
}

var errNotONNX = errors.New("not an ONNX model")

// readSignature reads the inputs and outputs of a serialised ModelProto without decoding the rest.
// Inputs with an initializer are optional and omitted. It does not retain model.
//
// The library could return the same after loading. Reading it here keeps invalid models away from C
// code, and avoids loading every model twice.
func readSignature(model []byte) (signature, error) {
	var sig signature
	initialized := map[string]bool{}
	var weights, halves int // in bytes
	err := wire.Within(model, modelGraph, func(num int, b []byte, _ uint64) error {
		switch num {
		case graphInitializer:
			name, elem, err := readWeight(b)
			initialized[name] = true
			weights += len(b)
			if elem == elemFloat16 {
				halves += len(b)
			}
			return err
		case graphInput:
			return appendValue(&sig.inputs, b)
		case graphOutput:
			return appendValue(&sig.outputs, b)
		}
		return nil
	})
	if err != nil {
		return signature{}, fmt.Errorf("%w: %w", errNotONNX, err)
	}
	sig.half = 2*halves > weights
	sig.inputs = slices.DeleteFunc(sig.inputs, func(v value) bool { return initialized[v.name] })
	if len(sig.inputs) == 0 || len(sig.outputs) == 0 {
		return signature{}, fmt.Errorf("%w: no inputs or no outputs", errNotONNX)
	}
	return sig, errors.Join(checkNames("input", sig.inputs), checkNames("output", sig.outputs))
}

// readWeight returns the name and the element type of a serialised TensorProto.
func readWeight(msg []byte) (name string, elem elemType, err error) {
	err = wire.Values(msg, func(num int, b []byte, n uint64) error {
		switch num {
		case tensorName:
			name = string(b)
		case tensorDataType:
			elem = elemType(n)
		}
		return nil
	})
	return name, elem, err
}

func appendValue(to *[]value, msg []byte) error {
	var v value
	err := wire.Values(msg, func(num int, b []byte, _ uint64) error {
		switch num {
		case valueName:
			v.name = string(b)
		case valueType:
			return wire.Within(b, typeTensor, v.readTensorType)
		}
		return nil
	})
	*to = append(*to, v)
	return err
}

func (v *value) readTensorType(num int, b []byte, n uint64) error {
	switch num {
	case tensorElem:
		v.elem = elemType(n)
	case tensorShape:
		v.shape = []int64{}
		return wire.Values(b, func(num int, dim []byte, _ uint64) error {
			if num != shapeDim {
				return nil
			}
			size := int64(tensor.Dynamic)
			err := wire.Values(dim, func(num int, _ []byte, n uint64) error {
				if num == dimValue && int64(n) > 0 {
					size = int64(n)
				}
				return nil
			})
			v.shape = append(v.shape, size)
			return err
		})
	}
	return nil
}

// checkNames refuses duplicate names, and names that a C string cannot represent.
func checkNames(what string, values []value) error {
	seen := make(map[string]bool, len(values))
	for _, v := range values {
		if v.name == "" || strings.ContainsRune(v.name, 0) {
			return fmt.Errorf("%s name %q cannot be used", what, v.name)
		}
		if seen[v.name] {
			return fmt.Errorf("%s %q is declared twice", what, v.name)
		}
		seen[v.name] = true
	}
	return nil
}

// specs describes values to callers, with the types that callers use.
func specs(values []value) []tensor.Spec {
	out := make([]tensor.Spec, len(values))
	for i, v := range values {
		wide, _ := v.elem.widened()
		out[i] = tensor.Spec{Name: v.name, DType: wide.dtype(), Shape: slices.Clone(v.shape)}
	}
	return out
}

// widen returns a model whose listed outputs are all float32 or int64, and the names of these
// outputs for the library, in the order of outputs. A value of another type, such as float16, is
// followed by a Cast, so that it is converted on the device that computed it.
//
// The additions are a second `graph` field at the end of the file: protobuf merges repeated
// occurrences of a message field and concatenates the lists in them (protobuf encoding guide, "Last
// One Wins"). If no output needs a Cast, the model is returned without a copy.
func widen(model []byte, outputs []value) (wide []byte, names []string) {
	var graph []byte
	names = make([]string, len(outputs))
	for i, v := range outputs {
		names[i] = v.name
		to, ok := v.elem.widened()
		if !ok || to == v.elem {
			continue
		}
		names[i] = v.name + "/signalbox_widened"
		graph = appendCast(graph, v.name, names[i], to)
	}
	if graph == nil {
		return model, names
	}
	wide = slices.Grow(slices.Clip(model), len(graph)+16)
	return wire.AppendMessage(wide, modelGraph, graph), names
}

// appendCast appends a Cast node and the declaration of its output to a serialised GraphProto.
func appendCast(graph []byte, from, to string, elem elemType) []byte {
	str := func(b []byte, num protowire.Number, s string) []byte {
		return wire.AppendMessage(b, num, []byte(s))
	}
	attribute := str(nil, attributeName, "to")
	attribute = wire.AppendNumber(attribute, attributeInt, uint64(elem))
	attribute = wire.AppendNumber(attribute, attributeType, attributeTypeInt)
	node := str(nil, nodeInput, from)
	node = str(node, nodeOutput, to)
	node = str(node, nodeName, to)
	node = str(node, nodeOpType, "Cast")
	node = str(node, nodeAttribute, string(attribute))
	info := str(nil, valueName, to)
	typ := str(nil, typeTensor, string(wire.AppendNumber(nil, tensorElem, uint64(elem))))
	info = str(info, valueType, string(typ))
	return str(str(graph, graphNode, string(node)), graphOutput, string(info))
}
