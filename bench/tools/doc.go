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
//   - live_multiple: real requests of people, each with a few functions, which are supplemented by
//     functions of other tasks up to 50.
//   - multi_turn_base: tasks of several turns for agents; all 128 functions of eight services are
//     offered at every turn. A turn needs every function that its solution calls, including those
//     that the user does not mention, such as changing the folder.
//
// Conversations are written by agents.py from BFCL v4, AgentDojo and tau-bench: a request is sent
// before each call, with the earlier calls and results, as an agent in a loop sends it; the tool of
// the call must be among those that are offered then.
//
// The product runs in this process; requests go through its HTTP handler to a server that records
// the offered tools.
package main
