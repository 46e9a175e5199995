package bundle

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"signalbox/internal/wire"
)

// files lists the files of external weights, as paths in the bundle.
func (g *graphFacts) files(graph string) ([]string, error) {
	var out []string
	for _, w := range g.external {
		name, err := beside(graph, w.location)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out, nil
}

// beside returns the path of a file in the folder of a graph, or below. Others are refused, as by
// ONNX Runtime: a graph must not be able to read arbitrary files.
func beside(graph, location string) (string, error) {
	location = strings.TrimPrefix(location, "./")
	if !fs.ValidPath(location) || location == "." {
		return "", fmt.Errorf("%w: %q is outside the folder of the graph", ErrExternal, location)
	}
	return path.Join(path.Dir(graph), location), nil
}

// inline returns a graph that contains its external weights. read returns the content of a file of
// the bundle.
//
// ONNX Runtime receives bytes and would otherwise have to find other files itself, after this
// package has verified them. The weights are therefore moved into the bytes: initialisers with
// external data are removed, and each is added with its data in a `graph` field of its own at the
// end; protobuf merges the repeated occurrences of a message field and concatenates the lists in
// them (protobuf encoding guide, "Last One Wins"). A serialised message is limited to 2 GiB, and so
// is the result.
func inline(graph string, model []byte, g *graphFacts, read func(name string) ([]byte, error)) ([]byte, error) {
	content, sizes, total, err := g.load(graph, read)
	if err != nil {
		return nil, err
	}
	if total += int64(len(model)); total >= MaxGraphBytes {
		return nil, fmt.Errorf("%w: the graph has %d bytes with them, the limit is %d: "+
			"use one of a smaller precision", ErrExternal, total, MaxGraphBytes)
	}
	const overhead = 64 // tags and lengths of one initialiser
	out := make([]byte, 0, total+int64(overhead*len(g.external)))
	var headers map[string][]byte
	if out, headers, err = withoutExternal(out, model); err != nil {
		return nil, err
	}
	for i, w := range g.external {
		name, err := beside(graph, w.location)
		if err != nil {
			return nil, err
		}
		head := headers[w.name]
		data := content[name][w.offset : w.offset+sizes[i]]
		raw := protowire.SizeTag(tensorRaw) + protowire.SizeBytes(len(data))
		init := len(head) + raw
		out = protowire.AppendTag(out, modelGraph, protowire.BytesType)
		out = protowire.AppendVarint(out, uint64(protowire.SizeTag(graphInitializer)+protowire.SizeBytes(init)))
		out = protowire.AppendTag(out, graphInitializer, protowire.BytesType)
		out = protowire.AppendVarint(out, uint64(init))
		out = append(out, head...)
		out = wire.AppendMessage(out, tensorRaw, data)
	}
	return out, nil
}

// load reads the files of the external weights and determines the size of each.
func (g *graphFacts) load(graph string, read func(name string) ([]byte, error)) (content map[string][]byte, sizes []int64, total int64, err error) {
	content = map[string][]byte{}
	sizes = make([]int64, len(g.external))
	for i, w := range g.external {
		name, err := beside(graph, w.location)
		if err != nil {
			return nil, nil, 0, err
		}
		data, ok := content[name]
		if !ok {
			if data, err = read(name); err != nil {
				return nil, nil, 0, err
			}
			content[name] = data
		}
		left := int64(len(data)) - w.offset
		if sizes[i] = w.length; w.length < 0 {
			sizes[i] = left
		}
		if left < 0 || sizes[i] > left {
			return nil, nil, 0, fmt.Errorf(
				"%w: %q ends before the weights %q: it was cut, fetch it again", ErrExternal, name, w.name,
			)
		}
		total += sizes[i]
	}
	return content, sizes, total, nil
}

// withoutExternal appends model to dst without the initialisers with external data, and returns
// those by name, without the fields for the location.
func withoutExternal(dst, model []byte) (out []byte, headers map[string][]byte, err error) {
	headers = map[string][]byte{}
	err = wire.Fields(model, func(num int, field, body []byte) error {
		if num != modelGraph {
			dst = append(dst, field...)
			return nil
		}
		graph := make([]byte, 0, len(body))
		err := wire.Fields(body, func(num int, field, body []byte) error {
			if num == graphInitializer {
				name, header, err := externalHeader(body)
				if err != nil {
					return err
				}
				if header != nil {
					headers[name] = header
					return nil
				}
			}
			graph = append(graph, field...)
			return nil
		})
		dst = wire.AppendMessage(dst, modelGraph, graph)
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrGraph, err)
	}
	return dst, headers, nil
}

// externalHeader returns the name, type and shape of an initialiser with external data, and nil for
// others.
func externalHeader(init []byte) (name string, header []byte, err error) {
	external := false
	header = []byte{}
	err = wire.Fields(init, func(num int, field, body []byte) error {
		switch num {
		case tensorLocation:
			v, n := protowire.ConsumeVarint(field[protowire.SizeTag(tensorLocation):])
			external = n > 0 && v == locationExternal
			return nil
		case tensorExternal:
			return nil
		case tensorName:
			name = string(body)
		}
		header = append(header, field...)
		return nil
	})
	if err != nil || !external {
		return "", nil, err
	}
	return name, header, nil
}
