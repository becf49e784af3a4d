/* Sums and scans over a block of VV_GPU_BLOCK threads; all of them must call. */
#ifndef VV_GPU_BLOCK_SCAN_CUH
#define VV_GPU_BLOCK_SCAN_CUH

#include "gpu/device.cuh"

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

#endif
