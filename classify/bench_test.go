package classify

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"signalbox/internal/signal"
	"signalbox/internal/tensor"
)

// noop returns the same zero outputs for every run of one row.
type noop struct {
	*fake
	out map[string]tensor.Tensor
}

func (n *noop) Run(_ context.Context, in []tensor.Tensor, outputs []string) ([]tensor.Tensor, error) {
	out := make([]tensor.Tensor, len(outputs))
	rows := in[0].Shape[0]
	for i, name := range outputs {
		t := n.out[name]
		width := t.Shape[1]
		out[i] = tensor.Tensor{Name: name, Shape: []int64{rows, width}, F32: t.F32[:rows*width]}
	}
	return out, nil
}

// BenchmarkExtract measures everything but the graph.
func BenchmarkExtract(b *testing.B) {
	s := &noop{fake: newFake(), out: map[string]tensor.Tensor{}}
	for name, width := range map[string]int64{"d": 3, "j": 2, "e": 4} {
		values := make([]float32, 8*width)
		for i := range values {
			values[i] = float32(width) - float32(i%int(width))
		}
		s.out[name] = tensor.Tensor{Shape: []int64{8, width}, F32: values}
	}
	c, err := classifierOf(testBundle(b), s, DefaultOptions())
	if err != nil {
		b.Fatal(err)
	}
	for _, words := range []int{6, 100} {
		text := user(strings.TrimSpace(strings.Repeat("word ", words)))
		b.Run(fmt.Sprintf("words=%d", words), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				set := signal.Set{}
				c.Extract(b.Context(), text, all, &set)
			}
		})
	}
}
