/* Where each grain that has changed comes from (docs/dedup.md, section 3). The items of a batch are in the order of their numbers, so of those
 * with the same digest the least is the one that comes first. */
#include "gpu/batch.cuh"
#include "gpu/table.cuh"

/* In `from`, until all is resolved: as the item with this index. No item is REPEAT yet. */
#define AS_ITEM KIND(VV_PIECE_REPEAT)

/* ---- items */

/* A block has a group of tiles; a warp writes the items of one tile after the other. */
__global__ void expand(const vv_gpu_batch b, uint32_t begin, uint32_t end, uint32_t base)
{
	const vv_gpu_numbers &g = b.of;
	uint32_t group = begin / VV_GPU_GROUP_NUMBERS + blockIdx.x, tile = group * VV_GPU_GROUP + threadIdx.x, lane = lane_of();
	uint32_t changed = tile < end / VV_GRAIN_TILE ? g.changed[tile] : 0, zero = changed ? g.zero[tile] & changed : 0;
	uint64_t sums = (uint64_t)__popc(changed & ~zero) << 32 | __popc(changed), all;
	uint64_t at = scan_block(sums, &all) + g.count[group] + base;

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

int vv_kinds_expand(const struct vv_gpu_batch *b, uint32_t begin, uint32_t end, uint32_t at, cudaStream_t stream)
{
	return launch("listing what has changed", expand, blocks_for(end - begin, VV_GPU_GROUP_NUMBERS), stream, *b, begin, end, at);
}

/* ---- basic */

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

int vv_kinds_plain(const struct vv_gpu_batch *b, cudaStream_t stream)
{
	return launch_items("listing what is new", plain, b, stream);
}

/* ---- list, tree and run */

__global__ void claim_slots(const vv_gpu_batch b)
{
	uint32_t i = blockIdx.x * VV_GPU_BLOCK + threadIdx.x;

	if (i >= b.n)
		return;
	b.slot[i] = b.item[i] & (VV_GPU_ZERO | VV_GPU_ASIDE) ?
			    b.young.slots :
			    claim(b.young, digest_of(b, i), i, [&](uint32_t other) { return digest_of(b, other); });
}

int vv_kinds_claim(const struct vv_gpu_batch *b, cudaStream_t stream)
{
	return launch_items("looking up digests", claim_slots, b, stream);
}

struct verdicts { /* of a thread */
	uint32_t fresh, copies, promoted, entered;
};

/* The first with its digest, which young does not have: aged may. */
__device__ uint64_t judge_first(const vv_gpu_batch &b, uint32_t i, uint32_t slot, verdicts &v)
{
	vv_digest d = digest_of(b, i);
	uint64_t place = find(b.aged, d);

	v.entered++;
	if (place == VV_GPU_FREE) {
		v.fresh++;
		return KIND(VV_PIECE_NEW);
	}
	settle(b.young, slot, d, place);
	v.promoted++;
	v.copies++;
	return KIND(VV_PIECE_COPY) | place;
}

__device__ uint64_t judge_item(const vv_gpu_batch &b, uint32_t i, verdicts &v)
{
	uint32_t item = b.item[i], slot = b.slot[i];
	uint64_t place;

	if (item & VV_GPU_ZERO)
		return KIND(VV_PIECE_ZERO);
	if (item & VV_GPU_ASIDE) {
		v.fresh++;
		return KIND(VV_PIECE_NEW);
	}
	place = peek(&b.young.place[slot]);
	if (place == (VV_GPU_CLAIM | i))
		return judge_first(b, i, slot, v);
	if (place & VV_GPU_CLAIM) {
		v.copies++;
		return AS_ITEM | (uint32_t)place;
	}
	v.copies++;
	return KIND(VV_PIECE_COPY) | place;
}

__global__ void judge(const vv_gpu_batch b)
{
	uint32_t begin = first_item(), end = min(b.n, begin + VV_GPU_EACH), all;
	verdicts v = {};

	for (uint32_t i = begin; i < end; i++)
		b.from[i] = judge_item(b, i, v);
	scan_block(v.fresh, &all);
	if (threadIdx.x == 0)
		b.portion[blockIdx.x] = all;
	count_block(v.fresh, &b.counts->fresh);
	count_block(v.copies, &b.counts->copies);
	count_block(v.promoted, &b.counts->promoted);
	count_block(v.entered, &b.counts->entered);
}

int vv_kinds_judge(const struct vv_gpu_batch *b, cudaStream_t stream)
{
	return launch_portions("finding out what is new", judge, b, stream);
}

__device__ void place_item(const vv_gpu_batch &b, uint32_t i, uint64_t rank)
{
	uint32_t item = b.item[i], number = b.first + (item & VV_GPU_NUMBER);
	uint64_t k = b.by_number ? number : b.base + rank;

	b.from[i] = KIND(VV_PIECE_NEW) | k;
	b.fresh[rank] = number;
	if (!(item & VV_GPU_ASIDE))
		settle(b.young, b.slot[i], digest_of(b, i), (uint64_t)b.ordinal << 40 | k);
}

__global__ void place(const vv_gpu_batch b)
{
	uint32_t begin = first_item(), end = min(b.n, begin + VV_GPU_EACH), mine = 0, all;
	uint64_t rank = before_block(b.portion, plus());

	for (uint32_t i = begin; i < end; i++)
		mine += kind_of(b.from[i]) == VV_PIECE_NEW;
	rank += scan_block(mine, &all);
	for (uint32_t i = begin; i < end; i++)
		if (kind_of(b.from[i]) == VV_PIECE_NEW)
			place_item(b, i, rank++);
}

int vv_kinds_place(const struct vv_gpu_batch *b, cudaStream_t stream)
{
	return launch_portions("placing what is new", place, b, stream);
}

__global__ void resolve(const vv_gpu_batch b)
{
	uint32_t i = blockIdx.x * VV_GPU_BLOCK + threadIdx.x;
	bool here = false;

	if (i < b.n) {
		uint64_t from = b.from[i];

		if (kind_of(from) == kind_of(AS_ITEM)) {
			uint64_t first = b.from[(uint32_t)from];

			from = is_copy(first) ? first : KIND(VV_PIECE_COPY) | (uint64_t)b.ordinal << 40 | (first & ~KIND(3));
			b.from[i] = from;
		}
		here = is_copy(from) && ordinal_of(from) == b.ordinal;
	}
	count_block(here, &b.counts->here);
}

int vv_kinds_resolve(const struct vv_gpu_batch *b, cudaStream_t stream)
{
	return launch_items("resolving what is known", resolve, b, stream);
}
