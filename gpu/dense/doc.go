// Package dense is an operator for ONNX Runtime: a linear layer with 8-bit weights, from floats to
// floats, for processors with AVX-512 VNNI.
//
// It stands for three or two nodes of a graph,
//
//	Mul(x, smooth) -> QuantizeLinear(step, middle) -> MatMulIntegerToFloat(weights, scale, bias)
//
// and gives the same numbers, bit for bit. ONNX Runtime's own kernels have two weaknesses with a
// short text, which is what a router reads: each of the three goes through memory and costs its
// start, and the product waits for its weights. A pass over 16 tokens with the embedded bundle
// reads 15 MB, more than one of several tenants has of the last cache, and every weight is met
// once. Here the weights lie in the order in which they are read, in one stream, and are asked for
// 6 KB ahead, so that a product takes as long beside a full cache as within it: for 16 rows and 384
// x 1536 weights 48 us, where ONNX Runtime 1.30 takes 55 within and 95 to 105 beyond, on one core
// of an AMD EPYC.
//
// Nodes with equal weights, of one session or of several, read one copy of them: adapters go on from
// a base with the frozen weights of its last layer, and find them in the caches.
//
// The operator is an addition and never needed: where the processor, the build or the runtime
// cannot do it, the graph runs as it is.
package dense
