// Package messages turns answers of chat completions into those of Anthropic's Messages API: a
// stream chunk by chunk, behind the filters of package response, or a body as a whole.
//
// Texts, arguments of tools and stop sequences leave with the bytes that they came with. A stream
// of the Messages API has one block open at a time, and chats interleave: what comes while the
// block of a tool call is open waits until the answer has ended, so that blocks are whole and in
// the order in which they began. In steady state nothing allocates for a chunk.
//
// An Answer belongs to one answer and to one goroutine.
package messages
