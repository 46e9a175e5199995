//go:build cgo

package bundle

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"signalbox/internal/tensor"
)

// taskModel reads one graph of testdata/tasks, with the weights that it has in common with the
// others.
func taskModel(tb testing.TB, name string) []byte {
	tb.Helper()
	m := Manifest{Name: name, Graphs: []Graph{{File: File{Name: name, Bytes: -1}, Precision: FP32}}}
	b := &Bundle{files: os.DirFS("testdata/tasks"), Manifest: m, hub: &opened{folder: &folder{}}}
	model, err := b.Graph(FP32)
	if err != nil {
		tb.Fatal(err)
	}
	return model
}

// taskRows makes a batch of rows of different lengths, padded behind.
func taskRows(rng *rand.Rand) []tensor.Tensor {
	rows, width := 1+rng.IntN(4), 1+rng.IntN(40)
	shape := []int64{int64(rows), int64(width)}
	ids, mask := make([]int64, rows*width), make([]int64, rows*width)
	for r := range rows {
		n := width
		if r > 0 { // the first row has the whole width
			n = 1 + rng.IntN(width)
		}
		for i := range n {
			ids[r*width+i], mask[r*width+i] = int64(1+rng.IntN(127)), 1
		}
	}
	return []tensor.Tensor{{Name: "input_ids", Shape: shape, I64: ids}, {Name: "attention_mask", Shape: shape, I64: mask}}
}

// One pass of a graph with a shared trunk and each task's adapters in the last layer must give what
// separate models give, whose weights have those adapters added in.
func TestOnePassGivesWhatSeparateModelsGive(t *testing.T) {
	const tasks, limit = 8, 1e-3
	r := openRuntime(t)
	inputs := make([][]tensor.Tensor, 10)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range inputs {
		inputs[i] = taskRows(rng)
	}
	want := make([][][]float32, tasks) // by task and input
	for task := range want {
		s := openSession(t, r, taskModel(t, fmt.Sprintf("merged_%d.onnx", task)))
		for _, in := range inputs {
			out, err := s.Run(t.Context(), in, nil)
			if err != nil {
				t.Fatal(err)
			}
			want[task] = append(want[task], out[0].F32)
		}
	}
	for _, n := range []int{1, 2, 4, tasks} {
		t.Run(fmt.Sprintf("%d tasks", n), func(t *testing.T) {
			s := openSession(t, r, taskModel(t, fmt.Sprintf("shared_%d.onnx", n)))
			if len(s.Outputs()) != n {
				t.Fatalf("%d outputs", len(s.Outputs()))
			}
			off, apart := 0.0, math.Inf(1)
			for i, in := range inputs {
				out, err := s.Run(t.Context(), in, nil)
				if err != nil {
					t.Fatal(err)
				}
				for task := range n {
					off = max(off, distance(want[task][i], out[task].F32))
					apart = min(apart, distance(want[(task+1)%tasks][i], out[task].F32))
				}
			}
			t.Logf("largest difference %.2g; another task is at least %.2g away", off, apart)
			if off > limit {
				t.Errorf("off by %v", off)
			}
			if apart < 100*limit {
				t.Errorf("tasks are only %v apart: the comparison could not fail", apart)
			}
		})
	}
}

// distance is the largest difference of two rows of logits.
func distance(a, b []float32) float64 {
	if len(a) != len(b) {
		return math.Inf(1)
	}
	most := 0.0
	for i := range a {
		most = max(most, math.Abs(float64(a[i])-float64(b[i])))
	}
	return most
}
