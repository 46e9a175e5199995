package recall

import (
	"signalbox/memory/cache"
	"signalbox/stream/response"
)

// Replay is a cached stream as a source for the guard.
type Replay struct {
	player *cache.Player
	stop   chan struct{}
	stream *response.Stream
	piece  []byte
	err    error
}

// NewReplay reads a cached stream. The caller releases it.
func NewReplay(player *cache.Player, o response.StreamOptions) *Replay {
	return &Replay{player: player, stop: make(chan struct{}), stream: response.TakeStream(o)}
}

// Release releases the reader. r must not be used afterwards.
func (r *Replay) Release() { r.stream.Release() }

// Read implements guard.Source.
func (r *Replay) Read() { r.piece, r.err = r.player.Next(r.stop) }

// Deliver implements guard.Source.
func (r *Replay) Deliver(to response.Sink) error {
	r.stream.Feed(r.piece)
	if r.err != nil {
		r.stream.End(r.err)
	}
	for c := r.stream.Next(); c != nil; c = r.stream.Next() {
		to.Put(c)
	}
	if _, err := r.stream.Ended(); err != nil {
		return err
	}
	return r.err
}

// Cancel implements guard.Source.
func (r *Replay) Cancel() { close(r.stop) }
