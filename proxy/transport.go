package proxy

import (
	"net"
	"net/http"
	"time"

	"signalbox/proxy/framing"
)

// newTransport makes the client side. HTTP/1.1 only, unless an endpoint asks for more: one
// connection a request in flight is what the model servers are built for.
func newTransport(o Options) framing.Transport {
	dialer := &net.Dialer{Timeout: time.Duration(o.ConnectTimeout), KeepAlive: 15 * time.Second}
	return framing.Transport{Transport: &http.Transport{
		DialContext:         framing.Dialer(dialer.DialContext).Dial,
		TLSHandshakeTimeout: time.Duration(o.ConnectTimeout) * 2,
		MaxIdleConnsPerHost: 512,
		// vLLM closes an idle connection after 5 s (VLLM_HTTP_TIMEOUT_KEEP_ALIVE); closing first
		// keeps a request from meeting one that is going away.
		IdleConnTimeout:        4 * time.Second,
		MaxResponseHeaderBytes: 256 << 10,
		DisableCompression:     true,
		ReadBufferSize:         readBuffer,
		Protocols:              http1(),
	}}
}

// readBuffer is how much of an answer is read at a time, in bytes. A server that sends many events
// at once is read in a quarter of the calls that 4 KiB, the default, would take.
const readBuffer = 16 << 10

func http1() *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	return p
}
