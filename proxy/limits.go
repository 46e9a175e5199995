package proxy

import (
	"context"
	"math"
	"net/http"
	"sync/atomic"
	"time"

	"signalbox/internal/openai"
	"signalbox/internal/option"
	"signalbox/proxy/fault"
	"signalbox/proxy/rate"
	"signalbox/proxy/resolve"
)

// LimitOptions is the section `limits`: what keeps requests from using up the process. Limits of
// callers are in `auth`.
type LimitOptions struct {
	// MaxConnections is how many clients may be connected at a time. When one more comes, the
	// connection that has been idle longest is closed for it, or one that has said nothing for a
	// second; when all have requests under way, it waits. 0 to 1000000. Default 0: half of the
	// files that the process may have open (ulimit -n), less 96, and at most 65536. Restart needed.
	MaxConnections int `yaml:"max_connections"`
	// MaxBytesInFlight bounds the bodies of all requests that are under way, together; one that
	// does not fit is answered with 503. At least server.max_body_bytes. Default 1GiB. Reloadable.
	MaxBytesInFlight option.Bytes `yaml:"max_bytes_in_flight"`
	// MaxMessages is the most messages or input items of a request. 1 to 1000000. Default 16384.
	// Reloadable.
	MaxMessages int `yaml:"max_messages"`
	// MaxDepth is how deep objects and arrays of a body may be nested. 8 to 1000. Default 128.
	// Reloadable.
	MaxDepth int `yaml:"max_depth"`
	// MinBodyRate is how many bytes a second a client must send of a body, on average, once the
	// first five seconds are over. 0 is no bound. Default 1KiB. Reloadable.
	MinBodyRate option.Bytes `yaml:"min_body_rate"`
}

// DefaultLimitOptions returns the options of an empty section.
func DefaultLimitOptions() LimitOptions {
	d := openai.DefaultLimits()
	return LimitOptions{MaxBytesInFlight: 1 << 30, MaxMessages: d.MaxMessages, MaxDepth: d.MaxDepth, MinBodyRate: 1 << 10}
}

// Validate reports every bad option, one "field: problem" a line. largest is the largest body that
// is accepted.
func (o LimitOptions) Validate(largest option.Bytes) error {
	var p option.Problems
	if o.MaxConnections < 0 || o.MaxConnections > 1_000_000 {
		p.Addf("max_connections", "%d is not between 0 and 1000000", o.MaxConnections)
	}
	if o.MaxBytesInFlight < largest {
		p.Addf("max_bytes_in_flight", "%d is less than server.max_body_bytes, %d: a request of that size would never fit", o.MaxBytesInFlight, largest)
	}
	if o.MaxMessages < 1 || o.MaxMessages > 1_000_000 {
		p.Addf("max_messages", "%d is not between 1 and 1000000", o.MaxMessages)
	}
	if o.MaxDepth < 8 || o.MaxDepth > 1000 {
		p.Addf("max_depth", "%d is not between 8 and 1000", o.MaxDepth)
	}
	return p.Err()
}

// Limit sets the section `limits`. Call it before st is served from; without it the defaults hold.
func (st *State) Limit(o LimitOptions) error {
	if err := o.Validate(st.opts.MaxBodyBytes); err != nil {
		return err
	}
	st.limits = o
	return nil
}

// parse is what bounds the reading of a body.
func (o LimitOptions) parse() openai.Limits {
	return openai.Limits{MaxMessages: o.MaxMessages, MaxDepth: o.MaxDepth}
}

// ShareLimits lets the minutes of callers be counted by remote, for all replicas. Call it once,
// before the first request.
func (p *Proxy) ShareLimits(remote rate.Remote) { p.limiter.Share(remote) }

// inFlight counts the bytes of bodies. It is safe for concurrent use; the zero value is ready.
type inFlight struct{ n atomic.Int64 }

// leave gives bytes back.
func (f *inFlight) leave(n int64) {
	if n > 0 {
		f.n.Add(-n)
	}
}

// hold counts that the request holds n bytes of a body, which is not less than before. It reports
// false, and counts nothing, when the bodies of all requests together are more than most then.
func (w *reply) hold(n int64, most option.Bytes) bool {
	more := n - w.held
	if w.bytes == nil || more <= 0 {
		return true
	}
	if w.bytes.n.Add(more) > int64(most) {
		w.bytes.n.Add(-more)
		return false
	}
	w.held = n
	return true
}

// maxHeaders is how many header lines a request may have: no client sends half as many, and each
// costs every hop.
const maxHeaders = 128

// slowStart is the time that a client has before its pace counts.
const slowStart = 5 * time.Second

// pace is how fast a client has to send a body. It belongs to one request.
type pace struct {
	begun   time.Time
	pause   time.Duration // that it may make; 0 for ever
	rate    int           // bytes a second on average; 0 for any
	renewed time.Time     // when the deadline was set
	until   time.Time     // the deadline
}

// expect bounds the time that a body may take which nobody reads: the server reads on before it
// answers.
func (st *State) expect(w *reply, r *http.Request) {
	if r.ContentLength == 0 {
		return
	}
	limit := slowStart
	if pause := time.Duration(st.opts.BodyTimeout); pause > 0 {
		limit = min(limit, pause)
	}
	w.expects = w.start.Add(limit)
	_ = w.rc.SetReadDeadline(w.expects) // a reader without deadlines has none to miss
}

// pace goes on from the deadline that expect set, which most bodies never need moved.
func (st *State) pace(w *reply) pace {
	c := pace{begun: w.start, pause: time.Duration(st.opts.BodyTimeout), rate: int(st.limits.MinBodyRate)}
	if c.pause > 0 || c.rate > 0 {
		c.renewed, c.until = w.start, w.expects
	}
	return c
}

// renew moves the deadline of the read to come; read is how many bytes are here. Moving it costs a
// system call's worth, so it is moved when it matters.
func (c *pace) renew(w *reply, read int) {
	now := time.Now()
	if c.pause <= 0 && c.rate <= 0 {
		if c.renewed.IsZero() {
			c.renewed = now
			_ = w.rc.SetReadDeadline(time.Time{})
		}
		return
	}
	var until time.Time
	if c.pause > 0 {
		until = now.Add(c.pause)
	}
	if c.rate > 0 {
		if by := c.begun.Add(slowStart + time.Duration(float64(read+1)/float64(c.rate)*float64(time.Second))); until.IsZero() || by.Before(until) {
			until = by
		}
	}
	if step := c.step(); !c.until.IsZero() && until.Sub(c.until) < step && now.Sub(c.renewed) < step {
		return
	}
	c.renewed, c.until = now, until
	_ = w.rc.SetReadDeadline(until) // a reader without deadlines has none to miss
}

// step is by how much the deadline may lag behind.
func (c *pace) step() time.Duration {
	if c.pause <= 0 {
		return time.Second
	}
	return min(c.pause/4, time.Second)
}

// lift takes the deadline away when the body is here: what is read from then on only tells that the
// client has gone.
func (c *pace) lift(w *reply) {
	if !c.until.IsZero() {
		_ = w.rc.SetReadDeadline(time.Time{})
	}
}

// count counts a request in the limits of its caller.
func (w *reply) count(r *http.Request, who *Principal) (err error) {
	if len(who.Limits) == 0 || w.limiter == nil {
		return nil
	}
	limits := make([]rate.Limit, len(who.Limits))
	for i, l := range who.Limits {
		limits[i] = rate.Limit{Scope: l.Scope, Requests: l.Rate.RPM, Tokens: l.Rate.TPM, Parallel: l.Rate.Concurrency}
	}
	if w.lease, err = w.limiter.Admit(r.Context(), who.Tenant, limits); err != nil {
		return err
	}
	w.lease.Describe(w.Header())
	return nil
}

// charge counts what a request may use in the limits of its caller: its prompt, estimated, and the
// most that it allows for the answer.
func (w *reply) charge(ctx context.Context, req *openai.Request, held *resolve.Contexts) error {
	if w.lease == nil {
		return nil
	}
	n := req.EstimateTokens()
	if held.Named() {
		n += held.Tokens
	}
	if req.API != openai.Other {
		n += req.MaxOutputTokens()
	}
	err := w.lease.Tokens(ctx, n)
	if err == nil {
		w.lease.Describe(w.Header())
	}
	return err
}

// settleLimits counts what a request really used: what the answer says, or an estimate where it
// does not say, up to where it was cut. A request that no model saw used nothing.
func (w *reply) settleLimits(ctx context.Context, o *exchange, status int) {
	if w.lease == nil || o.req == nil {
		return
	}
	used := 0
	switch u := o.told.Usage; {
	case o.model == nil, status >= http.StatusBadRequest && status != fault.StatusClientGone && w.status != http.StatusOK:
	case u.Input+u.Output > 0:
		used = min(u.Input+u.Output, math.MaxInt32)
	default:
		used = o.req.EstimateTokens() + int(max(o.told.Length(), 0))
	}
	thrown := o.escalation.used(o.req)
	used = min(used+thrown.Input+thrown.Output, math.MaxInt32)
	w.lease.Settle(context.WithoutCancel(ctx), used)
}
