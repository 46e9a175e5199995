package rate

import (
	"context"
	"crypto/rand"
	"time"
)

// flightTTL is how long a Remote counts a request that is not renewed, for example after its
// process died. Renewal happens three times in that period, so that one late response does no harm.
const flightTTL = 30 * time.Second

// flights is what a Limiter must report to its Remote about requests in flight. The Limiter's lock
// guards it.
type flights struct {
	held     map[*Lease]struct{} // in flight and counted by the remote
	left     []landing           // to be removed from the remote
	renewing bool
}

// landing is a group of ended flights.
type landing struct {
	group   string
	flights []Flight
}

// maxLeft limits the landings not yet reported to a Remote. Any more are dropped; the Remote counts
// those flights until they expire.
const maxLeft = 4096

// renewed is the number of flights renewed in one call.
const renewed = 256

// depart counts the request at the remote. If it does not respond, the count of this process is
// used.
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
		s.lost = true // it may have been counted or not
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

// crowded returns the error of a scope with the maximum number of requests in flight.
func crowded(f Flight, used int) *ExceededError {
	return &ExceededError{Kind: Parallel, Scope: f.Scope, Limit: f.Room, Used: used, Asked: 1, Wait: time.Second}
}

// arrive removes the request from the remote, immediately if possible, otherwise with the next
// report. A flight that is being renewed must not be removed before the renewal ends.
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

// defers stores a landing for later. The caller holds the lock.
func (l *Limiter) defers(end landing) {
	if len(l.remotes.left) < maxLeft {
		l.remotes.left = append(l.remotes.left, end)
	}
}

// Run keeps the requests in flight counted at the Remote until ctx ends. Without a Remote it only
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

// renew renews the requests in flight and removes those that have ended unreported.
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
			// on failure, the next renewal comes before they expire
			_, _, _ = l.remote.Enter(ctx, group, all[:n], flightTTL, true)
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
