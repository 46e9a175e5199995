// Package rate enforces limits on requests and tokens per minute, and on concurrent requests.
//
// A limit per minute is a leaky bucket. Usage fills it, it drains evenly by one minute's allowance
// per minute, and what does not fit is refused. So a caller that was idle may use a whole minute's
// allowance at once, and over any period t at most the allowance for t plus that of one minute.
// Tokens are charged by an estimate before the response; the difference to the actual usage is
// charged or refunded afterwards.
//
// Buckets are stored in this process, or in a Remote that replicas share. If the Remote does not
// respond, it is not asked again for the same request, and the bucket of this process is used
// instead. Concurrent requests are counted in this process and, for all processes, in the Remote.
// There each count expires and is renewed while the request is in flight, so that requests of a
// dead process do not count for long.
//
// The package knows nothing about HTTP except the names of headers. A Limiter is safe for
// concurrent use. It starts no goroutine; Run needs one. Its lock is a leaf.
package rate

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"
)

// Limit limits the requests in one scope. Zero means no limit.
type Limit struct {
	Scope                      string // identifies the requests that count together
	Requests, Tokens, Parallel int    // per minute, per minute, and concurrent
}

// Charge adds N to a bucket. A negative N refunds an overcharge.
type Charge struct {
	Bucket string
	Room   int // size of the bucket, which drains in a minute
	N      int
	Force  bool // charge even if it does not fit
}

// Remote stores buckets for several processes. Implementations are safe for concurrent use and
// respond, or give up, within milliseconds.
type Remote interface {
	// Charge makes all charges, or none if one of them does not fit, and returns the level of each
	// bucket afterwards. group is the same for buckets that may be charged together.
	Charge(ctx context.Context, group string, charges []Charge) (full []float64, fits bool, err error)
	// Enter counts flights for ttl, or none of them if one does not fit, and returns the number in
	// flight in each scope afterwards. With force they are counted even if they do not fit.
	Enter(ctx context.Context, group string, flights []Flight, ttl time.Duration, force bool) (used []int, fits bool, err error)
	// Leave removes flights. Flights that are not counted are ignored.
	Leave(ctx context.Context, group string, flights []Flight) error
}

// Flight is a request in flight in a scope with a limit.
type Flight struct {
	Scope string
	Room  int    // maximum number in flight
	ID    string // of the request, unique among all processes
}

// Limiter enforces limits.
type Limiter struct {
	now    func() time.Time
	remote Remote // nil if there is none

	mu      sync.Mutex // guards the fields below
	buckets map[string]*bucket
	flights map[string]int // requests in flight by scope
	swept   time.Time
	remotes flights

	renewals sync.Mutex // serialises renewals; taken before mu
}

// bucket is the level of a bucket at a time.
type bucket struct {
	full float64
	room int
	at   time.Time
}

// New returns a Limiter. remote may be nil.
func New(remote Remote, now func() time.Time) *Limiter {
	return &Limiter{now: now, remote: remote, buckets: map[string]*bucket{}, flights: map[string]int{}, remotes: flights{held: map[*Lease]struct{}{}}}
}

// Share makes remote store the buckets from now on. Call it before the first request.
func (l *Limiter) Share(remote Remote) { l.remote = remote }

// Kind is what is limited.
type Kind string

// The kinds of limits.
const (
	Requests Kind = "requests"
	Tokens   Kind = "tokens"
	Parallel Kind = "concurrency"
)

// ExceededError reports a limit that a request would exceed.
type ExceededError struct {
	Kind        Kind
	Scope       string // Limit.Scope, or a string that begins with it
	Limit, Used int    // Used is rounded up
	Asked       int
	Wait        time.Duration // until it would fit if nothing else happens; 0 if it never would
	Reset       time.Duration // until the whole limit is available
}

// Error names the limit and when to retry.
func (e *ExceededError) Error() string {
	switch {
	case e.Kind == Parallel:
		return fmt.Sprintf("Rate limit of %s reached: at most %d concurrent requests are allowed.",
			e.whose(), e.Limit)
	case e.Wait == 0:
		return fmt.Sprintf("Request too large: it may use %d %s, but the limit of %s is %d per minute.",
			e.Asked, e.Kind, e.whose(), e.Limit)
	}
	return fmt.Sprintf("Rate limit of %s reached for %s per minute: limit %d, used %d, requested %d. Please try again in %s.",
		e.whose(), e.Kind, e.Limit, e.Used, e.Asked, e.Wait)
}

// whose returns the owner of the limit, by the prefix of Limit.Scope. It omits names: the client
// knows its own key, and need not know the names of tenants.
func (e *ExceededError) whose() string {
	switch kind, _, _ := strings.Cut(e.Scope, ":"); kind {
	case "key":
		return "this key"
	case "tenant":
		return "this tenant"
	}
	return "this caller"
}

// Lease is one admitted request. It belongs to one goroutine. A nil Lease means that the request
// has no limits.
type Lease struct {
	l        *Limiter
	group    string
	limits   []Limit
	parallel int             // number of limits if concurrency was counted; 0 otherwise
	ctx      context.Context //nolint:containedctx // values only: Close has no context, and its client may have left
	flying   []Flight        // that the remote counts, or may count
	lost     bool            // the remote did not respond
	estimate int             // tokens charged in advance
	tightest [2]Room         // for requests and for tokens
}

// Room is how much of a limit is left.
type Room struct {
	Limit, Left int           // Limit is 0 if there is none
	Reset       time.Duration // until the whole limit is available
}

// Admit admits a request, or returns an *ExceededError. Without limits the Lease is nil. Close ends
// a Lease.
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

// enter counts the request in every scope with a limit on concurrent requests, or in none.
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

// Tokens charges an estimate of the request's usage, or returns an *ExceededError.
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

// Settle replaces the estimate by the actual usage. Call it once, after Tokens.
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

// Bounds reports whether there is a limit of a kind.
func (s *Lease) Bounds(k Kind) bool { return s != nil && len(s.charges(k, 0)) > 0 }

// Look returns what is left of the tightest limit of a kind; Limit is 0 if there is none. shared is
// false if only this process was counted. Look counts nothing itself.
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

// Left returns what was left of the tightest limit when the request was admitted.
func (s *Lease) Left(k Kind) Room {
	switch {
	case s == nil:
		return Room{}
	case k == Tokens:
		return s.tightest[1]
	}
	return s.tightest[0]
}

// charges returns the charges of n for the buckets of a kind.
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

// rounded is the tolerance for the levels that a Remote reports, since Redis prints six digits.
// What did not fit was not charged.
const rounded = 1e-6

// leak returns how long an amount takes to drain, rounded up to milliseconds.
func leak(amount float64, room int) time.Duration {
	return time.Duration(math.Ceil(max(amount, 0)/float64(room)*60_000)) * time.Millisecond
}

// apply makes the charges at the remote, or else in this process.
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

// bucket returns the bucket of a charge with its current level. The caller holds the lock. If the
// clock goes back, nothing drains. If the limit was changed, the bucket keeps the share of its room
// that was used, so that it still drains within a minute.
func (l *Limiter) bucket(c Charge, now time.Time) *bucket {
	b := l.buckets[c.Bucket]
	if b == nil {
		b = &bucket{at: now}
		l.buckets[c.Bucket] = b
	}
	if b.room > 0 && b.room != c.Room {
		b.full *= float64(c.Room) / float64(b.room)
	}
	if gone := now.Sub(b.at).Minutes(); gone > 0 {
		b.full = max(b.full-gone*float64(c.Room), 0)
	}
	b.at, b.room = now, c.Room
	return b
}

// sweepEvery is how often empty buckets are dropped, since there may be many callers with tokens.
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
