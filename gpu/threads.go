package gpu

import "runtime"

// osThreads runs functions on a few dedicated operating system threads. CUDA keeps handles and
// memory for every thread that has called it, and creating them takes a third of a second (measured
// on an H200, ONNX Runtime 1.30); Go would otherwise call it from ever new threads. It is safe for
// concurrent use, except for close.
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
	runtime.LockOSThread() // never unlocked: the thread ends with its goroutine
	for f := range t.jobs {
		f()
	}
}

// do runs f on one of the threads as soon as one is free, and returns when f has returned.
func (t *osThreads) do(f func()) {
	done := make(chan struct{})
	t.jobs <- func() {
		defer close(done)
		f()
	}
	<-done
}

// close ends the threads, if t is not nil. No function may be running on them.
func (t *osThreads) close() {
	if t != nil {
		close(t.jobs)
	}
}
