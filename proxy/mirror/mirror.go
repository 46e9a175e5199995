package mirror

import (
	"bytes"
	"context"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"signalbox/internal/openai"
	"signalbox/internal/telemetry"
	"signalbox/proxy/backend"
	"signalbox/proxy/decisionlog"
	"signalbox/proxy/escalate"
	"signalbox/proxy/framing"
	"signalbox/proxy/rewrite"
	"signalbox/proxy/upstream"
	"signalbox/rules"
)

// The results of a copy, as used in metrics and logs.
const (
	answered = "answered"
	failed   = "failed"
	Dropped  = "dropped" // too many were in flight, or no endpoint had a free slot
)

// Copy is the copy of one request. nil means that there is none.
type Copy struct {
	Model *backend.Model // the model that receives it
	Body  rewrite.Payload

	intn  func(n int) int
	api   openai.API
	got   *escalate.Answer // the client's response
	whole *capped          // the client's response body if it is not a stream
}

// New returns the copy of a request if its route mirrors it; otherwise nil. The copy is made from
// what the route's models receive, so redacted values are redacted here, too. Requests that a
// server stores, that continue stored state, or that name stored contexts are not copied.
func New(ctx context.Context, change *rewrite.Change) *Copy {
	want, req := change.Decision.Action.Mirror, change.Request
	if want == nil || req.API == openai.Other || change.Decision.Contexts.Named() || !req.Stateless() {
		return nil
	}
	const grain = 1 << 20
	if float64(change.Decision.Base.Chooser.Intn(grain)) >= want.Share*grain {
		return nil
	}
	m := change.Decision.Base.ByName[want.Model]
	body, _, err := change.Payload(ctx, m)
	if err != nil {
		return nil
	}
	return &Copy{intn: change.Decision.Base.Chooser.Intn, Model: m, api: req.API, Body: body}
}

// Observe records the client's response for comparison.
func (m *Copy) Observe(u *upstream.Response) {
	if m == nil || !u.Good() || !u.Plain() {
		return
	}
	m.got = escalate.New(m.api, &escalate.Expected{})
	if u.Stream != nil {
		u.Observe(m.got)
		return
	}
	m.whole = new(capped)
	u.Tee(m.whole)
}

// Comparable reports whether the client's response is available for comparison; false for nil, and
// if it was too long to keep.
func (m *Copy) Comparable() bool { return m != nil && m.got != nil && !m.got.Long() }

// readInto reads a response to its end.
func readInto(u *upstream.Response, a *escalate.Answer) error {
	if u.Stream != nil {
		return u.ReadEvents(a)
	}
	all, err := u.ReadWhole()
	if err == nil {
		a.Body(all)
	}
	return err
}

// compare computes how the copy's response differs from the client's.
func (m *Copy) compare(out *decisionlog.Mirror, got *escalate.Answer) {
	if m.whole != nil {
		m.got.Body(m.whole.Bytes())
	}
	mine, theirs := got.Text(), m.got.Text()
	out.Finish, out.Same = got.Finish, got.Finish == m.got.Finish
	out.Bytes, out.Against = len(mine), len(theirs)
	out.Similarity = escalate.Similarity(mine, theirs)
	u := got.Usage
	if u.Output == 0 {
		u.Output = int(max(got.Length(), 0))
	}
	out.Tokens = decisionlog.TokensOf(u)
	out.Cost = m.Model.Price.Of(float64(u.Input), float64(u.Output))
}

// capped keeps what is written to it, up to slightly more than upstream.MaxWhole bytes.
type capped struct{ bytes.Buffer }

// Write implements io.Writer.
func (b *capped) Write(p []byte) (int, error) {
	if b.Len() >= upstream.MaxWhole {
		return len(p), nil
	}
	return b.Buffer.Write(p)
}

// Send sends a copy and compares its response. A panic is logged: nobody waits for a copy, and it
// must not end the process.
func (m *Copy) Send(
	ctx context.Context, transport framing.Transport, tel *telemetry.Telemetry, c *upstream.Call,
) (out *decisionlog.Mirror) {
	out = &decisionlog.Mirror{Model: m.Model.Name, Result: Dropped}
	defer func() {
		if v := recover(); v != nil {
			out.Result = failed
			tel.Log.LogAttrs(ctx, slog.LevelError, "panic", slog.String("id", c.ID), slog.Any("value", v),
				slog.String("stack", string(debug.Stack())))
		}
	}()
	begun := time.Now()
	e, _ := m.Model.Pick(nil, m.intn, begun)
	if e == nil {
		return out
	}
	lease, ok := e.Enter()
	if !ok {
		return out
	}
	defer lease.Close()
	out.Result = failed
	u, err := upstream.Do(ctx, transport, c, m.Model, lease)
	if err != nil {
		tel.Log.LogAttrs(ctx, slog.LevelInfo, "copy failed", slog.String("id", c.ID),
			slog.String("model", out.Model), slog.String("cause", err.Error()))
		return out
	}
	defer u.Close()
	got := escalate.New(c.API, &escalate.Expected{})
	if !u.Good() || u.Misfit(c.Streaming) != "" || readInto(u, got) != nil || !got.Readable() ||
		got.Judge(&rules.Escalate{}) != "" {
		return out
	}
	u.Endpoint.Succeeded()
	out.Result = answered
	m.compare(out, got)
	out.Ms = decisionlog.Milliseconds(time.Since(begun))
	t := out.Tokens
	tel.Metrics.Mirrored(out.Model, t.Prompt, t.Completion, out.Cost, out.Similarity)
	return out
}

// Pool runs copies of requests, each on a goroutine that Close ends and waits for. The states of a
// proxy share one.
type Pool struct {
	slots chan struct{}
	done  context.Context //nolint:containedctx // of the pool, which outlives requests
	stop  context.CancelFunc
	all   sync.WaitGroup
}

// NewPool returns a pool without copies.
func NewPool() *Pool {
	c := &Pool{slots: make(chan struct{}, AtOnce)}
	c.done, c.stop = context.WithCancel(context.Background())
	return c
}

// Start runs f, unless too many copies are in flight.
func (c *Pool) Start(f func(ctx context.Context)) bool {
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

// Close cancels all copies and waits for them.
func (c *Pool) Close() {
	c.stop()
	c.Wait()
}

// Wait waits for the copies in flight.
func (c *Pool) Wait() { c.all.Wait() }

// Limits of copies: the number in flight, and the duration of one. Any more are dropped.
const (
	AtOnce   = 16
	copyTime = 5 * time.Minute
)
