// Package sse reads and writes server-sent events for a proxy: an event keeps its exact bytes, so
// that everything that does not have to change is forwarded as it was received.
//
// A Parser cuts a stream, fed in pieces of any size, into units: events, blocks of fields without
// data, comments and blank lines. The cuts only depend on the bytes and never on the pieces.
// Event.Mended is a unit as the client receives it. It is unchanged except for a closed list of
// repairs, each of which is needed by a client in use:
//
//   - a line that ends in a bare CR ends in LF; CRLF and LF stay,
//   - a byte order mark at the start is removed,
//   - data on several lines is put on one line, joined with spaces, which JSON permits wherever it
//     permits a line break,
//   - an event named error loses its name, unless all events of its API have names (KeepName).
//
// A State records how far a stream has come: whether it is complete or has failed. Package response
// decides what to send at and after its end.
//
// The grammar is that of WHATWG HTML, sections 9.2.5 and 9.2.6. The package does not parse JSON; it
// only recognises by their spelling the two facts that mark the end of an answer.
//
// There are no goroutines and no locks: a Parser belongs to one stream. In steady state it does not
// allocate.
package sse
