// Package simulator is a simulated vLLM server: the HTTP surface, wire format, metric names and
// pacing of `vllm serve`, with filler text instead of a model.
//
// It is used by `signalbox demo`, `signalbox simulate`, tests and benchmarks. It is not an
// inference engine and not a model of GPU performance: times are configured, and token counts come
// from a rule about words and punctuation (see CountTokens).
//
// With Options.KV a server has a prefix cache that works like vLLM's (see simulator/kv). The cached
// prompt tokens are reported in usage and /metrics, and computing the others takes time in addition
// to Options.TTFT. Requests share blocks if cache_salt and reasoning_effort are equal. A request
// counts as one sequence for each response that it asks for. Servers of one process can take blocks
// from each other's main memory (Network); /sleep and Restart discard all of it.
//
// A response begins with "This text is simulated."; filler sentences, chosen by seed, extend a
// stream to a usual length; `min_tokens` and `ignore_eos` make it longer. The response header
// PrefaceHeader describes the server and the request: the served model's name, the question, the
// system prompt, the reasoning parameters and the token limit. It shows which model was selected
// and how the proxy rewrote the request.
//
// A response has the requested format: response_format and text.format of the API; guided_json,
// guided_regex, guided_choice and structured_outputs of vLLM. JSON is valid by its schema (see
// maker for the supported keywords); grammars are not simulated. A tool is called if tool_choice
// forces it, and under "auto" if the question names one. Embeddings depend only on the words of a
// text: texts that share words are close to each other.
//
// If Options.Answers has an answer to a question, it is sent instead, word for word. Such scripts
// demonstrate components that read responses; they are simulations as well.
//
// Invariants: the same Options, request and request order give the same bytes (except for `created`
// and, with several concurrent clients, the order of ids); a stream either ends with `data: [DONE]`
// (in the Responses API with response.completed) or its client has gone; nothing is written after
// the client's context is done.
//
// Wire formats follow vLLM's main branch: the request and response models of
// vllm/entrypoints/openai/{chat_completion,completion}/protocol.py, the error and usage models of
// vllm/entrypoints/openai/engine/protocol.py,
// vllm/entrypoints/openai/responses/{protocol,serving}.py and
// vllm/entrypoints/serve/tokenize/protocol.py.
//
// Concurrency: the package owns no listener. It starts no goroutine except that of a timer, which
// is set to the next event of a prefix cache while requests are in flight. A Server serves any
// number of concurrent requests, each on the goroutine of its handler call. The locks are those of
// the recorder, of the prefix cache and of a Network. None is held across I/O, and none while
// another one is taken, except for that of a kv.Tier.
package simulator
