package relay

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"signalbox/memory/cache"
	"signalbox/proxy/downstream"
	"signalbox/proxy/exchange"
	"signalbox/proxy/fault"
	"signalbox/proxy/recall"
	"signalbox/stream/guard"
	"signalbox/stream/response"
)

// Replay writes a cached response, through the guard if the request has one. The guard acts on it
// as on an upstream response.
func Replay(
	ctx context.Context, w *downstream.Writer, o *exchange.Exchange, a *cache.Answer, pace cache.Pace,
) error {
	h := w.Header()
	if !a.Streamed() {
		body, err := checkBody(ctx, o, a.Data, h)
		if err != nil {
			return err
		}
		if body, err = w.Translate(body); err != nil {
			return err
		}
		h["Content-Length"] = []string{strconv.Itoa(len(body))}
		w.WriteHeader(http.StatusOK)
		return downstream.WritePart(w, body)
	}
	h["Cache-Control"] = []string{"no-cache"}
	h["X-Accel-Buffering"] = []string{"no"}
	w.WriteHeader(http.StatusOK)
	player := a.Player(pace)
	switch {
	case o.Guarding != nil:
		return replayChecked(ctx, w, o, player)
	case w.Translates():
		return replayTranslated(ctx, w, player)
	}
	for {
		b, err := player.Next(ctx.Done())
		switch {
		case errors.Is(err, cache.ErrStopped):
			return fault.ErrClientGone
		case err != nil:
			return nil //nolint:nilerr // the end
		}
		if err := w.SendEvent(b, time.Now()); err != nil {
			return downstream.ClientError(err)
		}
	}
}

// replayChecked writes a cached stream through the guard.
func replayChecked(ctx context.Context, w *downstream.Writer, o *exchange.Exchange, player *cache.Player) error {
	if err := w.Control.Flush(); err != nil { // the first text may have to wait for its verdict
		return downstream.ClientError(err)
	}
	src := recall.NewReplay(player, response.StreamOptions{API: o.Req.API})
	defer src.Release()
	client := downstream.TakeSink(w)
	defer client.Release()
	var err error
	o.Guarded, err = o.Guarding.Copy(ctx, src, client)
	if err != nil && ctx.Err() != nil {
		return fault.ErrClientGone
	}
	return err
}

// replayTranslated writes a cached stream as a message of Anthropic's API.
func replayTranslated(ctx context.Context, w *downstream.Writer, player *cache.Player) error {
	src := recall.NewReplay(player, response.StreamOptions{})
	defer src.Release()
	client := downstream.TakeSink(w)
	defer client.Release()
	defer context.AfterFunc(ctx, src.Cancel)()
	for {
		src.Read()
		err := src.Deliver(client)
		if failed := client.Flush(); failed != nil {
			return failed
		}
		switch {
		case errors.Is(err, cache.ErrStopped):
			return fault.ErrClientGone
		case err != nil:
			return nil // the end
		}
	}
}

var _ guard.Source = (*recall.Replay)(nil)
