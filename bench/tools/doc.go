// Command tools measures how often `tools: {keep: N}` keeps the tools that an agent needs, and how
// much of the list it saves.
//
//	pip download --no-deps bfcl-eval && unzip -q bfcl_eval-*.whl -d bfcl
//	go run ./bench/tools --data bfcl/bfcl_eval/data [--keep 8,12,16]
//	go run ./bench/tools --conversations DIR/bfcl.jsonl --keep 8 --share .19 [--tokenizer FILE]
//
// The tasks are those of BFCL v4, the Berkeley function calling leaderboard (Apache-2.0), which are
// not part of this repository:
//
//   - live_multiple: what people really asked, each with a few functions of its own, among which
//     functions of other tasks are put until there are 50.
//   - multi_turn_base: tasks of several turns for agents; all 128 functions of eight services are
//     offered at every turn. A turn needs every function that its solution calls, those included
//     that the user does not speak of, such as changing the folder.
//
// Conversations are what agents.py writes of BFCL v4, AgentDojo and tau-bench: a request is sent
// before each call, with the calls and results before it, as an agent in a loop sends it; the tool of
// the call has to be among those that are offered then.
//
// The product runs in this process; requests go through its HTTP handler to a server that notes
// which tools it is offered.
package main
