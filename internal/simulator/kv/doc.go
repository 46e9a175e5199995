// Package kv models the key-value cache of one vLLM server and the time that prompts and answers
// take on it: which blocks of a prompt are there already, which are pushed out for others, how long
// a request waits for a seat, for its first token and for its last.
//
// It computes nothing, knows no wire format and measures no hardware: times are the ones
// configured. What it says about cached tokens holds for vLLM's design,
// https://docs.vllm.ai/en/latest/design/prefix_caching.html:
//
//   - A prompt is cut into blocks. Only full blocks are kept. A block is known by a hash over the
//     block before it, its tokens and, through the first block, the cache salt, the LoRA name and
//     the reasoning effort: who differs in one of them shares nothing.
//   - At least one token of a prompt is always computed, since its logits are needed.
//   - Blocks in use stay. Others are given up in the order in which they were let go, the last
//     block of a request first, so that what stays of a chain is its beginning.
//   - A block that is being computed helps nobody until it is done.
//   - Answers fill blocks too. The last token of an answer is never in the cache.
//
// Simplifications: the blocks of an answer are taken together with those of its prompt, so nothing
// is ever preempted; one request computes one prompt at a time per lane, at a constant speed,
// whatever is decoded beside it; a token of an answer takes longer the more requests run.
//
// There is no clock and no randomness here. Every method takes the time, which never goes back, and
// the same calls give the same results. Nothing starts a goroutine. An Engine and its Cache belong
// to one goroutine or one lock of the caller; a Tier may be read by other engines and has a lock of
// its own, which is a leaf.
package kv
