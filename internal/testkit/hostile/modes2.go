package hostile

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"
)

// catalogue2 returns the HTTP/2 modes by name.
var catalogue2 = sync.OnceValue(newCatalogue2) //nolint:gochecknoglobals // constant table

// Modes2 lists the names of all HTTP/2 modes, sorted. Those that Modes also lists have the same
// effect with different frames.
func Modes2() []string { return slices.Sorted(maps.Keys(catalogue2())) }

func newCatalogue2() map[string]play2 {
	all := map[string]play2{
		"ok":        func(x *stream2) { x.ok() },
		"ok-json":   func(x *stream2) { x.json(200, Completion) },
		"ok-stream": func(x *stream2) { _ = x.open() && x.events(x.num("n", 3)) && x.finish() },
		// Of connections, before a request is read; see over2. What gets through is answered.
		"speaks-http1": func(x *stream2) { x.ok() },
	}
	for _, more := range []map[string]play2{beforeHead2(), heads2(), breaks2(), legal2()} {
		maps.Copy(all, more)
	}
	return all
}

// beforeHead2 are the faults before the head of a response.
func beforeHead2() map[string]play2 {
	return map[string]play2{
		"rst-before-head":   func(x *stream2) { x.reset(x.num("code", int(http2.ErrCodeInternal))) },
		"close-before-head": func(x *stream2) { _ = x.c.Close() },
		"cut-before-head":   func(x *stream2) { x.c.reset() },
		"goaway-unseen": func(x *stream2) { // the request was not processed, and the connection accepts no more
			x.goAway(max(x.number, 2)-2, x.num("code", int(http2.ErrCodeNo)))
			x.hold()
		},
		"goaway-before-head": func(x *stream2) { // the request may have been processed
			x.goAway(x.number, x.num("code", int(http2.ErrCodeInternal)))
			_ = x.c.Close()
		},
		"ttft": func(x *stream2) { _ = x.pause(x.wait("d", 30*time.Second)) && x.ok() },
		"head-ttft": func(x *stream2) {
			_ = x.open() && x.pause(x.wait("d", 30*time.Second)) && x.events(3) && x.finish()
		},
		"watch-ttft": (*stream2).hold,
		"1xx": func(x *stream2) {
			_ = x.fields(false, ":status", "103", "link", "</style.css>; rel=preload") && x.fields(false, ":status", "102") && x.ok()
		},
		"1xx-flood": func(x *stream2) {
			for range x.num("n", 100_000) {
				if !x.fields(false, ":status", "103") {
					return
				}
			}
			x.ok()
		},
		"101":              func(x *stream2) { x.fields(false, ":status", "101"); x.hold() },
		"data-before-head": func(x *stream2) { x.data("data: {}\n\n", false); x.hold() },
		"push": func(x *stream2) { // without a request for it
			x.do(func() error {
				return x.fr.WritePushPromise(http2.PushPromiseParam{StreamID: x.number, PromiseID: 2, EndHeaders: true, BlockFragment: []byte{0x82}})
			})
			x.hold()
		},
		"half-head": func(x *stream2) { // a frame that is shorter than its length
			x.do(func() error {
				_, err := x.c.Write([]byte{0, 1, 0, byte(http2.FrameHeaders), 4, 0, 0, 0, 1, 0x88})
				return err
			})
			_ = x.c.Close()
		},
	}
}

// heads2 are faults of the head, and bodies that do not match it.
func heads2() map[string]play2 {
	with := func(pairs ...string) play2 {
		return func(x *stream2) {
			if !x.req.streams() {
				x.json(200, Completion, pairs...)
				return
			}
			_ = x.open(pairs...) && x.events(2) && x.finish()
		}
	}
	length := func(more int) play2 {
		return func(x *stream2) {
			body := Completion
			_ = x.fields(false, ":status", "200", "content-type", "application/json", "content-length", itoa(len(body)+more)) && x.data(body, true)
		}
	}
	return map[string]play2{
		"status": func(x *stream2) {
			code, pairs := x.num("code", 500), []string(nil)
			if ra := x.params.Get("ra"); ra != "" {
				pairs = []string{"retry-after", ra}
			}
			x.json(code, errorBody(code, "told by the model server"), pairs...)
		},
		"status-html": func(x *stream2) {
			x.answer(502, "text/html", "<html><body>502 Bad Gateway at http://10.0.0.7:8000</body></html>")
		},
		"redirect": func(x *stream2) {
			x.answer(x.num("code", 307), "text/html", "", "location", x.text("to", "http://169.254.169.254/"))
		},
		"huge-headers": func(x *stream2) {
			with(slices.Repeat([]string{"x-filler", strings.Repeat("a", 1000)}, x.num("kb", 1000))...)(x)
		},
		"header-count": func(x *stream2) {
			var pairs []string
			for i := range x.num("n", 5000) {
				pairs = append(pairs, "x-"+itoa(i), "1")
			}
			with(pairs...)(x)
		},
		"bad-header":        with("x-nul", "a\x00b"),
		"upper-case":        with("X-Upper", "1"),
		"connection-header": with("connection", "close", "keep-alive", "timeout=5"),
		"set-cookie":        with("set-cookie", "session=1", "server", "uvicorn", "x-kept", "yes"),
		"no-status":         func(x *stream2) { x.fields(true, "content-type", "application/json") },
		"status-twice":      with(":status", "201"),
		"head-alone": func(x *stream2) {
			x.fields(true, ":status", "200", "content-type", map[bool]string{true: "text/event-stream", false: "application/json"}[x.req.streams()])
		},
		"cl-too-long":         length(100),
		"cl-too-short":        length(-20),
		"json-200-for-stream": func(x *stream2) { x.json(200, Completion) },
		"sse-for-json":        func(x *stream2) { _ = x.open() && x.events(3) && x.finish() },
	}
}

func breaks2() map[string]play2 {
	silent := func(x *stream2) { _ = x.before(); x.hold() }
	return map[string]play2{
		"rst-mid":   func(x *stream2) { _ = x.before(); x.reset(x.num("code", int(http2.ErrCodeInternal))) },
		"close-mid": func(x *stream2) { _ = x.before(); _ = x.c.Close() },
		"cut-mid":   func(x *stream2) { _ = x.before(); x.c.reset() },
		"goaway-mid": func(x *stream2) { // the connection dies
			_ = x.before()
			x.goAway(x.number, x.num("code", int(http2.ErrCodeInternal)))
			_ = x.c.Close()
		},
		"goaway-unseen-mid": func(x *stream2) { // the server withdraws its response
			_ = x.before()
			x.goAway(max(x.number, 2)-2, x.num("code", int(http2.ErrCodeNo)))
			x.hold()
		},
		"goaway-rest": func(x *stream2) { // no more requests, but this one is answered completely
			_ = x.open() && x.events(1)
			x.goAway(x.number, int(http2.ErrCodeNo))
			_ = x.settle() && x.events(2) && x.finish()
		},
		"bad-frame-mid": func(x *stream2) { // with a length that is invalid for its kind
			_ = x.before()
			x.raw(http2.FrameWindowUpdate, 0, x.number, []byte{1})
			x.hold()
		},
		"padding-mid": func(x *stream2) { // more padding than the frame has bytes
			_ = x.before()
			x.raw(http2.FrameData, http2.FlagDataPadded, x.number, []byte{200, 'x'})
			x.hold()
		},
		"too-much-mid":      func(x *stream2) { _ = x.before(); x.raw(http2.FrameData, 0, x.number, make([]byte, 5<<20)); x.hold() },
		"head-mid":          func(x *stream2) { _ = x.before(); x.fields(false, ":status", "200"); x.hold() },
		"close-mid-event":   func(x *stream2) { _ = x.before() && x.data(`data: {"half`, true) },
		"clean-no-done":     func(x *stream2) { _ = x.before() && x.data("", true) },
		"clean-fin-no-done": func(x *stream2) { _ = x.before() && x.data(Finish, true) },
		"after-done": func(x *stream2) {
			_ = x.before() && x.data(Finish, false) && x.data(Done, false) && x.events(x.num("n", 50)) && x.data("", true)
		},
		"never-end":   func(x *stream2) { _ = x.before() && x.data(Finish+Done, false); x.hold() },
		"stall":       silent,
		"watch-stall": silent,
		"slow-drip": func(x *stream2) {
			_ = x.open() && x.events(2)
			for _, b := range []byte(EventOf(9, strings.Repeat("drip", 100), time.Time{})) {
				if !x.data(string(b), false) || !x.pause(x.wait("d", time.Second)) {
					return
				}
			}
			x.finish()
		},
		"error-event": func(x *stream2) { _ = x.before() && x.data(errorEvent+Done, true) },
	}
}

// frameInTwo sends the second part of a frame, which begins like an HTTP/1.1 head, when another
// request has arrived on the connection.
func frameInTwo(x *stream2) {
	_ = x.open() && x.events(1)
	if x.id == 1 {
		event := EventOf(1, "HTTP/1.1 200 OK ", time.Time{})
		at, rest := strings.Index(event, "HTTP"), event[len(event)-10:]
		event = event[:len(event)-10]
		x.do(func() error {
			n := len(event)
			if _, err := x.c.Write(append([]byte{byte(n >> 16), byte(n >> 8), byte(n), byte(http2.FrameData), 0, 0, 0, 0, byte(x.number)}, event[:at]...)); err != nil {
				return err
			}
			x.s.Wait(time.Minute, func(e *Event) bool { return e.Kind == HeadRaw && e.Req == 2 })
			_, err := x.c.Write([]byte(event[at:]))
			return err
		})
		x.data(rest, false) // in a frame that no HTTP/1.1 head can contain
	}
	x.finish()
}

// legal2 are variants of valid streams.
func legal2() map[string]play2 {
	between := func(frame func(x *stream2)) play2 {
		return func(x *stream2) {
			_ = x.open() && x.events(1)
			frame(x)
			_ = x.events(2) && x.finish()
		}
	}
	return map[string]play2{
		"trailers": func(x *stream2) {
			_ = x.open("trailer", "x-usage") && x.events(2) && x.data(Finish+Done, false) && x.fields(true, "x-usage", "42")
		},
		"split1": func(x *stream2) {
			_ = x.open()
			for _, b := range []byte(EventOf(0, "héé漢字🙂", time.Time{}) + Finish + Done) {
				x.data(string(b), false)
			}
			x.data("", true)
		},
		"empty-frames": between(func(x *stream2) {
			for range x.num("n", 1000) {
				x.data("", false)
			}
		}),
		"pings": between(func(x *stream2) {
			for i := range x.num("n", 500) {
				x.do(func() error { return x.fr.WritePing(false, [8]byte{byte(i)}) })
			}
		}),
		"settings": between(func(x *stream2) {
			for range x.num("n", 100) {
				x.raw(http2.FrameSettings, 0, 0, setting(http2.SettingMaxConcurrentStreams, 100))
			}
		}),
		"no-more-streams": between(func(x *stream2) { x.raw(http2.FrameSettings, 0, 0, setting(http2.SettingMaxConcurrentStreams, 0)) }),
		"padded": between(func(x *stream2) {
			x.raw(http2.FrameData, http2.FlagDataPadded, x.number, append([]byte{3, ':', '\n', '\n'}, 0, 0, 0))
		}),
		"frame-in-two":  frameInTwo,
		"unknown-frame": between(func(x *stream2) { x.raw(0xfa, 0xff, x.number, []byte("what")) }),
		"reset-at-end": func(x *stream2) { // like a server that needs no more of the request
			_ = x.ok()
			x.reset(int(http2.ErrCodeNo))
		},
		"flood": func(x *stream2) {
			_ = x.open()
			for i := 0; int(x.sent) < x.size("max", 4<<20); i++ {
				if !x.data(EventOf(i, strings.Repeat("x", x.num("bytes", 1000)), time.Time{}), false) {
					return
				}
			}
			x.finish()
		},
	}
}
