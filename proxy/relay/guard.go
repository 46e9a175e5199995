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

// Arm prepares the check of the response, and sets its header.
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

// skipUnreadable gives up the check of a response that cannot be read. The error is ErrUncheckable when
// the response must not pass then.
func skipUnreadable(o *exchange.Exchange, u *upstream.Response, h http.Header) error {
	if !u.Good() || u.Plain() && (u.Events || u.JSON()) {
		return nil
	}
	return skipCheck(o, h)
}

// skipCheck gives up the check of a response, as skipUnreadable does.
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

// checkBody checks a response in one piece. Without a guard the body stays as it is; so does one
// that cannot be read, unless what is unchecked must not pass.
func checkBody(ctx context.Context, o *exchange.Exchange, body []byte, h http.Header) (out []byte, err error) {
	if o.Guarding == nil {
		return body, nil
	}
	out, o.Guarded, err = o.Guarding.Body(ctx, body)
	if err == nil && o.Guarded.State == sse.Failed {
		h["X-Signalbox-Guard"] = []string{o.Guarding.Skip()}
		o.Guarding = nil
	} else if m := o.Guarded.Mode; err == nil && m > o.Guarding.Job.Policy.Mode { // the text is JSON
		h["X-Signalbox-Guard"] = []string{m.String()}
	}
	return out, err
}

// copyChecked passes a stream on through the guard. Values that were hidden from the model are put
// back before the check: the evidence has them as they are, and places in the text are those that
// the client sees.
func copyChecked(
	ctx context.Context, u *upstream.Response, o *exchange.Exchange, client *downstream.Sink, to guard.Sink,
) error {
	if err := client.W.SendEvent(nil, time.Now()); err != nil { // the first text may have to wait for its verdict
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

// checkedSource reads the stream of a response. Hidden values are put back.
type checkedSource struct {
	u      *upstream.Response
	client *downstream.Sink
	vault  *redact.Vault
	to     response.Sink // by way of the filter that puts them back; nil before the first Deliver
}

// Read implements guard.Source. The first part is there already.
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
		s.u.Waive()                // the time that the client takes is not the endpoint's
		s.client.Now = time.Time{} // what came may be held
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
