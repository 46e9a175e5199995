// Package downstream is the side of the client: how the body of a request is read, within bounds of
// size and time, and the response to it as it is written, with
// its deadlines, heartbeats, error events and counters of what the request holds.
//
// A Writer knows which API the client speaks and spells what is written in it; a Sink takes the
// chunks of a stream. It does not know what is written, nor where it comes from: package upstream
// is the other side.
//
// A Writer and a Sink belong to the goroutine of their request, but for the writes of a Heartbeat,
// which has a lock for them.
package downstream
