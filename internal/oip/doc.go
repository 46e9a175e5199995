// Package oip speaks the Open Inference Protocol, version 2, over HTTP: the REST binding that
// KServe, Triton and others share (github.com/kserve/open-inference-protocol,
// specification/protocol/inference_rest.md), with the binary tensor data extension (Triton,
// docs/protocol/extension_binary_data.md).
//
// A [Client] runs one model of a server. A [Handler] is a server over anything that takes and gives
// tensors; the isolated worker uses it. Both know tensors and no text.
//
// Tensors cross as float32 and int64, like everywhere in this product; other number types of the
// protocol are converted at this edge. A Client and a Handler are safe for concurrent use and start
// no goroutine of their own.
package oip
