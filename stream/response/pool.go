package response

import "sync"

var streams = sync.Pool{New: func() any { return NewStream() }} //nolint:gochecknoglobals // buffers, no state

// TakeStream returns an empty stream, which must be returned with Release. It does not allocate if
// released streams are available.
func TakeStream(o StreamOptions) *Stream {
	s := streams.Get().(*Stream) //nolint:errcheck,forcetypeassert // only streams are in it
	s.Reset(o)
	return s
}

// Release returns a stream for reuse. Neither the stream nor its chunks may be used afterwards. nil
// is ignored.
func (s *Stream) Release() {
	if s != nil {
		streams.Put(s)
	}
}
