package gpu

import (
	"encoding/binary"
	"slices"
	"strings"

	"signalbox/internal/wire"
)

// apart gives each 8-bit matrix product its own weights and zero points, in a copy of the model. A
// model without shared ones is returned unchanged.
//
// Processors without VNNI add products of unsigned and signed bytes in 16 bits, which saturate. If
// told to be exact (session.x64quantprecision), ONNX Runtime converts the weights to unsigned for
// every node that uses them, and refuses graphs in which two nodes use the same weights (seen in
// 1.30: "Attempt to replace the existing tensor").
//
// A further use gets a name of the same length, written over the old one. The copies of the weights
// are a second `graph` field, as in widen.
func apart(model []byte) ([]byte, error) {
	shared, names, err := sharedBytes(model)
	if err != nil || len(shared) == 0 {
		return model, err
	}
	room := 0
	if err := eachProduct(model, func(input []byte) error {
		if tensor, ok := shared[string(input)]; ok {
			room += len(tensor) + 2*binary.MaxVarintLen64
		}
		return nil
	}); err != nil {
		return nil, err
	}
	out := cloned(model, room)
	var graph []byte
	met := map[string]bool{}
	err = eachProduct(out, func(input []byte) error {
		tensor, ok := shared[string(input)]
		if !ok {
			return nil
		}
		if !met[string(input)] {
			met[string(input)] = true
			return nil
		}
		fresh := unused(string(input), names)
		if fresh == "" {
			return nil // the library will report the problem
		}
		names[fresh] = true
		twin := slices.Clone(tensor)
		if err := wire.Values(twin, func(num int, b []byte, _ uint64) error {
			if num == tensorName {
				copy(b, fresh)
			}
			return nil
		}); err != nil {
			return err
		}
		copy(input, fresh)
		graph = wire.AppendMessage(graph, graphInitializer, twin)
		return nil
	})
	if err != nil || graph == nil {
		return model, err
	}
	return wire.AppendMessage(out, modelGraph, graph), nil
}

// cloned returns a copy with room bytes of spare capacity. It copies in pieces, because the garbage
// collector cannot stop a goroutine during a single copy and would spin on a processor.
func cloned(model []byte, room int) []byte {
	out := make([]byte, 0, len(model)+room)
	for piece := range slices.Chunk(model, 256<<10) {
		out = append(out, piece...)
	}
	return out
}

// sharedBytes returns the signed 8-bit initializers that several products read, as serialised
// tensors, and every name that the graph uses.
func sharedBytes(model []byte) (shared map[string][]byte, names map[string]bool, err error) {
	shared, names = map[string][]byte{}, map[string]bool{}
	uses := map[string]int{}
	if err := eachProduct(model, func(input []byte) error { uses[string(input)]++; return nil }); err != nil {
		return nil, nil, err
	}
	err = wire.Within(model, modelGraph, func(num int, b []byte, _ uint64) error {
		switch num {
		case graphNode:
			return wire.Values(b, func(num int, name []byte, _ uint64) error {
				if num == nodeInput || num == nodeOutput {
					names[string(name)] = true
				}
				return nil
			})
		case graphInitializer:
			name, elem, err := readWeight(b)
			names[name] = true
			if elem == elemInt8 && uses[name] > 1 {
				shared[name] = b
			}
			return err
		}
		return nil
	})
	return shared, names, err
}

// eachProduct calls f with the input names of every node that multiplies matrices of bytes. The
// names alias the model: writing to one renames the input.
func eachProduct(model []byte, f func(input []byte) error) error {
	return wire.Within(model, modelGraph, func(num int, node []byte, _ uint64) error {
		if num != graphNode {
			return nil
		}
		var inputs [][]byte
		product := false
		err := wire.Values(node, func(num int, b []byte, _ uint64) error {
			switch num {
			case nodeInput:
				inputs = append(inputs, b)
			case nodeOpType:
				op := string(b)
				product = strings.Contains(op, "MatMul") || op == "QGemm" || op == "QAttention"
			}
			return nil
		})
		if err != nil || !product {
			return err
		}
		for _, in := range inputs {
			if err := f(in); err != nil {
				return err
			}
		}
		return nil
	})
}

// unused returns a name that is not in names and as long as name, or an empty string if it finds
// none.
func unused(name string, names map[string]bool) string {
	b := []byte(name)
	for i, old := range b {
		if old >= 0x80 {
			continue // part of a longer character
		}
		for c := byte('0'); c <= 'z'; c++ {
			b[i] = c
			if !names[string(b)] {
				return string(b)
			}
		}
		b[i] = old
	}
	return ""
}
