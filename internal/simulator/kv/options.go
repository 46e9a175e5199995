package kv

import (
	"time"

	"signalbox/internal/option"
)

// Options is the size and the speed of a simulated server. The zero value is not usable; start from
// DefaultOptions.
type Options struct {
	Blocks      int // of GPU memory; without any no prompt fits
	BlockTokens int // tokens a block; at least 1
	Seats       int // requests that run at once, vLLM's max_num_seqs; 0 means no bound
	Lanes       int // prompts that are computed at once; at least 1. One long prompt fills a GPU.

	Overhead time.Duration // of every first token, whatever the prompt; the lane is taken for it
	Latency  time.Duration // of every first token besides, in which the lane is free for others
	Prefill  time.Duration // a prompt token that is computed
	Load     time.Duration // a prompt token that comes from main memory
	Decode   time.Duration // a token of the answer after the first, when nothing else runs
	Crowd    time.Duration // what every other running request adds to that

	OffloadBlocks int // of main memory; 0 means that there is no such tier
}

// DefaultOptions returns a small server. The size of a block and the number of seats are vLLM's
// defaults; a prompt token takes 60 microseconds, which is about an 8B model on one GPU of the
// class of an A100, and one from main memory a twentieth of that. The other times are made up.
func DefaultOptions() Options {
	return Options{
		Blocks: 16384, BlockTokens: 16, Seats: 256, Lanes: 1,
		Overhead: 20 * time.Millisecond, Prefill: 60 * time.Microsecond, Load: 3 * time.Microsecond,
		Decode: 5 * time.Millisecond, Crowd: 100 * time.Microsecond,
	}
}

// Validate reports every problem of o at once, joined, or nil. An option is called by its flag of
// `signalbox simulate`, where it has one.
func (o Options) Validate() error {
	var p option.Problems
	option.AtLeast(&p, "--num-gpu-blocks-override", o.Blocks, 0)
	option.AtLeast(&p, "--block-size", o.BlockTokens, 1)
	option.AtLeast(&p, "--max-num-seqs", o.Seats, 0)
	option.AtLeast(&p, "--prefill-lanes", o.Lanes, 1)
	option.AtLeast(&p, "--offload-blocks", o.OffloadBlocks, 0)
	option.NotNegative(&p, "overhead", o.Overhead)
	option.NotNegative(&p, "--ttft", o.Latency)
	option.NotNegative(&p, "--prefill-per-token", o.Prefill)
	option.NotNegative(&p, "--load-per-token", o.Load)
	option.NotNegative(&p, "--tpot", o.Decode)
	option.NotNegative(&p, "--crowd", o.Crowd)
	return p.Err()
}
