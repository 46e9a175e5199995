// Package gpu runs ONNX graphs: it finds and loads ONNX Runtime's shared library, proves which
// execution providers work, and offers sessions that take tensors and give tensors. It knows no
// labels, no text and no thresholds. It is the only package that uses cgo; built without cgo it
// has the same names and [Open] returns [ErrUnavailable].
//
// # Invariants
//
//   - A library from the cache directory is loaded only when its SHA-256 is a known one; every
//     library is loaded by absolute path. See [Locate].
//   - What reaches C has been checked: the graph's signature is read in Go before the library sees
//     the bytes, and names, element types and shapes are checked before every run, because a fault
//     in C ends the process.
//   - Weights are in the bytes of the graph: none are read from files that nobody has checked.
//   - Callers give and get float32 and int64. A graph that takes int32 or float16 is given the same
//     numbers in that type, or an [InputError] when they have no place in it; narrower outputs are
//     widened. Caches of a decoder are given empty.
//   - Outputs are Go memory owned by the caller, and finite.
//   - Native memory has one owner, which releases it. [Runtime.Handles] counts what is alive.
//
// # Concurrency
//
// ONNX Runtime's environment belongs to the process: the first [Open] loads the library, later ones
// share it, and it stays loaded until the process ends. Unloading is not offered, because threads
// and signal handlers of a provider may outlive it.
//
// A run blocks an operating system thread. [Runtime] lets as many start as its options say; the
// others wait in a bounded queue, first come first served, and leave it when their context ends. A
// full queue answers [ErrOverloaded] at once. A run whose context ends is terminated; one that goes
// on nevertheless, because a driver hangs, is reported (Options.Hung).
//
// On devices other than the CPU each has a queue of its own, and a run goes to the device with the
// fewest.
//
// Runs of several callers may become one ([BatchOptions]). Such a run has a goroutine of its own,
// which ends with the last of its callers: the run is terminated when all have left. A probe that
// does not answer leaves its goroutine behind, because a native call cannot be interrupted.
// Otherwise the package starts no goroutine that outlives a call: a cancellation runs in the
// goroutine of [context.AfterFunc], and the run waits for it.
//
// # Signal handlers
//
// Starting a provider may replace signal handlers of the process, which would end it at the next
// SIGTERM. They are put back after every probe and after loading every graph on a device.
package gpu
