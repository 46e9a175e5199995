// Command soak lets signalbox serve a mix of everything for a long time and looks for what grows:
// streams, short requests, clients that leave, contexts, reloads, and a model server that
// misbehaves in another way each time.
//
//	go run ./bench/soak [-duration 10m] [-signalbox FILE]
//
// The program runs in a process of its own, on loopback, without models. From time to time the load
// stops until nothing is under way, a garbage collection is forced, and resident memory, goroutines
// and file descriptors are noted. The slope of the memory is that of a line through these notes, by
// least squares, times the time they span; the first third counts as warming up. Texts come again,
// so that bounded tables of what was seen lately are full by then. The exit code is 1 when the
// slope is a megabyte or more, when goroutines or descriptors are left at the end, or when a
// request failed that should not have: the well-behaved model server has to be reached whatever the
// other one does.
package main
