package proxy

import (
	"bytes"
	"context"
	"log/slog"
	"time"

	"signalbox/internal/openai"
	"signalbox/proxy/backend"
	"signalbox/proxy/decisionlog"
	"signalbox/proxy/escalate"
	"signalbox/proxy/rewrite"
	"signalbox/proxy/upstream"
	"signalbox/rules"
)

// The results of a copy, as metric and log call it.
const (
	mirrorAnswered = "answered"
	mirrorFailed   = "failed"
	mirrorDropped  = "dropped" // too many were under way, or no endpoint had a free slot
)

// mirror makes the copy of a request, where its route wants one of it; nil where not. It is made
// from what the models of the route get, so what is hidden from them is hidden here. What a server
// may keep, or answers by what it has kept, is not copied; neither is a request that names stored
// contexts.
func (st *State) mirror(ctx context.Context, change rewrite.Change, o *exchange) *mirrored {
	want, req := o.Action.Mirror, change.Request
	if want == nil || req.API == openai.Other || o.Contexts.Named() || !req.Stateless() {
		return nil
	}
	const grain = 1 << 20
	if float64(st.Chooser.Intn(grain)) >= want.Share*grain {
		return nil
	}
	m := st.ByName[want.Model]
	body, _, err := change.Payload(ctx, m)
	if err != nil {
		return nil
	}
	return &mirrored{model: m, api: req.API, body: body}
}

// observe has the response to the client read for the comparison.
func (m *mirrored) observe(u *upstream.Response) {
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

// copy sends a copy and compares its response.
func (p *Proxy) copy(ctx context.Context, st *State, m *mirrored, c *upstream.Call) *decisionlog.Mirror {
	out := &decisionlog.Mirror{Model: m.model.Name, Result: mirrorDropped}
	begun := time.Now()
	e, _ := m.model.Pick(nil, st.Chooser.Intn, begun)
	if e == nil {
		return out
	}
	lease, ok := e.Enter()
	if !ok {
		return out
	}
	out.Result = mirrorFailed
	u, err := upstream.Do(ctx, p.transport, c, m.model, lease)
	if err != nil {
		p.tel.Log.LogAttrs(ctx, slog.LevelInfo, "copy failed", slog.String("id", c.ID),
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
	out.Result = mirrorAnswered
	m.compare(out, got)
	out.Ms = decisionlog.Milliseconds(time.Since(begun))
	t := out.Tokens
	p.tel.Metrics.Mirrored(out.Model, t.Prompt, t.Completion, out.Cost, out.Similarity)
	return out
}

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
func (m *mirrored) compare(out *decisionlog.Mirror, got *escalate.Answer) {
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
	out.Tokens = loggedTokens(u)
	out.Cost = m.model.Price.Of(float64(u.Input), float64(u.Output))
}

// mirrored is the copy of one request. nil stands for none.
type mirrored struct {
	model *backend.Model
	api   openai.API
	body  rewrite.Payload
	got   *escalate.Answer // what the client gets
	whole *capped          // the body that it gets, where it is no stream
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
