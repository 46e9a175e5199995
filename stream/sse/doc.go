// Package sse reads and writes server-sent events as a proxy needs them: an event is known by its
// exact bytes, so that what nobody has to change leaves as it came.
//
// A Parser cuts a stream, given in pieces of any size, into units: events, fields without data,
// comments and blank lines. The cuts depend on the bytes alone and never on the pieces.
// Event.Mended is a unit as the client gets it, unchanged but for a closed list, each item of which
// is there because a client in use fails without it:
//
//   - a line that ends in a bare CR ends in LF; CRLF and LF stay,
//   - a byte order mark at the start is gone,
//   - data on several lines stands on one, its parts joined by a blank, which JSON may have where
//     it may have a line break,
//   - an event named error has no name, unless it is of an API in which all events have one
//     (KeepName).
//
// A State tells how far a stream has come: whether it is complete or has failed. What is made of
// that, at its end and behind it, is package response's.
//
// The grammar is that of WHATWG HTML, sections 9.2.5 and 9.2.6. The package reads no JSON but for
// the two facts that tell the end of an answer, by their spelling.
//
// There are no goroutines and no locks here: a Parser belongs to one stream. In steady state it
// does not allocate.
package sse
