// Package simulator is a simulated vLLM server: the HTTP surface, wire format, metric names and
// pacing of `vllm serve`, with filler instead of a model that thinks.
//
// It is for `signalbox demo`, `signalbox simulate`, tests and benchmarks. It is no inference engine
// and no model of GPU performance: times are the ones configured, and token counts come from a rule
// about words and punctuation (see CountTokens).
//
// With Options.KV a server has a prefix cache that works like vLLM's (see simulator/kv): which
// prompt tokens are cached is told by usage and /metrics, and what is not cached takes time, on top
// of Options.TTFT. Blocks are shared by requests of equal cache_salt and reasoning_effort. A
// request counts as one sequence for each answer it asks for. Servers of one process can take
// blocks from each other's main memory (Network); all of it is lost by /sleep and by Restart.
//
// An answer begins with "This text is simulated."; filler sentences follow, chosen by seed, so that
// a stream has a usual length; `min_tokens` and `ignore_eos` make it longer. What the server is and
// what it was sent stands in the response header PrefaceHeader: the served model's name, the
// question, the system prompt, the reasoning parameters and the token limit. A person reading it
// sees which model was picked and what was rewritten on the way.
//
// An answer has the form that is asked for: response_format and text.format of the API;
// guided_json, guided_regex, guided_choice and structured_outputs of vLLM. JSON is valid by its
// schema (see maker for the words that it heeds); grammars are not simulated. A tool is called
// where tool_choice forces one, and under "auto" where the question names one. Embeddings depend on
// the words of a text alone: texts that share words lie near each other.
//
// Where Options.Answers has an answer to a question, that is given instead, word for word: a script
// for showing what reads answers, and no less a simulation.
//
// Invariants: the same Options, request and request order give the same bytes (`created` and,
// behind several clients at once, the order of ids aside); a stream either ends with `data: [DONE]`
// (of the Responses API: with response.completed) or its client has gone; nothing is written after
// the client's context is done.
//
// Wire formats follow vLLM's main branch: the request and response models of
// vllm/entrypoints/openai/{chat_completion,completion}/protocol.py, the error and usage models of
// vllm/entrypoints/openai/engine/protocol.py,
// vllm/entrypoints/openai/responses/{protocol,serving}.py and
// vllm/entrypoints/serve/tokenize/protocol.py.
//
// Concurrency: the package owns no listener, and starts no goroutine but that of a timer which
// stands at the next event of a prefix cache while requests are under way. A Server serves any
// number of requests at once, each on the goroutine of its handler call. The locks are those of the
// recorder, of the prefix cache and of a Network; none is held across I/O, and none while another
// one is taken but for that of a kv.Tier.
package simulator
