package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// errStalled ends an attempt that receives no more bytes.
var errStalled = errors.New("no data for too long")

// watchdog cancels an attempt that receives no byte for Options.Stall.
type watchdog struct {
	timer  *time.Timer
	stall  time.Duration
	cancel context.CancelCauseFunc
}

// watch returns a context for one attempt. stop must be called.
func (c *Client) watch(ctx context.Context) (context.Context, *watchdog) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &watchdog{stall: c.o.Stall, cancel: cancel}
	w.timer = time.AfterFunc(c.o.Stall, func() {
		cancel(&temporaryError{err: fmt.Errorf("%w (%v)", errStalled, w.stall)})
	})
	return ctx, w
}

func (w *watchdog) stop() {
	w.timer.Stop()
	w.cancel(nil)
}

func (w *watchdog) reader(r io.Reader) io.Reader { return &watchedReader{r: r, w: w} }

// watchedReader reports every byte to the watchdog.
type watchedReader struct {
	r io.Reader
	w *watchdog
}

func (r *watchedReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if n > 0 {
		r.w.timer.Reset(r.w.stall)
	}
	return n, err //nolint:wrapcheck // io.Reader's contract
}
