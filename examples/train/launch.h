/* One source for the GPU and the CPU. A kernel is a loop whose iterations do not depend on each other:
 *
 *	KERNEL void scale(int n, float *y, float by)
 *	{
 *		EACH (i, n)
 *			y[i] *= by;
 *	}
 *	...
 *	RUN(scale, n, y, 2.0f);
 *
 * nvcc makes a thread of each iteration, any other compiler an ordinary loop. Every number is computed by one
 * iteration, in a fixed order, without atomics: so each run gives the same bits. */
#ifndef LAUNCH_H
#define LAUNCH_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __CUDACC__

#define KERNEL static __global__
#define INLINE static inline __host__ __device__
#define EACH(i, n) for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < (n); i += (int)(gridDim.x * blockDim.x))
#define RUN(kernel, n, ...) kernel<<<((n) + 127) / 128, 128>>>(n, __VA_ARGS__)

static inline void check(cudaError_t rc)
{
	if (rc != cudaSuccess) {
		fprintf(stderr, "train: CUDA: %s\n", cudaGetErrorString(rc));
		exit(1);
	}
}

static inline void *new_array(size_t n, size_t size)
{
	void *p = NULL;

	check(cudaMalloc(&p, n * size));
	check(cudaMemset(p, 0, n * size));
	return p;
}

/* Between the host and the device, in either direction; waits for all kernels before it. */
static inline void copy(void *to, const void *from, size_t bytes)
{
	check(cudaGetLastError());
	check(cudaMemcpy(to, from, bytes, cudaMemcpyDefault));
}

#else

#define KERNEL static
#define INLINE static inline
#define EACH(i, n) for (int i = 0; i < (n); i++)
#define RUN(kernel, n, ...) kernel(n, __VA_ARGS__)

static inline void *new_array(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (!p) {
		fprintf(stderr, "train: there is no memory for %zu bytes\n", n * size);
		exit(1);
	}
	return p;
}

static inline void copy(void *to, const void *from, size_t bytes)
{
	memcpy(to, from, bytes);
}

#endif
#endif
