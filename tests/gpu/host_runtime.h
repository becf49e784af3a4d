/* A stand-in for the CUDA runtime, for tests of the host's side of src/gpu where there is no device. Device memory is memory of the host. Work on streams is
 * done as late as the runtime may do it, when somebody waits for it; or, now and then, earlier, on one stream alone. Any call can be made to fail.
 *
 * A program that includes this must define the kernels that its unit begins (gpu/kernels.h), so that none of the library is linked, nor the runtime. */
#ifndef VV_TEST_HOST_RUNTIME_H
#define VV_TEST_HOST_RUNTIME_H

#include "gpu/cuda.h"
#include "support/dice.h"
#include "vv_test.h"

enum { HOST_OPS = 1 << 14, HOST_BLOCKS = 512, HOST_ARG = 128, HOST_GARBAGE = 0xa5, HOST_DIRTY = 1 << 20 };

/* ---- calls that fail ------------------------------------------------------------------------------------------------------------- */

static long host_calls, host_fail_at; /* the call of this number fails; 0: none */

static bool host_fails(void)
{
	return ++host_calls == host_fail_at;
}

/* The n-th call from now on fails, once; 0: none does. */
static inline void host_fail(long n)
{
	host_calls = 0;
	host_fail_at = n;
}

cudaError_t cudaGetLastError(void)
{
	return cudaSuccess;
}

const char *cudaGetErrorString(cudaError_t e)
{
	(void)e;
	return "made to fail";
}

cudaError_t cudaGetDevice(int *device)
{
	*device = 0;
	return host_fails() ? cudaErrorUnknown : cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
	(void)device;
	return cudaSuccess;
}

/* A thread's mode is what it was set to last. */
static enum cudaStreamCaptureMode host_capture = cudaStreamCaptureModeGlobal;

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
	enum cudaStreamCaptureMode was = host_capture;

	host_capture = *mode;
	*mode = was;
	return cudaSuccess;
}

/* ---- streams and events ---------------------------------------------------------------------------------------------------------- */

/* A stream is a pointer to its number, an event one to the operation that it was recorded by, or -1. */
enum host_kind { HOST_COPY, HOST_SET, HOST_RECORD, HOST_WAIT, HOST_CALL };

static struct host_op {
	cudaStream_t stream;
	enum host_kind kind;
	void *to;
	const void *from;
	size_t n;
	int value;
	long after; /* of WAIT: the operation, or -1 */
	void (*fn)(void *arg);
	_Alignas(16) uint8_t arg[HOST_ARG];
	bool done;
} host_op[HOST_OPS];
static long host_ops;
static size_t host_handles; /* streams and events that are there */

static void host_do(struct host_op *op)
{
	if (op->kind == HOST_COPY && op->n)
		memmove(op->to, op->from, op->n);
	else if (op->kind == HOST_SET && op->n)
		memset(op->to, op->value, op->n);
	else if (op->kind == HOST_CALL)
		op->fn(op->arg);
	op->done = true;
}

/* All of a stream up to an operation, and of others only what it waits for. */
static void host_run(cudaStream_t stream, long last)
{
	for (long i = 0; i <= last; i++) {
		struct host_op *op = &host_op[i];

		if (op->done || op->stream != stream)
			continue;
		if (op->kind == HOST_WAIT && op->after >= 0)
			host_run(host_op[op->after].stream, op->after);
		host_do(op);
	}
}

static void host_run_all(void)
{
	for (long i = 0; i < host_ops; i++)
		host_run(host_op[i].stream, i);
}

static cudaError_t host_push(struct host_op op)
{
	if (host_fails())
		return cudaErrorLaunchFailure;
	CHECK(host_ops < HOST_OPS);
	host_op[host_ops++] = op;
	if (upto(3) == 0) { /* one stream is ahead of the others */
		long i = (long)upto((size_t)host_ops - 1);

		host_run(host_op[i].stream, i);
	}
	return cudaSuccess;
}

/* A kernel: fn with a copy of its arguments. */
static inline int host_launch(cudaStream_t stream, void (*fn)(void *arg), const void *arg, size_t n)
{
	struct host_op op = {.stream = stream, .kind = HOST_CALL, .fn = fn};

	CHECK(n <= HOST_ARG);
	memcpy(op.arg, arg, n);
	return vv_cuda_check(host_push(op), "a kernel");
}

static void *host_handle(void)
{
	long *p = malloc(sizeof(*p));

	CHECK(p);
	*p = -1;
	host_handles++;
	return p;
}

static void host_drop_handle(void *p)
{
	CHECK(p && host_handles > 0);
	host_handles--;
	free(p);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	(void)kind;
	return host_push((struct host_op){.stream = stream, .kind = HOST_COPY, .to = to, .from = from, .n = n});
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t n, cudaStream_t stream)
{
	return host_push((struct host_op){.stream = stream, .kind = HOST_SET, .to = to, .value = value, .n = n});
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	host_run(stream, host_ops - 1);
	return host_fails() ? cudaErrorLaunchFailure : cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned flags, int priority)
{
	(void)flags, (void)priority;
	if (host_fails())
		return cudaErrorUnknown;
	*out = host_handle();
	return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags)
{
	return cudaStreamCreateWithPriority(out, flags, 0);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
	*least = 0;
	*greatest = -2;
	return host_fails() ? cudaErrorUnknown : cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
	host_run(stream, host_ops - 1);
	host_drop_handle(stream);
	return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags)
{
	(void)flags;
	if (host_fails())
		return cudaErrorUnknown;
	*out = host_handle();
	return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t e)
{
	host_drop_handle(e);
	return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t stream)
{
	cudaError_t rc = host_push((struct host_op){.stream = stream, .kind = HOST_RECORD});

	if (rc == cudaSuccess)
		*(long *)(void *)e = host_ops - 1;
	return rc;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t e, unsigned flags)
{
	(void)flags;
	return host_push((struct host_op){.stream = stream, .kind = HOST_WAIT, .after = *(long *)(void *)e});
}

cudaError_t cudaEventSynchronize(cudaEvent_t e)
{
	long at = *(long *)(void *)e;

	if (at >= 0)
		host_run(host_op[at].stream, at);
	return host_fails() ? cudaErrorLaunchFailure : cudaSuccess;
}

/* Now and then work goes on by itself. */
cudaError_t cudaEventQuery(cudaEvent_t e)
{
	long at = *(long *)(void *)e;

	if (at >= 0 && upto(2) == 0)
		host_run(host_op[at].stream, at);
	if (host_fails())
		return cudaErrorLaunchFailure;
	return at < 0 || host_op[at].done ? cudaSuccess : cudaErrorNotReady;
}

/* ---- memory ---------------------------------------------------------------------------------------------------------------------- */

static struct {
	void *p;
	size_t n;
} host_block[HOST_BLOCKS];
static size_t host_blocks, host_bytes, host_peak;

static cudaError_t host_get(void **out, size_t n)
{
	if (host_fails())
		return cudaErrorMemoryAllocation;
	CHECK(host_blocks < HOST_BLOCKS && n > 0);
	CHECK(posix_memalign(out, 256, n) == 0);
	memset(*out, HOST_GARBAGE, n < HOST_DIRTY ? n : HOST_DIRTY);
	host_block[host_blocks].p = *out;
	host_block[host_blocks++].n = n;
	host_bytes += n;
	host_peak = host_bytes > host_peak ? host_bytes : host_peak;
	return cudaSuccess;
}

/* Waits for all work first, as the runtime does. */
static void host_put(void *p)
{
	size_t i = 0;

	host_run_all();
	while (i < host_blocks && host_block[i].p != p)
		i++;
	CHECK(i < host_blocks);
	host_bytes -= host_block[i].n;
	host_block[i] = host_block[--host_blocks];
	free(p);
}

/* The bytes of a block; 0: there is none at p. */
static inline size_t host_size(const void *p)
{
	for (size_t i = 0; i < host_blocks; i++)
		if (host_block[i].p == p)
			return host_block[i].n;
	return 0;
}

cudaError_t cudaMalloc(void **out, size_t n)
{
	return host_get(out, n);
}

cudaError_t cudaFree(void *p)
{
	host_put(p);
	return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **out, size_t n, unsigned flags)
{
	(void)flags;
	return host_get(out, n);
}

cudaError_t cudaFreeHost(void *p)
{
	host_put(p);
	return cudaSuccess;
}

/* At the end of a case: nothing is left, and operations begin anew. */
static inline void host_end(void)
{
	host_run_all();
	CHECK_EQ(host_capture, cudaStreamCaptureModeGlobal);
	CHECK_EQ(host_blocks, 0);
	CHECK_EQ(host_handles, 0);
	host_ops = 0;
	host_peak = 0;
	host_fail(0);
}

#endif
