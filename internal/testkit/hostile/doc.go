// Package hostile is a model server that misbehaves on request, each time in one exactly defined
// way. It speaks HTTP/1.1 by hand on a raw connection: the server of net/http would mend the very
// faults that tests need. Only tests import it.
//
// What a request meets is its mode, NAME or NAME?key=value&key=value. The first of these names it:
// the modes scripted with Next, one a request; [[fault:MODE]] in the body, which a proxy that drops
// headers lets through; the header X-Fault; the server's usual mode; and else ok-stream or ok-json,
// by "stream":true. Modes of connections, which act before a request is read, are usual ones only.
// GET requests are health checks and are answered well, but for modes that say otherwise. With
// Options.HTTP2 it speaks HTTP/2, frame by frame, and has the modes of Modes2.
//
// Every mode takes n (events), d (the delay between two), k (events before the fault), and where it
// makes sense bytes, mb, kb, max, code and others; Modes lists the names, and the table in modes.go
// says what each does.
//
// Two faults are made in another way than by a network that drops packets, which would need rights
// that tests lack: blackhole is a listener whose queue of connections is full, so that the kernel
// drops a further SYN; half-open is a server that stops reading and writing while the kernel goes
// on acknowledging, as a stopped process does. Neither can lose a packet of a connection that is
// established.
//
// A Server owns one goroutine a connection that plays modes and one that reads; Close ends them and
// waits.
package hostile
