// Package proxy is the HTTP edge: it admits a chat completion request, decides where it goes,
// rewrites what the decision asks for, picks an endpoint of the pool, forwards, and streams the
// response back. pipeline.go holds the life of a request in one function.
//
// Each stage has packages below this one, which never import it. This package says what they are
// used for, in which order, and how the client sees it.
//
// It holds no store, no model and no judgement of claims: signals come through
// signals.Classifier, decisions from package rules, contexts and cached responses from memory, and
// stream/guard checks responses. It reads no files and no environment.
//
// # Files
//
// In the order of a request, with the packages that a stage stands on. docs/ARCHITECTURE.md names
// the files on the way of one chat request.
//
//   - edge: serve (routes, endpoints, a request that has arrived), run (goroutines, other
//     replicas), ready and models (what operators and clients ask for); packages downstream (the
//     response to the client), headers, fault (the error table)
//   - what requests are served from: proxy, state and newstate (a snapshot);
//     packages settings (sections of the configuration), backend (models, and their servers),
//     engine (what steers them)
//   - what one request makes: package exchange (all of it, its decision included)
//   - admit: admit; packages auth, keyring, rate, budget
//   - resolve, contexts that a request names: package resolve; contexts serves the API of
//     package contexts; package warm (what is read ahead)
//   - recall, responses that are cached: recall; package recall
//   - decide: redecide (logged requests); packages decide (the decision), signals (reading them,
//     and telling them), explain; own holds the endpoints of the proxy's own
//   - order: order (what the models may cost), toolong; packages choose, count
//   - forward: forward (which attempt is next, which response is thrown away), body (what is chosen
//     for its body before that is written); packages placement (its endpoint), rewrite (its body),
//     affinity, chain, kv, pool, reasoning, lengths, redact, tools, upstream (one attempt, its
//     response, and the part of it that is held), framing, trial (responses that are judged first),
//     escalate
//   - relay: package relay (the response is passed on, through the guard where one is);
//     package guardrail (evidence, and what is checked in which form)
//   - save: package save (a response becomes a context)
//   - messages: requests to Anthropic's API, which are chats for all stages between
//   - mirror: package mirror (what another model gets when the client has its response)
//   - record: package record (counted, logged, settled, learnt from); packages spans (traces),
//     decisionlog, feedback (how good answers were), recent (what operators look at)
//
// # Invariants
//
//   - The client's body is read to its end before anything goes upstream, and is forwarded byte for
//     byte except for the ranges that the decision changes.
//   - Nothing is retried once a byte of the response went to the client.
//   - A fault never ends a response cleanly: before the first byte it is an error of package
//     fault's table, afterwards an error event (streams) and a broken connection.
//   - A client that leaves cancels whatever runs for it, and no endpoint is blamed.
//   - Credentials do not cross: the client's stay here, an endpoint's never come back.
//
// # Snapshots
//
// A State is immutable: models, prompts, keys and compiled rules of one configuration. A request
// takes one State when it arrives and keeps it to its end, while Proxy.Swap may put another in
// front of later requests.
//
// # Concurrency
//
// Everything exported is safe for concurrent use. Requests run on the goroutines of their HTTP
// server. Proxy.Run owns one goroutine that reads contexts ahead and three for each State:
// pool.Watcher, which owns one for each endpoint with health checks, the one that asks servers of
// their caches, and the one that keeps the key set of tokens fresh. Those of a replaced State end
// when its last request is done, all of them when Run's context ends, and Run returns after they
// did. A request is counted exactly once, by record, on the goroutine that served it.
//
// Copies of requests run on goroutines of their State, which State.Close ends and waits for; a
// stream that is held to be judged is read by one for each read, which closing its body waits for.
//
// Its locks guard small tables and are leaves, but for that of a heartbeat, which is held while
// something is written to the client.
package proxy
