// Command soak runs signalbox under a mixed load for a long time and looks for growth: streams,
// short requests, clients that disconnect, contexts, reloads, and a model server that misbehaves in
// a different way each time.
//
//	go run ./bench/soak [-duration 10m] [-signalbox FILE]
//
// The program runs in a separate process, on loopback, without models. From time to time the load
// stops until no request is in flight, a garbage collection is forced, and resident memory,
// goroutines and file descriptors are recorded. The growth of memory is the slope of a
// least-squares line through these records times their time span; the first third counts as
// warm-up. Texts repeat, so that bounded tables of recent values are full by then. The exit code is
// 1 if the growth is a megabyte or more, if goroutines or descriptors are left at the end, or if a
// request failed unexpectedly: the well-behaved model server must be reachable whatever the other
// one does.
package main
