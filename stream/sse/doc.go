// Package sse reads and writes server-sent events as a proxy needs them: an event is known by its exact
// bytes, so that what nobody has to change leaves as it came.
//
// A Parser cuts a stream, given in pieces of any size, into units: events, fields without data, comments
// and blank lines. The cuts depend on the bytes alone and never on the pieces. A Writer takes the units
// and prepares the bytes for the client, unchanged but for a closed list, each item of which is there
// because a client in use fails without it:
//
//   - a line that ends in a bare CR ends in LF; CRLF and LF stay,
//   - a byte order mark at the start is gone,
//   - data on several lines stands on one, its parts joined by a blank, which JSON may have where it may
//     have a line break,
//   - an event named error has no name,
//   - a stream that ends in order, with a finish_reason and without [DONE], gets one,
//   - what follows [DONE] is dropped.
//
// The Writer also puts events in, changes their data and leaves them out, and keeps the State of the
// stream: whether it is complete, failed or was cut.
//
// The grammar is that of WHATWG HTML, sections 9.2.5 and 9.2.6. The package reads no JSON but for the two
// facts that tell the end of an answer, by their spelling; a caller that reads the JSON corrects them
// with Writer.Note.
//
// There are no goroutines and no locks here: a Parser and a Writer belong to one stream. In steady state
// neither allocates.
package sse
