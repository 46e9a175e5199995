//go:build cgo && amd64 && !windows

#include "dense.h"

#include <immintrin.h>
#include <string.h>

#define KERNEL __attribute__((target("avx512f,avx512vnni")))

// As in dense.go.
enum { LANES = 16, GROUP = 3 * LANES, DEEP = 4, MOST = 4096 };

enum {
	ROWS = 8, // of x in one pass over a group of columns: 24 sums, 3 registers of weights and 1 of x, of 32
	CHUNK = 32, // rows that are rounded at once; MOST bytes of stack each
	AHEAD = 6144, // bytes, how far before its use a weight is asked for: a trip to memory at 40 GB/s
};

// Rounds a row of x around the middle. Divides, as QuantizeLinear does: a product with 1 / step would round otherwise now and then.
KERNEL static void round_row(const signalbox_dense *d, const float *x, uint8_t *q) {
	const __m512 step = _mm512_set1_ps(d->step);
	const __m512 low = _mm512_set1_ps(-(float)d->middle), high = _mm512_set1_ps(255 - (float)d->middle);
	const __m512i middle = _mm512_set1_epi32(d->middle);
	for (size_t i = 0; i < d->in; i += LANES) {
		__m512 v = _mm512_loadu_ps(x + i);
		if (d->smooth)
			v = _mm512_mul_ps(v, _mm512_loadu_ps(d->smooth + i));
		v = _mm512_div_ps(v, step);
		v = _mm512_min_ps(_mm512_max_ps(v, low), high); // a NaN becomes low
		const __m512i whole = _mm512_add_epi32(_mm512_cvtps_epi32(v), middle);
		_mm_storeu_si128((__m128i *)(q + i), _mm512_cvtepi32_epi8(whole));
	}
}

// Sixteen sums of one row as floats. Rounded after the product and after the sum, as ONNX Runtime does; written so that the compiler
// does not make one operation of both.
KERNEL static inline void put(const signalbox_dense *d, size_t column, __m512i sum, float *y) {
	const __m512 scale = _mm512_mul_ps(_mm512_set1_ps(d->step), _mm512_loadu_ps(d->scale + column));
	sum = _mm512_sub_epi32(sum, _mm512_loadu_si512(d->sums + column));
	const __m512 product = _mm512_mul_round_ps(_mm512_cvtepi32_ps(sum), scale, _MM_FROUND_CUR_DIRECTION);
	_mm512_storeu_ps(y + column, _mm512_add_round_ps(product, _mm512_loadu_ps(d->bias + column), _MM_FROUND_CUR_DIRECTION));
}

// Adds to sixteen sums the products of four numbers of x, the same for all, with four weights each. GCC 12 writes sums that go
// through the intrinsic to the stack in every step, which takes twice as long.
#define DOT(sum, x, w) __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(w))

#define EACH_ROW(f) f(0) f(1) f(2) f(3) f(4) f(5) f(6) f(7)

#define BEGIN(r) __m512i a##r = _mm512_setzero_si512(), b##r = a##r, c##r = a##r;

#define STEP(r) \
	if (rows > r) { \
		int32_t four; \
		memcpy(&four, q + r * d->in + i, sizeof four); \
		const __m512i x = _mm512_set1_epi32(four); \
		DOT(a##r, x, w0); \
		DOT(b##r, x, w1); \
		DOT(c##r, x, w2); \
	}

#define END(r) \
	if (rows > r) { \
		put(d, column, a##r, y + r * d->out); \
		put(d, column + LANES, b##r, y + r * d->out); \
		put(d, column + 2 * LANES, c##r, y + r * d->out); \
	}

// The products of up to ROWS rounded rows with a group of columns. rows is known where this is called, so that nothing is asked in the loop.
KERNEL __attribute__((always_inline)) static inline void tile(const signalbox_dense *d, const uint8_t *q, size_t column, float *y, const int rows) {
	const int8_t *w = d->weights + column * d->in;
	EACH_ROW(BEGIN)
	for (size_t i = 0; i < d->in; i += DEEP, w += DEEP * GROUP) {
		const __m512i w0 = _mm512_loadu_si512(w), w1 = _mm512_loadu_si512(w + 64), w2 = _mm512_loadu_si512(w + 128);
		_mm_prefetch((const char *)w + AHEAD, _MM_HINT_T1); // beyond the end it does nothing
		_mm_prefetch((const char *)w + AHEAD + 64, _MM_HINT_T1);
		_mm_prefetch((const char *)w + AHEAD + 128, _MM_HINT_T1);
		EACH_ROW(STEP)
	}
	EACH_ROW(END)
}

KERNEL static void chunk(const signalbox_dense *d, const float *x, float *y, size_t rows) {
	uint8_t q[CHUNK * MOST];
	for (size_t r = 0; r < rows; r++)
		round_row(d, x + r * d->in, q + r * d->in);
	for (size_t column = 0; column < d->out; column += GROUP) {
		size_t r = 0;
		for (; r + ROWS <= rows; r += ROWS)
			tile(d, q + r * d->in, column, y + r * d->out, ROWS);
		const uint8_t *rest = q + r * d->in;
		float *to = y + r * d->out;
		switch (rows - r) {
		case 1: tile(d, rest, column, to, 1); break;
		case 2: tile(d, rest, column, to, 2); break;
		case 3: tile(d, rest, column, to, 3); break;
		case 4: tile(d, rest, column, to, 4); break;
		case 5: tile(d, rest, column, to, 5); break;
		case 6: tile(d, rest, column, to, 6); break;
		case 7: tile(d, rest, column, to, 7); break;
		}
	}
}

void signalbox_dense_run(const signalbox_dense *d, const float *x, float *y, size_t rows) {
	for (; rows > CHUNK; rows -= CHUNK, x += CHUNK * d->in, y += CHUNK * d->out)
		chunk(d, x, y, CHUNK);
	chunk(d, x, y, rows);
}
