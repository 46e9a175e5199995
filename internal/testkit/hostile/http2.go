package hostile

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// conn2 is an HTTP/2 connection, handled frame by frame: its streams play modes, each in a separate
// goroutine.
type conn2 struct {
	s *Server
	c *conn

	mu      sync.Mutex // guards the fields below, and writes
	fr      *http2.Framer
	enc     *hpack.Encoder
	head    bytes.Buffer
	err     error               // of the first failed write
	streams map[uint32]*stream2 // in progress
	window  int64               // the peer's window for the connection
	initial int64               // the peer's window for each new stream
	more    *sync.Cond          // a window has grown, or a stream has gone
}

// stream2 is a request over HTTP/2 and its response in progress.
type stream2 struct {
	*conn2
	mode

	number uint32
	id     int // of the request; 0 for a health check
	req    request
	window int64
	sent   int64
	lost   bool          // gone is closed
	gone   chan struct{} // closed when the peer has reset the stream, or the connection has ended
}

// play2 responds to the request of a stream.
type play2 func(x *stream2)

// The default windows of HTTP/2 and the maximum frame size (RFC 9113, sections 6.9.2 and 4.2).
const (
	defaultWindow = 65_535
	largestFrame  = 16_384
)

// over2 serves an HTTP/2 connection until it ends.
func (s *Server) over2(ctx context.Context, c *conn) {
	usual, _ := parse(cmp.Or(s.usual, "ok"))
	if usual.name == "speaks-http1" {
		_, _ = io.ReadFull(c, make([]byte, len(http2.ClientPreface)))
		_, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"))
		return
	}
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(c, preface); err != nil || string(preface) != http2.ClientPreface {
		return
	}
	h := &conn2{s: s, c: c, fr: http2.NewFramer(c, c), streams: map[uint32]*stream2{}, window: defaultWindow, initial: defaultWindow}
	h.fr.AllowIllegalWrites = true
	h.fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	h.fr.SetMaxReadFrameSize(1 << 20)
	h.enc = hpack.NewEncoder(&h.head)
	h.more = sync.NewCond(&h.mu)
	h.do(func() error { return h.fr.WriteSettings() })
	var plays sync.WaitGroup
	for ctx.Err() == nil {
		f, err := h.fr.ReadFrame()
		if err != nil {
			break
		}
		h.frame(f, &plays)
	}
	h.mu.Lock()
	for _, x := range h.streams {
		x.leave("EOF")
	}
	h.mu.Unlock()
	_ = c.Close()
	plays.Wait()
}

// do writes a frame.
func (h *conn2) do(write func() error) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err == nil {
		h.err = write()
	}
	return h.err == nil
}

// frame processes a frame of the peer.
func (h *conn2) frame(f http2.Frame, plays *sync.WaitGroup) {
	number := f.Header().StreamID
	switch f := f.(type) {
	case *http2.SettingsFrame:
		if f.IsAck() {
			return
		}
		h.mu.Lock()
		if v, ok := f.Value(http2.SettingInitialWindowSize); ok {
			h.initial = int64(v)
		}
		h.mu.Unlock()
		h.do(h.fr.WriteSettingsAck)
	case *http2.PingFrame:
		if !f.IsAck() {
			h.do(func() error { return h.fr.WritePing(true, f.Data) })
		}
	case *http2.WindowUpdateFrame:
		h.mu.Lock()
		if x := h.streams[number]; x != nil {
			x.window += int64(f.Increment)
		} else if number == 0 {
			h.window += int64(f.Increment)
		}
		h.more.Broadcast()
		h.mu.Unlock()
	case *http2.RSTStreamFrame:
		h.mu.Lock()
		if x := h.streams[number]; x != nil {
			x.leave(f.ErrCode.String())
		}
		h.mu.Unlock()
	case *http2.MetaHeadersFrame:
		h.begin(number, f, plays)
	case *http2.DataFrame:
		h.mu.Lock()
		x := h.streams[number]
		h.mu.Unlock()
		if x == nil {
			return
		}
		x.req.body = append(x.req.body, f.Data()...)
		if n := uint32(len(f.Data())); n > 0 {
			h.do(func() error { return h.fr.WriteWindowUpdate(0, n) })
			h.do(func() error { return h.fr.WriteWindowUpdate(number, n) })
		}
		if f.StreamEnded() {
			plays.Go(x.run)
		}
	}
}

// begin opens a stream.
func (h *conn2) begin(number uint32, f *http2.MetaHeadersFrame, plays *sync.WaitGroup) {
	x := &stream2{conn2: h, number: number, gone: make(chan struct{})}
	var head strings.Builder
	for _, field := range f.Fields {
		head.WriteString(field.Name + ": " + field.Value + "\r\n")
	}
	x.req = request{method: f.PseudoValue("method"), target: f.PseudoValue("path"), head: head.String()}
	if x.req.method != "GET" {
		h.s.mu.Lock()
		h.s.reqs++
		x.id = h.s.reqs
		h.s.mu.Unlock()
		h.s.log.add(Event{Conn: h.c.id, Req: x.id, Kind: HeadRaw, Info: x.req.head})
	}
	h.mu.Lock()
	x.window = h.initial
	h.streams[number] = x
	h.mu.Unlock()
	if f.StreamEnded() {
		plays.Go(x.run)
	}
}

// leave records that the peer has left a stream; mu is held.
func (x *stream2) leave(why string) {
	if x.lost {
		return
	}
	x.lost = true
	close(x.gone)
	x.more.Broadcast()
	if x.id > 0 {
		x.s.log.add(Event{Conn: x.c.id, Req: x.id, Kind: PeerGone, Info: why})
	}
}

// run plays the mode of a request after its body has arrived.
func (x *stream2) run() {
	defer func() {
		x.mu.Lock()
		delete(x.streams, x.number)
		x.mu.Unlock()
	}()
	s := x.s
	if x.id == 0 {
		const list = `{"object":"list","data":[{"id":"m","object":"model"}]}`
		x.answer(200, "application/json", list)
		return
	}
	atMost(&s.mostServing, s.serving.Add(1))
	defer s.serving.Add(-1)
	s.log.add(Event{Conn: x.c.id, Req: x.id, Kind: BodyRaw, Info: string(x.req.body)})
	s.log.add(Event{Conn: x.c.id, Req: x.id, Kind: Received, Info: x.req.method + " " + x.req.target, N: int64(len(x.req.body))})
	m, err := s.choose(&x.req)
	if err == nil && m.play2 == nil {
		m, err = parse("ok")
	}
	if err != nil {
		s.tb.Error(err)
		return
	}
	x.mode = m
	x.play2(x)
	if x.sent > 0 {
		s.log.add(Event{Conn: x.c.id, Req: x.id, Kind: Sent, N: x.sent})
	}
	s.log.add(Event{Conn: x.c.id, Req: x.id, Kind: Served, Info: x.name, N: 1})
}

// fields sends a block of headers, given as alternating names and values, in as many frames as
// needed.
func (x *stream2) fields(end bool, pairs ...string) bool {
	return x.do(func() error {
		x.head.Reset()
		for i := 0; i+1 < len(pairs); i += 2 {
			if err := x.enc.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]}); err != nil {
				return err
			}
		}
		block := x.head.Bytes()
		first := block[:min(len(block), largestFrame)]
		block = block[len(first):]
		if err := x.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: x.number, BlockFragment: first, EndStream: end, EndHeaders: len(block) == 0}); err != nil {
			return err
		}
		for len(block) > 0 {
			piece := block[:min(len(block), largestFrame)]
			block = block[len(piece):]
			if err := x.fr.WriteContinuation(x.number, len(block) == 0, piece); err != nil {
				return err
			}
		}
		return nil
	})
}

// data sends bytes, as the windows allow; false if the stream or the connection has gone.
func (x *stream2) data(s string, end bool) bool {
	for {
		x.mu.Lock()
		for !x.lost && x.err == nil && len(s) > 0 && min(x.window, x.conn2.window) <= 0 {
			x.more.Wait()
		}
		if x.lost || x.err != nil {
			x.mu.Unlock()
			return false
		}
		n := int(min(int64(len(s)), largestFrame, max(x.window, 0), max(x.conn2.window, 0)))
		x.window -= int64(n)
		x.conn2.window -= int64(n)
		x.err = x.fr.WriteData(x.number, end && n == len(s), []byte(s[:n]))
		if x.sent == 0 && n > 0 {
			x.s.log.add(Event{Conn: x.c.id, Req: x.id, Kind: FirstByte})
		}
		x.sent += int64(n)
		s = s[n:]
		bad := x.err != nil
		x.mu.Unlock()
		if len(s) == 0 || bad {
			return !bad
		}
	}
}

// answer sends a complete response.
func (x *stream2) answer(status int, kind, body string, pairs ...string) bool {
	head := append([]string{":status", strconv.Itoa(status), "content-type", kind, "content-length", strconv.Itoa(len(body))}, pairs...)
	return x.fields(false, head...) && x.data(body, true)
}

func (x *stream2) json(status int, body string, pairs ...string) bool {
	return x.answer(status, "application/json", body, pairs...)
}

// open sends the head of a stream of events.
func (x *stream2) open(pairs ...string) bool {
	return x.fields(false, append([]string{":status", "200", "content-type", "text/event-stream; charset=utf-8", "cache-control", "no-cache"}, pairs...)...)
}

// events sends n events with delay d between them.
func (x *stream2) events(n int) bool {
	for i := range n {
		if i > 0 && !x.pause(x.wait("d", 0)) || !x.data(x.s.event(i, word(i)), false) {
			return false
		}
	}
	return true
}

// before sends the head and the k events that precede a fault, and then waits so that they can
// arrive.
func (x *stream2) before() bool { return x.open() && x.events(x.num("k", 2)) && x.settle() }

// settle waits until the data sent has arrived. A reset overtakes data that the peer has not read,
// and no acknowledgement (not even a ping) shows that it was read.
func (x *stream2) settle() bool { return x.pause(x.wait("d", 20*time.Millisecond)) }

// pause waits between two pieces; false if the peer has gone.
func (x *stream2) pause(d time.Duration) bool { return passes(d, x.gone, x.s.stop) }

// hold stays silent until the peer disconnects.
func (x *stream2) hold() {
	x.s.log.add(Event{Conn: x.c.id, Req: x.id, Kind: Holding})
	select {
	case <-x.gone:
	case <-x.s.stop:
	}
}

// finish sends the normal end of a stream.
func (x *stream2) finish() bool { return x.data(Finish+Done, true) }

// ok sends a valid response.
func (x *stream2) ok() bool {
	if !x.req.streams() {
		return x.json(200, Completion)
	}
	return x.open() && x.events(x.num("n", 3)) && x.finish()
}

func (x *stream2) reset(code int) {
	x.do(func() error { return x.fr.WriteRSTStream(x.number, http2.ErrCode(code)) })
}

// goAway announces that no stream after last is answered.
func (x *stream2) goAway(last uint32, code int) {
	x.do(func() error { return x.fr.WriteGoAway(last, http2.ErrCode(code), nil) })
}

// raw writes a frame unchanged, whatever it contains.
func (x *stream2) raw(kind http2.FrameType, flags http2.Flags, number uint32, payload []byte) {
	x.do(func() error { return x.fr.WriteRawFrame(kind, flags, number, payload) })
}

// setting returns the payload of a frame with one setting.
func setting(id http2.SettingID, v uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(nil, uint16(id)), v)
}
