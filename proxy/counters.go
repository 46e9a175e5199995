package proxy

import (
	"sync"
	"time"
)

// counters remembers which endpoints do not count tokens, so that they are not asked each time.
type counters struct {
	mu    sync.Mutex           // guards mutes
	mutes map[string]time.Time // by URL: until when
}

// muted is how long an endpoint without the path is left alone: it may be replaced by one that has
// it.
const muted = 10 * time.Minute

func (c *counters) asks(at string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !now.Before(c.mutes[at])
}

func (c *counters) mute(at string, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mutes == nil {
		c.mutes = map[string]time.Time{}
	}
	c.mutes[at] = now.Add(muted)
}
