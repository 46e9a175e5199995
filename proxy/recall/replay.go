package recall

import (
	"signalbox/memory/cache"
	"signalbox/stream/response"
)

// Replay is a kept stream on its way to the guard.
type Replay struct {
	player *cache.Player
	stop   chan struct{}
	Stream *response.Stream
	piece  []byte
	err    error
}

// NewReplay reads a stored stream. The caller releases its stream.
func NewReplay(player *cache.Player, o response.StreamOptions) *Replay {
	return &Replay{player: player, stop: make(chan struct{}), Stream: response.TakeStream(o)}
}

// Read implements guard.Source.
func (r *Replay) Read() { r.piece, r.err = r.player.Next(r.stop) }

// Deliver implements guard.Source.
func (r *Replay) Deliver(to response.Sink) error {
	r.Stream.Feed(r.piece)
	if r.err != nil {
		r.Stream.End(r.err)
	}
	for c := r.Stream.Next(); c != nil; c = r.Stream.Next() {
		to.Put(c)
	}
	if _, err := r.Stream.Ended(); err != nil {
		return err
	}
	return r.err
}

// Cancel implements guard.Source.
func (r *Replay) Cancel() { close(r.stop) }
