// Package kv models the key-value cache of one vLLM server and the time that prompts and responses
// take: which blocks of a prompt are cached, which are evicted for others, and how long a request
// waits for a seat, for its first token and for its last.
//
// It computes nothing, is independent of wire formats and measures no hardware: times are
// configured. Its results for cached tokens follow vLLM's design,
// https://docs.vllm.ai/en/latest/design/prefix_caching.html:
//
//   - A prompt is divided into blocks. Only full blocks are cached. A block is identified by a hash
//     over the previous block, its tokens and, through the first block, the cache salt, the LoRA name
//     and the reasoning effort: requests that differ in one of these share nothing.
//   - At least one token of a prompt is always computed, since its logits are needed.
//   - Blocks in use stay. Others are evicted in the order in which they were released, the last block
//     of a request first, so that the beginning of a chain remains.
//   - A block can be reused only after it has been computed.
//   - Responses fill blocks too. The last token of a response is never in the cache.
//
// Simplifications: the blocks of a response are allocated together with those of its prompt, so
// nothing is ever preempted; each lane computes one prompt at a time at a constant speed,
// independent of concurrent decoding; a token of a response takes longer the more requests run.
//
// There is no clock and no randomness. Every method takes the time, which must not go back, and the
// same calls give the same results. Nothing starts a goroutine. An Engine and its Cache belong to
// one goroutine or one lock of the caller. Other engines may read a Tier, which has a separate
// lock; no other lock is taken under it.
package kv
