package gpu

import (
	"slices"

	"signalbox/gpu/dense"
	"signalbox/internal/wire"
)

// Indices of the inputs of MatMulIntegerToFloat (com.microsoft), and of QuantizeLinear.
const (
	productLeft = iota
	productWeights
	productStep
	productScale
	productMiddle
	productZero
	productBias
	productInputs

	denseWeights = 2 // of package dense's operator

	roundGiven  = 0
	roundStep   = 1
	roundMiddle = 2
	roundInputs = 3
	microsoft   = "com.microsoft"
	opProduct   = "MatMulIntegerToFloat"
	opRound     = "QuantizeLinear"
	opMul       = "Mul"
	widthDepth  = 8 // maximum number of nodes that widthOf follows backwards
)

// node is a node of a graph with the properties needed for fusing.
type node struct {
	raw             []byte // NodeProto
	name            string
	op, domain      string
	inputs, outputs []string
	attributes      bool
	gone            bool // removed from the result
}

// constant is an initializer whose value is in the graph.
type constant struct {
	elem elemType
	dims []int
	data []byte // little-endian; nil if the numbers are stored in another way
}

// fuser holds a graph while its 8-bit layers are replaced by operators of package dense.
type fuser struct {
	nodes []*node
	from  map[string]*node // the node that computes a value
	// number of uses of each value, by nodes and as an output of the graph
	uses      map[string]int
	constants map[string]*constant
	packed    map[string]bool // weights that will be packed
	// the model has graphs inside nodes, functions or sparse weights, or already uses the
	// operator's domain
	odd bool
}

// fuse replaces the 8-bit linear layers that package dense supports by its operator. It returns the
// new model and the number of replaced layers; without any it returns the model itself. It never
// writes to model. The outputs of the graph stay identical, bit for bit.
func fuse(model []byte) (fused []byte, layers int, err error) {
	f := fuser{from: map[string]*node{}, uses: map[string]int{}, constants: map[string]*constant{}, packed: map[string]bool{}}
	if err := f.read(model); err != nil || f.odd {
		return model, 0, err
	}
	var found []*node
	users := map[string]int{} // number of users of the weights among the layers found
	for _, n := range f.nodes {
		if f.fits(n) {
			found = append(found, n)
			users[n.inputs[productWeights]]++
		}
	}
	for _, n := range found {
		weights := n.inputs[productWeights]
		if users[weights] != f.uses[weights] {
			continue // other nodes read them in the original order
		}
		f.packed[weights] = true
		f.replace(n)
		layers++
	}
	if layers == 0 {
		return model, 0, nil
	}
	return f.write(model), layers, nil
}

// read fills f from a serialised ModelProto.
func (f *fuser) read(model []byte) error {
	err := wire.Values(model, func(num int, b []byte, _ uint64) error {
		switch num {
		case modelFunctions:
			f.odd = true // its nodes become nodes of the graph
		case modelOpset:
			return wire.Values(b, func(num int, domain []byte, _ uint64) error {
				f.odd = f.odd || num == opsetDomain && string(domain) == dense.Domain
				return nil
			})
		}
		return nil
	})
	if err != nil {
		return err
	}
	var given, outputs []value
	err = wire.Within(model, modelGraph, func(num int, b []byte, _ uint64) error {
		switch num {
		case graphSparse:
			f.odd = true
		case graphNode:
			n := &node{raw: b}
			f.nodes = append(f.nodes, n)
			return f.readNode(n)
		case graphInitializer:
			name, c, err := readConstant(b)
			// duplicate name: it is undefined which one counts
			f.odd = f.odd || f.constants[name] != nil
			f.constants[name] = c
			return err
		case graphInput:
			return appendValue(&given, b)
		case graphOutput:
			return appendValue(&outputs, b)
		}
		return nil
	})
	for _, v := range given {
		delete(f.constants, v.name) // a default that callers may replace
	}
	for name := range f.from {
		// a Constant node of the same name would replace it
		f.odd = f.odd || f.constants[name] != nil
	}
	for _, v := range outputs {
		f.uses[v.name]++
	}
	return err
}

func (f *fuser) readNode(n *node) error {
	return wire.Values(n.raw, func(num int, b []byte, _ uint64) error {
		switch num {
		case nodeInput:
			n.inputs = append(n.inputs, string(b))
			f.uses[string(b)]++
		case nodeOutput:
			n.outputs = append(n.outputs, string(b))
			f.from[string(b)] = n
		case nodeName:
			n.name = string(b)
		case nodeOpType:
			n.op = string(b)
		case nodeDomain:
			n.domain = string(b)
			f.odd = f.odd || n.domain == dense.Domain
		case nodeAttribute:
			n.attributes = true
			return wire.Values(b, func(num int, _ []byte, _ uint64) error {
				f.odd = f.odd || num == attributeGraph || num == attributeGraphs
				return nil
			})
		}
		return nil
	})
}

// readConstant reads a serialised TensorProto.
func readConstant(msg []byte) (name string, c *constant, err error) {
	c = &constant{}
	err = wire.Values(msg, func(num int, b []byte, n uint64) (err error) {
		switch num {
		case tensorName:
			name = string(b)
		case tensorDataType:
			c.elem = elemType(n)
		case tensorRawData:
			c.data = b
		case tensorDims:
			// compared with the actual size, never used to allocate
			c.dims, err = wire.Ints(c.dims, b, n)
		}
		return err
	})
	return name, c, err
}

// is reports whether a name is a constant of a type and a shape whose numbers are available.
func (f *fuser) is(name string, elem elemType, dims ...int) bool {
	c := f.constants[name]
	return c != nil && c.elem == elem && slices.Equal(c.dims, dims) && c.data != nil
}

// fits reports whether a node is a product with constant weights after a quantization, of a shape
// that package dense supports.
func (f *fuser) fits(n *node) bool {
	if n.op != opProduct || n.domain != microsoft || n.attributes || len(n.inputs) != productInputs || len(n.outputs) != 1 {
		return false
	}
	weights := f.constants[n.inputs[productWeights]]
	if weights == nil || weights.elem != elemInt8 || len(weights.dims) != 2 {
		return false
	}
	in, out := weights.dims[0], weights.dims[1]
	if !dense.Fits(in, out) || len(weights.data) != in*out {
		return false
	}
	round := f.from[n.inputs[productLeft]]
	return round != nil && round.op == opRound && round.domain == "" && !round.attributes && len(round.inputs) == roundInputs &&
		round.inputs[roundStep] == n.inputs[productStep] && round.inputs[roundMiddle] == n.inputs[productMiddle] &&
		f.is(n.inputs[productStep], elemFloat) && f.is(n.inputs[productMiddle], elemUint8) &&
		f.is(n.inputs[productScale], elemFloat, out) && f.is(n.inputs[productBias], elemFloat, out) && f.symmetric(n.inputs[productZero])
}

// symmetric reports whether the zero point of weights is zero.
func (f *fuser) symmetric(name string) bool {
	c := f.constants[name]
	return name == "" || c != nil && c.elem == elemInt8 && c.data != nil && !slices.ContainsFunc(c.data, func(b byte) bool { return b != 0 })
}

// replace turns a product that fits into the operator, and removes the nodes before it that are no
// longer used.
func (f *fuser) replace(n *node) {
	round := f.from[n.inputs[productLeft]]
	x, smooth := round.inputs[roundGiven], ""
	mul := f.from[x]
	if given, factors, ok := f.smoothing(mul, f.constants[n.inputs[productWeights]].dims[0]); ok {
		x, smooth = given, factors
	}
	in := n.inputs
	for _, name := range in {
		f.uses[name]--
	}
	n.op, n.domain = dense.Op, dense.Domain
	n.inputs = []string{x, smooth, in[productWeights], in[productStep], in[productScale], in[productMiddle], in[productBias]}
	n.raw = encodeNode(n)
	for _, name := range n.inputs {
		f.uses[name]++
	}
	f.drop(round)
	if smooth != "" {
		f.drop(mul)
	}
}

// smoothing decomposes a Mul that multiplies each column of a value as wide as the layer by a
// constant.
func (f *fuser) smoothing(mul *node, in int) (given, factors string, ok bool) {
	if mul == nil || mul.op != opMul || mul.domain != "" || len(mul.inputs) != 2 {
		return "", "", false
	}
	given, factors = mul.inputs[0], mul.inputs[1]
	return given, factors, f.is(factors, elemFloat, in) && f.widthOf(given, widthDepth) == in
}

// widthOf returns the last dimension of a value, or 0 if it is not known. It only supports the
// operators of transformers. For a sum it uses the first term whose width is known: in a valid
// model the terms are equally wide or broadcast.
func (f *fuser) widthOf(name string, depth int) int {
	n := f.from[name]
	if n == nil || depth == 0 || len(n.inputs) == 0 {
		return 0
	}
	switch {
	case n.op == "LayerNormalization" && n.domain == "" && len(n.inputs) > 1:
		// The scale has the sizes of all normalised axes; with one size only the last axis is
		// normalised, as the product after it requires.
		if c := f.constants[n.inputs[1]]; c != nil && len(c.dims) == 1 && c.dims[0] > 1 && lastAxis(n) {
			return c.dims[0]
		}
	case n.op == "Gelu":
		return f.widthOf(n.inputs[0], depth-1)
	case (n.op == "Add" || n.op == "Sum") && n.domain == "":
		for _, in := range n.inputs[:min(2, len(n.inputs))] {
			if w := f.widthOf(in, depth-1); w > 1 {
				return w
			}
		}
	case n.op == opProduct && n.domain == microsoft && len(n.inputs) > productWeights:
		return f.columns(n.inputs[productWeights])
	case n.op == dense.Op && n.domain == dense.Domain && len(n.inputs) > denseWeights:
		return f.columns(n.inputs[denseWeights])
	}
	return 0
}

// columns returns the number of columns of a constant matrix, or 0.
func (f *fuser) columns(name string) int {
	if c := f.constants[name]; c != nil && len(c.dims) == 2 {
		return c.dims[1]
	}
	return 0
}

// lastAxis reports whether a LayerNormalization normalises the last axis, the default without the
// attribute axis.
func lastAxis(n *node) bool {
	last := true
	err := wire.Values(n.raw, func(num int, b []byte, _ uint64) error {
		if num != nodeAttribute {
			return nil
		}
		name, axis := "", int64(0)
		err := wire.Values(b, func(num int, b []byte, v uint64) error {
			switch num {
			case attributeName:
				name = string(b)
			case attributeInt:
				axis = int64(v) // two's complement
			}
			return nil
		})
		last = last && (name != "axis" || axis == -1)
		return err
	})
	return err == nil && last
}

// drop removes a node whose outputs are not used.
func (f *fuser) drop(n *node) {
	if n.gone || slices.ContainsFunc(n.outputs, func(name string) bool { return f.uses[name] > 0 }) {
		return
	}
	n.gone = true
	for _, name := range n.inputs {
		f.uses[name]--
	}
}

// write returns the model with the nodes of f, the weights in the order of package dense, and the
// operator's domain.
func (f *fuser) write(model []byte) []byte {
	out := make([]byte, 0, len(model))
	var graph []byte
	at := 0
	// read has checked that it is a model
	_ = wire.Fields(model, func(num int, field, body []byte) error {
		if num != modelGraph {
			out = append(out, field...)
			return nil
		}
		graph = slices.Grow(graph, len(body))
		return wire.Fields(body, func(num int, field, body []byte) error {
			switch num {
			case graphNode:
				n := f.nodes[at]
				at++
				if !n.gone {
					graph = wire.AppendMessage(graph, graphNode, n.raw)
				}
			case graphInitializer:
				graph = f.appendConstant(graph, field, body)
			default:
				graph = append(graph, field...)
			}
			return nil
		})
	})
	domain := wire.AppendMessage(nil, opsetDomain, []byte(dense.Domain))
	domain = wire.AppendNumber(domain, opsetVersion, dense.Version)
	return wire.AppendMessage(wire.AppendMessage(out, modelOpset, domain), modelGraph, graph)
}

// appendConstant appends an initializer, packed if required; unused ones are omitted.
func (f *fuser) appendConstant(graph, field, body []byte) []byte {
	name, c, err := readConstant(body)
	if err != nil || f.constants[name] != nil && f.uses[name] == 0 {
		return graph
	}
	if !f.packed[name] {
		return append(graph, field...)
	}
	tensor := make([]byte, 0, len(body))
	_ = wire.Fields(body, func(num int, field, _ []byte) error {
		if num == tensorRawData {
			field = wire.AppendMessage(nil, tensorRawData, dense.Pack(c.data, c.dims[0], c.dims[1]))
		}
		tensor = append(tensor, field...)
		return nil
	})
	return wire.AppendMessage(graph, graphInitializer, tensor)
}

// encodeNode returns a node without attributes as a NodeProto.
func encodeNode(n *node) []byte {
	var b []byte
	for _, s := range n.inputs {
		b = wire.AppendMessage(b, nodeInput, []byte(s))
	}
	for _, s := range n.outputs {
		b = wire.AppendMessage(b, nodeOutput, []byte(s))
	}
	b = wire.AppendMessage(b, nodeName, []byte(n.name))
	b = wire.AppendMessage(b, nodeOpType, []byte(n.op))
	return wire.AppendMessage(b, nodeDomain, []byte(n.domain))
}
