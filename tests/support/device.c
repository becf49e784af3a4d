#include "support/device.h"
#include "base/clock.h"
#include "base/err.h"
#include "vv_test.h"
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <time.h>

enum { ODD = 16, ALIGN = 256 }; /* memory of a device lies at multiples of this */

const struct vv_space *device_space(void)
{
	const struct vv_space *space = vv_space_cuda();

	if (space->present())
		SKIP(vv_err_last());
	return space;
}

void *device_get(size_t len)
{
	void *p = NULL;

	CHECK_EQ(cudaMalloc(&p, len + 1), cudaSuccess);
	return p;
}

void device_put(void *p)
{
	CHECK_EQ(cudaFree(p), cudaSuccess);
}

void *device_get_odd(size_t len)
{
	static const uint8_t shift[] = { 3, 4, 8, 1, 12, 16 };
	static unsigned turn;

	return (uint8_t *)device_get(len + ODD) + shift[turn++ % sizeof(shift)];
}

void device_put_odd(void *p)
{
	device_put((void *)((uintptr_t)p / ALIGN * ALIGN));
}

void *device_hoard(size_t leave)
{
	enum { STEP = 1 << 20 };
	size_t there = 0, all = 0;
	void *p = NULL;

	CHECK_EQ(cudaMemGetInfo(&there, &all), cudaSuccess);
	for (; there > leave; there -= STEP) /* what is there need not be in one piece */
		if (cudaMalloc(&p, there - leave) == cudaSuccess)
			return p;
	CHECK_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
	return NULL;
}

void *device_get_managed(size_t len)
{
	void *p = NULL;

	CHECK_EQ(cudaMallocManaged(&p, len, cudaMemAttachGlobal), cudaSuccess);
	return p;
}

int device_count(void)
{
	int n = 0;

	CHECK_EQ(cudaGetDeviceCount(&n), cudaSuccess);
	return n;
}

int device_current(void)
{
	int device = -1;

	CHECK_EQ(cudaGetDevice(&device), cudaSuccess);
	return device;
}

void device_choose(int device)
{
	CHECK_EQ(cudaSetDevice(device), cudaSuccess);
}

/* ---- streams ------------------------------------------------------------------------------------------------------------------- */

void *device_stream(void)
{
	cudaStream_t s;

	CHECK_EQ(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), cudaSuccess);
	return s;
}

void device_stream_end(void *stream)
{
	CHECK_EQ(cudaStreamSynchronize(stream), cudaSuccess);
	CHECK_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

void device_set_on(void *stream, void *p, int value, size_t len)
{
	CHECK_EQ(cudaMemsetAsync(p, value, len, stream), cudaSuccess);
}

void device_copy_on(void *stream, void *to, const void *from, size_t len)
{
	CHECK_EQ(cudaMemcpyAsync(to, from, len, cudaMemcpyDefault, stream), cudaSuccess);
}

void device_capture_begin(void *stream)
{
	CHECK_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
}

bool device_capture_end(void *stream)
{
	cudaGraph_t graph = NULL;
	cudaError_t e = cudaStreamEndCapture(stream, &graph);

	if (e != cudaSuccess) {
		fprintf(stderr, "capture: %s\n", cudaGetErrorString(e));
		cudaGetLastError();
		return false;
	}
	CHECK_EQ(cudaGraphDestroy(graph), cudaSuccess);
	return true;
}

static void stand_at(void *arg)
{
	struct device_gate *g = arg;
	double end = vv_clock_s() + g->seconds;

	while (!atomic_load(&g->go) && vv_clock_s() < end)
		nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
	atomic_store(&g->passed, true);
}

void device_gate_on(void *stream, struct device_gate *gate)
{
	CHECK_EQ(cudaLaunchHostFunc(stream, stand_at, gate), cudaSuccess);
}
