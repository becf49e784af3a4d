/* Small functions that kernels share. */
#ifndef VV_GPU_DEVICE_CUH
#define VV_GPU_DEVICE_CUH

#include "gpu/kernels.h"

enum { WARP = 32, WARPS = VV_GPU_BLOCK / WARP };

__device__ __forceinline__ int lane_of()
{
	return threadIdx.x % WARP;
}

__device__ __forceinline__ uint32_t low_bits(uint32_t n)
{
	return n < 32 ? (1u << n) - 1 : ~0u;
}

__device__ __forceinline__ bool equal(vv_digest a, vv_digest b)
{
	return a.w[0] == b.w[0] && a.w[1] == b.w[1];
}

/* Digests are moved as 16 bytes at once. */
__device__ __forceinline__ vv_digest load(const vv_digest *p)
{
	ulonglong2 v = *(const ulonglong2 *)p;

	return { { v.x, v.y } };
}

__device__ __forceinline__ void store(vv_digest *p, vv_digest d)
{
	*(ulonglong2 *)p = make_ulonglong2(d.w[0], d.w[1]);
}

/* The span of a number. */
__device__ __forceinline__ const vv_gpu_span &span_of(const vv_gpu_numbers &g, uint32_t number)
{
	uint32_t lo = 0, hi = g.n_span;

	while (hi - lo > 1) {
		uint32_t mid = (lo + hi) / 2;

		if (g.span[mid].first <= number)
			lo = mid;
		else
			hi = mid;
	}
	return g.span[lo];
}

/* 16 bytes from anywhere. */
__device__ __forceinline__ uint4 load_anywhere(const uint8_t *p)
{
	uint32_t w[4];

	if ((uintptr_t)p % 16 == 0)
		return __ldcs((const uint4 *)p);
	if ((uintptr_t)p % 4 == 0) {
		for (int i = 0; i < 4; i++)
			w[i] = __ldcs((const uint32_t *)p + i);
	} else {
		for (int i = 0; i < 4; i++)
			w[i] = p[4 * i] | p[4 * i + 1] << 8 | p[4 * i + 2] << 16 | (uint32_t)p[4 * i + 3] << 24;
	}
	return make_uint4(w[0], w[1], w[2], w[3]);
}

#endif
