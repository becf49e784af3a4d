/* The method run: contents that occurred before in this epoch, at a fixed distance. All items with
 * one digest share a slot. So the nearest earlier item with the same digest is the previous one of
 * that slot. */
#include "gpu/batch.cuh"
#include "gpu/block_scan.cuh"
#include "gpu/launch.cuh"

/* ---- back: of items that share their digest with another, or may ----------------------------- */

enum { FEW = 8192 }; /* for so few, comparing all pairs is faster than sorting */

__device__ void set_back(const vv_gpu_batch &b, uint32_t item, uint32_t other)
{
	uint32_t number = number_of(b, item), before = number_of(b, other);

	if (number / VV_GRAIN_SLICE == before / VV_GRAIN_SLICE)
		b.back[item] = number - before;
}

/* The index + 1 of the last entry of tile[0..n) equal to this slot; 0: none. */
__device__ __forceinline__ uint32_t last_alike(const uint4 *tile, uint32_t n, uint32_t slot)
{
	uint32_t last = 0;

#pragma unroll 8
	for (uint32_t i = 0; i < VV_GPU_BLOCK; i += 4) {
		uint4 v = tile[i / 4];

		last = v.x == slot && i < n ? i + 1 : last;
		last = v.y == slot && i + 1 < n ? i + 2 : last;
		last = v.z == slot && i + 2 < n ? i + 3 : last;
		last = v.w == slot && i + 3 < n ? i + 4 : last;
	}
	return last;
}

/* A thread for each shared item compares it with the earlier ones, a block of them at a time,
 * nearest first. */
__global__ void look_back_all(const vv_gpu_batch b, uint32_t shared)
{
	__shared__ uint4 tile[VV_GPU_BLOCK / 4];
	const uint32_t *slot = b.sorting.slot, *order = b.sorting.order;
	uint32_t i = blockIdx.x * VV_GPU_BLOCK + threadIdx.x, mine = i < shared ? slot[i] : 0, last = 0, looking = 1;

	for (uint32_t begin = blockIdx.x * VV_GPU_BLOCK + VV_GPU_BLOCK; begin && looking;) {
		uint32_t at;

		begin -= VV_GPU_BLOCK;
		at = begin + threadIdx.x;
		((uint32_t *)tile)[threadIdx.x] = at < shared ? slot[at] : 0;
		__syncthreads();
		if (i < shared && last == 0) {
			last = last_alike(tile, i - begin, mine);
			last = last ? last + begin : 0;
		}
		scan_block((uint32_t)(i < shared && last == 0), &looking);
	}
	if (last)
		set_back(b, order[i], order[last - 1]);
}

/* slot and order are sorted by slot, then by item. */
__global__ void look_back(const vv_gpu_batch b, const uint32_t *slot, const uint32_t *order, uint32_t shared)
{
	uint32_t i = blockIdx.x * VV_GPU_BLOCK + threadIdx.x;

	if (i > 0 && i < shared && slot[i] == slot[i - 1])
		set_back(b, order[i], order[i - 1]);
}

/* Bits that distinguish the slots. */
static unsigned slot_bits(const vv_gpu_table *t)
{
	unsigned bits = 1;

	while (bits < 32 && (t->slots - 1) >> bits)
		bits++;
	return bits;
}

int vv_repeat_back(const struct vv_gpu_batch *b, uint32_t shared, cudaStream_t stream)
{
	const vv_gpu_sorting *s = &b->sorting;
	uint32_t *slot[2] = { s->slot, b->slot }, *order[2] = { s->order, s->order_too };
	int rc;

	if (shared <= FEW)
		return launch("looking back", look_back_all, blocks_for(shared, VV_GPU_BLOCK), stream, *b, shared);
	rc = vv_sort_pairs(slot, order, shared, slot_bits(&b->young), s->temp, stream);
	return rc ? rc : launch("looking back", look_back, blocks_for(shared, VV_GPU_BLOCK), stream, *b, slot[0], order[0], shared);
}

/* ---- compare --------------------------------------------------------------------------------- */

__device__ bool same_bytes(const uint8_t *p, const uint8_t *q, uint32_t chunk)
{
	for (uint32_t at = 0; at < chunk; at += 16) {
		uint4 a = load_anywhere(p + at), b = q ? load_anywhere(q + at) : make_uint4(0, 0, 0, 0);

		if ((a.x ^ b.x) | (a.y ^ b.y) | (a.z ^ b.z) | (a.w ^ b.w))
			return false;
	}
	return true;
}

__global__ void compare(const vv_gpu_batch b)
{
	uint32_t i = blockIdx.x * VV_GPU_BLOCK + threadIdx.x, number, back;
	bool zero;

	if (i >= b.n)
		return;
	number = b.first + number_of(b, i);
	zero = kind_of(b.from[i]) == VV_PIECE_ZERO;
	back = is_copy(b.from[i]) ? b.back[i] : 0;
	if ((zero || back) && !same_bytes(bytes_of(b.of, number), zero ? nullptr : bytes_of(b.of, number - back), b.of.chunk))
		atomicMax((unsigned long long *)&b.counts->differ, ~((unsigned long long)number << 32 | back));
}

int vv_repeat_compare(const struct vv_gpu_batch *b, cudaStream_t stream)
{
	return launch_items("comparing bytes", compare, b, stream);
}

/* ---- choose ---------------------------------------------------------------------------------- */

/* An A-run, COPY of consecutive grains, becomes REPEAT if it is a proper part of a B-run, COPY from
 * one distance. */

__device__ __forceinline__ bool a_goes_on(const vv_gpu_batch &b, uint32_t i)
{
	return goes_on(b, i) && is_copy(b.from[i]);
}

__device__ __forceinline__ bool b_goes_on(const vv_gpu_batch &b, uint32_t i)
{
	return adjoins(b, i) && is_copy(b.from[i]) && is_copy(b.from[i - 1]) && b.back[i] && b.back[i] == b.back[i - 1];
}

/* Of a warp: borders of A-runs and of B-runs before the items of a round. */
struct borders {
	uint32_t a, b;
};

__device__ __forceinline__ borders run_borders(const vv_gpu_batch &b, int round)
{
	uint32_t i = item_of(round);

	return { __ballot_sync(~0u, i < b.n && !a_goes_on(b, i)), __ballot_sync(~0u, i < b.n && !b_goes_on(b, i)) };
}

/* The number of A, << 32: of B. */
__device__ __forceinline__ uint64_t count_of(borders x)
{
	return (uint64_t)__popc(x.b) << 32 | __popc(x.a);
}

__global__ void count_runs(const vv_gpu_batch b)
{
	uint64_t mine = 0, all;

#pragma unroll
	for (int k = 0; k < VV_GPU_EACH; k++)
		mine += count_of(run_borders(b, k));
	scan_warps(mine, &all, plus());
	if (threadIdx.x == 0)
		b.portion[blockIdx.x] = all;
}

/* Of each A-run: the B-runs of its first and its last item, which are equal if it is within one.
 * Also, whether that B-run extends beyond it. */
struct ends {
	uint32_t *first, *last;
};

#define BEYOND (1u << 31)

/* Also stores the A-run of each item. */
__global__ void number_runs(const vv_gpu_batch b, ends e, uint32_t *run)
{
	borders x[VV_GPU_EACH];
	uint64_t mine = 0, all, before = before_block(b.portion, plus());

#pragma unroll
	for (int k = 0; k < VV_GPU_EACH; k++) {
		x[k] = run_borders(b, k);
		mine += count_of(x[k]);
	}
	before += scan_warps(mine, &all, plus());
#pragma unroll
	for (int k = 0; k < VV_GPU_EACH; k++) {
		uint32_t i = item_of(k), bit = 1u << lane_of();
		uint32_t a = (uint32_t)before + up_to_here(x[k].a) - 1, in = (uint32_t)(before >> 32) + up_to_here(x[k].b);

		before += count_of(x[k]);
		if (i >= b.n)
			continue;
		run[i] = a;
		if (x[k].a & bit)
			e.first[a] = in | (x[k].b & bit ? 0 : BEYOND);
		if (i + 1 == b.n || !a_goes_on(b, i + 1))
			e.last[a] = in | (i + 1 < b.n && b_goes_on(b, i + 1) ? BEYOND : 0);
	}
}

__global__ void choose(const vv_gpu_batch b, ends e, const uint32_t *run)
{
	uint32_t i = blockIdx.x * VV_GPU_BLOCK + threadIdx.x, first, last;

	if (i >= b.n || !is_copy(b.from[i]))
		return;
	first = e.first[run[i]];
	last = e.last[run[i]];
	if ((first & ~BEYOND) == (last & ~BEYOND) && (first | last) & BEYOND)
		b.from[i] = KIND(VV_PIECE_REPEAT) | b.back[i];
}

int vv_repeat_choose(const struct vv_gpu_batch *b, cudaStream_t stream)
{
	const vv_gpu_sorting *s = &b->sorting;
	ends e = { s->order, s->order_too };
	int rc = launch_portions("counting runs", count_runs, b, stream);

	if (rc == 0)
		rc = launch("numbering runs", number_runs, blocks_for(b->n, VV_GPU_PORTION), stream, *b, e, s->slot);
	return rc ? rc : launch("choosing runs", choose, blocks_for(b->n, VV_GPU_BLOCK), stream, *b, e, (const uint32_t *)s->slot);
}
