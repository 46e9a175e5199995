// Package hostile is a model server that misbehaves on request, each time in one exactly defined
// way. It implements HTTP/1.1 on a raw connection, because the server of net/http would correct the
// very faults that tests need. Only tests import it.
//
// The mode of a request is NAME or NAME?key=value&key=value. It is taken from the first of these:
// the modes scripted with Next, one per request; [[fault:MODE]] in the body, which passes a proxy
// that drops headers; the header X-Fault; the server's usual mode; and else ok-stream or ok-json,
// depending on "stream":true. Modes of connections, which act before a request is read, can only be
// usual modes. GET requests are health checks and succeed, except in modes that define otherwise.
// With Options.HTTP2 the server speaks HTTP/2, frame by frame, with the modes of Modes2.
//
// Every mode takes n (events), d (the delay between two), k (events before the fault), and where
// applicable bytes, mb, kb, max, code and others; Modes lists the names, and the table in modes.go
// describes each.
//
// Two faults are simulated differently from a network that drops packets, which would need
// privileges that tests lack: blackhole is a listener whose connection queue is full, so that the
// kernel drops further SYNs; half-open is a server that stops reading and writing while the kernel
// continues to acknowledge, like a stopped process. Neither can lose a packet of an established
// connection.
//
// A Server owns two goroutines per connection, one that plays modes and one that reads; Close ends
// them and waits.
package hostile
