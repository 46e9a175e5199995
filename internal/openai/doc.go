// Package openai is the wire format of the OpenAI-compatible API as a proxy needs it: a typed view
// of a request, be it for chat, for a completion, for the Responses API or for anything else that
// names a model, beside the bytes it was read from; edits of those bytes; and the error envelope.
//
// A body is parsed once, strictly: duplicate names, invalid UTF-8, lone surrogates and anything
// after the value are errors, names are compared case-sensitively, and a name that differs from one
// we read only by case is refused. What a lenient reader behind the proxy could understand
// differently from us would otherwise be a way around every check made here.
//
// A body is never decoded and encoded again. A Patch splices the few ranges that change, so the
// order of names, whitespace, the spelling of numbers, escapes and unknown fields reach the
// upstream as the client sent them.
//
// The package has no goroutines and no state. It judges syntax and the types of what it reads, not
// policy. What it does not know it keeps as text (read.go), since a model may read it; what it
// skips is listed (exempt.go).
package openai
