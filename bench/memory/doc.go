// Command memory measures what it is worth to send requests where their prompts are cached, and
// what it costs to keep contexts.
//
//	go run ./bench/memory [--seeds 11,12,13,14,15] [--only shared,zipf,...]
//
// compares the product's placement with simple policies, over simulated servers whose caches work
// like vLLM's. Time is simulated and nothing is sent over a network: the same seeds give the same
// bytes. Tokens that have to be computed again carry over to real servers. Times depend on what a
// prompt token is set to cost, and only their ratios mean something. Prompts are made up; a token
// is four or five letters, so that lengths estimated from the text are wrong by a tenth.
//
//	go run ./bench/memory --live [--only density,pointer,lookup,compression,paging,shared,...]
//
// measures the whole product in real time: proxies with contexts and placement over loopback HTTP,
// in front of four simulated servers, against clients that pick a server themselves; a Redis of its
// own (redis-server must be installed); texts that are on every machine which builds this. It runs
// in the root of the repository. Texts, questions and their order come from the seeds; which
// request meets which in flight does not.
//
//	go run ./bench/memory --all
//
// measures both, in one report with one table of figures; some six minutes on two cores.
//
// Options of the placement were chosen on seeds 1 to 10, which are refused here without --tuning.
package main
