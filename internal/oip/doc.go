// Package oip speaks the Open Inference Protocol, version 2, over HTTP: the REST binding that
// KServe, Triton and others share (github.com/kserve/open-inference-protocol,
// specification/protocol/inference_rest.md), with the binary tensor data extension (Triton,
// docs/protocol/extension_binary_data.md).
//
// A [Client] runs one model of a server. A [Handler] is a server for any implementation that maps
// tensors to tensors; the isolated worker uses it. Both handle tensors only, no text.
//
// Tensors are exchanged as float32 and int64, as everywhere in this product; other number types of
// the protocol are converted here. A Client and a Handler are safe for concurrent use and start no
// goroutines.
package oip
