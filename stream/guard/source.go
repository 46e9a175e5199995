package guard

// reading calls Source.Read on its own goroutine. The next Read begins after next was called.
type reading struct {
	src   Source
	came  chan struct{}
	ready chan struct{}
	quit  chan struct{}
	done  chan struct{}
	gone  bool // the source was cancelled
}

func read(src Source) *reading {
	r := &reading{
		src: src, came: make(chan struct{}), ready: make(chan struct{}), quit: make(chan struct{}),
		done: make(chan struct{}),
	}
	go r.loop()
	return r
}

func (r *reading) loop() {
	defer close(r.done)
	for {
		r.src.Read()
		select {
		case r.came <- struct{}{}:
		case <-r.quit:
			return
		}
		select {
		case <-r.ready:
		case <-r.quit:
			return
		}
	}
}

// next says that what arrived has been processed and more may be read.
func (r *reading) next() { r.ready <- struct{}{} }

// cancel ends a waiting Read.
func (r *reading) cancel() {
	if !r.gone {
		r.gone = true
		r.src.Cancel()
	}
}

// close ends the goroutine and waits for it. The goroutine must not be in Read, or the source must
// be cancelled first.
func (r *reading) close() {
	close(r.quit)
	<-r.done
}
