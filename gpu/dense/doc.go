// Package dense is an operator for ONNX Runtime: a linear layer with 8-bit weights, from floats to
// floats, for processors with AVX-512 VNNI.
//
// It replaces three nodes of a graph, or the last two of them,
//
//	Mul(x, smooth) -> QuantizeLinear(step, middle) -> MatMulIntegerToFloat(weights, scale, bias)
//
// and computes the same numbers, bit for bit. ONNX Runtime's own kernels have two weaknesses for
// the short texts that a router reads: each of the three passes through memory and has a start-up
// cost, and the product waits for its weights. A pass over 16 tokens with the embedded bundle reads
// 15 MB, more than one of several tenants has of the last-level cache, and uses every weight once.
// Here the weights are stored in the order in which they are read, in one stream, and are
// prefetched 6 KB ahead, so that a product takes as long with a full cache as within it: for 16
// rows and 384 x 1536 weights 48 us, where ONNX Runtime 1.30 takes 55 within and 95 to 105 beyond,
// on one core of an AMD EPYC.
//
// Nodes with equal weights, of one session or of several, share one copy: adapters continue from a
// base with the frozen weights of its last layer, and find them in the caches.
//
// The operator is optional: if the processor, the build or the runtime does not support it, the
// graph runs unchanged.
package dense
