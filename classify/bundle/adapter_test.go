package bundle

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"signalbox/internal/tensor"
)

func field(b []byte, num protowire.Number, body string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, num, protowire.BytesType), body)
}

func number(b []byte, num protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, num, protowire.VarintType), v)
}

// tensorOf is a serialised ValueInfoProto of a tensor without a shape.
func tensorOf(name string, elem uint64) string {
	typ := field(nil, typeTensor, string(number(nil, tensorElem, elem)))
	return string(field(field(nil, valueName, name), valueType, string(typ)))
}

// adapterParts is what the file of an adapter is made of.
type adapterParts struct {
	info    AdapterInfo
	inputs  []string // serialised
	outputs []string
	values  [][]byte // initializers, serialised
	sum     string   // in place of that of the graph
}

func goodAdapter() adapterParts {
	return adapterParts{
		info: AdapterInfo{
			Format: 2, Stack: []string{"w"}, Base: AdapterBase{Name: "tiny", SHA256: digest(graphA)}, Mode: "binary",
			Labels: []string{"no", "yes"}, Scale: []float64{1}, Shift: []float64{0}, Thresholds: []float64{0, 0.5},
			Tokens: 256, Skeleton: 128,
		},
		inputs:  []string{tensorOf("keys", 1), tensorOf(AdapterMask, 7)},
		outputs: []string{tensorOf(AdapterOutput, 1)},
		values:  [][]byte{floats("w", []uint64{1, 1}, 1)},
	}
}

func (p *adapterParts) file(tb testing.TB) []byte {
	tb.Helper()
	var graph []byte
	for _, in := range p.inputs {
		graph = field(graph, graphInput, in)
	}
	for _, out := range p.outputs {
		graph = field(graph, graphOutput, out)
	}
	for _, v := range p.values {
		graph = field(graph, graphInitializer, string(v))
	}
	if p.info.GraphSHA256 = p.sum; p.sum == "" {
		p.info.GraphSHA256 = digest(string(graph))
	}
	text, err := json.Marshal(&p.info)
	if err != nil {
		tb.Fatal(err)
	}
	entry := field(field(nil, metadataKey, AdapterKey), metadataValue, string(text))
	return field(field(nil, modelGraph, string(graph)), modelMetadata, string(entry))
}

func TestAnAdapterTellsWhatItIs(t *testing.T) {
	p := goodAdapter()
	a, err := ReadAdapter(p.file(t))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(a.Taps, []string{"keys"}) || !a.Masked || a.Width() != 1 || a.Base.Name != "tiny" {
		t.Errorf("read %+v", a)
	}
}

func TestWhatIsNoAdapterIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*adapterParts)
		want   error
		says   string
	}{
		"a later format":     {func(p *adapterParts) { p.info.Format = 3 }, ErrAdapter, "format 3"},
		"no stack":           {func(p *adapterParts) { p.info.Stack = nil }, ErrAdapter, "stack"},
		"a stack too early":  {func(p *adapterParts) { p.info.Format = 1 }, ErrAdapter, "stack"},
		"no base":            {func(p *adapterParts) { p.info.Base.SHA256 = "" }, ErrAdapter, "base"},
		"no labels":          {func(p *adapterParts) { p.info.Labels = nil }, ErrAdapter, "labels"},
		"rows of no tokens":  {func(p *adapterParts) { p.info.Tokens = 0 }, ErrAdapter, "tokens"},
		"a long skeleton":    {func(p *adapterParts) { p.info.Skeleton = 300 }, ErrAdapter, "skeleton"},
		"a changed graph":    {func(p *adapterParts) { p.sum = digest("other") }, ErrChecksum, "graph"},
		"an unknown input":   {func(p *adapterParts) { p.inputs = append(p.inputs, tensorOf("ids", 7)) }, ErrAdapter, "ids"},
		"no taps":            {func(p *adapterParts) { p.inputs = p.inputs[1:] }, ErrAdapter, "takes no taps"},
		"another output":     {func(p *adapterParts) { p.outputs = []string{tensorOf("y", 1)} }, ErrAdapter, "outputs"},
		"a graph of nothing": {func(p *adapterParts) { p.inputs, p.outputs = nil, nil }, ErrGraph, "no inputs"},
	} {
		p := goodAdapter()
		c.change(&p)
		if _, err := ReadAdapter(p.file(t)); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %v with %q", name, err, c.want, c.says)
		}
	}
	p := goodAdapter()
	file := p.file(t)
	for name, data := range map[string][]byte{
		"an empty file": nil, "half a file": file[:len(file)/2], "text": []byte("adapter"), "a graph alone": []byte(graphA),
		"two graphs": slices.Concat(file, []byte(graphA)),
	} {
		if _, err := ReadAdapter(data); !errors.Is(err, ErrAdapter) && !errors.Is(err, ErrGraph) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTapsAreShownAsOutputsOfTheGraphThatHasThem(t *testing.T) {
	taps := "bytes: 11, taps: [{name: keys, value: Split_1.1, shape: [-1, -1, 8]}, {name: mean, value: Div_2, shape: [-1, 8]}]}"
	b, err := Load(files(strings.Replace(good, "bytes: 11}", taps, 1)))
	if err != nil {
		t.Fatal(err)
	}
	shown := func(precision, sum string, names ...string) []tensor.Spec {
		t.Helper()
		model, err := b.Tapped(precision, sum, names)
		if err != nil {
			t.Fatal(err)
		}
		facts, err := readGraphFacts(bytes.NewReader(model), int64(len(model)))
		if err != nil {
			t.Fatal(err)
		}
		return facts.outputs[1:]
	}
	got := shown(Int8, digest(graphA), "keys", "nothing")
	if len(got) != 1 || got[0].Name != "Split_1.1" || !slices.Equal(got[0].Shape, []int64{-1, -1, 8}) {
		t.Errorf("outputs %v", got)
	}
	if got := shown(FP16, digest(graphA), "keys"); len(got) != 0 {
		t.Errorf("the graph of another precision shows %v", got)
	}
	if got := shown(Int8, digest(graphA)); len(got) != 0 {
		t.Errorf("without a name it shows %v", got)
	}
}

func TestBadTapsAreNamed(t *testing.T) {
	for taps, want := range map[string]string{
		"[{name: keys, shape: [-1, 8]}]":                                             "graphs[0].taps[0].value",
		"[{value: a, shape: [-1, 8]}]":                                               "graphs[0].taps[0].name",
		"[{name: a, value: a, shape: [8]}]":                                          "graphs[0].taps[0].shape",
		"[{name: a, value: a, shape: [-1, 0]}]":                                      "graphs[0].taps[0].shape",
		"[{name: a, value: a, shape: [2, 8]}]":                                       "graphs[0].taps[0].shape",
		"[{name: a, value: a, shape: [-1, 8]}, {name: b, value: a, shape: [-1, 8]}]": "graphs[0].taps[1]",
	} {
		_, err := ParseManifest([]byte(strings.Replace(good, "bytes: 11}", "bytes: 11, taps: "+taps+"}", 1)))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", taps, err, want)
		}
	}
}

func FuzzAdapter(f *testing.F) {
	p := goodAdapter()
	f.Add(p.file(f))
	f.Add([]byte(graphA))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := ReadAdapter(data)
		if err == nil && (len(a.Taps) == 0 || a.Width() < 1) {
			t.Errorf("%+v is usable", a)
		}
	})
}
