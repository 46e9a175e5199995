// Package gpu runs ONNX graphs. It finds and loads ONNX Runtime's shared library, determines which
// execution providers work, and offers sessions that take and return tensors. It knows no labels,
// no text and no thresholds. It is the only package that uses cgo; built without cgo it has the
// same names and [Open] returns [ErrUnavailable].
//
// # Invariants
//
//   - A library from the cache directory is loaded only if its SHA-256 is a known one; every
//     library is loaded by absolute path. See [Locate].
//   - Everything that is passed to C has been checked, because a fault in C ends the process: the
//     graph's signature is read in Go before the library receives the bytes, and names, element
//     types and shapes are checked before every run.
//   - Weights are part of the graph's bytes: none are read from files that were not checked.
//   - Callers pass and receive float32 and int64. A graph that takes int32 or float16 receives the
//     same numbers in that type, or an [InputError] if they do not fit; narrower outputs are
//     widened. Caches of a decoder are passed empty.
//   - Outputs are Go memory owned by the caller, and finite.
//   - Native memory has one owner, which releases it. [Runtime.Handles] counts the live handles.
//
// # Concurrency
//
// ONNX Runtime's environment belongs to the process: the first [Open] loads the library, later ones
// share it, and it stays loaded until the process ends. Unloading is not offered, because threads
// and signal handlers of a provider may outlive it.
//
// A run blocks an operating system thread. [Runtime] starts as many runs as its options allow. The
// others wait in a bounded queue, first come, first served, and leave it when their context ends.
// If the queue is full, a run fails with [ErrOverloaded] at once. A run whose context ends is
// terminated; one that continues nevertheless, because a driver hangs, is reported (Options.Hung).
//
// Each device other than the CPU has a queue of its own, and a run goes to the device with the
// fewest runs.
//
// Runs of several callers may be batched ([BatchOptions]). A batched run has a goroutine of its
// own, which ends with the last of its callers: the run is terminated when all have left. A probe
// that does not return leaves its goroutine behind, because a native call cannot be interrupted.
// Otherwise the package starts no goroutine that outlives a call: a cancellation runs in the
// goroutine of [context.AfterFunc], and the run waits for it.
//
// # Signal handlers
//
// Starting a provider may replace signal handlers of the process, which would end it at the next
// SIGTERM. They are restored after every probe and after loading a graph on a device.
package gpu
