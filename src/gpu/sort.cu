/* Sorts pairs of a key and a value by the key, stable: least significant digits first. It is our
 * own, because the library's would bring the C++ runtime into libvarve. A block has VV_GPU_PORTION
 * pairs, each warp an equal share of them. */
#include "gpu/block_scan.cuh"
#include "gpu/device.cuh"
#include "gpu/launch.cuh"

enum { DIGIT = 8, DIGITS = 1 << DIGIT, SHARE = VV_GPU_PORTION / WARPS };

static_assert((int)DIGITS == (int)VV_GPU_BLOCK, "a thread for each digit");

__device__ __forceinline__ uint32_t digit_of(uint32_t key, unsigned shift)
{
	return key >> shift & (DIGITS - 1);
}

/* Counts each digit in each warp's share. All threads of the block must call. */
__device__ void count_digits(const uint32_t *key, uint32_t n, unsigned shift, uint32_t (*count)[DIGITS])
{
	uint32_t warp = threadIdx.x / WARP, begin = blockIdx.x * VV_GPU_PORTION + warp * SHARE;

	for (int w = 0; w < WARPS; w++)
		count[w][threadIdx.x] = 0;
	__syncthreads();
	for (uint32_t i = begin + lane_of(); i < begin + SHARE && i < n; i += WARP)
		atomicAdd(&count[warp][digit_of(key[i], shift)], 1u);
	__syncthreads();
}

/* column[digit * blocks + block]: the number of pairs of the block with the digit. */
__global__ void count_columns(const uint32_t *key, uint32_t n, unsigned shift, uint32_t *column)
{
	__shared__ uint32_t count[WARPS][DIGITS];
	uint32_t sum = 0;

	count_digits(key, n, shift, count);
	for (int w = 0; w < WARPS; w++)
		sum += count[w][threadIdx.x];
	column[threadIdx.x * gridDim.x + blockIdx.x] = sum;
}

/* A block for each digit: its column becomes the sums over the earlier blocks, and total[digit] the
 * sum over all. */
__global__ void sum_columns(uint32_t *column, uint32_t blocks, uint32_t *total)
{
	uint32_t before = 0, all;

	column += blockIdx.x * blocks;
	for (uint32_t begin = 0; begin < blocks; begin += VV_GPU_BLOCK) {
		uint32_t i = begin + threadIdx.x, mine = i < blocks ? column[i] : 0, sum = scan_block(mine, &all);

		if (i < blocks)
			column[i] = before + sum;
		before += all;
	}
	if (threadIdx.x == 0)
		total[blockIdx.x] = before;
}

/* The destination of the first pair of each warp's share with a digit. */
__device__ void place_digits(const uint32_t *column, const uint32_t *total, uint32_t (*place)[DIGITS])
{
	uint32_t all, next = scan_block(total[threadIdx.x], &all) + column[threadIdx.x * gridDim.x + blockIdx.x];

	for (int w = 0; w < WARPS; w++) {
		uint32_t here = place[w][threadIdx.x];

		place[w][threadIdx.x] = next;
		next += here;
	}
	__syncthreads();
}

__global__ void scatter(const uint32_t *key, const uint32_t *value, uint32_t n, unsigned shift, const uint32_t *column,
			const uint32_t *total, uint32_t *key_out, uint32_t *value_out)
{
	__shared__ uint32_t place[WARPS][DIGITS];
	uint32_t warp = threadIdx.x / WARP, lane = lane_of(), begin = blockIdx.x * VV_GPU_PORTION + warp * SHARE;

	count_digits(key, n, shift, place);
	place_digits(column, total, place);
	for (uint32_t i = begin + lane; i - lane < begin + SHARE && i - lane < n; i += WARP) {
		uint32_t k = i < n ? key[i] : 0, digit = i < n ? digit_of(k, shift) : DIGITS + lane;
		uint32_t alike = __match_any_sync(~0u, digit), rank = __popc(alike & low_bits(lane));
		uint32_t at = i < n ? place[warp][digit] + rank : 0;

		__syncwarp();
		if (i < n) {
			key_out[at] = k;
			value_out[at] = value[i];
			if (rank == 0)
				place[warp][digit] += __popc(alike);
		}
		__syncwarp();
	}
}

size_t vv_sort_bytes(uint32_t n)
{
	return ((size_t)blocks_for(n, VV_GPU_PORTION) + 1) * DIGITS * sizeof(uint32_t);
}

int vv_sort_pairs(uint32_t *key[2], uint32_t *value[2], uint32_t n, unsigned bits, void *temp, cudaStream_t stream)
{
	uint32_t blocks = blocks_for(n, VV_GPU_PORTION), *total = (uint32_t *)temp, *column = total + DIGITS;
	int rc = 0;

	for (unsigned shift = 0; rc == 0 && shift < bits && n; shift += DIGIT) {
		uint32_t *k = key[0], *v = value[0];

		rc = launch("sorting", count_columns, blocks, stream, k, n, shift, column);
		if (rc == 0)
			rc = launch("sorting", sum_columns, DIGITS, stream, column, blocks, total);
		if (rc == 0)
			rc = launch("sorting", scatter, blocks, stream, k, v, n, shift, column, total, key[1], value[1]);
		key[0] = key[1];
		key[1] = k;
		value[0] = value[1];
		value[1] = v;
	}
	return rc;
}
