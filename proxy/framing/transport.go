package framing

import (
	"net"
	"net/http"
	"time"
)

// NewTransport returns the transport to model servers; connect is the connection timeout. It speaks
// HTTP/1.1 only, unless an endpoint is configured otherwise: model servers expect one connection
// per request in flight.
func NewTransport(connect time.Duration) Transport {
	dialer := &net.Dialer{Timeout: connect, KeepAlive: 15 * time.Second}
	return Transport{Transport: &http.Transport{
		DialContext:         Dialer(dialer.DialContext).Dial,
		TLSHandshakeTimeout: connect * 2,
		MaxIdleConnsPerHost: 512,
		// vLLM closes an idle connection after 5 s (VLLM_HTTP_TIMEOUT_KEEP_ALIVE). Closing it
		// earlier avoids sending a request on a connection that is being closed.
		IdleConnTimeout:        4 * time.Second,
		MaxResponseHeaderBytes: 256 << 10,
		DisableCompression:     true,
		ReadBufferSize:         readBuffer,
		Protocols:              http1(),
	}}
}

// readBuffer is how much of a response is read at a time, in bytes. A server that sends many events
// at once needs a quarter of the reads of the default of 4 KiB.
const readBuffer = 16 << 10

func http1() *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	return p
}
