//go:build cgo && amd64 && !windows

// The operator as ONNX Runtime wants it.

#include "dense.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// What follows describes onnxruntime_c_api.h of ONNX Runtime. Its tables of functions grow at their ends only, so a position that holds in
// one version holds in every later one; those below are there since 1.17.
enum { API_VERSION = 17 };
enum { INVALID_ARGUMENT = 2 }; // OrtErrorCode
enum { FLOAT = 1, UINT8 = 2, INT8 = 3 }; // ONNXTensorElementDataType
enum { REQUIRED = 0, OPTIONAL = 1 }; // OrtCustomOpInputOutputCharacteristic

typedef struct status status;
typedef struct value value;
typedef struct shape shape;
typedef struct options options;
typedef struct domain domain;
typedef struct info info;
typedef struct context context;
typedef struct inference inference;
typedef struct op op;

// OrtApiBase
typedef struct {
	void *const *(*api)(uint32_t version);
	const char *(*version)(void);
} base;

// OrtCustomOp
struct op {
	uint32_t version;
	void *(*create_v1)(const op *, void *const *api, const info *);
	const char *(*name)(const op *);
	const char *(*provider)(const op *);
	int (*input_type)(const op *, size_t);
	size_t (*inputs)(const op *);
	int (*output_type)(const op *, size_t);
	size_t (*outputs)(const op *);
	void (*compute_v1)(void *, context *);
	void (*destroy)(void *);
	int (*input_kind)(const op *, size_t);
	int (*output_kind)(const op *, size_t);
	int (*input_memory)(const op *, size_t);
	int (*least_inputs)(const op *);
	int (*same_inputs)(const op *);
	int (*least_outputs)(const op *);
	int (*same_outputs)(const op *);
	status *(*create)(const op *, void *const *api, const info *, void **kernel);
	status *(*compute)(void *kernel, context *);
	status *(*infer)(const op *, inference *);
	int (*since)(const op *);
	int (*until)(const op *);
	void *later[4];
};

// Parts of OrtApi, and where they are.
static status *(*create_status)(int code, const char *message); // 0
static const char *(*error_message)(const status *); // 2
static void (*release_status)(status *); // 93
static status *(*create_domain)(const char *name, domain **); // 26
static status *(*domain_add)(domain *, const op *); // 27
static status *(*add_domain)(options *, domain *); // 28
static status *(*tensor_data)(value *, void **); // 51
static status *(*create_shape)(shape **); // 57
static status *(*set_type)(shape *, int type); // 58
static status *(*set_sizes)(shape *, const int64_t *, size_t count); // 59
static status *(*rank)(const shape *, size_t *); // 61
static status *(*sizes)(const shape *, int64_t *, size_t count); // 62
static status *(*size_names)(const shape *, const char **, size_t count); // 63
static status *(*count)(const shape *, size_t *); // 64
static status *(*shape_of)(const value *, shape **); // 65
static void (*release_shape)(shape *); // 99
static status *(*input)(const context *, size_t, const value **); // 90
static status *(*output)(context *, size_t, const int64_t *sizes, size_t count, value **); // 91
static status *(*constant)(const info *, size_t, int *is_constant, const value **); // 249
static status *(*inferred_input)(const inference *, size_t, shape **); // 268
static status *(*infer_output)(const inference *, size_t, const shape *); // 270
static status *(*set_size_names)(shape *, const char **, size_t count); // 271
static status *(*parallel_for)(const context *, void (*)(void *, size_t), size_t total, size_t batches, void *); // 274

static void bind(void *const *api) {
	create_status = api[0], error_message = api[2], release_status = api[93];
	create_domain = api[26], domain_add = api[27], add_domain = api[28];
	tensor_data = api[51], create_shape = api[57], set_type = api[58], set_sizes = api[59];
	rank = api[61], sizes = api[62], size_names = api[63], count = api[64], shape_of = api[65], release_shape = api[99];
	input = api[90], output = api[91], constant = api[249], parallel_for = api[274];
	inferred_input = api[268], infer_output = api[270], set_size_names = api[271];
}

#define TRY(call) \
	do { \
		status *failed = (call); \
		if (failed) \
			return failed; \
	} while (0)

enum { X, SMOOTH, WEIGHTS, STEP, SCALE, MIDDLE, BIAS, INPUTS };
enum { MOST_RANK = 16, SERIAL = 64 }; // rows that one thread does

static _Atomic uint64_t runs;

uint64_t signalbox_dense_runs(void) { return runs; }

// Weights that several nodes have, of one session or of several: a copy that all of them read, so that what one has read is in the
// caches for the next.
typedef struct {
	size_t users; // guarded by sharing
	int8_t weights[];
} block;

// What a node of a graph keeps.
typedef struct kernel {
	size_t in, out;
	uint64_t hash; // of own
	const int8_t *own; // the weights as its session has them
	_Atomic(block *) shared; // NULL while nobody else has the same
	struct kernel *next, **back; // of those that there are, guarded by sharing
	int32_t sums[];
} kernel;

static pthread_mutex_t sharing = PTHREAD_MUTEX_INITIALIZER;
static kernel *kernels;
static _Atomic uint64_t blocks;

uint64_t signalbox_dense_shared(void) { return blocks; }

static size_t size_of(const kernel *k) { return k->in * k->out; }

static uint64_t hash_of(const int8_t *weights, size_t n) {
	uint64_t h = n;
	for (size_t i = 0; i + sizeof h <= n; i += sizeof h) { // n is a multiple of 16 * 48
		uint64_t eight;
		memcpy(&eight, weights + i, sizeof eight);
		h = (h ^ eight) * 0x9e3779b97f4a7c15;
		h ^= h >> 32;
	}
	return h;
}

// Notes a kernel, and lets it share its weights with one that has the same. Without memory for that each goes on with its own.
static void join(kernel *k) {
	pthread_mutex_lock(&sharing);
	kernel *like = kernels;
	while (like && (like->hash != k->hash || like->in != k->in || like->out != k->out || memcmp(like->own, k->own, size_of(k))))
		like = like->next;
	if (like) {
		block *b = atomic_load(&like->shared);
		if (!b && (b = malloc(sizeof *b + size_of(k)))) {
			b->users = 1;
			memcpy(b->weights, k->own, size_of(k));
			atomic_store(&like->shared, b); // a run that has begun ends with its own
			blocks++;
		}
		if (b) {
			b->users++;
			atomic_store(&k->shared, b);
		}
	}
	k->next = kernels, k->back = &kernels;
	if (kernels)
		kernels->back = &k->next;
	kernels = k;
	pthread_mutex_unlock(&sharing);
}

static void leave(kernel *k) {
	pthread_mutex_lock(&sharing);
	*k->back = k->next;
	if (k->next)
		k->next->back = k->back;
	block *b = atomic_load(&k->shared);
	if (b && !--b->users) {
		free(b);
		blocks--;
	}
	pthread_mutex_unlock(&sharing);
}

static status *invalid(const char *message) { return create_status(INVALID_ARGUMENT, message); }

static status *count_of(const value *v, size_t want, int64_t *found) {
	shape *s;
	size_t n;
	TRY(shape_of(v, &s));
	status *failed = rank(s, &n);
	if (!failed)
		failed = n == want ? sizes(s, found, n) : invalid("Dense: a constant has another rank");
	release_shape(s);
	return failed;
}

// The numbers of an input, which has to have as many as said; NULL for one that is left out.
static status *numbers(const value *v, size_t want, void **found) {
	*found = NULL;
	if (!v)
		return NULL;
	shape *s;
	size_t n = 0;
	TRY(shape_of(v, &s));
	status *failed = count(s, &n);
	release_shape(s);
	if (!failed && n != want)
		failed = invalid("Dense: an input has another number of numbers than the weights say");
	return failed ? failed : tensor_data((value *)v, found);
}

static status *create(const op *o, void *const *api, const info *at, void **made) {
	int is_constant = 0;
	const value *weights, *middle;
	TRY(constant(at, WEIGHTS, &is_constant, &weights));
	if (is_constant)
		TRY(constant(at, MIDDLE, &is_constant, &middle));
	if (!is_constant)
		return invalid("Dense: weights and middle have to be constants");
	int64_t size[2];
	void *w, *m;
	TRY(count_of(weights, 2, size));
	TRY(numbers(middle, 1, &m));
	if (!m)
		return invalid("Dense: middle is missing");
	TRY(tensor_data((value *)weights, &w));
	if (size[0] <= 0 || size[1] <= 0 || size[0] > 4096 || size[1] > 1 << 20 || size[0] % 16 || size[1] % 48) // as in dense.Fits
		return invalid("Dense: weights of a shape that does not fit");
	kernel *k = calloc(1, sizeof *k + size[1] * sizeof k->sums[0]);
	if (!k)
		return invalid("Dense: out of memory");
	k->in = size[0], k->out = size[1], k->own = w, k->hash = hash_of(w, size_of(k));
	const int8_t *next = w;
	enum { GROUP = 48, DEEP = 4 }; // as in dense.go
	for (size_t first = 0; first < k->out; first += GROUP)
		for (size_t i = 0; i < k->in; i += DEEP)
			for (size_t c = first; c < first + GROUP; c++)
				for (int d = 0; d < DEEP; d++)
					k->sums[c] += *next++ * *(uint8_t *)m;
	join(k);
	*made = k;
	return NULL;
}

static void destroy(void *k) {
	leave(k);
	free(k);
}

typedef struct {
	signalbox_dense layer;
	const float *x;
	float *y;
	size_t rows;
} job;

static void part(void *of, size_t i) {
	const job *j = of;
	const size_t from = i * SERIAL, left = j->rows - from;
	signalbox_dense_run(&j->layer, j->x + from * j->layer.in, j->y + from * j->layer.out, left < SERIAL ? left : SERIAL);
}

static status *compute(void *made, context *c) {
	kernel *k = made;
	const value *v[INPUTS];
	void *data[INPUTS];
	const size_t counts[INPUTS] = {[SMOOTH] = k->in, [WEIGHTS] = k->in * k->out, [STEP] = 1, [SCALE] = k->out, [MIDDLE] = 1, [BIAS] = k->out};
	for (size_t i = 0; i < INPUTS; i++) {
		TRY(input(c, i, &v[i]));
		if (!v[i] && i != SMOOTH)
			return invalid("Dense: an input is missing");
		if (i == X)
			TRY(tensor_data((value *)v[i], &data[i]));
		else
			TRY(numbers(v[i], counts[i], &data[i]));
	}
	shape *s;
	size_t n;
	int64_t size[MOST_RANK];
	TRY(shape_of(v[X], &s));
	status *failed = rank(s, &n);
	if (!failed)
		failed = n > 0 && n <= MOST_RANK ? sizes(s, size, n) : invalid("Dense: x has no rank or too high a rank");
	release_shape(s);
	TRY(failed);
	if (size[n - 1] != (int64_t)k->in)
		return invalid("Dense: x has rows of another length than the weights");
	size_t rows = 1;
	for (size_t i = 0; i + 1 < n; i++)
		rows *= size[i];
	size[n - 1] = k->out;
	value *out;
	void *y;
	TRY(output(c, 0, size, n, &out));
	TRY(tensor_data(out, &y));
	const block *b = atomic_load(&k->shared);
	job j = {
		.layer = {
			.in = k->in, .out = k->out, .smooth = data[SMOOTH], .weights = b ? b->weights : data[WEIGHTS], .sums = k->sums, .scale = data[SCALE],
			.bias = data[BIAS], .step = *(float *)data[STEP], .middle = *(uint8_t *)data[MIDDLE],
		},
		.x = data[X], .y = y, .rows = rows,
	};
	runs++;
	if (rows <= SERIAL) {
		if (rows > 0)
			part(&j, 0);
		return NULL;
	}
	return parallel_for(c, part, (rows + SERIAL - 1) / SERIAL, 0, &j);
}

// The shape of the output is that of x with another last size. Without it the runtime would leave later nodes unfused.
static status *infer(const op *o, inference *at) {
	shape *x, *weights, *y;
	size_t n, two;
	int64_t size[MOST_RANK], in_out[2];
	const char *names[MOST_RANK];
	TRY(inferred_input(at, X, &x));
	TRY(inferred_input(at, WEIGHTS, &weights));
	TRY(rank(x, &n));
	TRY(rank(weights, &two));
	if (n == 0 || n > MOST_RANK || two != 2)
		return NULL; // not known
	TRY(sizes(x, size, n));
	TRY(size_names(x, names, n));
	TRY(sizes(weights, in_out, 2));
	size[n - 1] = in_out[1], names[n - 1] = "";
	// A size that is not known needs a name: without one the runtime would take -1 for the size. A new name claims nothing.
	static _Atomic uint64_t named;
	char fresh[MOST_RANK][48];
	for (size_t i = 0; i < n; i++)
		if (size[i] < 0 && (!names[i] || !names[i][0])) {
			snprintf(fresh[i], sizeof fresh[i], "signalbox_dense_%llu", (unsigned long long)named++);
			names[i] = fresh[i];
		}
	TRY(create_shape(&y));
	status *failed = set_type(y, FLOAT);
	if (!failed)
		failed = set_sizes(y, size, n);
	if (!failed)
		failed = set_size_names(y, names, n);
	if (!failed)
		failed = infer_output(at, 0, y);
	release_shape(y);
	return failed;
}

static const char *name(const op *o) { return "Dense"; }
static const char *provider(const op *o) { return NULL; } // the CPU's
static size_t inputs(const op *o) { return INPUTS; }
static size_t outputs(const op *o) { return 1; }
static int input_type(const op *o, size_t i) { return i == WEIGHTS ? INT8 : i == MIDDLE ? UINT8 : FLOAT; }
static int output_type(const op *o, size_t i) { return FLOAT; }
static int input_kind(const op *o, size_t i) { return i == SMOOTH ? OPTIONAL : REQUIRED; }
static int output_kind(const op *o, size_t i) { return REQUIRED; }
static int memory(const op *o, size_t i) { return 0; }
static int one(const op *o) { return 1; }
static int any(const op *o) { return 0x7fffffff; }
// Not called where the others are there.
static void *create_v1(const op *o, void *const *api, const info *at) { return NULL; }
static void compute_v1(void *made, context *c) {}

static const op operator = {
	.version = API_VERSION, .name = name, .provider = provider, .inputs = inputs, .outputs = outputs, .input_type = input_type,
	.output_type = output_type, .input_kind = input_kind, .output_kind = output_kind, .input_memory = memory, .least_inputs = one,
	.same_inputs = one, .least_outputs = one, .same_outputs = one, .create_v1 = create_v1, .compute_v1 = compute_v1, .create = create,
	.compute = compute, .destroy = destroy, .infer = infer, .since = one, .until = any,
};

// The text of a failure, which is released.
static const char *text(status *failed) {
	static char kept[256];
	if (!failed)
		return NULL;
	const char *message = error_message(failed);
	size_t i = 0;
	for (; message[i] && i + 1 < sizeof kept; i++)
		kept[i] = message[i];
	kept[i] = 0;
	release_status(failed);
	return kept;
}

const char *signalbox_dense_register(const char *library, void *session_options) {
	static domain *ours; // as long as the process: sessions keep pointers to it
	if (!ours) {
		void *loaded = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
		const base *(*get)(void) = loaded ? (const base *(*)(void))dlsym(loaded, "OrtGetApiBase") : NULL;
		if (!get)
			return "the library is not loaded, or is none";
		void *const *api = get()->api(API_VERSION);
		if (!api)
			return "the library is older than 1.17";
		bind(api);
		domain *made;
		const char *failed = text(create_domain("signalbox", &made));
		if (!failed)
			failed = text(domain_add(made, &operator));
		if (failed)
			return failed;
		ours = made;
	}
	return text(add_domain(session_options, ours));
}
