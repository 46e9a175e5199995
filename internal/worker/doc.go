// Package worker runs models in a process of their own, so that a native fault, such as a crash in
// a GPU driver, ends that process and not the proxy.
//
// [Start] starts the process and keeps it running; [Serve] is the other side, the command
// `signalbox worker`. They speak the Open Inference Protocol (internal/oip) over a unix socket in a
// folder that nobody else can read, with one addition: PUT /v2/models/NAME takes a graph and opens
// it, DELETE closes it.
//
// # Life of the process
//
// The options go to the process through its standard input, and stay there to be read until it
// ends: the parent's death closes the pipe, and the worker leaves. On Linux the kernel ends it as
// well when the parent dies. It answers on its standard output with one line, that it is ready or
// why it is not. SIGINT and SIGTERM are left to the parent, which drains first. A worker with a run
// that goes on minutes after it was told to stop ends itself (gpu.Options.Hung): its driver hangs.
// After a crash it is started again, at once and then after pauses that double up to 10 s; every
// model is opened again. Until then runs answer [ErrDown]. A model that cannot be opened again is
// tried after such pauses as long as the worker lives.
//
// # Concurrency
//
// A [Process] owns one goroutine that starts the process and waits for it, and for the goroutines
// that it starts itself; Close ends all. Its sessions are safe for concurrent use.
package worker
