// Command memory measures what it is worth to send requests where their prompts are cached: the product's
// placement against simple policies, over simulated servers whose caches work like vLLM's.
//
//	go run ./bench/memory [--seeds 11,12,13,14,15] [--only shared,zipf,...]
//
// Time is simulated and nothing is sent over a network: the same seeds give the same bytes. Tokens that have to be
// computed again carry over to real servers. Times depend on what a prompt token is set to cost, and only their
// ratios mean something. Prompts are made up; a token is four or five letters, so that lengths estimated from the
// text are wrong by a tenth.
//
// Options of the placement were chosen on seeds 1 to 10, which are refused here without --tuning.
package main
