// Package relay passes a response on to the client: unchanged as it arrives, or through filters
// that restore redacted values and check, save and explain it. It also replays cached responses.
//
// It selects no endpoint and retries nothing: an error after the first byte ends the response. Its
// values belong to one request and run on its goroutine; Stage is safe for concurrent use.
package relay

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"signalbox/internal/openai"
	"signalbox/internal/telemetry"
	"signalbox/proxy/affinity"
	"signalbox/proxy/downstream"
	"signalbox/proxy/exchange"
	"signalbox/proxy/explain"
	"signalbox/proxy/fault"
	"signalbox/proxy/headers"
	"signalbox/proxy/save"
	"signalbox/proxy/upstream"
	"signalbox/stream/guard"
	"signalbox/stream/response"
	"signalbox/stream/sse"
)

// Stage relays the responses of one configuration.
type Stage struct {
	Metrics   *telemetry.Metrics
	Explainer explain.Explainer // for clients that ask for the decision
}

// tooLong returns the error for a request that the server refused because of its length; nil for
// any other response. A limit that the proxy set is not the client's fault.
func tooLong(u *upstream.Response, o *exchange.Exchange) error {
	if u.Status != http.StatusBadRequest {
		return nil
	}
	asked := upstream.Asked{Prompt: o.PromptTokens(), PromptField: o.Req.PromptField()}
	if o.Limit.ClientsOwn(o.Req) {
		asked.Limit, _ = o.Req.AnswerLimit()
		asked.LimitField = o.Req.LimitField()
	}
	return u.TooLong(&asked)
}

// Relay passes a response on to the client. An unusable response counts as a failure of the
// endpoint.
func (s *Stage) Relay(ctx context.Context, w *downstream.Writer, u *upstream.Response, o *exchange.Exchange) error {
	defer u.Close()
	return blame(ctx, u, s.pass(ctx, w, u, o))
}

// blame reports to its endpoint a response of which nothing was passed on, because it was unusable
// or broke off while it was read. A status of 400 or above was already counted, or is a refusal
// that says nothing against the endpoint. The same holds for a redirect where the endpoint checks
// the client's credentials. The requested length of a response is the caller's choice.
func blame(ctx context.Context, u *upstream.Response, err error) error {
	var (
		long     longError
		unusable *fault.UnusableError
		broken   *fault.NoResponseError
	)
	switch {
	case errors.As(err, &long):
	case errors.As(err, &unusable):
		redirects := u.Status >= http.StatusMultipleChoices
		if u.Status < http.StatusBadRequest && (!redirects || !u.Endpoint.ForwardsAuth()) {
			u.Erred(time.Now())
		}
	case !errors.As(err, &broken):
	case ctx.Err() != nil:
		return fault.ErrClientGone
	default:
		u.BrokeOff(time.Now())
		if u.Late() {
			broken.Err = fault.ErrNoProgress
		}
	}
	return err
}

// pass implements Relay.
func (s *Stage) pass(ctx context.Context, w *downstream.Writer, u *upstream.Response, o *exchange.Exchange) error {
	if w.Messages != nil {
		w.Messages.Direct = u.Direct
		w.Messages.Prompt = cmp.Or(o.Where.Length(), w.Messages.Prompt)
	}
	if what := u.Misfit(o.Req.Streams()); what != "" {
		return misfit(w, u, what)
	}
	if err := tooLong(u, o); err != nil {
		u.Endpoint.Succeeded() // the endpoint has answered
		return err
	}
	if w.Status != 0 && u.Stream == nil { // a comment was sent before
		return &fault.UnusableError{Problem: "status " + strconv.Itoa(u.Status) + " behind a comment"}
	}
	if o.Vault != nil && !u.Plain() {
		// redacted values could not be restored
		return &fault.UnusableError{Problem: "a content encoding that was not requested"}
	}
	h := w.Header()
	if err := skipUnreadable(o, u, h); err != nil {
		return err
	}
	o.Lookup.Observe(u)
	o.Mirror.Observe(u)
	headers.ForClient(h, u.Header)
	headers.CapRetryAfter(h, time.Now(), u.MaxRetryAfter)
	h["Server-Timing"] = []string{o.Timing(o.Queue, u.Took)}
	t := &meter{metrics: s.Metrics, model: u.Model.Name}
	t.API, t.Messages, t.ticket = o.Req.API, u.Direct, o.Where.Ticket()
	if !u.Events && u.Good() {
		// All of it has arrived, or will soon. A refusal has computed nothing.
		t.ticket.First(time.Now())
	}
	var err error
	switch {
	case u.Stream != nil:
		u.Observe(t)
		err = s.copyStream(ctx, w, u, o, t)
	case (o.Guarding != nil || o.Req.Extras.Explain || o.Saves() || w.Translates()) &&
		u.Good() && u.JSON() && u.Plain():
		err = s.copyWhole(ctx, w, u, o, t)
	case w.Translates():
		err = copyRefusal(w, u)
	case o.Vault != nil: // of any type: what is not a JSON string stays unchanged
		err = copyRestored(w, u, o, t)
	default:
		w.WriteHeader(u.Status)
		err = downstream.CopyBody(w, u, &t.Tally, nil)
	}
	if u.Stream != nil && u.Stream.HiddenUsage() != (response.Usage{}) {
		t.Usage = u.Stream.HiddenUsage()
	}
	if u.Stream != nil && err == nil {
		t.pace()
	}
	t.Failed = t.Failed || u.Useless()
	o.Tally = t.Tally
	if o.Req.API == openai.Response && !t.first.IsZero() {
		o.First = t.first
	}
	return concluded(ctx, w, u, o, err)
}

// misfit returns the error for a response that no client of the API expects. A 503 whose body is
// not JSON, as sent by gateways in front of model servers, becomes an API error; its Retry-After is
// kept.
func misfit(w *downstream.Writer, u *upstream.Response, what string) error {
	if u.Status != http.StatusServiceUnavailable {
		return &fault.UnusableError{Problem: what}
	}
	if after := u.Header["Retry-After"]; len(after) > 0 && w.Status == 0 {
		w.Header()["Retry-After"] = after
		headers.CapRetryAfter(w.Header(), time.Now(), u.MaxRetryAfter)
	}
	return openai.Refusal(http.StatusServiceUnavailable, "overloaded", "",
		"the model server does not accept requests at the moment")
}

// concluded reports the endpoint's part in how a response ended, and tells the client that it was
// cut off, unless the endpoint sent an error event itself.
func concluded(ctx context.Context, w *downstream.Writer, u *upstream.Response, o *exchange.Exchange, err error) error {
	if o.Guarded.Cut {
		o.Tally.Finish = response.FinishFilter // whatever the server reported later
	}
	var cut *fault.InterruptedError
	switch {
	case err == nil:
		switch {
		case u.Counted():
		case o.Tally.Failed:
			u.Erred(time.Now())
		case u.Status < http.StatusInternalServerError && u.Status != http.StatusTooManyRequests:
			u.Endpoint.Succeeded()
		}
		return nil
	case !errors.As(err, &cut):
		return err
	case ctx.Err() == nil:
		u.BrokeOff(time.Now())
		if u.Late() {
			cut.Err = fault.ErrNoProgress
		}
	case fault.Stopped(ctx, fault.ErrClientGone) != fault.ErrStopped: //nolint:errorlint // compared as returned
		return fault.ErrClientGone
	default:
		cut.Err = fault.ErrStopped
	}
	if u.Stream != nil && o.Guarded.State != sse.Failed && !u.Stream.Failed() {
		w.TellError(fault.Wire(cut, w.ID), o.Req, u.Stream.NextNumber(), u.ID())
	}
	return cut
}

// copyStream relays a stream of events, observed by t.
func (s *Stage) copyStream(
	ctx context.Context, w *downstream.Writer, u *upstream.Response, o *exchange.Exchange, t *meter,
) error {
	w.Header()["X-Accel-Buffering"] = []string{"no"}
	if w.Status == 0 {
		headers.DropStale(w.Header()) // filters change the length of a stream
		w.WriteHeader(u.Status)
	}
	if o.Req.API == openai.Response { // announced before any content
		t.requested = w.Start
	} else {
		t.metrics.TTFT(u.Model.Name, time.Since(w.Start))
	}
	w.Heartbeat.Start()
	client := downstream.TakeSink(w)
	defer client.Release()
	var to guard.Sink = client
	if o.Saves() && u.Good() {
		to = save.New(ctx, o.Req, o.Contexts, &o.Unsaved, to)
	}
	if o.Req.Extras.Explain && u.Good() {
		to = &explained{stage: s, o: o, next: to}
	}
	if o.Guarding != nil {
		if o.Req.IncludeUsage && o.Req.API != openai.Response && w.Messages == nil {
			// these report their own usage
			o.Guarding.Job.Usage = func() response.Usage { return t.Taken(o.PromptTokens()) }
		}
		return copyChecked(ctx, u, o, client, to)
	}
	return copyEvents(u, o.Vault.Stream(to), client)
}

// copyEvents relays a stream through its filters, in whole events, flushed after each read. It
// allocates nothing per chunk.
func copyEvents(u *upstream.Response, to response.Sink, client *downstream.Sink) error {
	for {
		if now, came := u.Deliver(to); came {
			client.Now = now
		}
		if err := client.Flush(); err != nil {
			return err
		}
		ended, err := u.Stream.Ended()
		switch {
		case u.Stream.Done():
			downstream.Drain(u, client)
			return nil
		case ended:
			return &fault.InterruptedError{Err: err}
		}
		u.Advance(u.Model.Gap)
	}
}

// copyWhole relays a JSON object that may change: redacted values are restored, its claims are
// checked, the decision is added.
func (s *Stage) copyWhole(
	ctx context.Context, w *downstream.Writer, u *upstream.Response, o *exchange.Exchange, t *meter,
) error {
	came, err := u.ReadWhole()
	if err != nil {
		return err
	}
	t.Body(nil, came)
	whole := errors.Is(u.Err(), io.EOF)
	if !whole && w.Translates() {
		return longError{errLongMessage}
	}
	r, out := o.Vault.Body(), came
	if r != nil {
		if out = bytes.Clone(r.Feed(came)); whole {
			out = append(out, r.Rest()...)
		}
	}
	h := w.Header()
	if !whole {
		if err := skipCheck(o, h); err != nil {
			return longError{err}
		}
		if r != nil {
			headers.DropStale(h)
		}
		w.WriteHeader(u.Status)
		if err := downstream.WritePart(w, out); err != nil {
			return err
		}
		u.Discard()
		return downstream.CopyBody(w, u, &t.Tally, r)
	}
	if out, err = checkBody(ctx, o, out, h); err != nil {
		return err
	}
	if o.Req.Extras.Explain {
		out = s.addDecision(out, o)
	}
	if o.Saves() {
		out = save.New(ctx, o.Req, o.Contexts, &o.Unsaved, nil).Body(ctx, out, &o.Guarded, h)
	}
	if out, err = w.Translate(out); err != nil {
		return err
	}
	if !bytes.Equal(out, came) {
		headers.DropStale(h)
	}
	h["Content-Length"] = []string{strconv.Itoa(len(out))}
	w.WriteHeader(u.Status)
	return downstream.WritePart(w, out)
}

// longError is the error for a body that is too long to be processed.
type longError struct{ error }

// Unwrap returns the wrapped error.
func (e longError) Unwrap() error { return e.error }

var errLongMessage = &fault.UnusableError{Problem: "the body is too long to convert into a message"}

// copyRefusal relays an error response in the server's words and the API's form.
func copyRefusal(w *downstream.Writer, u *upstream.Response) error {
	if u.Good() {
		return &fault.UnusableError{Problem: "the body is not JSON"}
	}
	came, err := u.ReadWhole()
	if err != nil {
		return err
	}
	h := w.Header()
	for _, name := range [...]string{"Content-Encoding", "Etag", "Content-Md5", "Digest"} {
		delete(h, name)
	}
	return downstream.WriteBytes(w, u.Status, w.Messages.Error(came, u.Status))
}

// copyRestored relays a JSON body with redacted values restored. A body that was read whole gets
// its new length; a longer one is streamed.
func copyRestored(w *downstream.Writer, u *upstream.Response, o *exchange.Exchange, t *meter) error {
	b := o.Vault.Body()
	h := w.Header()
	headers.DropStale(h)
	if errors.Is(u.Err(), io.EOF) {
		all := u.Piece()
		t.Body(nil, all)
		all = append(bytes.Clone(b.Feed(all)), b.Rest()...)
		h["Content-Length"] = []string{strconv.Itoa(len(all))}
		w.WriteHeader(u.Status)
		return downstream.WritePart(w, all)
	}
	w.WriteHeader(u.Status)
	return downstream.CopyBody(w, u, &t.Tally, b)
}

// meter is a tally that also measures the pace of a stream. It belongs to one response.
type meter struct {
	response.Tally

	metrics   *telemetry.Metrics
	model     string
	last      time.Time        // when the last piece arrived
	ticket    *affinity.Ticket // notified of the first text
	requested time.Time        // arrival of the client's request; zero if the head was measured
	first     time.Time        // when the first text arrived
}

// pace records the mean time between tokens of a stream that has ended. The number of tokens comes
// from its usage, or else from an estimate of its text, since an event may carry several. A stream
// that arrived at once has no pace.
func (t *meter) pace() {
	tokens := int64(t.Usage.Output)
	if tokens == 0 {
		tokens = t.Length()
	}
	if took := t.last.Sub(t.first); tokens > 1 && took > 0 && !t.first.IsZero() {
		t.metrics.InterToken(t.model, took/time.Duration(tokens-1))
	}
}

// Put implements response.Sink.
func (t *meter) Put(c *response.Chunk) {
	if t.Messages {
		t.NoteMessage(c)
		return
	}
	if !c.IsMessage() {
		return
	}
	e := c.Content()
	t.Note(e)
	if e.HasUsage { // even if nobody requested it
		t.Usage = e.Usage
	}
}

// Mark implements upstream.Observer.
func (t *meter) Mark(now time.Time) {
	t.last = now
	if t.first.IsZero() && t.Began() {
		t.first = now
		t.ticket.First(now)
		if !t.requested.IsZero() {
			t.metrics.TTFT(t.model, now.Sub(t.requested))
		}
	}
}
