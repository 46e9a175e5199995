package proxy

import (
	"sync"

	"signalbox/stream/response"
)

// flow is a stream of events on its way. It belongs to one attempt and allocates nothing for a
// chunk.
type flow struct {
	*response.Stream
	client clientSink
}

var flows = sync.Pool{New: func() any { return &flow{Stream: response.NewStream()} }} //nolint:gochecknoglobals // buffers, no state

// takeFlow returns an empty flow, which release gives back.
func takeFlow(o response.StreamOptions) *flow {
	f := flows.Get().(*flow) //nolint:errcheck,forcetypeassert // only flows are in it
	f.Reset(o)
	f.client = clientSink{out: f.client.out[:0]}
	return f
}

// release gives the flow back. What came of it must not be used afterwards.
func (f *flow) release() {
	if f != nil {
		f.client.w = nil
		flows.Put(f)
	}
}
