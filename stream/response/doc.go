// Package response understands what a model server answers, as far as a proxy that checks and
// changes answers has to: which text a client will see, why the answer ended, what it cost.
//
// It reads chat completions, completions and the Responses API, as the events of a stream and as
// whole bodies, with the extensions of the servers in use (reasoning in a field of its own, content
// in parts, token ids beside the text). A Reader takes one event's data at a time and gives an
// Event: the texts with the byte spans they stand in, the finish reasons, the usage. It also keeps
// what the chunks of the stream have in common, to build chunks that fit in.
//
// Nothing is decoded and encoded again. Event.Append splices what changes, so everything else
// leaves with the bytes it came with: the order of members, the spelling of numbers, unknown
// members, lone surrogates, invalid UTF-8.
//
// The reading is strict where another reader could see something else: what is no JSON, names a
// member twice that is read here, or answers in two shapes at once is Opaque, as is what is
// unknown. An Opaque event can only be passed on as it is or refused.
//
// Stream takes the bytes of a stream, which package sse parses, and gives its units as Chunks. A
// Chunk is read when somebody asks what it says, and then goes through filters: each is a Sink that
// puts into the next. Tally sums an answer up, Collector puts its messages together, Ending tells
// whether it is whole, and As makes a stream of a body and a body of a stream.
//
// What is done about a text is not known here. There are no goroutines; all of this belongs to one
// answer. In steady state nothing allocates for a chunk that nobody changes.
package response
