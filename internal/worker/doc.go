// Package worker runs models in a separate process, so that a native fault, such as a crash in a
// GPU driver, ends that process and not the proxy.
//
// [Start] starts the process and keeps it running; [Serve] is the other side, the command
// `signalbox worker`. They speak the Open Inference Protocol (internal/oip) over a unix socket in a
// folder that only this user can read, with one addition: PUT /v2/models/NAME sends a graph and
// opens it, DELETE closes it.
//
// # Life of the process
//
// The process receives its options through its standard input, which stays open: if the parent
// dies, the pipe closes and the worker ends. On Linux the kernel also ends the worker when the
// parent dies. The worker writes one line to its standard output: that it is ready, or why it is
// not. SIGINT and SIGTERM are handled by the parent only, which drains first. If a run continues
// for minutes after it was cancelled, its driver hangs and the worker ends itself
// (gpu.Options.Hung).
//
// After a crash the worker is restarted immediately, and then after pauses that double up to 10 s;
// all models are opened again. Until then runs fail with [ErrDown]. A model that cannot be opened
// again is retried after such pauses as long as the worker lives.
//
// # Concurrency
//
// A [Process] owns one goroutine, which starts the process, waits for it, and waits for the
// goroutines that it starts itself; Close ends all of them. Its sessions are safe for concurrent
// use.
package worker
