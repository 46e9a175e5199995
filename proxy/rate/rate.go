// Package rate keeps limits: requests and tokens a minute, and requests at a time.
//
// A limit on a minute is a bucket that leaks: what is used goes in, the allowance of a minute leaks
// out over a minute, evenly, and what does not fit is refused. So a caller that was idle may use
// its whole minute at once, and over any time t uses no more than the allowance of t and one
// minute's. Tokens go in by an estimate before the answer, and the difference to what was used goes
// in, or is taken out, after it.
//
// Buckets are in this process, or in a Remote that replicas share. A Remote that does not answer is
// asked no more for the request, and the bucket of this process stands in. Requests at a time are
// counted in this process, and in the Remote for all of them: there each is counted for a while and
// counted again as long as it is under way, so that those of a process that died are not counted
// for long.
//
// It knows nothing of HTTP but the names of headers. A Limiter is safe for concurrent use; it
// starts no goroutine, and Run needs one. Its lock is a leaf.
package rate

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"
)

// Limit bounds what counts together under one scope. Zero bounds nothing.
type Limit struct {
	Scope                      string // the same for all requests that count together, and for no others
	Requests, Tokens, Parallel int    // a minute, a minute, and at a time
}

// Charge puts N into a bucket. It is negative to take out what was put in too much.
type Charge struct {
	Bucket string
	Room   int // of the bucket, which leaks out in a minute
	N      int
	Force  bool // whether it fits or not
}

// Remote keeps buckets for several processes. Implementations are safe for concurrent use and
// answer, or give up, within milliseconds.
type Remote interface {
	// Charge makes all charges, or none when one of them does not fit, and returns how full each
	// bucket is then. group is the same for buckets that may be charged together.
	Charge(ctx context.Context, group string, charges []Charge) (full []float64, fits bool, err error)
	// Enter counts flights for the time of ttl, or none of them when one does not fit, and returns
	// how many are under way in each scope then. With force they are counted whether they fit or
	// not.
	Enter(ctx context.Context, group string, flights []Flight, ttl time.Duration, force bool) (used []int, fits bool, err error)
	// Leave takes flights out. Those that are not counted do not matter.
	Leave(ctx context.Context, group string, flights []Flight) error
}

// Flight is a request under way in a scope that bounds them.
type Flight struct {
	Scope string
	Room  int    // how many may be under way
	ID    string // of the request, unique among all processes
}

// Limiter keeps limits.
type Limiter struct {
	now    func() time.Time
	remote Remote // nil: there is none

	mu      sync.Mutex // guards what follows
	buckets map[string]*bucket
	flights map[string]int // requests under way by scope
	swept   time.Time
	remotes flights

	renewals sync.Mutex // one renewal at a time; taken before mu
}

// bucket is how full one was at a time.
type bucket struct {
	full float64
	room int
	at   time.Time
}

// New makes a Limiter. remote may be nil.
func New(remote Remote, now func() time.Time) *Limiter {
	return &Limiter{now: now, remote: remote, buckets: map[string]*bucket{}, flights: map[string]int{}, remotes: flights{held: map[*Lease]struct{}{}}}
}

// Share lets buckets be kept by remote from now on. Call it before the first request.
func (l *Limiter) Share(remote Remote) { l.remote = remote }

// Kind is what a limit bounds.
type Kind string

// What limits bound.
const (
	Requests Kind = "requests"
	Tokens   Kind = "tokens"
	Parallel Kind = "concurrency"
)

// ExceededError reports a limit that a request would break.
type ExceededError struct {
	Kind        Kind
	Scope       string // of the Limit, or begins with it
	Limit, Used int    // Used is rounded up
	Asked       int
	Wait        time.Duration // after which it would fit, if nothing else happens; 0 when it never would
	Reset       time.Duration // until all of the limit is there again
}

// Error says which limit, and when to come again.
func (e *ExceededError) Error() string {
	switch {
	case e.Kind == Parallel:
		return fmt.Sprintf("Rate limit of %s reached: %d requests are under way, and no more are allowed at a time.",
			e.whose(), e.Limit)
	case e.Wait == 0:
		return fmt.Sprintf("Request too large: it may take %d %s, and %s is allowed %d a minute.",
			e.Asked, e.Kind, e.whose(), e.Limit)
	}
	return fmt.Sprintf("Rate limit of %s reached for %s per minute: limit %d, used %d, requested %d. Please try again in %s.",
		e.whose(), e.Kind, e.Limit, e.Used, e.Asked, e.Wait)
}

// whose says whose limit it is, by what Limit.Scope begins with. Names stay out of it: the client
// knows its own key, and need not know how tenants are called.
func (e *ExceededError) whose() string {
	switch kind, _, _ := strings.Cut(e.Scope, ":"); kind {
	case "key":
		return "this key"
	case "tenant":
		return "this tenant"
	}
	return "this caller"
}

// Lease is one request that was let in. It belongs to one goroutine. A nil Lease is of a request
// that nothing bounds.
type Lease struct {
	l        *Limiter
	group    string
	limits   []Limit
	parallel int             // limits whose flights were counted
	ctx      context.Context //nolint:containedctx // Close has none, and its client may have gone: values without an end
	flying   []Flight        // that the remote counts, or may count
	lost     bool            // the remote did not answer
	estimate int             // tokens that were charged
	tightest [2]Room         // of requests and of tokens
}

// Room is how much is left of a limit.
type Room struct {
	Limit, Left int           // Limit is 0 where there is none
	Reset       time.Duration // until all of it is there again
}

// Admit lets a request in, or returns an *ExceededError. Without limits the Lease is nil. Close
// gives a Lease back.
func (l *Limiter) Admit(ctx context.Context, group string, limits []Limit) (*Lease, error) {
	if len(limits) == 0 {
		return nil, nil
	}
	lease := &Lease{l: l, group: group, limits: limits, ctx: context.WithoutCancel(ctx)}
	if err := l.enter(lease); err != nil {
		return nil, err
	}
	if err := l.depart(ctx, lease); err != nil {
		lease.Close()
		return nil, err
	}
	if err := lease.charge(ctx, Requests, 1); err != nil {
		lease.Close()
		return nil, err
	}
	return lease, nil
}

// enter counts the request in every scope that bounds requests at a time, or in none.
func (l *Limiter) enter(lease *Lease) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range lease.limits {
		if x.Parallel > 0 && l.flights[x.Scope] >= x.Parallel {
			return crowded(Flight{Scope: x.Scope, Room: x.Parallel}, l.flights[x.Scope])
		}
	}
	for _, x := range lease.limits {
		if x.Parallel > 0 {
			l.flights[x.Scope]++
		}
	}
	lease.parallel = len(lease.limits)
	return nil
}

// Close ends the request. A second call does nothing.
func (s *Lease) Close() {
	if s == nil || s.parallel == 0 {
		return
	}
	s.parallel = 0
	s.l.arrive(s)
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	for _, x := range s.limits {
		if x.Parallel <= 0 {
			continue
		}
		if s.l.flights[x.Scope]--; s.l.flights[x.Scope] <= 0 {
			delete(s.l.flights, x.Scope)
		}
	}
}

// Tokens charges an estimate of what the request will use, or returns an *ExceededError.
func (s *Lease) Tokens(ctx context.Context, estimate int) error {
	if s == nil {
		return nil
	}
	if err := s.charge(ctx, Tokens, max(estimate, 0)); err != nil {
		return err
	}
	s.estimate = max(estimate, 0)
	return nil
}

// Settle replaces the estimate with what was used. Call it once, after Tokens.
func (s *Lease) Settle(ctx context.Context, used int) {
	if s == nil || used == s.estimate {
		return
	}
	charges := s.charges(Tokens, used-s.estimate)
	for i := range charges {
		charges[i].Force = true
	}
	s.apply(ctx, charges)
}

// Bounds reports whether some limit is on a kind.
func (s *Lease) Bounds(k Kind) bool { return s != nil && len(s.charges(k, 0)) > 0 }

// Look returns what is left of the tightest of the limits on a kind, where requests of all processes
// that share them count; Limit is 0 where none is bounded. shared is false where that is what this
// process has counted alone. It counts nothing.
func (l *Limiter) Look(ctx context.Context, group string, limits []Limit, k Kind) (left Room, shared bool) {
	s := &Lease{l: l, group: group, limits: limits}
	charges := s.charges(k, 0)
	for i := range charges {
		charges[i].Force = true
	}
	if len(charges) == 0 {
		return Room{}, l.remote != nil
	}
	full, _ := s.apply(ctx, charges)
	left.Left = math.MaxInt
	for i, c := range charges {
		if n := int(max(float64(c.Room)-full[i], 0)); n < left.Left {
			left = Room{Limit: c.Room, Left: n, Reset: leak(full[i], c.Room)}
		}
	}
	return left, l.remote != nil && !s.lost
}

// Left is what was left of the tightest limit when the request was let in.
func (s *Lease) Left(k Kind) Room {
	switch {
	case s == nil:
		return Room{}
	case k == Tokens:
		return s.tightest[1]
	}
	return s.tightest[0]
}

// charges lists what n means for the buckets of a kind.
func (s *Lease) charges(k Kind, n int) []Charge {
	var out []Charge
	for _, x := range s.limits {
		room := x.Requests
		if k == Tokens {
			room = x.Tokens
		}
		if room > 0 {
			out = append(out, Charge{Bucket: x.Scope + "\x00" + string(k), Room: room, N: n})
		}
	}
	return out
}

func (s *Lease) charge(ctx context.Context, k Kind, n int) error {
	charges := s.charges(k, n)
	if len(charges) == 0 {
		return nil
	}
	for _, c := range charges {
		if c.N > c.Room {
			return &ExceededError{Kind: k, Scope: c.Bucket, Limit: c.Room, Asked: n}
		}
	}
	full, fits := s.apply(ctx, charges)
	tightest := Room{Left: math.MaxInt}
	var broken *ExceededError
	for i, c := range charges {
		left := max(float64(c.Room)-full[i], 0)
		if int(left) < tightest.Left {
			tightest = Room{Limit: c.Room, Left: int(left), Reset: leak(full[i], c.Room)}
		}
		if over := full[i] + float64(c.N) - float64(c.Room); !fits && over > -rounded {
			wait := max(leak(over, c.Room), time.Millisecond)
			if broken == nil || wait > broken.Wait {
				broken = &ExceededError{
					Kind: k, Scope: c.Bucket, Limit: c.Room, Used: int(math.Ceil(full[i])), Asked: n,
					Wait: wait, Reset: leak(full[i], c.Room),
				}
			}
		}
	}
	if k == Tokens {
		s.tightest[1] = tightest
	} else {
		s.tightest[0] = tightest
	}
	if broken != nil {
		return broken
	}
	return nil
}

// rounded is by how much less a Remote may tell of a bucket than it has compared: Redis prints six
// digits. What did not fit was not charged.
const rounded = 1e-6

// leak is how long an amount takes to leak out, rounded up to milliseconds.
func leak(amount float64, room int) time.Duration {
	return time.Duration(math.Ceil(max(amount, 0)/float64(room)*60_000)) * time.Millisecond
}

// apply makes the charges where buckets are kept.
func (s *Lease) apply(ctx context.Context, charges []Charge) (full []float64, fits bool) {
	l := s.l
	if l.remote != nil && !s.lost {
		full, fits, err := l.remote.Charge(ctx, s.group, charges)
		if err == nil && len(full) == len(charges) {
			return full, fits
		}
		s.lost = true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	l.sweep(now)
	full, fits = make([]float64, len(charges)), true
	for i, c := range charges {
		full[i] = l.bucket(c, now).full
		fits = fits && (c.Force || full[i]+float64(c.N) <= float64(c.Room))
	}
	if !fits {
		return full, false
	}
	for i, c := range charges {
		b := l.buckets[c.Bucket]
		b.full = max(b.full+float64(c.N), 0)
		full[i] = b.full
	}
	return full, true
}

// bucket returns the bucket of a charge as it is now. The caller holds the lock. A clock that goes
// back lets nothing leak.
func (l *Limiter) bucket(c Charge, now time.Time) *bucket {
	b := l.buckets[c.Bucket]
	if b == nil {
		b = &bucket{at: now}
		l.buckets[c.Bucket] = b
	}
	if gone := now.Sub(b.at).Minutes(); gone > 0 {
		b.full = max(b.full-gone*float64(c.Room), 0)
	}
	b.at, b.room = now, c.Room
	return b
}

// sweepEvery is how often empty buckets are dropped: callers with tokens may be many.
const sweepEvery = time.Minute

func (l *Limiter) sweep(now time.Time) {
	if now.Sub(l.swept) < sweepEvery {
		return
	}
	l.swept = now
	for name, b := range l.buckets {
		if b.full-now.Sub(b.at).Minutes()*float64(b.room) <= 0 {
			delete(l.buckets, name)
		}
	}
}
