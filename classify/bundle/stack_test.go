package bundle

import (
	"bytes"
	le "encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"signalbox/internal/wire"
)

// floats is a serialised TensorProto.
func floats(name string, dims []uint64, data ...float32) []byte {
	var b, raw []byte
	for _, d := range dims {
		b = number(b, tensorDims, d)
	}
	for _, v := range data {
		raw = le.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	return field(field(number(b, tensorDataType, tensorFloat), tensorName, name), tensorRaw, string(raw))
}

// stackable is an adapter with a frozen value, and two of its own.
func stackable(t *testing.T, width uint64, own ...[]byte) *Adapter {
	t.Helper()
	p := goodAdapter()
	p.info.Stack = []string{"w", "b"}
	if own == nil {
		w := slices.Repeat([]float32{float32(width)}, int(2*width))
		own = [][]byte{floats("w", []uint64{1, 2, width}, w...), floats("b", []uint64{1, 1, width}, w[:width]...)}
	}
	p.values = append([][]byte{floats("frozen", []uint64{1, 1}, 7)}, own...)
	a, err := ReadAdapter(p.file(t))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestStackLaysAdaptersSideBySide(t *testing.T) {
	model, err := Stack([]*Adapter{stackable(t, 1), stackable(t, 3)})
	if err != nil {
		t.Fatal(err)
	}
	var graph []byte
	if err := wire.Fields(model, func(num int, _, body []byte) error {
		if num == modelGraph {
			graph = body
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]float32{
		"w": {1, 0, 0, 1, 0, 0, 3, 3, 3, 3, 3, 3}, "b": {1, 0, 0, 3, 3, 3}, "frozen": {7},
	} {
		got, dims := valueIn(t, graph, name)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v %v, want %v", name, dims, got, want)
		}
		if name != "frozen" && (dims[0] != 2 || dims[len(dims)-1] != 3) {
			t.Errorf("%s: shape %v, want 2 adapters of 3", name, dims)
		}
	}
}

func TestAdaptersOfOtherFormsAreNotStacked(t *testing.T) {
	a := stackable(t, 2)
	other := goodAdapter()
	other.info.Stack = []string{"w", "b"}
	other.values = [][]byte{
		floats("frozen", []uint64{1, 1}, 8), floats("w", []uint64{1, 2, 1}, 1, 2), floats("b", []uint64{1, 1, 1}, 1),
	}
	frozen, err := ReadAdapter(other.file(t))
	if err != nil {
		t.Fatal(err)
	}
	other.values[0] = floats("frozen", []uint64{1, 1}, 7)
	if same, err := ReadAdapter(other.file(t)); err != nil || same.Form != a.Form {
		t.Errorf("adapters of another width: form %q, want %q (%v)", same.Form, a.Form, err)
	}
	first := goodAdapter()
	first.info.Format, first.info.Stack, first.values = 1, nil, nil
	old, err := ReadAdapter(first.file(t))
	if err != nil {
		t.Fatal(err)
	}
	opset, err := ReadAdapter(append(number(nil, 8, 9), other.file(t)...))
	if err != nil {
		t.Fatal(err)
	}
	wide := stackable(t, 1, floats("w", []uint64{1, 1, 1 << 14}, make([]float32, 1<<14)...), floats("b", []uint64{1, 1, 1}, 1))
	tall := stackable(t, 1, floats("w", []uint64{1, 1 << 14, 1}, make([]float32, 1<<14)...), floats("b", []uint64{1, 1, 1}, 1))
	for name, list := range map[string][]*Adapter{
		"none": nil, "other frozen layers": {a, frozen}, "other operators": {a, opset}, "format 1": {old, old}, "larger than a file may be": {wide, tall},
	} {
		if _, err := Stack(list); !errors.Is(err, ErrUnlike) {
			t.Errorf("%s: %v, want ErrUnlike", name, err)
		}
	}
}

func TestWhatCannotBeStackedIsRefused(t *testing.T) {
	b := floats("b", []uint64{1, 1, 1}, 1)
	for name, c := range map[string]struct {
		values [][]byte
		says   string
	}{
		"missing":       {[][]byte{b}, `no value "w"`},
		"twice":         {[][]byte{b, b}, "there twice"},
		"two adapters":  {[][]byte{b, floats("w", []uint64{2, 1}, 1, 2)}, "is not float32 [1, ...]"},
		"too short":     {[][]byte{b, floats("w", []uint64{1, 4}, 1, 2)}, "8 bytes are not float32 of [1 4]"},
		"a huge axis":   {[][]byte{b, floats("w", []uint64{1, 1 << 63}, 1)}, "are not float32 of"},
		"no axis":       {[][]byte{b, floats("w", nil, 1)}, "is not float32 [1, ...]"},
		"five axes":     {[][]byte{b, floats("w", []uint64{1, 1, 1, 1, 1}, 1)}, "is not float32 [1, ...]"},
		"packed, wrong": {[][]byte{b, append(field(nil, tensorName, "w"), field(nil, tensorDims, "\xff")...)}, "stack"},
	} {
		p := goodAdapter()
		p.info.Stack, p.values = []string{"w", "b"}, c.values
		if _, err := ReadAdapter(p.file(t)); !errors.Is(err, ErrAdapter) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}

// valueIn reads a float32 initializer of a graph.
func valueIn(t *testing.T, graph []byte, name string) (data []float32, dims []int) {
	t.Helper()
	err := wire.Fields(graph, func(num int, _, body []byte) error {
		if num != graphInitializer || !bytes.Contains(body, field(nil, tensorName, name)) {
			return nil
		}
		return wire.Fields(body, func(num int, f, body []byte) error {
			switch num {
			case tensorDims:
				dims = append(dims, int(f[1])) // below 128
			case tensorRaw:
				for ; len(body) > 0; body = body[4:] {
					data = append(data, math.Float32frombits(le.LittleEndian.Uint32(body)))
				}
			}
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return data, dims
}
