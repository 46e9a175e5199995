// Package guard checks an answer against facts on its way to the client, and acts on claims that
// fail.
//
// Copy takes a stream of server-sent events from a Source to a Sink; Body does the same for an
// answer in one piece. The text of each choice is split into claims (package claims), each claim is
// checked (package check), and the Mode decides what happens:
//
//   - observe: nothing. The verdicts are reported to the Observer and in the Outcome.
//   - annotate: a marker follows each failed claim as soon as its verdict is known: at the end of
//     the claim if the event with its last bytes has not been sent yet, otherwise after the text
//     that has.
//   - terminate: the answer ends with finish_reason "content_filter" at the first failed claim, or
//     the Nth. Everything after it is dropped, including tool calls.
//   - hold: text is released claim by claim, after the verdict. A failed claim is replaced by the
//     marker; with Policy.Failures set, the answer ends at the Nth. No part of a failed claim ever
//     reaches the client, neither through an overlapping claim nor through events of the Responses
//     API that repeat a whole text.
//
// A tool call ends the text before it. If the verdicts on that text may end the answer, the call
// waits for them. A choice ends at its finish_reason; a choice that continues after it ends with
// the stream.
//
// An event or a body that cannot be read completely (package response) counts as an unchecked
// claim, and the answer is never supported then. Hold removes log probabilities and token ids,
// which repeat or anticipate a text.
//
// What does not have to change leaves with its original bytes (package sse lists the exceptions),
// including tool calls and refusals, unless the answer ends before them. An answer that is JSON by
// request is never changed inside: annotate reports failed claims in x_signalbox members of chunks
// without text, and hold ends the answer where it would replace a claim.
//
// # Waiting
//
// Most verdicts take microseconds and are available at once. The others come from workers shared by
// all answers of a Guard, behind a bounded queue. A claim is shed if the queue is full or if it has
// no verdict after Policy.MaxHold. Its verdict is then the one without a model, or unchecked, and
// Policy.OnUnchecked decides. A checker that hangs therefore delays a stream by at most MaxHold at
// a time. At the end of a choice, annotate, terminate and hold wait up to MaxHold for missing
// verdicts. Observe does so only for a summary; otherwise late verdicts are counted later.
//
// # Goroutines
//
// New starts the workers; Close ends them and waits for them. Copy starts one goroutine that calls
// Source.Read, and waits for it. Everything else, including the Sink, runs on the caller's
// goroutine.
package guard
