/* The origin of each changed grain (docs/dedup.md, section 3). The items of a batch are in the
 * order of their numbers. So the least item with a digest is the first one. */
#include "gpu/batch.cuh"
#include "gpu/block_scan.cuh"
#include "gpu/digest_table.cuh"
#include "gpu/launch.cuh"

/* In `from`, until all is resolved: same as the item with this index. No item is REPEAT yet. */
#define AS_ITEM KIND(VV_PIECE_REPEAT)

/* ---- items ----------------------------------------------------------------------------------- */

/* A block has a group of tiles; a warp writes the items of one tile after the other. */
__global__ void expand(const vv_gpu_batch b, uint32_t end, const vv_gpu_starts starts)
{
	const vv_gpu_numbers &g = b.of;
	uint32_t group = b.first / VV_GPU_GROUP_NUMBERS + blockIdx.x, tile = group * VV_GPU_GROUP + threadIdx.x, lane = lane_of();
	uint32_t changed = tile < end / VV_GRAIN_TILE ? g.changed[tile] : 0, zero = changed ? g.zero[tile] & changed : 0;
	uint64_t sums = (uint64_t)__popc(changed & ~zero) << 32 | __popc(changed), all;
	uint64_t at = scan_block(sums, &all) + g.count[group] + starts.item[blockIdx.x / VV_GPU_GROUPS];

	for (uint32_t rest = __ballot_sync(~0u, changed != 0); rest; rest &= rest - 1) {
		int of = __ffs(rest) - 1;
		uint32_t word = __shfl_sync(~0u, changed, of), zeros = __shfl_sync(~0u, zero, of), below = low_bits(lane);
		uint64_t first = __shfl_sync(~0u, at, of);
		uint32_t number = (tile - lane + of) * VV_GRAIN_TILE + lane - b.first;
		uint32_t rank = (uint32_t)(first >> 32) + __popc(word & ~zeros & below);
		uint32_t flags = zeros >> lane & 1 ? VV_GPU_ZERO : rank >= b.take ? VV_GPU_ASIDE : 0;

		if (word >> lane & 1)
			b.item[(uint32_t)first + __popc(word & below)] = number | flags;
	}
}

int vv_origins_expand(const struct vv_gpu_batch *b, uint32_t end, const struct vv_gpu_starts *starts, cudaStream_t stream)
{
	return launch("listing what has changed", expand, blocks_for(end - b->first, VV_GPU_GROUP_NUMBERS), stream, *b, end, *starts);
}

/* ---- basic ----------------------------------------------------------------------------------- */

__global__ void plain(const vv_gpu_batch b)
{
	uint32_t i = blockIdx.x * VV_GPU_BLOCK + threadIdx.x;

	if (i >= b.n)
		return;
	b.from[i] = KIND(VV_PIECE_NEW) | (b.base + i);
	b.fresh[i] = b.first + number_of(b, i);
	if (i == 0)
		b.counts->fresh = b.n;
}

int vv_origins_plain(const struct vv_gpu_batch *b, cudaStream_t stream)
{
	return launch_items("listing what is new", plain, b, stream);
}

/* ---- list, tree and run ---------------------------------------------------------------------- */

/* Only the first items that come to a slot write. */
__device__ void come_to(const vv_gpu_filter &f, uint32_t slot)
{
	uint32_t at = (slot & (f.bits - 1)) / 32, bit = 1u << slot % 32;

	if (!(*(volatile uint32_t *)&f.twice[at] & bit) && atomicOr(&f.once[at], bit) & bit)
		atomicOr(&f.twice[at], bit);
}

__global__ void claim_slots(const vv_gpu_batch b)
{
	uint32_t i = blockIdx.x * VV_GPU_BLOCK + threadIdx.x, slot = b.young.slots;

	if (i >= b.n)
		return;
	if (!(b.item[i] & (VV_GPU_ZERO | VV_GPU_ASIDE))) {
		slot = claim(b.young, digest_of(b, i), i, [&](uint32_t other) { return digest_of(b, other); });
		if (b.filter.bits)
			come_to(b.filter, slot);
	}
	b.slot[i] = slot;
}

int vv_origins_claim(const struct vv_gpu_batch *b, cudaStream_t stream)
{
	size_t bytes = b->filter.bits / 8;
	int rc = 0;

	if (bytes)
		rc = vv_cuda_check(cudaMemsetAsync(b->filter.once, 0, 2 * bytes, stream), "looking up digests");
	return rc ? rc : launch_items("looking up digests", claim_slots, b, stream);
}

/* Counts of the items of a block, packed in one number. */
enum { COUNT = 12 };

static_assert(VV_GPU_PORTION < 1 << COUNT, "a count for each item");

#define ONE_FRESH ((uint64_t)1)
#define ONE_COPY ((uint64_t)1 << COUNT)
#define ONE_PROMOTED ((uint64_t)1 << 2 * COUNT)
#define ONE_ENTERED ((uint64_t)1 << 3 * COUNT)
#define ONE_SHARED ((uint64_t)1 << 4 * COUNT)

__device__ __forceinline__ uint32_t count_in(uint64_t packed_counts, uint64_t one)
{
	return (uint32_t)(packed_counts / one) % (1 << COUNT);
}

/* The first item with its digest, which young does not have. aged may have it. */
__device__ uint64_t judge_first(const vv_gpu_batch &b, uint32_t i, uint32_t slot, uint64_t &packed_counts)
{
	uint64_t place = VV_GPU_FREE;

	if (b.aged.slots) {
		vv_digest d = digest_of(b, i);

		place = find(b.aged, d);
		if (place != VV_GPU_FREE)
			settle(b.young, slot, d, place);
	}
	if (place == VV_GPU_FREE) {
		packed_counts += ONE_ENTERED + ONE_FRESH;
		return KIND(VV_PIECE_NEW);
	}
	packed_counts += ONE_ENTERED + ONE_PROMOTED + ONE_COPY;
	return KIND(VV_PIECE_COPY) | place;
}

/* `place` is the place of the item's slot before any item was judged, or since then. */
__device__ uint64_t judge_item(const vv_gpu_batch &b, uint32_t i, uint32_t item, uint32_t slot, uint64_t place, uint64_t &packed_counts)
{
	if (item & VV_GPU_ZERO)
		return KIND(VV_PIECE_ZERO);
	if (item & VV_GPU_ASIDE) {
		packed_counts += ONE_FRESH;
		return KIND(VV_PIECE_NEW);
	}
	if (place == (VV_GPU_CLAIM | i))
		return judge_first(b, i, slot, packed_counts);
	packed_counts += ONE_COPY;
	return place & VV_GPU_CLAIM ? AS_ITEM | (uint32_t)place : KIND(VV_PIECE_COPY) | place;
}

__device__ __forceinline__ bool is_shared(const vv_gpu_filter &f, uint32_t slot)
{
	return f.bits && f.twice[(slot & (f.bits - 1)) / 32] >> slot % 32 & 1;
}

__global__ void judge(const vv_gpu_batch b)
{
	uint32_t item[VV_GPU_EACH], slot[VV_GPU_EACH];
	uint64_t place[VV_GPU_EACH], packed_counts = 0, all;

#pragma unroll
	for (int k = 0; k < VV_GPU_EACH; k++) {
		item[k] = item_of(k) < b.n ? b.item[item_of(k)] : VV_GPU_ZERO;
		slot[k] = item_of(k) < b.n ? b.slot[item_of(k)] : 0;
	}
#pragma unroll
	for (int k = 0; k < VV_GPU_EACH; k++)
		place[k] = item[k] & (VV_GPU_ZERO | VV_GPU_ASIDE) ? VV_GPU_FREE : peek(&b.young.place[slot[k]]);
#pragma unroll
	for (int k = 0; k < VV_GPU_EACH; k++) {
		uint32_t i = item_of(k);

		if (i >= b.n)
			continue;
		b.from[i] = judge_item(b, i, item[k], slot[k], place[k], packed_counts);
		if (place[k] != VV_GPU_FREE && is_shared(b.filter, slot[k])) {
			b.item[i] = item[k] | VV_GPU_SHARED;
			packed_counts += ONE_SHARED;
		}
	}
	scan_block(packed_counts, &all);
	if (threadIdx.x)
		return;
	b.portion[blockIdx.x] = (uint64_t)count_in(all, ONE_SHARED) << 32 | count_in(all, ONE_FRESH);
	atomicAdd(&b.counts->fresh, count_in(all, ONE_FRESH));
	atomicAdd(&b.counts->copies, count_in(all, ONE_COPY));
	atomicAdd(&b.counts->promoted, count_in(all, ONE_PROMOTED));
	atomicAdd(&b.counts->entered, count_in(all, ONE_ENTERED));
	atomicAdd(&b.counts->shared, count_in(all, ONE_SHARED));
}

int vv_origins_judge(const struct vv_gpu_batch *b, cudaStream_t stream)
{
	return launch_portions("finding out what is new", judge, b, stream);
}

/* Computes ranks: among the NEW items, and << 32 among the shared items. */
__global__ void place(const vv_gpu_batch b)
{
	uint32_t item[VV_GPU_EACH], fresh[VV_GPU_EACH], shared[VV_GPU_EACH];
	uint64_t rank = before_block(b.portion, plus()), mine = 0, all;

#pragma unroll
	for (int k = 0; k < VV_GPU_EACH; k++) {
		uint32_t i = item_of(k);

		item[k] = i < b.n ? b.item[i] : 0;
		fresh[k] = __ballot_sync(~0u, i < b.n && kind_of(b.from[i]) == VV_PIECE_NEW);
		shared[k] = __ballot_sync(~0u, (item[k] & VV_GPU_SHARED) != 0);
		mine += (uint64_t)__popc(shared[k]) << 32 | __popc(fresh[k]);
	}
	rank += scan_warps(mine, &all, plus());
#pragma unroll
	for (int k = 0; k < VV_GPU_EACH; k++) {
		uint32_t i = item_of(k), number = b.first + (item[k] & VV_GPU_NUMBER), bit = 1u << lane_of();
		/* this one included */
		uint64_t here = rank + ((uint64_t)up_to_here(shared[k]) << 32 | up_to_here(fresh[k]));

		if (fresh[k] & bit) {
			b.fresh[(uint32_t)here - 1] = number;
			b.from[i] = KIND(VV_PIECE_NEW) | (b.by_number ? number : b.base + (uint32_t)here - 1);
		}
		if (shared[k] & bit) {
			b.sorting.slot[(here >> 32) - 1] = b.slot[i];
			b.sorting.order[(here >> 32) - 1] = i;
		}
		if (b.filter.bits && i < b.n)
			b.back[i] = 0;
		rank += (uint64_t)__popc(shared[k]) << 32 | __popc(fresh[k]);
	}
}

int vv_origins_place(const struct vv_gpu_batch *b, cudaStream_t stream)
{
	return launch_portions("placing what is new", place, b, stream);
}

__global__ void resolve(const vv_gpu_batch b)
{
	uint32_t i = blockIdx.x * VV_GPU_BLOCK + threadIdx.x;
	uint64_t from = i < b.n ? b.from[i] : 0;

	if (i < b.n && kind_of(from) == VV_PIECE_NEW && !(b.item[i] & VV_GPU_ASIDE))
		settle(b.young, b.slot[i], digest_of(b, i), (uint64_t)b.ordinal << 40 | (from & ~KIND(3)));
	if (i < b.n && kind_of(from) == kind_of(AS_ITEM)) {
		uint64_t first = b.from[(uint32_t)from];

		from = is_copy(first) ? first : KIND(VV_PIECE_COPY) | (uint64_t)b.ordinal << 40 | (first & ~KIND(3));
		b.from[i] = from;
	}
	count_block(i < b.n && is_copy(from) && ordinal_of(from) == b.ordinal, &b.counts->here);
}

int vv_origins_resolve(const struct vv_gpu_batch *b, cudaStream_t stream)
{
	return launch_items("resolving what is known", resolve, b, stream);
}
