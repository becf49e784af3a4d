/* Handles a room that has arrived on the device: checks the digests of its chunks and moves its
 * bytes to their places. */
#include "gpu/launch.cuh"
#include "gpu/long.cuh"

enum { CHECKS = VV_GPU_BLOCK / xxh3::QUARTERS };

/* Four threads for each chunk. Threads without a chunk take part: digests are summed over the
 * warp. */
__device__ void check(const vv_gpu_landing &l, uint32_t block)
{
	__shared__ xxh3::long_secret secret;
	uint32_t i = block * CHECKS + threadIdx.x / xxh3::QUARTERS, len;
	int quarter = threadIdx.x % xxh3::QUARTERS;
	const uint8_t *p;

	xxh3::fill_secret(secret, threadIdx.x);
	__syncthreads();
	p = i < l.n_checks ? l.bytes + l.check[i].at : l.bytes;
	len = i < l.n_checks ? l.check[i].len : 0;

	xxh3::accumulator acc = accumulate_grain<VV_DEVICE_INLET_UNIT / xxh3::STRIPE, true>(p, len, secret, quarter);
	vv_digest got = xxh3::finish_long(acc, secret, quarter, len);

	if (i < l.n_checks && quarter == 0 && !equal(got, l.check[i].want))
		*l.differs = 1;
}

/* A warp for each move, 16 bytes for each of its threads. Bytes before the first and after the last
 * multiple of 16 are written singly. */
template <class Get, class Get16> __device__ __forceinline__ void put(uint8_t *to, uint32_t len, const Get &get, const Get16 &get16)
{
	uint32_t head = min(len, (uint32_t)(-(uintptr_t)to % 16)), units = (len - head) / 16, tail = head + units * 16;

	for (uint32_t i = lane_of(); i < head; i += WARP)
		to[i] = get(i);
	for (uint32_t u = lane_of(); u < units; u += WARP)
		*(uint4 *)(to + head + 16 * u) = get16(head + 16 * u);
	for (uint32_t i = tail + lane_of(); i < len; i += WARP)
		to[i] = get(i);
}

__device__ void place(const vv_gpu_landing &l, uint32_t block)
{
	uint32_t i = block * WARPS + threadIdx.x / WARP;

	if (i >= l.n_moves)
		return;

	vv_device_inlet_move m = l.move[i];
	const uint8_t *from = l.bytes + m.from;

	if (m.from == VV_DEVICE_INLET_ZERO)
		put(l.to + m.to, m.len, [](uint32_t) { return (uint8_t)0; }, [](uint32_t) { return make_uint4(0, 0, 0, 0); });
	else
		put(l.to + m.to, m.len, [=](uint32_t k) { return from[k]; }, [=](uint32_t k) { return load_anywhere(from + k); });
}

/* One launch: a launch takes the host longer than the device. */
__global__ void land(const vv_gpu_landing l, uint32_t checking)
{
	if (blockIdx.x < checking)
		check(l, blockIdx.x);
	else
		place(l, blockIdx.x - checking);
}

int vv_land_run(const struct vv_gpu_landing *l, cudaStream_t stream)
{
	uint32_t checking = blocks_for(l->n_checks, CHECKS);

	return launch("checking stored bytes and putting them in their places", land, checking + blocks_for(l->n_moves, WARPS), stream, *l, checking);
}
