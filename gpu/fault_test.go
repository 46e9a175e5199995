//go:build cgo

package gpu

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"signalbox/internal/signal"
	"signalbox/internal/tensor"
	"signalbox/internal/testkit"
)

// openDamaged opens damaged bytes and runs what opens. A damage may leave a graph that works, if
// another one; it must not end the process, and what fails must say so with a type that callers
// know.
func openDamaged(t *testing.T, r *Runtime, model []byte) (opened bool) {
	t.Helper()
	s, err := r.NewSession(t.Context(), model, SessionOptions{Name: "damaged"})
	if err != nil {
		var modelErr *ModelError
		if !errors.As(err, &modelErr) || reasonOf(t, err) != signal.ReasonNoModel {
			t.Errorf("got %T: %v", err, err)
		}
		return false
	}
	in := []tensor.Tensor{f32("x", []int64{1, 2}, 1, 2)}
	for _, spec := range s.Inputs() {
		if spec.Name != "x" {
			in = append(in, f32(spec.Name, []int64{1, 2}, 3, 4))
		}
	}
	if _, err := s.Run(t.Context(), in, nil); err != nil {
		reasonOf(t, err) // fails without one
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	return true
}

// S31, CL1: a graph that was cut anywhere is an error.
func TestATruncatedGraphIsRefusedAtEveryLength(t *testing.T) {
	r := openRuntime(t, nil)
	model := readGraph(t, "half")
	opened := 0
	for n := range len(model) {
		if openDamaged(t, r, model[:n]) {
			opened++
		}
	}
	// The graph is whole before the version of its operators comes, at the very end.
	if opened > 1 {
		t.Errorf("%d of %d truncated graphs were accepted", opened, len(model))
	}
	if n := r.Handles(); n != 0 {
		t.Errorf("%d handles are left", n)
	}
}

// S31, CL1: and so is one that was changed, or it is another graph; in no case does the process
// end.
func TestACorruptGraphNeverEndsTheProcess(t *testing.T) {
	r := openRuntime(t, nil)
	model := readGraph(t, "add")
	refused := 0
	for i := range model {
		for _, flip := range []byte{0x01, 0x10, 0x80, 0xff} {
			damaged := bytes.Clone(model)
			damaged[i] ^= flip
			if !openDamaged(t, r, damaged) {
				refused++
			}
		}
	}
	if refused < len(model) {
		t.Errorf("only %d of %d corrupt graphs were refused", refused, 4*len(model))
	}
	if n := r.Handles(); n != 0 {
		t.Errorf("%d handles are left", n)
	}
}

// S31: the library would find weights beside a graph in the working directory, where anybody may
// have put them.
func TestWeightsAreNotTakenFromTheWorkingDirectory(t *testing.T) {
	r := openRuntime(t, nil)
	model := readGraph(t, "external")
	t.Chdir("testdata")
	_, err := r.NewSession(t.Context(), model, SessionOptions{Name: "external"})
	var modelErr *ModelError
	if !errors.As(err, &modelErr) {
		t.Fatalf("got %v", err)
	}
	if !bytes.Contains([]byte(modelErr.Msg), []byte("weights.data")) {
		t.Errorf("the error names no file: %v", err)
	}
}

// What a graph declares and what it gives are two things: the shape that comes out is the real one.
func TestAnOutputOfAnotherShapeThanDeclaredIsSeen(t *testing.T) {
	r := openRuntime(t, nil)
	// x [1, 3] is given, [1, 1] can be broadcast with it: the output has the shape of neither's
	// spec.
	s := openSession(t, r, "add", nil)
	out, err := s.Run(t.Context(), []tensor.Tensor{f32("x", []int64{3, 1}, 1, 2, 3), f32("y", []int64{1, 2}, 10, 20)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(out[0].Shape, []int64{3, 2}) || len(out[0].F32) != 6 {
		t.Errorf("shape %v with %d numbers", out[0].Shape, len(out[0].F32))
	}
	if err := out[0].Check(); err != nil {
		t.Error(err)
	}
}

// A run that cannot be interrupted is told of when it goes on for too long, once, and its session
// works when it has ended.
func TestARunThatDoesNotEndIsToldOf(t *testing.T) {
	hung := make(chan string, 10)
	r := openRuntime(t, func(o *Options) {
		o.HangLimit, o.Hung = time.Millisecond, func(session string) { hung <- session }
	})
	s := openSession(t, r, "stuck", nil)
	input := func(more int64) []tensor.Tensor {
		return []tensor.Tensor{{Name: "x", Shape: []int64{1, 1, 1<<16 + more}, F32: make([]float32, 1<<16+more)}}
	}
	runs, told := 0, 0
	for more := int64(10_000); told == 0; more *= 4 { // until it is more than this machine does in the time
		if runs++; more > 10_000_000 {
			t.Fatal("nobody was told")
		}
		begun := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		_, _ = s.Run(ctx, input(more), nil) // a run of one operator may succeed, late
		cancel()
		if time.Since(begun) < 100*time.Millisecond {
			continue // too little to tell
		}
		select {
		case got := <-hung:
			if told++; got != "stuck" {
				t.Errorf("told of %q", got)
			}
		case <-time.After(testkit.Patience):
			t.Fatal("nobody was told")
		}
	}
	if _, err := s.Run(t.Context(), input(0), nil); err != nil {
		t.Error(err)
	}
	if len(hung) >= runs {
		t.Error("told more than once")
	}
}

// S31: operators come from the library alone: a graph that names one of its own is refused, and no
// other library is looked for.
func TestOperatorsOfOthersAreRefused(t *testing.T) {
	r := openRuntime(t, nil)
	model := readGraph(t, "add")
	unknown := bytes.Replace(model, []byte("\"\x03Add"), []byte("\"\x03Own"), 1)
	if bytes.Equal(unknown, model) {
		t.Fatal("the graph adds nothing")
	}
	if openDamaged(t, r, unknown) {
		t.Error("an operator that nobody knows was run")
	}
}
