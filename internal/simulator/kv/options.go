package kv

import (
	"errors"
	"fmt"
	"time"
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
	var problems []error
	for _, n := range []struct {
		name       string
		value, min int
	}{
		{"--num-gpu-blocks-override", o.Blocks, 0},
		{"--block-size", o.BlockTokens, 1},
		{"--max-num-seqs", o.Seats, 0},
		{"--prefill-lanes", o.Lanes, 1},
		{"--offload-blocks", o.OffloadBlocks, 0},
	} {
		if n.value < n.min {
			problems = append(problems, fmt.Errorf("%s: %d is less than %d", n.name, n.value, n.min))
		}
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"overhead", o.Overhead}, {"--ttft", o.Latency}, {"--prefill-per-token", o.Prefill}, {"--load-per-token", o.Load}, {"--tpot", o.Decode}, {"--crowd", o.Crowd},
	} {
		if d.value < 0 {
			problems = append(problems, fmt.Errorf("%s: %v is negative", d.name, d.value))
		}
	}
	return errors.Join(problems...)
}
