// Package response reads and changes the answers of model servers, as far as a proxy that checks
// answers needs to: which text a client will see, why the answer ended, what it cost.
//
// It reads chat completions, completions and the Responses API, as the events of a stream and as
// whole bodies, with the extensions of common servers (reasoning in a field of its own, content in
// parts, token ids next to the text). A Reader takes the data of one event at a time and returns an
// Event: the texts with their byte spans, the finish reasons, the usage. It also keeps what the
// chunks of the stream have in common, in order to build matching chunks.
//
// Nothing is decoded and encoded again. Event.Append replaces only what changes, so everything else
// keeps its original bytes: the order of members, the spelling of numbers, unknown members, lone
// surrogates, invalid UTF-8.
//
// Reading is strict where another reader might see something else. Data is Opaque if it is not
// JSON, repeats a member that is read here, answers in two shapes at once, or is of an unknown
// kind. An Opaque event can only be passed on unchanged or refused.
//
// Stream takes the bytes of a stream, which package sse parses, and returns its units as Chunks. A
// Chunk is read when its contents are first requested, and then passes through filters: each is a
// Sink that puts into the next. Tally sums up an answer, Collector assembles its messages, Ending
// checks whether it is complete, and As converts between a stream and a body.
//
// The package does not decide what happens to a text. It starts no goroutines, and all of its types
// belong to one answer. In steady state nothing is allocated for a chunk that is not changed.
package response
