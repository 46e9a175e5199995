package gpu

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/option"
	"signalbox/internal/tensor"
)

// tokensOf computes what tokens.onnx does.
func tokensOf(_ int, in, out []tensor.Tensor) error {
	t := &in[0]
	width := int(t.Shape[1])
	values, most := make([]float32, len(t.I64)), make([]float32, t.Shape[0])
	for i, id := range t.I64 {
		values[i] = float32(id)
		most[i/width] = max(most[i/width], values[i])
	}
	out[0] = tensor.Tensor{Shape: append(slices.Clone(t.Shape), 1), F32: values}
	out[1] = tensor.Tensor{Shape: []int64{t.Shape[0], 1}, F32: most}
	return nil
}

// blockable is a library whose runs wait until the test lets them go, and that notes their shapes.
type blockable struct {
	fakeLibrary

	started chan []int64
	release chan struct{}
}

func newBlockable(compute func(device int, in, out []tensor.Tensor) error) *blockable {
	b := &blockable{started: make(chan []int64, 64), release: make(chan struct{})}
	b.compute = func(device int, in, out []tensor.Tensor) error {
		b.started <- slices.Clone(in[0].Shape)
		<-b.release
		return compute(device, in, out)
	}
	return b
}

func batchSession(t *testing.T, lib *fakeLibrary, o BatchOptions) (*Runtime, *Session) {
	t.Helper()
	r := fakeRuntime(lib, Options{MaxConcurrent: 1, Batch: o})
	s, err := r.NewSession(t.Context(), readFile(t, "testdata/tokens.onnx"), SessionOptions{Name: "tokens", Pad: map[string]int64{"input_ids": 7}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r, s
}

// row is an input of one row, n tokens that tell whose it is.
func row(whose, n int64) []tensor.Tensor {
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = whose*1000 + int64(i)
	}
	return []tensor.Tensor{{Name: "input_ids", Shape: []int64{1, n}, I64: ids}}
}

func f32s(name string, shape []int64, values ...int64) tensor.Tensor {
	t := tensor.Tensor{Name: name, Shape: shape, F32: make([]float32, len(values))}
	for i, v := range values {
		t.F32[i] = float32(v)
	}
	return t
}

// runs starts runs one after the other and returns a function that waits for all of them.
type runs struct {
	wg   sync.WaitGroup
	mu   sync.Mutex // guards errs
	errs []error
}

func (r *runs) start(ctx context.Context, t *testing.T, s *Session, whose, n int64) {
	t.Helper()
	r.wg.Go(func() {
		in := row(whose, n)
		out, err := s.Run(ctx, in, []string{"most", "each"})
		if err == nil {
			want := []tensor.Tensor{f32s("most", []int64{1, 1}, in[0].I64[n-1]), f32s("each", []int64{1, n, 1}, in[0].I64...)}
			if diff := cmp.Diff(want, out); diff != "" {
				err = fmt.Errorf("run %d: %s", whose, diff)
			}
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.errs = append(r.errs, err)
	})
}

func (r *runs) wait(t *testing.T) (failed []error) {
	t.Helper()
	r.wg.Wait()
	return slices.DeleteFunc(r.errs, func(err error) bool { return err == nil })
}

// joined waits until a bucket has an open group of so many members.
func joined(t *testing.T, s *Session, bucket, members int) {
	t.Helper()
	waitFor(t, func() bool {
		s.batch.mu.Lock()
		defer s.batch.mu.Unlock()
		g := s.batch.open[bucket]
		return g != nil && g.live == members
	})
}

func TestRunsThatWaitAnywayBecomeOne(t *testing.T) {
	lib := newBlockable(tokensOf)
	_, s := batchSession(t, &lib.fakeLibrary, BatchOptions{Mode: BatchAuto})
	var r runs
	r.start(t.Context(), t, s, 1, 16)
	first := <-lib.started
	for i := range int64(3) {
		r.start(t.Context(), t, s, 2+i, 14+i)
		joined(t, s, 0, int(i)+1)
	}
	r.start(t.Context(), t, s, 9, 40) // of another length
	joined(t, s, bucketOf(40), 1)
	close(lib.release)
	if failed := r.wait(t); len(failed) > 0 {
		t.Error(failed)
	}
	close(lib.started)
	shapes := [][]int64{first}
	for shape := range lib.started {
		shapes = append(shapes, shape)
	}
	if diff := cmp.Diff([][]int64{{1, 16}, {3, 16}, {1, 40}}, shapes); diff != "" {
		t.Error(diff)
	}
}

func TestAGroupThatIsFullIsFollowedByAnother(t *testing.T) {
	lib := newBlockable(tokensOf)
	_, s := batchSession(t, &lib.fakeLibrary, BatchOptions{Mode: BatchAuto, MaxBatch: 2})
	var r runs
	r.start(t.Context(), t, s, 1, 16)
	<-lib.started
	r.start(t.Context(), t, s, 2, 16)
	joined(t, s, 0, 1)
	r.start(t.Context(), t, s, 3, 16)
	waitFor(t, func() bool { s.batch.mu.Lock(); defer s.batch.mu.Unlock(); return s.batch.open[0] == nil })
	r.start(t.Context(), t, s, 4, 16)
	joined(t, s, 0, 1)
	close(lib.release)
	if failed := r.wait(t); len(failed) > 0 {
		t.Error(failed)
	}
	// Which of the two leaders waits for a place first is up to the scheduler.
	if a, b := <-lib.started, <-lib.started; a[0]+b[0] != 3 || a[0] == 3 || b[0] == 3 {
		t.Errorf("runs of %v and %v rows", a, b)
	}
}

// The leader and another leave before the group has a place; who is left leads it.
func TestWhoLeavesAGroupTakesNobodyAlong(t *testing.T) {
	lib := newBlockable(tokensOf)
	_, s := batchSession(t, &lib.fakeLibrary, BatchOptions{Mode: BatchAuto})
	var r, left runs
	r.start(t.Context(), t, s, 1, 16)
	<-lib.started
	ctx, cancel := context.WithCancel(t.Context())
	left.start(ctx, t, s, 2, 16)
	joined(t, s, 0, 1)
	left.start(ctx, t, s, 3, 16)
	joined(t, s, 0, 2)
	r.start(t.Context(), t, s, 4, 16)
	joined(t, s, 0, 3)
	cancel()
	if failed := left.wait(t); len(failed) != 2 || !errors.Is(failed[0], context.Canceled) || !errors.Is(failed[1], context.Canceled) {
		t.Errorf("those that left got %v", failed)
	}
	close(lib.release)
	if failed := r.wait(t); len(failed) > 0 {
		t.Error(failed)
	}
	if last := <-lib.started; last[0] != 1 {
		t.Errorf("the last run had %d rows", last[0])
	}
}

// A group runs for as long as somebody waits for it, and no longer.
func TestARunThatNobodyWaitsForIsCancelled(t *testing.T) {
	started, ended := make(chan struct{}, 2), make(chan error, 2)
	lib := &fakeLibrary{during: func(ctx context.Context) error {
		started <- struct{}{}
		<-ctx.Done()
		ended <- ctx.Err()
		return ctx.Err()
	}}
	_, s := batchSession(t, lib, BatchOptions{Mode: BatchOn, MaxWait: option.Duration(100 * time.Millisecond)})
	var r runs
	one, leaveOne := context.WithCancel(t.Context())
	two, leaveTwo := context.WithCancel(t.Context())
	defer leaveTwo()
	s.batch.about.Add(1) // somebody else is about, so that the first waits
	r.start(one, t, s, 1, 16)
	joined(t, s, 0, 1)
	r.start(two, t, s, 2, 16)
	<-started
	leaveOne()
	waitFor(t, func() bool { r.mu.Lock(); defer r.mu.Unlock(); return len(r.errs) == 1 })
	select {
	case err := <-ended:
		t.Fatalf("the run ended although one waits for it: %v", err)
	default:
	}
	leaveTwo()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if failed := r.wait(t); len(failed) != 2 {
		t.Errorf("got %v", failed)
	}
}

// One member brings what the device cannot compute; the others get their answer.
func TestAFaultOfOneIsNotThatOfTheOthers(t *testing.T) {
	lib := newBlockable(func(device int, in, out []tensor.Tensor) error {
		if slices.ContainsFunc(in[0].I64, func(id int64) bool { return id/1000 == 3 }) {
			return errors.New("CUDA failure 2: out of memory")
		}
		return tokensOf(device, in, out)
	})
	_, s := batchSession(t, &lib.fakeLibrary, BatchOptions{Mode: BatchAuto})
	var r runs
	r.start(t.Context(), t, s, 1, 16)
	<-lib.started
	for i := range int64(3) {
		r.start(t.Context(), t, s, 2+i, 16)
		joined(t, s, 0, int(i)+1)
	}
	close(lib.release)
	failed := r.wait(t)
	var run *RunError
	if len(failed) != 1 || !errors.As(failed[0], &run) {
		t.Errorf("got %v", failed)
	}
}

func TestOutputsThatAreNotByRowsEndBatching(t *testing.T) {
	lib := newBlockable(func(device int, in, out []tensor.Tensor) error {
		err := tokensOf(device, in, out)
		if in[0].Shape[0] > 1 { // squeezed into one
			out[1].Shape, out[1].F32 = []int64{1}, out[1].F32[:1]
		}
		return err
	})
	_, s := batchSession(t, &lib.fakeLibrary, BatchOptions{Mode: BatchAuto})
	var r runs
	r.start(t.Context(), t, s, 1, 16)
	<-lib.started
	for i := range int64(2) {
		r.start(t.Context(), t, s, 2+i, 16)
		joined(t, s, 0, int(i)+1)
	}
	close(lib.release)
	if failed := r.wait(t); len(failed) > 0 {
		t.Error(failed)
	}
	if s.batch.takes(row(1, 16)) {
		t.Error("it goes on")
	}
}

// An output of two dimensions that are both open may be by tokens or not: rows of other lengths
// stay apart.
func TestWhereOutputsDoNotTellRowsOfOneLengthAreBatched(t *testing.T) {
	lib := newBlockable(func(_ int, in, out []tensor.Tensor) error {
		shape := slices.Clone(in[0].Shape)
		out[0] = tensor.Tensor{Shape: shape, F32: make([]float32, len(in[0].I64))}
		out[1] = tensor.Tensor{Shape: shape, I64: slices.Clone(in[0].I64)}
		return nil
	})
	r := fakeRuntime(&lib.fakeLibrary, Options{MaxConcurrent: 1})
	s, err := r.NewSession(t.Context(), readFile(t, "testdata/echo.onnx"), SessionOptions{Name: "echo", Pad: map[string]int64{}})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	start := func(n int64) {
		wg.Go(func() {
			out, err := s.Run(t.Context(), row(1, n), []string{"ids"})
			if err != nil || !slices.Equal(out[0].I64, row(1, n)[0].I64) {
				t.Errorf("%d tokens: %v %v", n, out, err)
			}
		})
	}
	start(16)
	<-lib.started
	for i, n := range []int64{16, 16, 15} {
		start(n)
		joined(t, s, 0, []int{1, 2, 1}[i])
	}
	close(lib.release)
	wg.Wait()
	two, one := <-lib.started, <-lib.started
	if two[0] < one[0] { // which of the two is the first to ask for the one place is chance
		two, one = one, two
	}
	if two[0] != 2 || one[0] != 1 {
		t.Errorf("runs of %v and %v", two, one)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestWhoIsAloneDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // whose clock goes on when everybody waits
		lib := &fakeLibrary{compute: tokensOf}
		_, s := batchSession(t, lib, BatchOptions{Mode: BatchOn, MaxWait: longestWait})
		start := time.Now()
		for range 20 {
			if _, err := s.Run(t.Context(), row(1, 16), nil); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(start); took > 0 {
			t.Errorf("20 runs one after the other waited for %v", took)
		}
	})
}

func TestOnlyRowsOfTokensAreBatched(t *testing.T) {
	for _, c := range []struct {
		name, graph string
		o           BatchOptions
		pad         map[string]int64
	}{
		{"off", "echo", BatchOptions{Mode: BatchOff}, map[string]int64{}},
		{"no padding is known", "echo", BatchOptions{Mode: BatchOn}, nil},
		{"numbers, not ids", "add", BatchOptions{Mode: BatchOn}, map[string]int64{}},
		{"fixed rows", "fixed", BatchOptions{Mode: BatchOn}, map[string]int64{}},
	} {
		r := fakeRuntime(&fakeLibrary{}, Options{Batch: c.o})
		s, err := r.NewSession(t.Context(), readFile(t, "testdata/"+c.graph+".onnx"), SessionOptions{Name: c.graph, Pad: c.pad})
		if err != nil {
			t.Fatal(err)
		}
		if s.batch != nil {
			t.Errorf("%s: it has a batcher", c.name)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestWhatIsTooLongRunsAlone(t *testing.T) {
	_, s := batchSession(t, &fakeLibrary{compute: tokensOf}, BatchOptions{Mode: BatchOn})
	for _, c := range []struct {
		rows, width int64
		want        bool
	}{{1, 16, true}, {8, 16, true}, {9, 16, false}, {1, maxBatchTokens / 2, true}, {1, maxBatchTokens/2 + 1, false}} {
		in := []tensor.Tensor{{Name: "input_ids", Shape: []int64{c.rows, c.width}}}
		if got := s.batch.takes(in); got != c.want {
			t.Errorf("%d rows of %d: %v", c.rows, c.width, got)
		}
	}
}

func TestBucketsHoldRowsOfSimilarLength(t *testing.T) {
	last := -1
	for width := 1; width <= 1<<14; width++ {
		k := bucketOf(width)
		if k < last || k > last+1 {
			t.Fatalf("width %d: bucket %d after %d", width, k, last)
		}
		if width > widthOf(k) || k > 0 && width <= widthOf(k-1) {
			t.Fatalf("width %d is in the bucket of up to %d", width, widthOf(k))
		}
		last = k
	}
	if diff := cmp.Diff([]int{16, 24, 32, 48, 64, 96}, []int{widthOf(0), widthOf(1), widthOf(2), widthOf(3), widthOf(4), widthOf(5)}); diff != "" {
		t.Error(diff)
	}
}

func TestBatchingStopsWhereItDoesNotPay(t *testing.T) {
	var g gain
	if !g.worthwhile() {
		t.Error("nobody has tried")
	}
	g.learn(1, 100)
	g.learn(4, 60)
	if !g.worthwhile() {
		t.Error("rows together take 60 of 100")
	}
	for range 100 {
		g.learn(4, 98)
	}
	tries := 0
	for range 10 * lookAgain {
		if g.worthwhile() {
			tries++
		}
	}
	if tries != 10 {
		t.Errorf("it is tried %d times of %d", tries, 10*lookAgain)
	}
	for range 100 {
		g.learn(4, 50)
	}
	if !g.worthwhile() {
		t.Error("it pays again")
	}
}

// Many callers of all lengths, some of whom leave: everybody gets what belongs to them.
func TestBatchesUnderLoad(t *testing.T) {
	lib := &fakeLibrary{compute: tokensOf}
	r := fakeRuntime(lib, Options{MaxConcurrent: 2, QueueDepth: 1000, Batch: BatchOptions{Mode: BatchOn, MaxBatch: 8, MaxWait: option.Duration(100 * time.Microsecond)}})
	s, err := r.NewSession(t.Context(), readFile(t, "testdata/tokens.onnx"), SessionOptions{Name: "tokens", Pad: map[string]int64{}})
	if err != nil {
		t.Fatal(err)
	}
	var all runs
	for i := range int64(400) {
		ctx := t.Context()
		if i%5 == 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, time.Duration(i)*time.Microsecond)
			defer cancel()
		}
		all.start(ctx, t, s, i, 1+i%60)
	}
	for _, err := range all.wait(t) {
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	}
	if s.batch.about.Load() != 0 {
		t.Errorf("%d are still about", s.batch.about.Load())
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}
