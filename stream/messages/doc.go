// Package messages translates answers of chat completions into those of Anthropic's Messages API: a
// stream chunk by chunk, after the filters of package response, or a body as a whole.
//
// Texts, arguments of tools and stop sequences keep the bytes in which they were received. A stream
// of the Messages API has one open block at a time, whereas chats interleave blocks. Text that
// arrives while the block of a tool call is open therefore waits until the answer has ended, so
// that blocks are complete and in the order in which they began. In steady state no chunk causes an
// allocation.
//
// An Answer belongs to one answer and to one goroutine.
package messages
