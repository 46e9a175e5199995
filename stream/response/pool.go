package response

import "sync"

var streams = sync.Pool{New: func() any { return NewStream() }} //nolint:gochecknoglobals // buffers, no state

// TakeStream returns an empty stream, which Release gives back. It costs no allocation once others
// have been given back.
func TakeStream(o StreamOptions) *Stream {
	s := streams.Get().(*Stream) //nolint:errcheck,forcetypeassert // only streams are in it
	s.Reset(o)
	return s
}

// Release gives a stream back. Neither it nor its chunks may be used afterwards. nil does nothing.
func (s *Stream) Release() {
	if s != nil {
		streams.Put(s)
	}
}
