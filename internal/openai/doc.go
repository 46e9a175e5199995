// Package openai is the wire format of the OpenAI-compatible API for a proxy: a typed view of a
// request (chat, completion, Responses API, or anything else that names a model) together with the
// bytes it was parsed from; edits of those bytes; and the error envelope.
//
// A body is parsed once, strictly. Duplicate names, invalid UTF-8, lone surrogates and anything
// after the value are errors. Names are compared case-sensitively, and a name that differs only by
// case from one that this package reads is refused. Otherwise a lenient reader behind the proxy
// could understand the body differently, which would bypass every check made here.
//
// A body is never decoded and encoded again. A Patch replaces only the ranges that change, so the
// order of names, whitespace, the spelling of numbers, escapes and unknown fields reach the
// upstream as the client sent them.
//
// The package starts no goroutines and has no state. It checks syntax and the types of what it
// reads, not policy. Unknown members are kept as text (read.go), because a model may read them;
// members that are not read are listed in exempt.go.
package openai
