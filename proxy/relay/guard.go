package relay

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"signalbox/proxy/downstream"
	"signalbox/proxy/exchange"
	"signalbox/proxy/fault"
	"signalbox/proxy/guardrail"
	"signalbox/proxy/redact"
	"signalbox/proxy/upstream"
	"signalbox/stream/guard"
	"signalbox/stream/response"
	"signalbox/stream/sse"
)

// Arm prepares the check of the response and sets its header.
func Arm(ctx context.Context, g *guardrail.Guard, o *exchange.Exchange, h http.Header) error {
	p, err := g.Plan(ctx, o.Ask())
	if err != nil {
		return err
	}
	o.Lacking = append(o.Lacking, p.Lacking...)
	if o.Guarding = p.Check; p.Header != "" {
		h["X-Signalbox-Guard"] = []string{p.Header}
	}
	return nil
}

// skipUnreadable gives up the check of an unreadable response. The error is ErrUncheckable if the
// response must not pass unchecked.
func skipUnreadable(o *exchange.Exchange, u *upstream.Response, h http.Header) error {
	if !u.Good() || u.Plain() && (u.Events || u.JSON()) {
		return nil
	}
	return skipCheck(o, h)
}

// skipCheck gives up the check of a response; see skipUnreadable.
func skipCheck(o *exchange.Exchange, h http.Header) error {
	if o.Guarding == nil {
		return nil
	}
	header, err := o.Guarding.Forgo()
	if err != nil {
		return err
	}
	o.Guarding, h["X-Signalbox-Guard"] = nil, []string{header}
	return nil
}

// checkBody checks a response in one piece. Without a guard the body is returned unchanged, and so
// is an unreadable one, unless unchecked responses must not pass.
func checkBody(ctx context.Context, o *exchange.Exchange, body []byte, h http.Header) (out []byte, err error) {
	if o.Guarding == nil {
		return body, nil
	}
	out, o.Guarded, err = o.Guarding.Body(ctx, body)
	if err == nil && o.Guarded.State == sse.Failed {
		h["X-Signalbox-Guard"] = []string{o.Guarding.Skip()}
		o.Guarding = nil
	} else if m := o.Guarded.Mode; err == nil && m > o.Guarding.Job.Policy.Mode {
		// the text is JSON
		h["X-Signalbox-Guard"] = []string{m.String()}
	}
	return out, err
}

// copyChecked relays a stream through the guard. Redacted values are restored before the check,
// since the evidence contains them, and positions refer to the text that the client sees.
func copyChecked(
	ctx context.Context, u *upstream.Response, o *exchange.Exchange, client *downstream.Sink, to guard.Sink,
) error {
	if err := client.W.SendEvent(nil, time.Now()); err != nil {
		// the first text may have to wait for its verdict
		return downstream.ClientError(err)
	}
	var (
		err error
		cut *fault.InterruptedError
	)
	o.Guarded, err = o.Guarding.Copy(ctx, &checkedSource{u: u, client: client, vault: o.Vault}, to)
	switch {
	case err == nil && !o.Guarded.Cut:
		downstream.Drain(u, client)
		return nil
	case err == nil, errors.Is(err, fault.ErrClientGone), errors.Is(err, fault.ErrClientStalled),
		errors.As(err, &cut):
		return err
	}
	return &fault.InterruptedError{Err: err}
}

// checkedSource reads the stream of a response. Redacted values are restored.
type checkedSource struct {
	u      *upstream.Response
	client *downstream.Sink
	vault  *redact.Vault
	to     response.Sink // the filter that restores values; nil before the first Deliver
}

// Read implements guard.Source. The first part was read before.
func (s *checkedSource) Read() {
	if s.to != nil {
		s.u.Advance(s.u.Model.Gap)
	}
}

// Deliver implements guard.Source.
func (s *checkedSource) Deliver(to response.Sink) error {
	if s.to == nil {
		s.to = s.vault.Stream(to)
	}
	if _, came := s.u.Deliver(s.to); came {
		s.u.Waive()                // waiting for the client is not the endpoint's delay
		s.client.Now = time.Time{} // chunks may have been held, so their arrival time is unknown
	}
	ended, err := s.u.Stream.Ended()
	switch {
	case s.u.Stream.Done():
		return io.EOF
	case ended:
		return &fault.InterruptedError{Err: err}
	}
	return nil
}

// Cancel implements guard.Source.
func (s *checkedSource) Cancel() { s.u.Cancel() }
