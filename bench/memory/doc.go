// Command memory measures the benefit of sending requests to the servers that have their prompts
// cached, and the cost of keeping contexts.
//
//	go run ./bench/memory [--seeds 11,12,13,14,15] [--only shared,zipf,...]
//
// compares the product's placement with simple policies, over simulated servers whose caches work
// like vLLM's. Time is simulated and nothing is sent over a network: the same seeds give the same
// bytes. The number of tokens that must be computed again is also valid for real servers. Times
// depend on the configured cost of a prompt token, and only their ratios are meaningful. Prompts
// are generated; a token is four or five letters, so that lengths estimated from the text are wrong
// by a tenth.
//
//	go run ./bench/memory --live [--only density,pointer,lookup,compression,paging,shared,...]
//
// measures the whole product in real time: proxies with contexts and placement over loopback HTTP,
// in front of four simulated servers, compared with clients that select a server themselves; with a
// separate Redis (redis-server must be installed), and texts that exist on every machine which
// builds this repository. It runs in the root of the repository. Texts, questions and their order
// are determined by the seeds; the overlap of requests in flight is not.
//
//	go run ./bench/memory --all
//
// measures both, in one report with one table of figures; about six minutes on two cores.
//
// Options of the placement were chosen on seeds 1 to 10, which are rejected here without --tuning.
package main
