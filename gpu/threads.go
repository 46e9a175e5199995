package gpu

import "runtime"

// osThreads runs functions on a few threads of the system that do nothing else. CUDA keeps handles
// and memory for every thread that has run it, and making them takes a third of a second (measured
// on an H200, ONNX Runtime 1.30): Go would call it from ever new threads. It is safe for concurrent
// use but for close.
type osThreads struct{ jobs chan func() }

// newOSThreads starts n threads. close ends them.
func newOSThreads(n int) *osThreads {
	t := &osThreads{jobs: make(chan func())}
	for range n {
		go t.work()
	}
	return t
}

func (t *osThreads) work() {
	runtime.LockOSThread() // for good: the thread ends with its goroutine
	for f := range t.jobs {
		f()
	}
}

// do runs f on one of the threads, once one is free, and returns when f has.
func (t *osThreads) do(f func()) {
	done := make(chan struct{})
	t.jobs <- func() {
		defer close(done)
		f()
	}
	<-done
}

// close ends the threads, if t is not nil. Nothing may run on them any more.
func (t *osThreads) close() {
	if t != nil {
		close(t.jobs)
	}
}
