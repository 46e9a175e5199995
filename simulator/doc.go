// Package simulator is a simulated vLLM server: the HTTP surface, wire format, metric names and
// pacing of `vllm serve`, with an answer that echoes the request instead of a model that thinks.
//
// It is for `signalbox demo`, `signalbox simulate`, tests and benchmarks. It is no inference engine
// and no model of GPU performance: times are the ones configured, token counts come from a rule about
// words and punctuation (see CountTokens), and there is no prefix cache.
//
// What an answer says, in this order: the served model's name in brackets, the question, the system
// prompt, the reasoning parameters and the token limit as the server received them. A person
// reading a routed answer sees which model was picked and what was rewritten on the way. Filler
// sentences follow, chosen by seed, so that a stream has a usual length; `min_tokens` and `ignore_eos`
// make it longer.
//
// Where Options.Answers has an answer to a question, that is given instead, word for word: a script for
// showing what reads answers, and no less a simulation.
//
// Invariants: the same Options, request and request order give the same bytes (`created` and,
// behind several clients at once, the order of ids aside); a stream either ends with `data: [DONE]`
// (of the Responses API: with response.completed) or its client has gone; nothing is written after the client's context is done.
//
// Wire formats follow vLLM's main branch: the request and response models of
// vllm/entrypoints/openai/{chat_completion,completion}/protocol.py, the error and usage models of
// vllm/entrypoints/openai/engine/protocol.py, vllm/entrypoints/openai/responses/{protocol,serving}.py and
// vllm/entrypoints/serve/tokenize/protocol.py.
//
// Concurrency: the package starts no goroutine and owns no listener. A Server serves any number of
// requests at once, each on the goroutine of its handler call. One lock, in the recorder, guards the
// recorded requests and is never held across I/O.
package simulator
