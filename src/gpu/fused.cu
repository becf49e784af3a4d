/* The one pass over all bytes: digests of grains, compared with those of the last epoch. A warp has
 * a tile of 32 grains at a time. If the sum of the tile's digests is unchanged, no other state of
 * the tile is accessed. That is 16 bytes read and 4 bytes written for each 32 grains. */
#include "gpu/block_scan.cuh"
#include "gpu/launch.cuh"
#include "gpu/long.cuh"
#include "gpu/xxh3_short.cuh"
#include <cuda_pipeline.h>

enum {
	STEP = 4096, /* bytes that a warp requests at once */
	STEPS = 4,   /* of a warp: few, so that the work on earlier slices gets a turn soon */
	SHORT_BLOCK = 128,
	SHORT_WARPS = SHORT_BLOCK / WARP,
};

struct place { /* a tile in its span */
	const uint8_t *p;
	uint32_t n;   /* grains that are present */
	uint32_t had; /* and that were present */
};

__device__ __forceinline__ place place_of(const vv_gpu_numbers &g, uint32_t tile)
{
	uint32_t number = tile * VV_GRAIN_TILE;
	const vv_gpu_span &s = span_of(g, number);
	uint32_t index = number - s.first;

	return { s.p + (uint64_t)index * g.chunk, s.n - index, s.had > index ? s.had - index : 0 };
}

/* A sum of the tile's digests that depends on their order; all lanes get it. It never leaves the
 * device. */
__device__ __forceinline__ vv_digest sum_tile(vv_digest d, bool there)
{
	uint32_t w[4], lane = lane_of();

	for (int i = 0; i < 4; i++) {
		uint32_t word = (uint32_t)(d.w[i / 2] >> 32 * (i % 2));

		w[i] = __reduce_add_sync(~0u, there ? __funnelshift_l(word, word, lane) : 0);
	}
	return { { (uint64_t)w[1] << 32 | w[0] | 1, (uint64_t)w[3] << 32 | w[2] } };
}

/* Lane i has the digest of grain i of the tile. */
__device__ __forceinline__ void compare_tile(const vv_gpu_numbers &g, uint32_t tile, const place &at, vv_digest now)
{
	uint32_t lane = lane_of(), number = tile * VV_GRAIN_TILE + lane;
	bool there = lane < at.n, had = lane < at.had, changed;
	vv_digest sum = sum_tile(now, there);
	uint32_t words[2];

	if (at.had >= min(at.n, (uint32_t)VV_GRAIN_TILE) && equal(sum, load(&g.tile[tile]))) {
		if (lane == 0)
			g.changed[tile] = 0;
		return;
	}
	changed = there && !(had && equal(now, load(&g.digest[number])));
	if (changed)
		store(&g.digest[number], now);
	words[0] = __ballot_sync(~0u, changed);
	words[1] = __ballot_sync(~0u, changed && equal(now, g.blank));
	if (lane == 0) {
		store(&g.tile[tile], sum);
		g.changed[tile] = words[0];
		g.zero[tile] = words[1];
		if (words[0])
			atomicAdd((unsigned long long *)&g.count[tile / VV_GPU_GROUP],
				  (unsigned long long)__popc(words[0] & ~words[1]) << 32 | __popc(words[0]));
	}
}

/* ---- grains of up to 128 bytes: a tile is in shared memory, and a thread hashes one grain ---- */

/* The index of a grain's unit in shared memory: eight neighbours that read the same unit of their
 * grains use eight different banks. */
template <int UNITS> __device__ __forceinline__ int shared_index(int grain, int u)
{
	return grain * UNITS + (u ^ (grain / (8 / UNITS) & (UNITS - 1)));
}

template <int UNITS, bool ALIGNED> __device__ __forceinline__ void fetch_tile(const place &at, uint4 *to)
{
	int units = (int)min(at.n, (uint32_t)VV_GRAIN_TILE) * UNITS;

	for (int k = 0; k < UNITS; k++) {
		int i = k * WARP + lane_of();
		uint4 *shared = &to[shared_index<UNITS>(i / UNITS, i % UNITS)];

		if (i >= units)
			continue;
		if (ALIGNED)
			__pipeline_memcpy_async(shared, at.p + 16 * i, 16);
		else
			*shared = load_anywhere(at.p + 16 * i);
	}
}

template <int UNITS> __device__ __forceinline__ vv_digest digest_in(const uint4 *tile)
{
	int grain = lane_of();

	return xxh3::digest_short<UNITS>([&](int u) { return xxh3::unit_of(tile[shared_index<UNITS>(grain, u)]); }, 0);
}

/* A warp has TILES tiles at a time, which make a step. While it hashes one step, the next is being
 * loaded. */
template <int UNITS, bool ALIGNED>
__global__ void __launch_bounds__(SHORT_BLOCK, 6) fused_short(const vv_gpu_numbers g, uint32_t tile, uint32_t end)
{
	constexpr int TILES = STEP / 16 / UNITS / WARP;
	__shared__ uint4 shared[SHORT_WARPS][2][STEP / 16];
	uint4(*step)[STEP / 16] = shared[threadIdx.x / WARP];
	place at[2][TILES];

	tile += (blockIdx.x * SHORT_WARPS + threadIdx.x / WARP) * STEPS * TILES;
	end = min(end, tile + STEPS * TILES);
	for (int now = -1; now < STEPS; now++) {
#pragma unroll
		for (int i = 0; i < TILES; i++)
			if (now + 1 < STEPS && tile + (now + 1) * TILES + i < end) {
				at[1][i] = place_of(g, tile + (now + 1) * TILES + i);
				fetch_tile<UNITS, ALIGNED>(at[1][i], step[(now + 1) & 1] + i * UNITS * WARP);
			}
		__pipeline_commit();
		if (now >= 0) {
			__pipeline_wait_prior(1);
			__syncwarp();
#pragma unroll
			for (int i = 0; i < TILES; i++)
				if (tile + now * TILES + i < end)
					compare_tile(g, tile + now * TILES + i, at[0][i], digest_in<UNITS>(step[now & 1] + i * UNITS * WARP));
			__syncwarp();
		}
#pragma unroll
		for (int i = 0; i < TILES; i++)
			at[0][i] = at[1][i];
	}
}

/* ---- grains of 256 bytes and more: four threads hash one, directly from memory --------------- */

template <int STRIPES, bool ALIGNED>
__global__ void __launch_bounds__(VV_GPU_BLOCK, 4) fused_long(const vv_gpu_numbers g, uint32_t tile, uint32_t end)
{
	__shared__ xxh3::long_secret secret;
	int lane = lane_of(), quarter = lane % xxh3::QUARTERS;

	xxh3::fill_secret(secret, threadIdx.x);
	__syncthreads();
	tile += blockIdx.x * WARPS + threadIdx.x / WARP;
	if (tile >= end)
		return;

	place at = place_of(g, tile);
	vv_digest mine = {};

	for (int i = 0; i < xxh3::QUARTERS; i++) {
		uint32_t grain = lane - quarter + i;
		xxh3::accumulator acc = {};

		if (grain < at.n)
			acc = accumulate_grain<STRIPES, ALIGNED>(at.p + (uint64_t)grain * g.chunk, g.chunk, secret, quarter);
		vv_digest d = xxh3::finish_long(acc, secret, quarter, g.chunk);

		if (i == quarter)
			mine = d;
	}
	compare_tile(g, tile, at, mine);
}

/* ---- launching ------------------------------------------------------------------------------- */

template <int UNITS, bool ALIGNED> static int run_short(const vv_gpu_numbers *g, uint32_t tile, uint32_t tiles, cudaStream_t stream)
{
	constexpr int TILES = STEP / 16 / UNITS / WARP;

	return launch_wide("the dedup pass", fused_short<UNITS, ALIGNED>, blocks_for(tiles, SHORT_WARPS * STEPS * TILES), SHORT_BLOCK, stream,
			   *g, tile, tile + tiles);
}

template <int STRIPES, bool ALIGNED> static int run_long(const vv_gpu_numbers *g, uint32_t tile, uint32_t tiles, cudaStream_t stream)
{
	return launch("the dedup pass", fused_long<STRIPES, ALIGNED>, blocks_for(tiles, WARPS), stream, *g, tile, tile + tiles);
}

template <bool ALIGNED> static int run(const vv_gpu_numbers *g, uint32_t tile, uint32_t tiles, cudaStream_t stream)
{
	switch (g->chunk) {
	case 32:
		return run_short<2, ALIGNED>(g, tile, tiles, stream);
	case 64:
		return run_short<4, ALIGNED>(g, tile, tiles, stream);
	case 128:
		return run_short<8, ALIGNED>(g, tile, tiles, stream);
	case 256:
		return run_long<4, ALIGNED>(g, tile, tiles, stream);
	default:
		return run_long<8, ALIGNED>(g, tile, tiles, stream);
	}
}

int vv_fused_run(const struct vv_gpu_numbers *g, uint32_t tile, uint32_t tiles, bool aligned, cudaStream_t stream)
{
	return aligned ? run<true>(g, tile, tiles, stream) : run<false>(g, tile, tiles, stream);
}

/* ---- counts ---------------------------------------------------------------------------------- */

__global__ void tally(uint64_t *count, uint64_t *total)
{
	uint64_t all, before = scan_block(count[threadIdx.x], &all);

	count[threadIdx.x] = before;
	if (threadIdx.x == 0)
		*total = all;
}

int vv_fused_tally(const struct vv_gpu_numbers *g, uint32_t slice, uint64_t *total, cudaStream_t stream)
{
	static_assert(VV_GPU_GROUPS == VV_GPU_BLOCK, "a block counts a slice");

	return launch("counting what has changed", tally, 1, stream, g->count + (size_t)slice * VV_GPU_GROUPS, total);
}

/* Is the number in one of the ranges? */
__device__ bool among(const vv_number_range *range, uint32_t n, uint32_t number)
{
	uint32_t lo = 0, hi = n;

	while (lo < hi) { /* finds the first range that begins after it */
		uint32_t mid = (lo + hi) / 2;

		if (range[mid].at <= number)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo > 0 && number - range[lo - 1].at < range[lo - 1].len;
}

__global__ void mark(const vv_gpu_numbers g, uint32_t tiles, const vv_number_range *range, uint32_t n)
{
	uint32_t tile = blockIdx.x * WARPS + threadIdx.x / WARP, lane = lane_of(), number = tile * VV_GRAIN_TILE + lane;

	if (tile >= tiles)
		return;

	bool there = lane < place_of(g, tile).n && among(range, n, number);
	bool zero = there && equal(load(&g.digest[number]), g.blank);
	uint32_t word = __ballot_sync(~0u, there && !zero);

	if (lane == 0) {
		g.changed[tile] = word;
		g.zero[tile] = 0;
		if (word)
			atomicAdd((unsigned long long *)&g.count[tile / VV_GPU_GROUP], (unsigned long long)__popc(word) << 32 | __popc(word));
	}
}

int vv_fused_mark(const struct vv_gpu_numbers *g, uint32_t tiles, const struct vv_number_range *range, uint32_t n, cudaStream_t stream)
{
	return launch("marking what is known", mark, blocks_for(tiles, WARPS), stream, *g, tiles, range, n);
}
