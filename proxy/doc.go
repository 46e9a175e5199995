// Package proxy is the HTTP edge: it admits a chat completion request, decides where it goes,
// rewrites what the decision asks for, picks an endpoint of the pool, forwards, and streams the
// answer back. pipeline.go holds the life of a request in one function.
//
// What a stage needs to know has a package below this one, which never imports it: auth, choose, pool,
// reasoning, lengths, headers, answer, redact and decisionlog. Here is what they are used for, in which order, and
// what a client sees of it.
//
// It is no cache, no guard and no classifier: signals come through the Classifier interface and
// decisions from package rules. It reads no files and no environment.
//
// # Invariants
//
//   - The client's body is read to its end before anything goes upstream, and is forwarded byte for
//     byte except for the ranges that the decision changes.
//   - Nothing is retried once a byte of the answer went to the client.
//   - A fault never ends an answer cleanly: before the first byte it is an error of the table in
//     errors.go, afterwards an error event (streams) and a broken connection.
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
// server. Proxy.Run owns one goroutine for each State, in pool.Watcher, which owns one for each endpoint with
// health checks; those of a replaced State end when its last request is done, all of them when Run's
// context ends, and Run returns after they did. A request is counted exactly once, by record, on the goroutine that served it.
//
// It has no lock of its own; those of the packages below are leaves.
package proxy
