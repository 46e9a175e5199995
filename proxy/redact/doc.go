// Package redact keeps personal data from a model server: it replaces what was found in a request
// by placeholders such as [EMAIL_1], and puts the values back where an answer names them.
//
// Hide makes the body that may be sent and the Vault of its placeholders. Every string of the body
// that is a text of the request is rewritten, and every other mention of the same values with it,
// whoever said it and wherever it stands: other turns, tool results, arguments and ids of calls,
// names of members, values of metadata. All other bytes stay as they were. Hide either succeeds for
// every span or fails; a body that could not be rewritten whole is never returned.
//
// What it cannot see stays: values inside images and files, in numbers of the body, and in
// encodings such as base64. So do members by which a server looks something up, words of the API,
// and names of tools and of properties that look like somebody's (contract.go). The arguments of
// calls and results of tools that are JSON stay JSON (nested.go): a number there is replaced by a
// string.
//
// Requests are those of chat completions, completions and the Responses API. An answer goes
// through a Body, when it is one JSON value, or through a Stream, when it is server-sent events.
// Both take the bytes in any pieces and give back the same text for all of them, also where the
// model escaped a placeholder as Markdown (spelled.go). A placeholder that the request did not
// make is left alone, one of an earlier turn that the server remembers, too: where a request goes
// on with such turns its placeholders hold letters that differ from request to request, as
// [EMAIL_K7QXA_1]. Nothing is held back but the front of what may become a placeholder.
//
// The package has no goroutines. A Vault is immutable once Hide has returned it and safe for
// concurrent use; a Body and a Stream belong to one answer.
package redact
