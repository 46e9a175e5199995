// Package downstream is the client side: it reads request bodies within limits of size and time,
// and writes responses with deadlines, heartbeats, error events and the accounting of what a
// request holds.
//
// A Writer knows which API the client speaks and writes in its form; a Sink takes the chunks of a
// stream. The package does not know what is written or where it comes from: package upstream is the
// other side.
//
// A Writer and a Sink belong to the goroutine of their request, except for the writes of a
// Heartbeat, which has a lock for them.
package downstream
