// Package guard checks an answer against facts while it is on its way to the client, and acts on
// what fails.
//
// Copy takes the bytes of a stream of server-sent events from a Source to a Sink; Body does the
// same for an answer in one piece. The text of each choice is cut into claims (package claims),
// each claim is judged (package check), and the Mode says what follows:
//
//   - observe: nothing; the verdicts are told to the Observer and stand in the Outcome.
//   - annotate: a marker follows a claim that failed, as soon as its verdict is there: at the end
//     of the claim when that is found before the event with its last bytes has left, else behind
//     the text that has.
//   - terminate: the answer ends with finish_reason "content_filter" at the first claim that
//     failed, or the Nth. What follows is dropped, calls of tools with it.
//   - hold: text is let go claim by claim, after its verdict. A claim that failed is replaced by
//     the marker; with Policy.Failures set, the answer ends at the Nth. No part of a failed claim
//     ever reaches the client, not by way of a claim that overlaps it and not by the events of the
//     Responses API that repeat a text as a whole.
//
// A tool call ends the text before it, and waits for the verdicts on it where they may end the
// answer. A choice ends at its finish_reason; one that goes on behind it ends with the stream.
//
// An event or a body of which a part cannot be read (package response) counts as a claim that is
// unchecked, and the answer is never supported then. Hold leaves out log probabilities and token
// ids, which tell a text again, or before it comes.
//
// What nobody has to change leaves with the bytes it came with (package sse tells the exceptions);
// tool calls and refusals do, unless the answer ends before them. An answer that is JSON by request
// is never changed inside: annotate tells of failed claims in members x_signalbox of chunks without
// text, and hold ends it where it would replace.
//
// # Waiting
//
// Most verdicts take microseconds and are found at once. The others come from workers that all
// answers of a Guard share, behind a bounded queue. A claim that finds the queue full, or has no
// verdict after Policy.MaxHold, is shed: what could be told without a model stands, else it is
// unchecked, and Policy.OnUnchecked decides. So a checker that hangs delays a stream by no more
// than MaxHold at a time. Where the end of a choice is told, annotate, terminate and hold wait that
// long for the verdicts that are missing; observe does so only for a summary, and else leaves them
// to be counted later.
//
// # Goroutines
//
// New starts the workers, Close ends them and waits. Copy starts one goroutine that calls
// Source.Read and waits for it; everything else, the Sink included, happens on the caller's
// goroutine.
package guard
