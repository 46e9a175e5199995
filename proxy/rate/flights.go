package rate

import (
	"context"
	"crypto/rand"
	"time"
)

// flightTTL is how long a Remote counts a request that nobody counts again, as after the death of
// its process. It is renewed three times in that time, so that one answer that is late costs
// nothing.
const flightTTL = 30 * time.Second

// flights is what a Limiter has to tell its Remote of requests under way. Its Limiter's lock guards
// it.
type flights struct {
	held     map[*Lease]struct{} // counted by the remote, and under way
	left     []landing           // to be taken out
	renewing bool
}

// landing is flights that have ended.
type landing struct {
	group   string
	flights []Flight
}

// maxLeft bounds the landings that a Remote was not told of. Those beyond are forgotten: it counts
// them until their time is over.
const maxLeft = 4096

// renewed is how many flights are counted again in one call.
const renewed = 256

// depart counts the request in the remote. Where that does not answer, the count of this process
// stands in.
func (l *Limiter) depart(ctx context.Context, s *Lease) error {
	if l.remote == nil {
		return nil
	}
	id := ""
	for _, x := range s.limits {
		if x.Parallel <= 0 {
			continue
		}
		if id == "" {
			id = rand.Text()
		}
		s.flying = append(s.flying, Flight{Scope: x.Scope, Room: x.Parallel, ID: id})
	}
	if s.flying == nil {
		return nil
	}
	used, fits, err := l.remote.Enter(ctx, s.group, s.flying, flightTTL, false)
	switch {
	case err != nil || len(used) != len(s.flying):
		s.lost = true // and it may be counted or not
		return nil
	case fits:
		l.mu.Lock()
		defer l.mu.Unlock()
		l.remotes.held[s] = struct{}{}
		return nil
	}
	full := s.flying
	s.flying = nil
	for i, f := range full {
		if used[i] >= f.Room {
			return crowded(f, used[i])
		}
	}
	return crowded(full[0], used[0])
}

// crowded is the error of a scope that has as many requests under way as it may have.
func crowded(f Flight, used int) *ExceededError {
	return &ExceededError{Kind: Parallel, Scope: f.Scope, Limit: f.Room, Used: used, Asked: 1, Wait: time.Second}
}

// arrive takes the request out of the remote, at once where it answers, and else when it is told
// next. What is counted again at this moment must not be taken out before.
func (l *Limiter) arrive(s *Lease) {
	if s.flying == nil {
		return
	}
	l.mu.Lock()
	end := landing{s.group, s.flying}
	s.flying = nil
	delete(l.remotes.held, s)
	later := s.lost || l.remotes.renewing
	if later {
		l.defers(end)
	}
	l.mu.Unlock()
	if later || l.remote.Leave(s.ctx, end.group, end.flights) == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.defers(end)
}

// defers keeps a landing for later. The caller holds the lock.
func (l *Limiter) defers(end landing) {
	if len(l.remotes.left) < maxLeft {
		l.remotes.left = append(l.remotes.left, end)
	}
}

// Run keeps the requests under way counted in the Remote until ctx ends. Without a Remote it only
// waits.
func (l *Limiter) Run(ctx context.Context) {
	tick := time.NewTicker(flightTTL / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			l.renew(ctx)
		}
	}
}

// renew counts the requests under way again, and takes out those that have ended unnoticed.
func (l *Limiter) renew(ctx context.Context) {
	if l.remote == nil {
		return
	}
	l.renewals.Lock()
	defer l.renewals.Unlock()
	l.mu.Lock()
	l.remotes.renewing = true
	groups := map[string][]Flight{}
	for s := range l.remotes.held {
		groups[s.group] = append(groups[s.group], s.flying...)
	}
	l.mu.Unlock()
	for group, all := range groups {
		for len(all) > 0 {
			n := min(renewed, len(all))
			_, _, _ = l.remote.Enter(ctx, group, all[:n], flightTTL, true) // the next time comes before they are forgotten
			all = all[n:]
		}
	}
	l.mu.Lock()
	ended := l.remotes.left
	l.remotes.left, l.remotes.renewing = nil, false
	l.mu.Unlock()
	for i, end := range ended {
		if l.remote.Leave(ctx, end.group, end.flights) == nil {
			continue
		}
		l.mu.Lock()
		for _, later := range ended[i:] {
			l.defers(later)
		}
		l.mu.Unlock()
		return
	}
}
