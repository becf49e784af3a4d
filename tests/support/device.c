#include "support/device.h"
#include "base/err.h"
#include "vv_test.h"
#include <cuda_runtime_api.h>

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
