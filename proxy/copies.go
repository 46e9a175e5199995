package proxy

import (
	"context"
	"sync"
	"time"
)

// copies are the copies of requests of a state that are under way, each on a goroutine that close
// ends and waits for.
type copies struct {
	slots chan struct{}
	done  context.Context //nolint:containedctx // of the state, which outlives requests
	stop  context.CancelFunc
	all   sync.WaitGroup
}

func newCopies() *copies {
	c := &copies{slots: make(chan struct{}, copiesAtOnce)}
	c.done, c.stop = context.WithCancel(context.Background())
	return c
}

// start runs f, unless too many run.
func (c *copies) start(f func(ctx context.Context)) bool {
	select {
	case c.slots <- struct{}{}:
	default:
		return false
	}
	c.all.Go(func() {
		defer func() { <-c.slots }()
		ctx, cancel := context.WithTimeout(c.done, copyTime)
		defer cancel()
		f(ctx)
	})
	return true
}

// close ends all copies and waits for them.
func (c *copies) close() {
	c.stop()
	c.all.Wait()
}

// The bounds of copies: how many of one state are under way, and how long one may take. One more is
// dropped.
const (
	copiesAtOnce = 16
	copyTime     = 5 * time.Minute
)
