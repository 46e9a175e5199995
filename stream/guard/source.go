package guard

// piece is what one Read gave.
type piece struct {
	data []byte
	err  error
}

// reading calls a Source on a goroutine of its own, one piece at a time: the next Read begins once next was called.
type reading struct {
	src    Source
	pieces chan piece
	ready  chan struct{}
	quit   chan struct{}
	done   chan struct{}
	gone   bool // the source was cancelled
}

func read(src Source) *reading {
	r := &reading{src: src, pieces: make(chan piece), ready: make(chan struct{}), quit: make(chan struct{}), done: make(chan struct{})}
	go r.loop()
	return r
}

func (r *reading) loop() {
	defer close(r.done)
	for {
		data, err := r.src.Read()
		select {
		case r.pieces <- piece{data, err}:
		case <-r.quit:
			return
		}
		if err != nil {
			return
		}
		select {
		case <-r.ready:
		case <-r.quit:
			return
		}
	}
}

// next tells that the piece is used up. The last one, which came with an error, needs none.
func (r *reading) next() { r.ready <- struct{}{} }

// cancel ends a Read that waits.
func (r *reading) cancel() {
	if !r.gone {
		r.gone = true
		r.src.Cancel()
	}
}

// close ends the goroutine and waits for it. It must not be in Read, or the source has to be cancelled.
func (r *reading) close() {
	close(r.quit)
	<-r.done
}
