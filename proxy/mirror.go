package proxy

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"signalbox/internal/openai"
	"signalbox/proxy/decisionlog"
	"signalbox/proxy/escalate"
	"signalbox/proxy/fault"
	"signalbox/rules"
)

// What became of a copy, as metric and log call it.
const (
	mirrorAnswered = "answered"
	mirrorFailed   = "failed"
	mirrorDropped  = "dropped" // too many were under way, or no endpoint had a free slot
)

// The bounds of copies: how many of one state are under way, and how long one may take. One more is
// dropped.
const (
	copiesAtOnce = 16
	copyTime     = 5 * time.Minute
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

// mirrored is the copy of one request. nil stands for none.
type mirrored struct {
	model *model
	api   openai.API
	body  payload
	got   *escalate.Answer // what the client gets
	tee   *tee             // that reads it, where it is no stream
}

// mirror makes the copy of a request, where its route wants one of it; nil where not. It is made
// from what the models of the route get, so what is hidden from them is hidden here. What a server
// may keep, or answers by what it has kept, is not copied; neither is a request that names stored
// contexts.
func (st *State) mirror(ctx context.Context, change rewriter, o *exchange) *mirrored {
	want, req := o.Action.Mirror, change.req
	if want == nil || req.API == openai.Other || o.contexts.named() || !stateless(req) {
		return nil
	}
	const grain = 1 << 20
	if float64(st.chooser.Intn(grain)) >= want.Share*grain {
		return nil
	}
	m := st.byName[want.Model]
	body, _, err := change.payload(ctx, m)
	if err != nil {
		return nil
	}
	return &mirrored{model: m, api: req.API, body: body}
}

// stateless reports whether a request leaves nothing at the server, and needs nothing that is
// there. Responses are stored unless the request says otherwise, other answers only where it asks
// for it.
func stateless(req *openai.Request) bool {
	stored := string(req.Field("store"))
	if stored == "true" || req.API == openai.Response && stored != "false" {
		return false
	}
	return textField(req, "previous_response_id") == "" && objectField(req) == "" &&
		string(req.Field("background")) != "true"
}

// tee keeps what is read of a body.
type tee struct {
	io.ReadCloser

	all bytes.Buffer
}

// Read implements io.Reader.
func (t *tee) Read(b []byte) (int, error) {
	n, err := t.ReadCloser.Read(b)
	if t.all.Len() < maxWhole {
		_, _ = t.all.Write(b[:n])
	}
	return n, err
}

// tap has the answer to the client read for the comparison.
func (m *mirrored) tap(u *upstream) {
	if m == nil || !u.good() || !u.plain() {
		return
	}
	m.got = escalate.New(m.api, &escalate.Expected{})
	if u.flow != nil {
		u.copied = m.got
		return
	}
	m.tee = &tee{ReadCloser: u.body}
	_, _ = m.tee.all.Write(u.buf.bytes())
	u.body = m.tee
}

// finish hands the decision to the log, behind the answer to a copy where there is one: that is
// asked for now, when the client has its answer.
func (p *Proxy) finish(st *State, w *reply, o *exchange, status int, err error) {
	m := o.mirror
	if m == nil || m.got == nil || err != nil || status != http.StatusOK {
		st.logDecision(p.tel.Decisions, w.id, o, status)
		return
	}
	line, route := st.line(p.tel.Decisions, w.id, o, status), o.Route
	c := call{
		in: http.Header{}, id: w.id, to: o.surface, body: m.body, streaming: streams(o.req), plain: true,
		extra: o.Action.Headers, choices: choices(o.req), patience: time.Duration(st.opts.MaxRetryAfter),
	}
	tell := func(x *decisionlog.Mirror) {
		p.tel.Metrics.Mirror(route, m.model.Name, x.Result)
		if line != nil {
			line.mirror = x
			line.log.Offer(line)
		}
	}
	if !st.copies.start(func(ctx context.Context) { tell(p.copy(ctx, st, m, c)) }) {
		tell(&decisionlog.Mirror{Model: m.model.Name, Result: mirrorDropped})
	}
}

// copy sends a copy and compares its answer.
func (p *Proxy) copy(ctx context.Context, st *State, m *mirrored, c call) *decisionlog.Mirror {
	out := &decisionlog.Mirror{Model: m.model.Name, Result: mirrorDropped}
	begun := time.Now()
	e, _ := m.model.Pick(nil, st.chooser.Intn, begun)
	if e == nil {
		return out
	}
	lease, ok := e.Enter()
	if !ok {
		return out
	}
	out.Result = mirrorFailed
	u, err := p.attempt(ctx, c, m.model, lease)
	if err != nil {
		p.tel.Log.LogAttrs(ctx, slog.LevelInfo, "copy failed", slog.String("id", c.id),
			slog.String("model", out.Model), slog.String("cause", err.Error()))
		return out
	}
	defer u.close()
	got := escalate.New(c.to.api, &escalate.Expected{})
	if !u.good() || u.misfit(c.streaming) != "" || u.readInto(got) != nil || !got.Readable() ||
		got.Judge(&rules.Escalate{}) != "" {
		return out
	}
	u.endpoint.Succeeded()
	out.Result = mirrorAnswered
	m.compare(out, got)
	out.Ms = decisionlog.Milliseconds(time.Since(begun))
	t := out.Tokens
	//nolint:contextcheck // metrics need none
	p.tel.Metrics.Mirrored(out.Model, t.Prompt, t.Completion, out.Cost, out.Similarity)
	return out
}

// readInto reads an answer to its end.
func (u *upstream) readInto(a *escalate.Answer) error {
	if u.flow == nil {
		all, err := u.readWhole()
		if err == nil {
			a.Body(all)
		}
		return err
	}
	for {
		for x := u.flow.Next(); x != nil; x = u.flow.Next() {
			a.Put(x)
		}
		u.fresh = u.fresh || u.flow.Progress()
		ended, err := u.flow.Ended()
		switch {
		case u.flow.Done():
			return nil
		case ended:
			return &fault.InterruptedError{Err: err}
		}
		u.advance(u.model.gap)
	}
}

// compare tells how the answer to the copy differs from the one that the client got.
func (m *mirrored) compare(out *decisionlog.Mirror, got *escalate.Answer) {
	if m.tee != nil {
		m.got.Body(m.tee.all.Bytes())
	}
	mine, theirs := got.Text(), m.got.Text()
	out.Finish, out.Same = got.Finish, got.Finish == m.got.Finish
	out.Bytes, out.Against = len(mine), len(theirs)
	out.Similarity = escalate.Similarity(mine, theirs)
	u := got.Usage
	if u.Output == 0 {
		u.Output = int(max(got.Length(), 0))
	}
	out.Tokens = loggedTokens(u)
	out.Cost = m.model.Price.Of(float64(u.Input), float64(u.Output))
}
