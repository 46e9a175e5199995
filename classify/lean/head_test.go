package lean

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"testing"
)

// headFile is a head of two units for embeddings of two components. The first unit reads the cosine
// and the embedding, the second the product.
func headFile() []byte {
	var b []byte
	float := func(v ...float64) {
		for _, x := range v {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(x)))
		}
	}
	float(-.5)        // the bias
	float(.5, .25, 2) // scale, bias, weight of the output
	float(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3)
	b = append(b, 2, 0xfc, 0, 0) // 2 and -4
	float(.25, 0, -1)
	float(make([]float64, NumFeatures)...)
	b = append(b, 0, 0, 8, 0xf8)
	return sealed(b)
}

// sealed puts the header before a body.
func sealed(body []byte) []byte {
	head := append([]byte(headMagic), headVersion, 0, 2, 0, 2, 0, 0, 0)
	return append(binary.LittleEndian.AppendUint32(head, crc32.ChecksumIEEE(body)), body...)
}

func TestHead(t *testing.T) {
	t.Parallel()
	h, err := LoadHead(headFile())
	if err != nil {
		t.Fatal(err)
	}
	if h.Dims() != 2 {
		t.Errorf("%d components", h.Dims())
	}
	gelu := func(v float64) float64 { return v * (1 + math.Erf(v/math.Sqrt2)) / 2 }
	turn, near := Read("Which dishes are served at a wedding in Armenia?"), []*Turn{Read(integral)}
	// (3, 4) and (1, 0) are (1.2, 1.6) / sqrt 2 and (1, 0), each times sqrt 2.
	root := math.Sqrt2
	a := [2]float64{.6 * root, .8 * root}
	want := -.5 + 2*gelu(.25+3*.5+.5*(2*a[0]-4*a[1])) - gelu(.25*8*a[0]*root)
	got := h.LogOdds(turn, near, .5, []float32{3, 4}, []float32{1, 0})
	if math.Abs(got-want) > 1e-5 {
		t.Errorf("log-odds %v, want %v", got, want)
	}
	if got := h.LogOdds(turn, near, 0, []float32{0, 0}, []float32{0, 0}); math.IsNaN(got) {
		t.Error("no number for embeddings without a direction")
	}
	if got := h.LogOdds(Read("why?"), near, -1, []float32{3, 4}, []float32{1, 0}); got < bare {
		t.Errorf("log-odds %v of a turn without a word of its own", got)
	}
}

func TestLoadHeadRefuses(t *testing.T) {
	t.Parallel()
	good := headFile()
	changed := func(change func([]byte)) []byte {
		b := append([]byte{}, good...)
		change(b)
		return b
	}
	for name, data := range map[string][]byte{
		"nothing":        nil,
		"other magic":    changed(func(b []byte) { b[0] = 'x' }),
		"a version":      changed(func(b []byte) { b[8] = 9 }),
		"no components":  changed(func(b []byte) { b[10] = 0 }),
		"no units":       changed(func(b []byte) { b[12] = 0 }),
		"many units":     changed(func(b []byte) { b[13] = 0xff }),
		"a short file":   good[:len(good)-1],
		"a long file":    append(append([]byte{}, good...), 0),
		"a changed byte": changed(func(b []byte) { b[40] ^= 1 }),
		"no number": sealed(changed(func(b []byte) {
			binary.LittleEndian.PutUint32(b[headStart:], math.Float32bits(float32(math.NaN())))
		})[headStart:]),
	} {
		if _, err := LoadHead(data); !errors.Is(err, ErrHead) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzLoadHead(f *testing.F) {
	f.Add(headFile())
	f.Add([]byte(headMagic))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := LoadHead(data)
		if err != nil {
			return
		}
		v := make([]float32, h.Dims())
		if len(v) == 0 {
			t.Error("a head for no embedding")
		}
		_ = h.LogOdds(Read("why"), nil, 0, v, v)
	})
}

func BenchmarkHead(b *testing.B) {
	const dims, units = 384, 64
	h := &Head{dims: dims, units: make([]unit, units)}
	for i := range h.units {
		h.units[i].own, h.units[i].both = make([]int8, dims), make([]int8, dims)
	}
	v, turn := make([]float32, dims), Read("explain the second step again?")
	v[0] = 1
	for b.Loop() {
		_ = h.LogOdds(turn, nil, .5, v, v)
	}
}
