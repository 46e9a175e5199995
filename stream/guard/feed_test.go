package guard_test

import (
	"errors"
	"io"

	"signalbox/stream/guard"
	"signalbox/stream/response"
)

// byteSource provides the bytes of a stream in pieces; io.EOF is the end of its body.
type byteSource interface {
	Read() ([]byte, error)
	Cancel()
}

// fed is a Source of bytes.
type fed struct {
	src    byteSource
	stream *response.Stream
	piece  []byte
	err    error
}

func source(src byteSource) *fed {
	f := &fed{src: src, stream: response.NewStream()}
	f.stream.Reset(response.StreamOptions{})
	return f
}

func (f *fed) Read() { f.piece, f.err = f.src.Read() }

func (f *fed) Cancel() { f.src.Cancel() }

func (f *fed) Deliver(to response.Sink) error {
	f.stream.Feed(f.piece)
	if f.err != nil {
		f.stream.End(f.err)
	}
	for c := f.stream.Next(); c != nil; c = f.stream.Next() {
		to.Put(c)
	}
	ended, err := f.stream.Ended()
	switch {
	case f.stream.Done(), errors.Is(err, response.ErrNoEnd):
		return io.EOF
	case ended:
		return err
	}
	return nil
}

// writer receives the bytes that a guard releases.
type writer interface{ Write(b []byte) error }

// written is a Sink that writes bytes.
type written struct {
	to  writer
	out []byte
}

func sink(to writer) guard.Sink { return &written{to: to} }

func (w *written) Put(c *response.Chunk) { w.out = append(w.out, c.Raw...) }

func (w *written) Flush() error {
	defer func() { w.out = w.out[:0] }()
	return w.to.Write(w.out)
}
