#ifndef SIGNALBOX_DENSE_H
#define SIGNALBOX_DENSE_H

#include <stddef.h>
#include <stdint.h>

// A layer. dense.go says what its parts are.
typedef struct {
	size_t in, out;
	const float *smooth; // NULL: none
	const int8_t *weights; // packed
	const int32_t *sums; // of the weights of each column, times middle
	const float *scale, *bias;
	float step;
	uint8_t middle;
} signalbox_dense;

// y = the layer of x, for rows of layer->in and layer->out numbers. Safe for concurrent use.
void signalbox_dense_run(const signalbox_dense *layer, const float *x, float *y, size_t rows);

// Makes the operator known to the options of a session. library is the path from which ONNX Runtime was loaded. Returns NULL, or what
// went wrong; the text stays until the next call. Not safe for concurrent use.
const char *signalbox_dense_register(const char *library, void *session_options);

// How many times the operator has run in this process.
uint64_t signalbox_dense_runs(void);

// How many layers have weights that several nodes read.
uint64_t signalbox_dense_shared(void);

#endif
