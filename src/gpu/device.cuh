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

/* ---- over a block of VV_GPU_BLOCK threads; all of them must call ----------------------------- */

struct plus {
	template <class T> __device__ T operator()(T a, T b) const
	{
		return a + b;
	}
};

struct most {
	template <class T> __device__ T operator()(T a, T b) const
	{
		return a > b ? a : b;
	}
};

/* Reduces by op the values of all threads before this one, 0 if there are none; *all: of all
 * threads. */
template <class T, class Op> __device__ T scan_block(T v, T *all, Op op)
{
	__shared__ T sum[WARPS];
	int warp = threadIdx.x / WARP, lane = lane_of();
	T before;

	for (int d = 1; d < WARP; d *= 2) {
		T below = __shfl_up_sync(~0u, v, d);

		v = lane >= d ? op(below, v) : v;
	}
	before = __shfl_up_sync(~0u, v, 1);
	before = lane ? before : T(0);
	if (lane == WARP - 1)
		sum[warp] = v;
	__syncthreads();
	*all = 0;
	for (int i = 0; i < WARPS; i++) {
		before = i < warp ? op(sum[i], before) : before;
		*all = op(*all, sum[i]);
	}
	__syncthreads();
	return before;
}

template <class T> __device__ __forceinline__ T scan_block(T v, T *all)
{
	return scan_block(v, all, plus());
}

/* The same over warps: v and the result are those of the whole warp. */
template <class T, class Op> __device__ __forceinline__ T scan_warps(T v, T *all, Op op)
{
	return __shfl_sync(~0u, scan_block(lane_of() ? T(0) : v, all, op), 0);
}

/* Reduces by op the values of all blocks before this one. */
template <class Op> __device__ __forceinline__ uint64_t before_block(const uint64_t *portion, Op op)
{
	uint64_t mine = 0, all;

	for (uint32_t i = threadIdx.x; i < blockIdx.x; i += VV_GPU_BLOCK)
		mine = op(mine, portion[i]);
	scan_block(mine, &all, op);
	return all;
}

__device__ __forceinline__ void count_block(uint32_t mine, uint32_t *to)
{
	uint32_t all;

	scan_block(mine, &all);
	if (threadIdx.x == 0 && all)
		atomicAdd(to, all);
}

/* ---- launching ------------------------------------------------------------------------------- */

static inline uint32_t blocks_for(uint64_t things, uint32_t each)
{
	return (uint32_t)((things + each - 1) / each);
}

template <class... P, class... A>
static int launch_wide(const char *what, void (*kernel)(P...), uint32_t blocks, uint32_t threads, cudaStream_t stream, A... args)
{
	cudaLaunchConfig_t c = {};
	cudaError_t e;

	if (blocks == 0)
		return 0;
	c.gridDim = dim3(blocks);
	c.blockDim = dim3(threads);
	c.stream = stream;
	vv_cuda_lock();
	e = cudaLaunchKernelEx(&c, kernel, static_cast<P>(args)...);
	vv_cuda_unlock();
	return vv_cuda_check(e, what);
}

template <class... P, class... A>
static int launch(const char *what, void (*kernel)(P...), uint32_t blocks, cudaStream_t stream, A... args)
{
	return launch_wide(what, kernel, blocks, VV_GPU_BLOCK, stream, args...);
}

#endif
