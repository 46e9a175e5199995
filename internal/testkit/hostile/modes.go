package hostile

import (
	"maps"
	"strings"
	"sync"
	"time"

	"signalbox/internal/testkit"
)

// catalogue returns the modes by name. It is created once, because some modes compress data.
var catalogue = sync.OnceValue(newCatalogue) //nolint:gochecknoglobals // constant table

func newCatalogue() map[string]play {
	all := map[string]play{
		"ok":        (*exchange).ok,
		"ok-json":   func(x *exchange) bool { return x.json(200, Completion) },
		"ok-stream": func(x *exchange) bool { return x.head() && x.events(x.num("n", 3)) && x.finish() },
	}
	for _, name := range Connections() {
		all[name] = (*exchange).ok // what gets through the connection is answered
	}
	for _, more := range []map[string]play{beforeBody(), heads(), bodies(), breaks(), legal(), syntax(), floods(), many()} {
		maps.Copy(all, more)
	}
	return all
}

// beforeBody are the faults before the first byte of a body.
func beforeBody() map[string]play {
	return map[string]play{
		"rst-before-head":   (*exchange).rst,
		"close-before-head": (*exchange).fin,
		"half-head": func(x *exchange) bool {
			x.write("HTTP/1.1 200 OK\r\nContent-Ty")
			return x.fin()
		},
		"slow-head": func(x *exchange) bool {
			for _, b := range []byte(StreamHead) {
				if !x.write(string(b)) || !x.pause(x.wait("d", 200*time.Millisecond)) {
					return false
				}
			}
			return x.events(3) && x.finish()
		},
		"ttft": func(x *exchange) bool {
			return x.pause(x.wait("d", 30*time.Second)) && x.ok()
		},
		"head-ttft": func(x *exchange) bool { // an immediate head, then like ttft
			return x.head() && x.pause(x.wait("d", 30*time.Second)) && x.events(3) && x.finish()
		},
		"watch-ttft": (*exchange).hold,
		"ok-then-rst-next": func(x *exchange) bool {
			x.ok()
			x.log.add(Event{Conn: x.c.id, Req: x.id, Kind: Holding})
			_, _ = x.c.Read(make([]byte, 1))
			return x.rst()
		},
		"idle-close": func(x *exchange) bool {
			x.ok()
			x.pause(x.wait("d", 5*time.Second))
			return x.fin()
		},
		"1xx": func(x *exchange) bool {
			return x.write("HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n") &&
				x.write("HTTP/1.1 102 Processing\r\n\r\n") && x.ok()
		},
		"1xx-flood": func(x *exchange) bool {
			for range x.num("n", 100_000) {
				if !x.write("HTTP/1.1 103 Early Hints\r\n\r\n") {
					return false
				}
			}
			return x.ok()
		},
		"101": func(x *exchange) bool {
			x.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
			return x.hold()
		},
		"no-100": (*exchange).ok, // the server omits 100 Continue, see post
		"early-413": func(x *exchange) bool {
			x.write(answerHead(413, "application/json", len(errorBody(413, "too large")), "Connection: close") + errorBody(413, "too large"))
			if t, ok := x.c.Conn.(interface{ CloseWrite() error }); ok {
				_ = t.CloseWrite()
			}
			x.pause(x.wait("d", 300*time.Millisecond)) // nothing more is read
			return x.fin()
		},
	}
}

func heads() map[string]play {
	with := func(lines string) play {
		return func(x *exchange) bool {
			if !x.req.streams() {
				x.write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" + lines + "Content-Length: " + itoa(len(Completion)) + "\r\n\r\n" + Completion)
				return true
			}
			return x.write(strings.TrimSuffix(StreamHead, "\r\n")+lines+"\r\n") && x.events(2) && x.finish()
		}
	}
	second := "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n{\"stolen\":1}\n"
	return map[string]play{
		"status": func(x *exchange) bool {
			code, lines := x.num("code", 500), []string(nil)
			if ra := x.params.Get("ra"); ra != "" {
				lines = append(lines, "Retry-After: "+ra)
			}
			return x.json(code, errorBody(code, "told by the model server"), lines...)
		},
		"status-html": func(x *exchange) bool {
			const page = "<html><body>502 Bad Gateway at http://10.0.0.7:8000</body></html>"
			return x.write(answerHead(502, "text/html", len(page)) + page)
		},
		"redirect": func(x *exchange) bool {
			return x.write(answerHead(x.num("code", 307), "text/html", 0, "Location: "+x.text("to", "http://169.254.169.254/")))
		},
		"huge-headers": func(x *exchange) bool {
			line := "X-Filler: " + strings.Repeat("a", 1000) + "\r\n"
			x.write("HTTP/1.1 200 OK\r\n")
			for range x.num("kb", 12_000) {
				if !x.write(line) {
					return false
				}
			}
			return x.write("Content-Length: 2\r\n\r\n{}")
		},
		"header-count": func(x *exchange) bool {
			var b strings.Builder
			for i := range x.num("n", 5000) {
				b.WriteString("X-" + itoa(i) + ": 1\r\n")
			}
			return with(b.String())(x)
		},
		"bad-header":    with("X-Split: a\rX-Smuggled: b\r\n"),
		"bad-header-0":  with("X-Nul: a\x00b\r\n"),
		"dup-cl":        with("Content-Length: " + itoa(len(Completion)) + "\r\n"),
		"dup-cl-differ": with("Content-Length: 3\r\n"),
		"cl-and-te": func(x *exchange) bool {
			x.write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " + itoa(len(Completion)) +
				"\r\nTransfer-Encoding: chunked\r\n\r\n" + testkit.Chunk(Completion) + End + second)
			return true
		},
		"te-identity": func(x *exchange) bool {
			x.write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: identity\r\n\r\n" + Completion)
			return x.fin()
		},
		"neg-cl": func(x *exchange) bool {
			x.write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: -5\r\n\r\n" + Completion)
			return x.fin()
		},
		"set-cookie": with("Set-Cookie: session=1\r\nServer: uvicorn\r\nConnection: X-Internal\r\nX-Internal: secret\r\nKeep-Alive: timeout=5\r\nX-Kept: yes\r\n"),
		"http10": func(x *exchange) bool {
			if !x.req.streams() {
				x.write("HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n" + Completion)
				return x.fin()
			}
			x.write("HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
			for i := range 3 {
				x.write(x.event(i, word(i)))
			}
			x.write(Finish + Done)
			return x.fin()
		},
	}
}

func breaks() map[string]play {
	after := func(bytes string) play {
		return func(x *exchange) bool {
			if x.before() && bytes != "" {
				x.write(bytes)
			}
			return x.fin()
		}
	}
	silent := func(x *exchange) bool {
		x.before()
		return x.hold()
	}
	return map[string]play{
		"rst-mid": func(x *exchange) bool {
			x.before()
			x.pause(x.wait("d", 30*time.Millisecond)) // otherwise the reset overtakes the events
			return x.rst()
		},
		"close-mid":       after(""),
		"close-mid-event": after(testkit.Chunk(`data: {"half`)),
		"bad-chunk":       after("zz\r\n"),
		"bad-chunk-lf":    after("5\nhello\n"),
		"clean-no-done":   after(End),
		"clean-fin-no-done": func(x *exchange) bool {
			return x.before() && x.chunk(Finish) && x.write(End)
		},
		"after-done": afterDone,
		"never-end": func(x *exchange) bool {
			x.before()
			x.chunk(Finish)
			x.chunk(Done)
			return x.hold()
		},
		"stall":       silent,
		"watch-stall": silent,
		"slow-drip":   slowDrip,
		"error-event": func(x *exchange) bool {
			return x.before() && x.chunk(errorEvent) && x.chunk(Done) && x.write(End)
		},
		"error-event-named": func(x *exchange) bool {
			return x.before() && x.chunk("event: error\n"+errorEvent) && x.write(End)
		},
		"bad-json-event": func(x *exchange) bool {
			return x.before() && x.chunk("data: {not json\n\n") && x.finish()
		},
	}
}

// afterDone sends n more events after the end marker.
func afterDone(x *exchange) bool {
	if !x.before() || !x.chunk(Finish) || !x.chunk(Done) {
		return false
	}
	for i := range x.num("n", 1000) {
		if !x.chunk(x.event(i, "late")) || !x.pause(x.wait("d", 5*time.Millisecond)) {
			return false
		}
	}
	return x.write(End)
}

// slowDrip sends an event byte by byte.
func slowDrip(x *exchange) bool {
	if !x.before() {
		return false
	}
	for _, b := range []byte(x.event(9, strings.Repeat("drip", 100))) {
		if !x.chunk(string(b)) || !x.pause(x.wait("d", time.Second)) {
			return false
		}
	}
	return x.finish()
}

// errorEvent is an error that a server reports within a stream.
const errorEvent = `data: {"error":{"message":"engine died","type":"InternalServerError","param":null,"code":500}}` + "\n\n"

// legal are variants of valid streams.
func legal() map[string]play {
	choice := func(fields string) string {
		return `data: {"id":"c-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[` + fields + "]}\n\n"
	}
	stream := func(events ...string) play {
		return func(x *exchange) bool {
			if !x.head() {
				return false
			}
			for _, e := range events {
				if !x.chunk(e) {
					return false
				}
			}
			return x.chunk(Done) && x.write(End)
		}
	}
	stop := choice(`{"index":0,"delta":{},"finish_reason":"stop"}`)
	return map[string]play{
		"dup-choice": stream(choice(`{"index":0,"delta":{"content":"a"}},{"index":0,"delta":{"content":"b"}}`), stop),
		"two-choices": stream(choice(`{"index":0,"delta":{"content":"a"}}`), choice(`{"index":1,"delta":{"content":"b"}}`),
			choice(`{"index":1,"delta":{},"finish_reason":"length"}`), stop),
		"index-gap": stream(choice(`{"index":7,"delta":{"content":"a"},"finish_reason":"stop"}`), stop),
		"tool-call-fragments": stream(
			choice(`{"index":0,"delta":{"tool_calls":[{"index":0,"id":"t1","type":"function","function":{"name":"f","arguments":""}}]}}`),
			choice(`{"index":0,"delta":{"tool_calls":[{"index":1,"id":"t2","type":"function","function":{"name":"g","arguments":"{\"a"}}]}}`),
			choice(`{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}},{"index":1,"function":{"arguments":"\":1}"}}]}}`),
			choice(`{"index":0,"delta":{},"finish_reason":"tool_calls"}`)),
		"reasoning_content":      stream(choice(`{"index":0,"delta":{"reasoning_content":"hm"}}`), choice(`{"index":0,"delta":{"reasoning":"so","content":null}}`), stop),
		"logprobs":               stream(choice(`{"index":0,"delta":{"content":"a"},"logprobs":{"content":[{"token":"a","logprob":-1e-3,"bytes":[97],"top_logprobs":[]}]}}`), stop),
		"empty-delta":            stream(choice(`{"index":0,"delta":{}}`), choice(`{"index":0,"delta":{"content":""}}`), stop),
		"role-only":              stream(choice(`{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}`), stop),
		"usage-chunk-last":       stream(choice(`{"index":0,"delta":{"content":"a"}}`), stop, Usage),
		"usage-null-every-chunk": stream(strings.Replace(choice(`{"index":0,"delta":{"content":"a"}}`), "]}", `],"usage":null}`, 1), stop),
	}
}

// many are behaviours over several requests.
func many() map[string]play {
	busy := func(x *exchange) bool { return x.json(503, errorBody(503, "busy")) }
	return map[string]play{
		"flaky": func(x *exchange) bool {
			if x.spread(100) < int(x.share("p", 0.1)*100) {
				return x.rst()
			}
			return x.ok()
		},
		"brownout": func(x *exchange) bool {
			d := x.wait("p50", 50*time.Millisecond)
			if x.spread(100) == 0 {
				d = x.wait("p99", 20*time.Second)
			}
			return x.pause(d) && x.ok()
		},
		"fail-first": func(x *exchange) bool {
			if x.asked.Add(1) <= int64(x.num("n", 3)) {
				return busy(x)
			}
			return x.ok()
		},
		"recover-after": func(x *exchange) bool {
			if time.Since(x.started) < x.wait("d", 10*time.Second) {
				return busy(x)
			}
			return x.ok()
		},
		"concurrency-cap": func(x *exchange) bool {
			if x.serving.Load() > int64(x.num("n", 8)) {
				return busy(x)
			}
			return x.pause(x.wait("d", 20*time.Millisecond)) && x.ok()
		},
		"rate-limit": func(x *exchange) bool {
			if !x.mayServe(x.num("rps", 5)) {
				return x.json(429, errorBody(429, "slow down"), "Retry-After: 1")
			}
			return x.ok()
		},
		"keepalive-limit": func(x *exchange) bool {
			keep := x.ok()
			return keep && x.nth < x.num("n", 3)
		},
		"models-404":  (*exchange).ok, // see get
		"health-lies": func(x *exchange) bool { return x.json(500, errorBody(500, "sick")) },
		"wrong-model-echo": func(x *exchange) bool {
			return x.json(200, strings.Replace(Completion, `"model":"m"`, `"model":"other"`, 1))
		},
		"other-tenant-marker": func(x *exchange) bool {
			return x.json(200, strings.Replace(Completion, "hello", "for "+fingerprint(x.req.header("Authorization")+x.req.header("X-Tenant")), 1))
		},
		"half-open": func(x *exchange) bool {
			if x.frozen.Load() {
				<-x.stop
				return false
			}
			x.frozen.Store(true)
			if k := x.num("k", 0); k > 0 { // frozen in the middle of a stream
				x.head()
				x.events(k)
				<-x.stop
				return false
			}
			return x.ok()
		},
	}
}

// spread returns the next number below n of a deterministic, evenly spread sequence.
func (x *exchange) spread(n int) int {
	const golden = 61 // coprime to 100, near 100 divided by the golden ratio
	return int(x.asked.Add(1)) * golden % n
}

// mayServe counts one request against those allowed within the last second.
func (x *exchange) mayServe(rps int) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	since := time.Now().Add(-time.Second)
	kept := x.window[:0]
	for _, t := range x.window {
		if t.After(since) {
			kept = append(kept, t)
		}
	}
	x.window = kept
	if len(kept) >= rps {
		return false
	}
	x.window = append(x.window, time.Now())
	return true
}
