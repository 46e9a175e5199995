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

// The results of a copy, as metric and log call it.
const (
	answered = "answered"
	failed   = "failed"
	Dropped  = "dropped" // too many were under way, or no endpoint had a free slot
)

// Copy is the copy of one request. nil stands for none.
type Copy struct {
	Model *backend.Model // that gets it
	Body  rewrite.Payload

	intn  func(n int) int
	api   openai.API
	got   *escalate.Answer // what the client gets
	whole *capped          // the body that it gets, where it is no stream
}

// New makes the copy of a request, where its route wants one of it; nil where not. It is made
// from what the models of the route get, so what is hidden from them is hidden here. What a server
// may keep, or answers by what it has kept, is not copied; neither is a request that names stored
// contexts.
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

// Observe has the response to the client read for the comparison.
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

// Comparable reports whether there is a response to the client to compare with; not for nil, nor for
// one that is too long to be kept.
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

// compare tells how the response to the copy differs from the one that the client got.
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

// capped keeps what is written to it, up to about upstream.MaxWhole bytes.
type capped struct{ bytes.Buffer }

// Write implements io.Writer.
func (b *capped) Write(p []byte) (int, error) {
	if b.Len() >= upstream.MaxWhole {
		return len(p), nil
	}
	return b.Buffer.Write(p)
}

// Send sends a copy and compares its response. A panic ends in the log: nobody waits for a copy, and
// it must not end the process.
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

// Pool are the copies of requests of a state that are under way, each on a goroutine that close
// ends and waits for.
type Pool struct {
	slots chan struct{}
	done  context.Context //nolint:containedctx // of the state, which outlives requests
	stop  context.CancelFunc
	all   sync.WaitGroup
}

// NewPool is a pool without copies.
func NewPool() *Pool {
	c := &Pool{slots: make(chan struct{}, AtOnce)}
	c.done, c.stop = context.WithCancel(context.Background())
	return c
}

// Start runs f, unless too many run.
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

// Close ends all copies and waits for them.
func (c *Pool) Close() {
	c.stop()
	c.Wait()
}

// Wait waits for the copies that are under way.
func (c *Pool) Wait() { c.all.Wait() }

// The bounds of copies: how many of one state are under way, and how long one may take. One more is
// dropped.
const (
	AtOnce   = 16
	copyTime = 5 * time.Minute
)
