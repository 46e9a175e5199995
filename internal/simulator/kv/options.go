package kv

import (
	"time"

	"signalbox/internal/option"
)

// Options are the size and the speed of a simulated server. The zero value is not usable; start
// from DefaultOptions.
type Options struct {
	Blocks      int // of GPU memory; without blocks no prompt fits
	BlockTokens int // tokens per block; at least 1
	Seats       int // concurrent requests, vLLM's max_num_seqs; 0 means no limit
	Lanes       int // prompts computed concurrently; at least 1. One long prompt fills a GPU.

	Overhead time.Duration // added to every first token, for any prompt; occupies the lane
	Latency  time.Duration // added to every first token without occupying the lane
	Prefill  time.Duration // per computed prompt token
	Load     time.Duration // per prompt token from main memory
	Decode   time.Duration // per response token after the first, without other requests
	Crowd    time.Duration // added to Decode for each other running request

	OffloadBlocks int // of main memory; 0 means no such tier
}

// DefaultOptions returns a small server. The size of a block and the number of seats are vLLM's
// defaults. A prompt token takes 60 microseconds, which is about an 8B model on one GPU of the
// class of an A100, and one from main memory a twentieth of that. The other times are not measured.
func DefaultOptions() Options {
	return Options{
		Blocks: 16384, BlockTokens: 16, Seats: 256, Lanes: 1,
		Overhead: 20 * time.Millisecond, Prefill: 60 * time.Microsecond, Load: 3 * time.Microsecond,
		Decode: 5 * time.Millisecond, Crowd: 100 * time.Microsecond,
	}
}

// Validate returns all problems of o, joined, or nil. An option is called by its flag of `signalbox
// simulate`, if it has one.
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
